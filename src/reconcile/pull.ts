// Builds the call `get_media_buy_delivery` for missing reports, and reads the reports in its answer (owed.md §4.2,
// §4.3). The functions are pure. The reconciler, the comparison of totals and the account use them.
import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import type { JsonObject as Arguments } from '../registrations/answer-json.ts';
import { accountArgument } from '../registrations/operation-rows.ts';
import type { DeliveryReport, MediaBuyDelivery } from '../events/event.ts';
import { instantIn } from '../registrations/asked-reports.ts';
import type { BuyStream } from '../registrations/streams.ts';
import { rowsOf } from '../registrations/media-buy-rows.ts';
import {
  type Clock,
  DAY_MS,
  type Frequency,
  type Period,
  UTC,
  windowAt,
  windowPeriod,
} from '../windows/calendar.ts';
import { WITHOUT_DATA } from '../stages/reported-windows.ts';
import type { Run } from '../windows/runs.ts';
import { clockIn, saysEnd } from '../windows/stream.ts';

/** One call of `get_media_buy_delivery`, which requests missing reports. */
export interface PullCall {
  readonly frequency: Frequency;
  /** The consecutive windows (report periods) that the call requests. */
  readonly run: Run;
  readonly arguments: Arguments;
  /** True if the answer has the figures of each report period separately. */
  readonly isWindowed: boolean;
}

/** The most report periods that one call requests: a week of hours, a month of days, or a year of months. */
const MOST_WINDOWS: Readonly<Record<Frequency, number>> = { hourly: 168, daily: 31, monthly: 12 };

/** Returns the reason why reports of this frequency cannot be requested; undefined if they can. */
export function unpullable(
  { hasRanges, granularities }: BuyStream,
  frequency: Frequency,
): string | undefined {
  if (granularities?.includes(frequency)) return undefined;
  if (hasRanges === false) return 'the seller answers for the lifetime of a media buy alone';
  if (frequency === 'hourly')
    return 'the seller declares no hourly windows: only whole days can be asked for';
  return undefined;
}

/** Returns the call for the first periods in a run of missing reports, as many as one call can request. */
export function pullCall(stream: BuyStream, frequency: Frequency, [first, end]: Run): PullCall {
  const { mediaBuyId, account, granularities } = stream;
  const isWindowed = granularities?.includes(frequency) === true;
  const most = isWindowed ? MOST_WINDOWS[frequency] : 1;
  // If these reports cannot be requested at all, no call is made. The run is then not shortened, but fails as a whole.
  const run: Run = [first, unpullable(stream, frequency) === undefined ? Math.min(end, first + most) : end];
  const clock = clockIn(stream);
  const start = windowPeriod(frequency, clock, first).start;
  const last = windowPeriod(frequency, clock, run[1] - 1);
  return {
    frequency,
    run,
    isWindowed,
    arguments: {
      ...accountArgument(account),
      media_buy_ids: [mediaBuyId],
      start_date: dateOf(start, frequency, clock),
      end_date: dateOf(last.end - 1, frequency, clock, 1),
      ...(isWindowed && { time_granularity: frequency, include_window_breakdown: true }),
    },
  };
}

/**
 * Returns the calendar date of a time in the media buy's time zone; for hourly reports in UTC.
 * @param later days to add.
 */
