// Windows that a delivery report has data for: the claim for the store, and the form for the handler (owed.md
// §3.1).
// `read` makes the claim, `dispatch` the handler's form; pulls of the reconciler use both parts.

import { isJsonObject, textMember } from '../codec/members.ts';
import { MAX_TEXT } from '../codec/printable.ts';
import type { Hashes } from '../crypto/engine.ts';
import { MAX_REPORTED_WINDOWS } from '../events/report-names.ts';
import type { DeliveryReport, MediaBuyDelivery, ReportWindow } from '../events/event.ts';
import { parseInstant } from '../events/instant.ts';
import type { ClaimedWindow, WindowClaim } from '../stores/store.ts';
import { isTerminalBuy } from '../windows/ends.ts';
import { storedId } from './ids.ts';

/** Types of reports that change earlier data. */
const REVISIONS: ReadonlySet<DeliveryReport['notification_type']> = new Set(['adjusted', 'window_update']);

/** Statuses of a row that has no data yet. */
export const WITHOUT_DATA: ReadonlySet<unknown> = new Set(['reporting_delayed', 'failed']);

/** @returns no windows for a report without a valid period. */
export function windowsOf(report: DeliveryReport, hashes: Hashes): readonly WindowClaim[] {
  const [start, end] = [msIn(report.reporting_period?.start), msIn(report.reporting_period?.end)];
  if (start === undefined || end === undefined) return [];
  const windows = new Map<string, WindowClaim>();
  for (const row of (report.media_buy_deliveries ?? []).slice(0, MAX_REPORTED_WINDOWS)) {
    // Accounts keep the id unchanged, so a row with a longer one is left out.
    if (row.media_buy_id.length > MAX_TEXT) continue;
    const id = storedId(row.media_buy_id, hashes);
    const window = windowOf(report, row);
    // If a media buy has two rows, the one with data counts.
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

/** Longest stage name in characters: it is a seller's text, kept with each account. */
const MAX_STAGE = 64;

/** The measurement window of the row's packages, or the row's own. */
function stageOf({ by_package: packages, measurement_window: own }: MediaBuyDelivery): string {
  const named = packages?.flatMap((one) =>
    isJsonObject(one) ? (textMember(one, 'measurement_window') ?? []) : [],
  );
  const stage = named?.[0] ?? (typeof own === 'string' ? own : '');
  return stage.slice(0, MAX_STAGE);
}

/**
 * The windows in the form for the handler, without those that are not known as windows of their media buy.
 * @param report the one that claimed them.
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
