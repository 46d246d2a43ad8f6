// Says when missing windows are asked for again, and when they are given up (owed.md §4.4, §4.5). Pure. The loop of
// streams and its questions call it.
import type { BuyStream, Missed } from '../registrations/streams.ts';
import { DAY_MS, type Frequency, HOUR_MS } from '../windows/calendar.ts';
import { common, packRuns, type Runs, union, unpackRuns, without } from '../windows/runs.ts';

/** The first wait, doubled with each try up to a day. Ms. */
const FIRST_WAIT_MS: Readonly<Record<Frequency, number>> = {
  hourly: 15 * 60_000,
  daily: HOUR_MS,
  monthly: 6 * HOUR_MS,
};
/** The time after which a window that does not come is unrecoverable. Ms. */
const GIVE_UP_MS = 7 * DAY_MS;

const runOf = ({ first, end }: Missed): Runs => [[first, end]];

/** The missing windows that may be asked for now. */
export function askable(stream: BuyStream, frequency: Frequency, missing: Runs, now: number): Runs {
  const waiting = stream.missed
    .filter((one) => one.frequency === frequency && one.nextAt > now)
    .reduce<Runs>((all, one) => union(all, runOf(one)), []);
  return without(missing, waiting);
}

/** The time of the next try; Infinity: none waits. Unix ms. */
export const nextTry = ({ missed }: BuyStream): number => Math.min(...missed.map(({ nextAt }) => nextAt));

/** The missed windows without those that have come meanwhile. @param missing returns the missing ones by frequency. */
export function stillMissed(stream: BuyStream, missing: (frequency: Frequency) => Runs): readonly Missed[] {
  return stream.missed.flatMap((one) =>
    common(runOf(one), missing(one.frequency)).map(([first, end]) => ({ ...one, first, end })),
  );
}

/** The outcome of a try without success. */
export interface AfterTry {
  readonly stream: BuyStream;
  /** The windows that were missed for the first time. */
  readonly fresh: Runs;
  /** Windows that are given up. */
  readonly lost: Runs;
}

/**
 * Notes windows that were asked for and did not come. A call asks for neighbouring windows together, some of which may
 * have been tried more often: each counts its own tries.
 * @param isForGood true if there is no use in asking again.
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

/** The wait after that many tries. Ms. */
const waitMs = (frequency: Frequency, tries: number): number =>
  Math.min(FIRST_WAIT_MS[frequency] * 2 ** Math.min(tries - 1, 10), DAY_MS);

/** The number of tries from which windows wait for hours: then a somewhat longer wait makes no window missing. */
const MANY_TRIES = 5;

/**
 * Joins neighbours that were asked for alike, so that a seller that is down for long does not fill the stream. A window
 * that waits joins none that may be asked for now: it would be asked for at once, again and again.
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
