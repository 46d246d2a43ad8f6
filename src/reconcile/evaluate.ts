// Computes which windows (report periods) a media buy owes at a given time, and which reports are missing
// (owed.md §1.4, §1.5, §3.5). The functions are pure. The reconciler, `reconciler.account` and the metrics call them.
import type { BuyStream } from '../registrations/streams.ts';
import { DAY_MS, type Frequency, HOUR_MS, windowAt, windowPeriod } from '../windows/calendar.ts';
import { common, type Run, type Runs, union, unpackRuns, without } from '../windows/runs.ts';
import { isTerminalBuy } from '../windows/ends.ts';
import { type Claim, clockIn, frequenciesIn, hadIn, hasReports, type Place } from '../windows/stream.ts';
import { owedRuns } from '../windows/terms.ts';

/**
 * The progress of an event. `done`: handled. `dead`: failed for good. `safe`: acknowledged to the seller, and a worker
 * handles it. `unsafe`: not acknowledged. Undefined: there is no record of it.
 */
export type EventState = 'done' | 'dead' | 'safe' | 'unsafe' | undefined;

/** The delays after the end of a window (report period) before its report counts as missing. */
export interface Tolerance {
  /** The additional time after the expected delay. Ms. */
  readonly graceMs: number;
  /** The expected delay if the product does not declare one. Ms. */
  readonly delayMs: number;
}

/** The defaults of the options `expectedDelayMs` and `graceMs`. */
export const TOLERANCE: Tolerance = { delayMs: 4 * HOUR_MS, graceMs: 300_000 };

/** The windows (report periods) of one frequency, by the state of their reports. */
export interface OwedWindows {
  readonly frequency: Frequency;
  /** The windows that are due: they ended so long ago that their reports should have arrived. */
  readonly due: Runs;
  /** The due windows whose reports have not arrived. Windows that were given up are left out. */
  readonly missing: Runs;
  /** The windows that were given up, because their reports cannot be fetched. */
  readonly lost: Runs;
}

/** The windows (report periods) for which a media buy owes reports, and the events that bring these reports. */
export interface Owing {
  readonly windows: readonly OwedWindows[];
  /** The windows whose event is DEAD: the report arrived, but its handler has failed for good. */
  readonly held: readonly Claim[];
  /**
   * The keys of events whose report period is due, and that were not acknowledged to the seller. They must be
   * acknowledged, so that a worker handles them even if the seller does not retry.
   */
  readonly unsafe: readonly string[];
  /** True if the report of a due window has arrived, but its event is not handled yet. */
  readonly isPending: boolean;
  /**
   * The earliest time at which a report period whose event is not handled yet becomes due; Infinity if there is none.
   * Unix ms.
   */
  readonly claimedUntil: number;
  /**
   * The claims (links from a report period to an event) that no longer count: the event is handled, or is no longer
   * stored.
   */
  readonly gone: readonly Claim[];
  /** True if the media buy owes a report that is not due yet. */
  readonly isMoreDue: boolean;
  /** The time at which the next window or postponed report becomes due; Infinity if there is none. Unix ms. */
  readonly nextAt: number;
}

/**
 * The longest postponement of a report that a seller may announce, in addition to one interval (hour, day or
 * month). Ms.
 */
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
  /** Windows that ended by this time are due now, unless the seller has announced a later report. Unix ms. */
  readonly until: number;
}

/**
 * Returns the windows that are not due, because the seller has announced a later report. The postponement is limited
 * (owed.md §1.5).
 */
function expectedLater(
  stream: BuyStream,
  frequency: Frequency,
  { now, until }: Instant,
  graceMs: number,
): Runs {
  const clock = clockIn(stream);
  // A seller can postpone a report by at most one interval and seven days. Windows that ended earlier are due,
  // whatever the seller has announced.
  const oldest = windowAt(frequency, clock, until - MOST_LATER_MS) - 1;
  const runs = putOffs(stream, now, graceMs).flatMap((one): readonly Run[] => {
    if ('after' in one) return [[windowAt(frequency, clock, one.after), Infinity]];
    return one.frequency === frequency ? [[one.number, one.number + 1]] : [];
  });
  return common(union([], runs), [[oldest, Infinity]]);
}

/** Returns the seller's announcements of later reports whose announced time has not passed. */
const putOffs = (
  { later, late = [] }: BuyStream,
  now: number,
  graceMs: number,
): readonly (NonNullable<BuyStream['later']> | NonNullable<BuyStream['late']>[number])[] =>
  [...(later ? [later] : []), ...late].filter(({ until }) => until + graceMs > now);

