// Converts the windows (periods) for which a delivery report has data to facts for the store, and to the form for the
// handler (owed.md §3.1).
// `read` makes the facts, `dispatch` the handler's form, also for reports that the reconciler has fetched.

import { isJsonObject, textMember } from '../codec/members.ts';
import { MAX_TEXT } from '../codec/printable.ts';
import type { Hashes } from '../crypto/engine.ts';
import { MAX_REPORTED_WINDOWS } from '../events/report-names.ts';
import type { DeliveryReport, MediaBuyDelivery, ReportWindow } from '../events/event.ts';
import { parseInstant } from '../events/instant.ts';
import type { ClaimedWindow, WindowClaim } from '../stores/store.ts';
import { isTerminalBuy } from '../windows/ends.ts';
import { storedId } from './ids.ts';

/** Types of reports that change figures of an earlier report. */
const REVISIONS: ReadonlySet<DeliveryReport['notification_type']> = new Set(['adjusted', 'window_update']);

/** Statuses of a media buy for which the report has no figures yet. */
export const WITHOUT_DATA: ReadonlySet<unknown> = new Set(['reporting_delayed', 'failed']);

/** Returns the windows of the media buys in a report; none if the report's period is not valid. */
export function windowsOf(report: DeliveryReport, hashes: Hashes): readonly WindowClaim[] {
  const [start, end] = [msIn(report.reporting_period?.start), msIn(report.reporting_period?.end)];
  if (start === undefined || end === undefined) return [];
  const windows = new Map<string, WindowClaim>();
  for (const row of (report.media_buy_deliveries ?? []).slice(0, MAX_REPORTED_WINDOWS)) {
    // The store keeps the media buy's id unchanged, so a media buy with an id over `MAX_TEXT` is skipped.
    if (row.media_buy_id.length > MAX_TEXT) continue;
    const id = storedId(row.media_buy_id, hashes);
    const window = windowOf(report, row);
    // If a media buy has two rows, the one with data is used.
    if (!(window.isLate && windows.has(id))) windows.set(id, { id, start, end, ...window });
  }
  return [...windows.values()];
}

function windowOf(
  report: DeliveryReport,
  row: MediaBuyDelivery,
): Pick<WindowClaim, 'mediaBuyId' | 'stage' | 'isRevision' | 'isLate' | 'nextAt' | 'ending'> {
  const isLate = WITHOUT_DATA.has(row.status);
  const { status } = row;
  const nextAt = (isLate ? msIn(row.expected_availability) : undefined) ?? msIn(report.next_expected_at);
  return {
    mediaBuyId: row.media_buy_id,
    stage: stageOf(row),
    isRevision: REVISIONS.has(report.notification_type) || row.is_adjusted === true,
    ...(isLate && { isLate }),
    ...(nextAt !== undefined && { nextAt }),
    ...(isTerminalBuy(status) && { ending: status }),
  };
}

const msIn = (text: string | null | undefined): number | undefined =>
  typeof text === 'string' ? parseInstant(text)?.ms : undefined;

/**
 * Longest `stage` in characters. It is limited, because a seller chooses the text, and the store keeps it with each
 * media buy.
 */
const MAX_STAGE = 64;

/** Returns the measurement window that the packages of a media buy name or, if none does, the media buy's own. */
function stageOf({ by_package: packages, measurement_window: own }: MediaBuyDelivery): string {
  const named = packages?.flatMap((one) =>
    isJsonObject(one) ? (textMember(one, 'measurement_window') ?? []) : [],
  );
  const stage = named?.[0] ?? (typeof own === 'string' ? own : '');
  return stage.slice(0, MAX_STAGE);
}

/**
 * Returns the windows in the form for the handler. A window that does not match the known windows of its media buy is
 * left out.
 * @param report the report whose windows the store returned as `claimed`.
 */
export function reportWindows(
  claimed: readonly ClaimedWindow[],
  { media_buy_deliveries: rows }: DeliveryReport,
): readonly ReportWindow[] {
  const stages = new Map(rows?.map((row) => [row.media_buy_id, stageOf(row)]));
  return claimed.flatMap(({ id, mediaBuyId = id, period, isRepeated }) => {
    if (!period) return [];
    const stage = stages.get(mediaBuyId);
    return [
      {
        mediaBuyId,
        start: new Date(period.start).toISOString(),
        end: new Date(period.end).toISOString(),
        ...(stage && { stage }),
        repeated: isRepeated === true,
      },
    ];
  });
}
