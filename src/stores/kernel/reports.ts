import { markExpiry } from './order.ts';
import type { Step } from './step.ts';

/**
 * Media buys whose final report came are kept beside the notification ids; the control character keeps the two
 * apart, for receivers hand in ids of printable ASCII.
 */
const finalId = (mediaBuyId: string): string => `\u0001${mediaBuyId}`;

/** A `final` report of one of these media buys came before, under another key: after it no report should come. */
export function isAfterFinal({ rows, request, now }: Step): boolean {
  const { event, sender } = request;
  return (event?.report?.mediaBuyIds ?? []).some((id) => {
    const known = rows.notification(sender, finalId(id), now);
    return known !== undefined && known.key !== event?.key;
  });
}

/** Remembers the first `final` report of each media buy. */
export function noteFinal({ rows, request, now }: Step): void {
  const { event, sender, retentionMs } = request;
  if (!event?.report?.final) return;
  for (const mediaBuyId of event.report.mediaBuyIds) {
    const id = finalId(mediaBuyId);
    const key = rows.notification(sender, id, now)?.key ?? event.key;
    rows.saveNotification({ sender, id, key, expiresAt: markExpiry(now, retentionMs) });
  }
}
