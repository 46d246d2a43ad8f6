import { markExpiry } from './order.ts';
import type { Step } from './step.ts';

/**
 * Media buys whose final report came are kept beside the notification ids; the control character keeps the two
 * apart, for receivers hand in ids of printable ASCII.
 */
const finalId = (mediaBuyId: string): string => `\u0001${mediaBuyId}`;

/**
 * At insertion: remembers the first `final` report of each media buy, and says whether one of them came before
 * under another key; after it no report should come.
 */
export function noteReport({ rows, request, now }: Step): boolean {
  const { event, sender, retentionMs } = request;
  let afterFinal = false;
  for (const mediaBuyId of event?.report?.mediaBuyIds ?? []) {
    const id = finalId(mediaBuyId);
    const known = rows.notification(sender, id, now);
    if (known && known.key !== event?.key) afterFinal = true;
    if (!event?.report?.final) continue;
    const key = known?.key ?? event.key;
    rows.saveNotification({ sender, id, key, expiresAt: markExpiry(now, retentionMs) });
  }
  return afterFinal;
}