export function dateOf(instant: number, frequency: Frequency, clock: Clock, later = 0): string {
  const day = windowAt('daily', frequency === 'hourly' ? UTC : clock, instant) + later;
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** One window (report period) of an answer, with its report in the form in which webhooks bring reports. */
export interface PulledWindow {
  readonly number: number;
  readonly report: DeliveryReport;
}

/**
 * Returns the requested windows for which an answer has a report. Windows of another media buy or period are ignored.
 */
export function pulledWindows(stream: BuyStream, call: PullCall, data: unknown): readonly PulledWindow[] {
  const { frequency, run } = call;
  const clock = clockIn(stream);
  // A row with an error may name the media buy too, so only rows with data are read.
  const isRow = (one: JsonObject): boolean =>
    call.isWindowed ? Array.isArray(present(one, 'windows')) : hasData(one);
  const row = rowsOf(data, stream.mediaBuyId).find(isRow);
  if (!row || !isJsonObject(data) || WITHOUT_DATA.has(textMember(row, 'status'))) return [];
  const windows = windowsByStart(row);
  const currency = textMember(data, 'currency') ?? textMember(row, 'currency');
  const found: PulledWindow[] = [];
  for (let number = run[0]; number < run[1]; number += 1) {
    const period = windowPeriod(frequency, clock, number);
    const of = call.isWindowed
      ? windows.get(period.start)?.find((one) => isOfPeriod(one, OF_BREAKDOWN, period))
      : wholeIn(data, row, [period, inDates(period, clock)]);
    if (of) found.push({ number, report: reportOf(of, row, { period, currency }) });
  }
  return found;
}

/** The most report periods in a row of an answer that are read. */
const MOST_ROWS = 10_000;

const OF_BREAKDOWN = ['window_start', 'window_end'] as const;

/**
 * Returns the report periods in a row of an answer that have data, by start time, so that the row is read only once.
 */
function windowsByStart(row: JsonObject): ReadonlyMap<number, readonly JsonObject[]> {
  const windows = present(row, 'windows');
  const byStart = new Map<number, JsonObject[]>();
  for (const one of Array.isArray(windows) ? windows.slice(0, MOST_ROWS).filter(isJsonObject) : []) {
    const start = instantIn(one, 'window_start');
    if (start === undefined || !hasData(one)) continue;
    const alike = byStart.get(start);
    if (alike) alike.push(one);
    else byStart.set(start, [one]);
  }
  return byStart;
}

/**
 * Returns the row if the answer's `reporting_period` is one of the periods. An answer without a period is ignored,
 * because it may be for the media buy's whole lifetime.
 */
function wholeIn(data: JsonObject, row: JsonObject, periods: readonly Period[]): JsonObject | undefined {
  const said = present(data, 'reporting_period');
  if (!isJsonObject(said)) return undefined;
  return periods.some((one) => isOfPeriod(said, ['start', 'end'], one)) ? row : undefined;
}

/**
 * Returns the period from midnight UTC to midnight UTC on the same dates, because a seller may repeat the requested
 * dates in this form.
 */
function inDates({ start, end }: Period, clock: Clock): Period {
  const midnightOf = (instant: number): number => windowAt('daily', clock, instant) * DAY_MS;
  return { start: midnightOf(start), end: midnightOf(end) };
}

const hasData = (one: JsonObject): boolean => isJsonObject(present(one, 'totals'));

function isOfPeriod(of: JsonObject, [from, to]: readonly [string, string], { start, end }: Period): boolean {
  const [begins, ends] = [instantIn(of, from), instantIn(of, to)];
  return begins === start && ends !== undefined && saysEnd(ends, end);
}

/**
 * The members that are copied into a report, from a window of the answer or from the media buy's row. A member that is
 * absent in the answer is absent in the report.
 */
const OF_WINDOW = ['totals', 'by_package', 'is_final', 'measurement_window', 'finalized_at'] as const;

function reportOf(
  of: JsonObject,
  row: JsonObject,
  { period, currency }: { readonly period: Period; readonly currency: string | undefined },
): DeliveryReport {
  const status = textMember(row, 'status');
  const delivery: Record<string, unknown> = { media_buy_id: textMember(row, 'media_buy_id') };
  if (status !== undefined) delivery['status'] = status;
  for (const name of OF_WINDOW) {
    const value = present(of, name);
    if (value !== undefined) delivery[name] = value;
  }
  return {
    notification_type: 'scheduled',
    reporting_period: {
      start: new Date(period.start).toISOString(),
      end: new Date(period.end).toISOString(),
    },
    ...(currency !== undefined && { currency }),
    media_buy_deliveries: [delivery as MediaBuyDelivery],
  };
}