/** Returns the time at which the next window becomes due, or at which a postponed report is expected. Unix ms. */
function nextDue(stream: BuyStream, { now, until }: Instant, graceMs: number): number {
  const clock = clockIn(stream);
  const times = putOffs(stream, now, graceMs).map((one) => one.until + graceMs);
  for (const frequency of frequenciesIn(stream)) {
    const owed = owedRuns(stream.terms, frequency, clock, Infinity);
    const present = windowAt(frequency, clock, until);
    const [next] = without(owed, [[-Infinity, present]]);
    if (next) times.push(windowPeriod(frequency, clock, next[0]).end + now - until);
    // A seller may postpone a report again and again. At the limit (`MOST_LATER_MS`), its window is due all the same.
    const [off] = common(
      common(owed, [[-Infinity, present]]),
      expectedLater(stream, frequency, { now, until }, graceMs),
    );
    if (off) times.push(windowPeriod(frequency, clock, off[0] + 2).start + MOST_LATER_MS + now - until);
  }
  return Math.min(...times);
}

/**
 * True if a media buy owes no further reports by its current terms: no reports are requested, or its last active period
 * is over.
 */
export function isOver({ terms }: BuyStream, now: number): boolean {
  const last = terms.at(-1);
  return last !== undefined && (last.frequency === null || (last.spans.at(-1)?.end ?? -Infinity) <= now);
}

/**
 * For this time after the end of the flight (booked period), the seller is still asked about a media buy that is not
 * terminal. Ms.
 */
const MOST_IDLE_MS = 30 * DAY_MS;

/**
 * For this time after the registration, the seller is still asked about a media buy that has had no active period
 * yet. Ms.
 */
const MOST_UNBEGUN_MS = 400 * DAY_MS;

/**
 * True if a media buy owes no further reports for now, but may go on: it is paused, or its booked period may be
 * extended.
 */
export function isIdle(stream: BuyStream, now: number): boolean {
  const ends = stream.terms.flatMap(({ spans }) => spans.map(({ end }) => end));
  // If a media buy has had no active period yet, it may still begin, so the time counts from its registration.
  const until = ends.length > 0 ? Math.max(...ends) + MOST_IDLE_MS : stream.since + MOST_UNBEGUN_MS;
  return isOver(stream, now) && !isTerminalBuy(stream.status) && now < until;
}

/**
 * True if a media buy will never owe further reports: it is terminal, or its booked period was over long ago
 * (owed.md §7.2).
 */
export function hasEnded(stream: BuyStream, now: number): boolean {
  const { terms, status, since } = stream;
  // While the booked period is unknown, a media buy that owes reports has not ended. One that owes none has ended if it
  // is terminal, or old enough.
  if (terms.length === 0) {
    return !hasReports(stream) && (isTerminalBuy(status) || now >= since + MOST_UNBEGUN_MS);
  }
  return isOver(stream, now) && !isIdle(stream, now);
}

/** True if reports of a media buy are requested until its end. Its seller then owes a `final` report too. */
export const isReporting = ({ terms }: BuyStream): boolean => (terms.at(-1)?.frequency ?? null) !== null;

/**
 * Returns the time at which a media buy ended: the end of its booked period, or the end that its seller states,
 * whichever is earlier. Unix ms.
 */
export function endAtOf({ terms, endedAt, since }: BuyStream): number {
  const ends = [terms.at(-1)?.spans.at(-1)?.end, endedAt].flatMap((end) => end ?? []);
  const all = terms.flatMap(({ spans }) => spans.map(({ end }) => end));
  return Math.min(...(ends.length > 0 ? ends : [Math.max(since, ...all)]));
}

/**
 * Returns the time from which a `final` report that has not come counts as absent (owed.md §7.3). It is due with the
 * report of the window in which the media buy ended. If the media buy became terminal later, the delay is counted from
 * that time. Unix ms.
 */
export function finalDueAt(stream: BuyStream, tolerance: Tolerance): number {
  const { terms, endedAt = -Infinity } = stream;
  const endAt = endAtOf(stream);
  const frequency = terms.at(-1)?.frequency;
  if (!frequency) return -Infinity;
  const place = { frequency, number: windowAt(frequency, clockIn(stream), endAt - 1) };
  return Math.max(missingAt(stream, place, tolerance), endedAt + lateMs(stream, tolerance));
}

/** Returns the time from the end of a window until its report counts as missing. Ms. */
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
