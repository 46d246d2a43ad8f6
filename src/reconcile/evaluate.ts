// Computes which report windows a media buy owes at a given time, and the state of each window (owed.md §1.4, §1.5,
// §3.5). It is pure. The loop of streams, the account and the metrics call it.
import type { BuyStream } from '../registrations/streams.ts';
import { DAY_MS, type Frequency, HOUR_MS, windowAt, windowPeriod } from '../windows/calendar.ts';
import { common, type Run, type Runs, union, unpackRuns, without } from '../windows/runs.ts';
import { isTerminalBuy } from '../windows/ends.ts';
import { type Claim, clockIn, frequenciesIn, hadIn, hasReports, type Place } from '../windows/stream.ts';
import { owedRuns } from '../windows/terms.ts';

/** The progress of an event, as `RegistrationRows.eventState` returns it. */
export type EventState = 'done' | 'dead' | 'safe' | 'unsafe' | undefined;

/** The delays that are allowed for reports. */
export interface Tolerance {
  /** The additional time after the delay that the product declares. Ms. */
  readonly graceMs: number;
  /** The delay that is used if no product declares one. Ms. */
  readonly delayMs: number;
}

/** The default delays. Ms. */
export const TOLERANCE: Tolerance = { delayMs: 4 * HOUR_MS, graceMs: 300_000 };

/** The windows of one frequency. */
export interface OwedWindows {
  readonly frequency: Frequency;
  /** The windows that are due: they ended so long ago that their reports should have arrived. */
  readonly due: Runs;
  /** The due windows without a report and without a claim of an event, except those that were given up. */
  readonly missing: Runs;
  /** The windows whose reports can never be fetched. */
  readonly lost: Runs;
}

/** The report windows that a stream owes. */
export interface Owing {
  readonly windows: readonly OwedWindows[];
  /** The claims of DEAD events: their reports came, but were not handled. */
  readonly held: readonly Claim[];
  /** The keys of events whose windows are due, and which must be made safe so that a worker runs them. */
  readonly unsafe: readonly string[];
  /** True if a due window has an event that is safe or unsafe, i.e. not handled yet. */
  readonly isPending: boolean;
  /** The time at which the first window with an unhandled event becomes due; Infinity if there is none. Unix ms. */
  readonly claimedUntil: number;
  /** The claims whose events no longer exist. */
  readonly gone: readonly Claim[];
  /** True if an owed window is not due yet. */
  readonly isMoreDue: boolean;
  /** The time at which the next window becomes due; Infinity if there is none. Unix ms. */
  readonly nextAt: number;
}

/** The longest delay of a report, in addition to one interval, that a seller may announce. Ms. */
const MOST_LATER_MS = 7 * DAY_MS;

export function owing(
  stream: BuyStream,
  stateOf: (key: string) => EventState,
  now: number,
  { graceMs, delayMs }: Tolerance,
): Owing {
  const clock = clockIn(stream);
  const until = now - (stream.delayMs ?? delayMs) - graceMs;
  const states = new Map(stream.claims.map(({ key }) => [key, stateOf(key)]));
  const inState = (...wanted: readonly EventState[]): readonly Claim[] =>
    stream.claims.filter(({ key }) => wanted.includes(states.get(key)));
  const endOf = ({ frequency, number }: Claim): number => windowPeriod(frequency, clock, number).end;
  const isDue = (claim: Claim): boolean => endOf(claim) <= until;
  const standing = inState('dead', 'safe', 'unsafe');
  const windows = frequenciesIn(stream).map((frequency): OwedWindows => {
    const owed = owedRuns(stream.terms, frequency, clock, until);
    const due = without(owed, expectedLater(stream, frequency, { now, until }, graceMs));
    const came = union(hadIn(stream, frequency), runsOf(standing, frequency));
    const lost = without(unpackRuns(stream.lost[frequency] ?? [0, 0]), came);
    return { frequency, due, missing: without(without(due, came), lost), lost };
  });
  return {
    windows,
    held: inState('dead'),
    unsafe: [
      ...new Set(
        inState('unsafe')
          .filter(isDue)
          .map(({ key }) => key),
      ),
    ],
    isPending: inState('safe', 'unsafe').some(isDue),
    claimedUntil: Math.min(
      ...inState('safe', 'unsafe').flatMap((claim) => (isDue(claim) ? [] : endOf(claim) + now - until)),
    ),
    gone: inState(undefined, 'done'),
    isMoreDue: windows.some(
      ({ frequency, due }) => without(owedRuns(stream.terms, frequency, clock, Infinity), due).length > 0,
    ),
    nextAt: nextDue(stream, { now, until }, graceMs),
  };
}

const runsOf = (claims: readonly Claim[], frequency: Frequency): Runs =>
  union(
    [],
    claims.flatMap((claim): readonly Run[] =>
      claim.frequency === frequency ? [[claim.number, claim.number + 1]] : [],
    ),
  );

interface Instant {
  readonly now: number;
  /** Windows that ended by this time are due now, unless the seller has announced a delay. */
  readonly until: number;
}

/**
 * Returns the windows for which the seller has announced a later report, limited to the longest allowed delay (owed.md
 * §1.5).
 */
function expectedLater(
  stream: BuyStream,
  frequency: Frequency,
  { now, until }: Instant,
  graceMs: number,
): Runs {
  const clock = clockIn(stream);
  // The limit is one interval and seven days: windows that were due earlier are no longer awaited.
  const oldest = windowAt(frequency, clock, until - MOST_LATER_MS) - 1;
  const runs = putOffs(stream, now, graceMs).flatMap((one): readonly Run[] => {
    if ('after' in one) return [[windowAt(frequency, clock, one.after), Infinity]];
    return one.frequency === frequency ? [[one.number, one.number + 1]] : [];
  });
  return common(union([], runs), [[oldest, Infinity]]);
}

