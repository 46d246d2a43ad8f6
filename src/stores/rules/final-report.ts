import type { EventClaim, MediaBuyClaim, ReportClaim } from '../store.ts';
import { markExpiry } from './order.ts';
import type { Accepting } from './task-wait.ts';

/**
 * Media buys whose final report came are kept beside the notification ids; the control character keeps the two
 * apart, for receivers hand in ids of printable ASCII.
 */
export const finalId = (mediaBuyId: string): string => `\u0001${mediaBuyId}`;

/**
 * At insertion: whether the event came after the final report of its media buy, after which nothing should come
 * (admission.md §5.7 and §5.8). Of reports it is the order in which they come, of other events their own time: what was
 * sent before the report may well come behind it.
 */
export function isAfterFinal(step: Accepting): boolean {
  const { event } = step.request;
  if (event?.report) return noteReport(step, event.key, event.report);
  return event?.mediaBuy !== undefined && isLater(step, event.key, event.mediaBuy);
}

function isLater({ rows, request, now }: Accepting, key: string, { id, instant }: MediaBuyClaim): boolean {
  const known = rows.notification(request.sender, finalId(id), now);
  return known !== undefined && known.key !== key && known.instant !== null && instant > known.instant;
}

/**
 * Remembers the first `final` report of each media buy, and says whether one of them came before under another key.
 */
function noteReport({ rows, request, now }: Accepting, own: string, report: ReportClaim): boolean {
  const { sender, retentionMs } = request;
  let afterFinal = false;
  for (const mediaBuyId of report.mediaBuyIds) {
    const id = finalId(mediaBuyId);
    const known = rows.notification(sender, id, now);
    if (known && known.key !== own) afterFinal = true;
    if (!report.final) continue;
    const { key, instant } = known ?? { key: own, instant: report.instant ?? null };
    rows.saveNotification({ sender, id, key, instant, expiresAt: markExpiry(now, retentionMs) });
  }
  return afterFinal;
}

/** Whether the id came before under another key: a re-emission, not a retry (contract.md §10.2). */
export function noteNotification(step: Accepting, event: EventClaim): boolean {
  const { rows, request, now } = step;
  if (event.notificationId === undefined) return false;
  const known = rows.notification(request.sender, event.notificationId, now);
  rows.saveNotification({
    sender: request.sender,
    id: event.notificationId,
    key: known?.key ?? event.key,
    instant: null,
    expiresAt: markExpiry(now, request.retentionMs),
  });
  return known !== undefined && known.key !== event.key;
}
