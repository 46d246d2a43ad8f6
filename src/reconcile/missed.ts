// Decides when missing reports are requested again, and when they are given up (owed.md §4.4, §4.5). The functions are
// pure. reconciler.ts and ask-seller.ts call them.
import type { BuyStream, Missed } from '../registrations/streams.ts';
import { DAY_MS, type Frequency, HOUR_MS } from '../windows/calendar.ts';
import { common, packRuns, type Runs, union, unpackRuns, without } from '../windows/runs.ts';

/** The wait after the first failed request for a report. It doubles with each further failure, up to a day. Ms. */
const FIRST_WAIT_MS: Readonly<Record<Frequency, number>> = {
  hourly: 15 * 60_000,
  daily: HOUR_MS,
  monthly: 6 * HOUR_MS,
};
/** The time after the first failed request at which a missing report is given up. Ms. */
const GIVE_UP_MS = 7 * DAY_MS;

const runOf = ({ first, end }: Missed): Runs => [[first, end]];

/** Returns the missing windows whose reports may be requested now: those that do not wait after a failed request. */
export function askable(stream: BuyStream, frequency: Frequency, missing: Runs, now: number): Runs {
  const waiting = stream.missed
    .filter((one) => one.frequency === frequency && one.nextAt > now)
    .reduce<Runs>((all, one) => union(all, runOf(one)), []);
  return without(missing, waiting);
}

/** Returns the time of the next request for a missing report; Infinity if no report waits. Unix ms. */
export const nextTry = ({ missed }: BuyStream): number => Math.min(...missed.map(({ nextAt }) => nextAt));

/**
 * Returns the list of failed requests, without the report periods that are no longer missing.
 * @param missing returns the missing report periods of a frequency.
 */
export function stillMissed(stream: BuyStream, missing: (frequency: Frequency) => Runs): readonly Missed[] {
  return stream.missed.flatMap((one) =>
    common(runOf(one), missing(one.frequency)).map(([first, end]) => ({ ...one, first, end })),
  );
}

/** The stream (the media buy's record) after a failed request, and the report periods for which an alarm is raised. */
export interface AfterTry {
  readonly stream: BuyStream;
  /** The report periods whose first request has failed. */
  readonly fresh: Runs;
  /** The report periods that are given up: their reports are no longer requested. */
  readonly lost: Runs;
}

/**
 * Records that the reports of windows were requested without success. One call requests neighbouring windows together.
 * Each window has its own number of requests, because some may have been requested more often.
 * @param isForGood true if further requests are useless, so that the windows are given up immediately.
 */
export function missedAgain(
  stream: BuyStream,
  of: {
    readonly frequency: Frequency;
    readonly runs: Runs;
    readonly error: string;
    readonly isForGood: boolean;
  },
  now: number,
): AfterTry {
  const { frequency, runs, error, isForGood } = of;
  const known = stream.missed.filter((one) => one.frequency === frequency);
  const others = stream.missed.filter((one) => one.frequency !== frequency);
  const before = known.flatMap((one) => partsOf(one, common(runOf(one), runs)));
  const fresh = before.reduce((left, one) => without(left, runOf(one)), runs);
  const tried = [
    ...before.map((one) => ({ ...one, tries: one.tries + 1 })),
    ...fresh.map(([first, end]) => ({ frequency, first, end, tries: 1, since: now })),
  ].map((one): Missed => ({ ...one, nextAt: now + waitMs(frequency, one.tries), error }));
  const isLost = ({ since }: Missed): boolean => isForGood || now - since >= GIVE_UP_MS;
  const lost = tried.filter(isLost).reduce<Runs>((all, one) => union(all, runOf(one)), []);
  const rest = known.flatMap((one) => partsOf(one, without(runOf(one), runs)));
  const missed = [...others, ...joined([...rest, ...tried.filter((one) => !isLost(one))], now)];
  const all = packRuns(union(unpackRuns(stream.lost[frequency] ?? [0, 0]), lost));
  return {
    stream: {
      ...stream,
      missed,
      ...(lost.length > 0 && { lost: { ...stream.lost, [frequency]: all } }),
    },
    fresh: without(fresh, lost),
    lost,
  };
}

const partsOf = (one: Missed, runs: Runs): readonly Missed[] =>
  runs.map(([first, end]) => ({ ...one, first, end }));

/** Returns the wait after this many failed requests. Ms. */
const waitMs = (frequency: Frequency, tries: number): number =>
  Math.min(FIRST_WAIT_MS[frequency] * 2 ** Math.min(tries - 1, 10), DAY_MS);

/**
 * The number of failed requests from which on the next request for a missing report is hours away. From then on,
 * neighbouring periods are joined into one request even if their waits differ: some hours' difference does no harm.
 */
const MANY_TRIES = 5;

/**
 * Joins neighbouring report periods with similar waits, so that a long failure of a seller does not fill the record. A
 * period that may be requested now is not joined with one that still waits. The joined period would have the earlier
 * time, so both would be requested now, again and again.
 */
function joined(missed: readonly Missed[], now: number): readonly Missed[] {
  const all: Missed[] = [];
  for (const one of missed.toSorted((a, b) => a.first - b.first)) {
    const last = all.at(-1);
    if (last?.end !== one.first || !isAlike(last, one, now)) all.push(one);
    else {
      all[all.length - 1] = {
        ...one,
        first: last.first,
        tries: Math.max(last.tries, one.tries),
        since: Math.max(last.since, one.since),
        nextAt: Math.min(last.nextAt, one.nextAt),
      };
    }
  }
  return all;
}

const isAlike = (a: Missed, b: Missed, now: number): boolean =>
  Math.floor(a.since / DAY_MS) === Math.floor(b.since / DAY_MS) &&
  ((a.tries === b.tries && a.nextAt === b.nextAt) ||
    (Math.min(a.tries, b.tries) >= MANY_TRIES && Math.min(a.nextAt, b.nextAt) > now));
