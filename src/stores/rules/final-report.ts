// Remembers notification ids, and the final report of each media buy (admission.md §3.13, §5.7, §5.8).
// Called by accept when it inserts an event. Both kinds of rows share one table.
import type { EventClaim, MediaBuyClaim, ReportClaim } from '../store.ts';
import { markExpiry } from './order.ts';
import type { Accepting } from './task-wait.ts';

/**
 * Makes the id of the row that remembers the final report of a media buy, in the table of notification ids.
 * Notification ids are printable ASCII, so the control character keeps the two kinds of ids apart.
 */
export const finalId = (mediaBuyId: string): string => `\u0001${mediaBuyId}`;

/**
 * True if an event comes after the final report of its media buy, which should be the last event (admission.md §5.7,
 * §5.8). A report counts as later if it arrives later. Any other event counts by its own time, because an event that
 * was sent before the final report may arrive after it.
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
 * Remembers the first `final` report of each media buy. Returns true if one of the media buys had a final report under
 * another key before.
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

/**
 * Remembers the event's notification id. Returns true if the id came before under another key: the sender emitted the
 * notification again, and this is no retry (contract.md §10.2).
 */
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
