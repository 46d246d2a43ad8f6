// Builds the request for missing windows, and reads the windows in its answer (owed.md §4.2, §4.3). It is pure. The
// loop of streams and the comparison of totals call it.
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

/** One call of `get_media_buy_delivery`. */
export interface PullCall {
  readonly frequency: Frequency;
  /** The windows that the call requests. */
  readonly run: Run;
  readonly arguments: Arguments;
  /** True if the answer has each window separately. */
  readonly isWindowed: boolean;
}

/** The most windows of one call: a week of hours, a month of days, or a year of months. */
const MOST_WINDOWS: Readonly<Record<Frequency, number>> = { hourly: 168, daily: 31, monthly: 12 };

/** Returns the reason why windows of a frequency cannot be requested; undefined if they can. */
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

/** Returns the call for the first missing windows of a run: as many as one call can return. */
export function pullCall(stream: BuyStream, frequency: Frequency, [first, end]: Run): PullCall {
  const { mediaBuyId, account, granularities } = stream;
  const isWindowed = granularities?.includes(frequency) === true;
  const most = isWindowed ? MOST_WINDOWS[frequency] : 1;
  // If windows cannot be requested at all, the whole run is reported at once.
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

/** Returns the calendar date of a time. Hours are requested by days of UTC. */
export function dateOf(instant: number, frequency: Frequency, clock: Clock, later = 0): string {
  const day = windowAt('daily', frequency === 'hourly' ? UTC : clock, instant) + later;
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** One window of an answer, with its report. */
export interface PulledWindow {
  readonly number: number;
  readonly report: DeliveryReport;
}

/** Returns the requested windows in an answer. Windows of another buy or period are ignored. */
export function pulledWindows(stream: BuyStream, call: PullCall, data: unknown): readonly PulledWindow[] {
  const { frequency, run } = call;
  const clock = clockIn(stream);
  // A row with an error may name the buy as well, so only rows with data are read.
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

/** The most rows of a breakdown that are read. */
const MOST_ROWS = 10_000;

const OF_BREAKDOWN = ['window_start', 'window_end'] as const;

/** Returns the windows of a breakdown that have data, by their start, so that they are read only once. */
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
 * Returns the row itself if the answer names the requested period. A seller that names no period may have answered for
 * the whole lifetime of the buy.
 */
function wholeIn(data: JsonObject, row: JsonObject, periods: readonly Period[]): JsonObject | undefined {
  const said = present(data, 'reporting_period');
  if (!isJsonObject(said)) return undefined;
  return periods.some((one) => isOfPeriod(said, ['start', 'end'], one)) ? row : undefined;
}

/**
 * Returns the calendar days of a period as days of UTC, because a seller may repeat the requested dates in this form.
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

/** The members that a window may have, and its row as well. A member that is absent stays absent. */
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