/** Returns the seller's announcements of later reports that are still valid. */
const putOffs = (
  { later, late = [] }: BuyStream,
  now: number,
  graceMs: number,
): readonly (NonNullable<BuyStream['later']> | NonNullable<BuyStream['late']>[number])[] =>
  [...(later ? [later] : []), ...late].filter(({ until }) => until + graceMs > now);

/** Returns the time at which the next window becomes due, or a delayed report is expected. */
function nextDue(stream: BuyStream, { now, until }: Instant, graceMs: number): number {
  const clock = clockIn(stream);
  const times = putOffs(stream, now, graceMs).map((one) => one.until + graceMs);
  for (const frequency of frequenciesIn(stream)) {
    const owed = owedRuns(stream.terms, frequency, clock, Infinity);
    const present = windowAt(frequency, clock, until);
    const [next] = without(owed, [[-Infinity, present]]);
    if (next) times.push(windowPeriod(frequency, clock, next[0]).end + now - until);
    // A seller may announce a later date for a report any number of times. At the limit its window counts as missing.
    const [off] = common(
      common(owed, [[-Infinity, present]]),
      expectedLater(stream, frequency, { now, until }, graceMs),
    );
    if (off) times.push(windowPeriod(frequency, clock, off[0] + 2).start + MOST_LATER_MS + now - until);
  }
  return Math.min(...times);
}

/** True if no further windows will be owed. */
export function isOver({ terms }: BuyStream, now: number): boolean {
  const last = terms.at(-1);
  return last !== undefined && (last.frequency === null || (last.spans.at(-1)?.end ?? -Infinity) <= now);
}

/** The time after its flight for which a buy is still asked about, unless its seller says that it has ended. Ms. */
const MOST_IDLE_MS = 30 * DAY_MS;

/** The time after its flight for which a buy is still asked about, if its end is not known. Ms. */
const MOST_UNBEGUN_MS = 400 * DAY_MS;

/** True if a buy owes no further windows for now, but may go on: it is paused, or its flight may be extended. */
export function isIdle(stream: BuyStream, now: number): boolean {
  const ends = stream.terms.flatMap(({ spans }) => spans.map(({ end }) => end));
  // If the buy has not run since it became known, it may begin at any time.
  const until = ends.length > 0 ? Math.max(...ends) + MOST_IDLE_MS : stream.since + MOST_UNBEGUN_MS;
  return isOver(stream, now) && !isTerminalBuy(stream.status) && now < until;
}

/**
 * True if a buy will never owe further windows: its seller says so, or has said nothing else for long (owed.md §7.2).
 */
export function hasEnded(stream: BuyStream, now: number): boolean {
  const { terms, status, since } = stream;
  // Nothing is known of its flight, and there is no report to wait for.
  if (terms.length === 0) {
    return !hasReports(stream) && (isTerminalBuy(status) || now >= since + MOST_UNBEGUN_MS);
  }
  return isOver(stream, now) && !isIdle(stream, now);
}

/** True if reports of a media buy are still requested. Such a media buy sends a `final` report at its end. */
export const isReporting = ({ terms }: BuyStream): boolean => (terms.at(-1)?.frequency ?? null) !== null;

/**
 * Returns the time at which a media buy ended: the end of its flight, or the end that its seller states if that is
 * earlier. Unix ms.
 */
export function endAtOf({ terms, endedAt, since }: BuyStream): number {
  const ends = [terms.at(-1)?.spans.at(-1)?.end, endedAt].flatMap((end) => end ?? []);
  const all = terms.flatMap(({ spans }) => spans.map(({ end }) => end));
  return Math.min(...(ends.length > 0 ? ends : [Math.max(since, ...all)]));
}

/**
 * Returns the time from which an absent `final` report is missing (owed.md §7.3). It is due with the report of the
 * window in which the media buy ended. If the end became known later, the delay is counted from then. Unix ms.
 */
export function finalDueAt(stream: BuyStream, tolerance: Tolerance): number {
  const { terms, endedAt = -Infinity } = stream;
  const endAt = endAtOf(stream);
  const frequency = terms.at(-1)?.frequency;
  if (!frequency) return -Infinity;
  const place = { frequency, number: windowAt(frequency, clockIn(stream), endAt - 1) };
  return Math.max(missingAt(stream, place, tolerance), endedAt + lateMs(stream, tolerance));
}

/** Returns the time from the end of a window until its report is missing. Ms. */
const lateMs = ({ delayMs }: BuyStream, tolerance: Tolerance): number =>
  (delayMs ?? tolerance.delayMs) + tolerance.graceMs;

function missingAt(stream: BuyStream, { frequency, number }: Place, tolerance: Tolerance): number {
  const clock = clockIn(stream);
  const late = lateMs(stream, tolerance);
  const { start } = windowPeriod(frequency, clock, number + 2);
  const { later, late: rows = [] } = stream;
  const own = rows.filter((one) => one.frequency === frequency && one.number === number);
  const isLater = later !== undefined && windowAt(frequency, clock, later.after) <= number;
  const saidAt = Math.max(...[...own, ...(isLater ? [later] : [])].map(({ until }) => until));
  const mostAt = start + MOST_LATER_MS + late;
  return Math.max(
    windowPeriod(frequency, clock, number).end + late,
    Math.min(saidAt + tolerance.graceMs, mostAt),
  );
}
