import type { FinalState, Place } from '../processes/judge.ts';
import type { Arrival, JournalLine } from './wire.ts';

/** An event that the seller has sent. */
export interface Sent {
  readonly key: string;
  /** Of a status. */
  readonly place?: Place;
  /** The seller was told that it is safe. */
  readonly isAcknowledged: boolean;
  /** A failure or a crash was charged to it: others of its task may go before it is done (admission.md §5.5). */
  readonly isCharged?: boolean;
  /** As the store has it in the end. */
  readonly state: FinalState;
}

/** What truly happened, once nothing is under way any more. */
export interface Facts {
  readonly sent: readonly Sent[];
  /** As the sink has it on disk, in the order in which it was written. */
  readonly journal: readonly JournalLine[];
}

/** What breaks the promise. All empty: it was kept. */
export interface Verdict {
  /** Keys that never reached the sink though they were acknowledged, or are done; not those that a newer status overtook. */
  readonly lost: readonly string[];
  /** Keys whose events the store has given up. */
  readonly dead: readonly string[];
  /** Keys of acknowledged events that the store has not, or is not done with. */
  readonly unfinished: readonly string[];
  /** Keys of statuses that came for the first time after a newer one of their task that was charged nothing. */
  readonly backwards: readonly string[];
  /** Keys of statuses that came, for whichever time, after the last time that a newer one of their task came. */
  readonly late: readonly string[];
  /** Keys that came under two delivery ids, and ids under which two came. */
  readonly otherId: readonly string[];
  /** Keys that came again with other data. */
  readonly otherData: readonly string[];
  /** Keys whose subject and time are not those of their status. */
  readonly mislabelled: readonly string[];
  /** Keys that nobody has sent. */
  readonly unknown: readonly string[];
  /** What did not verify. */
  readonly unverified: readonly string[];
}

/** All is well. */
export const FORWARDED: Verdict = {
  lost: [],
  dead: [],
  unfinished: [],
  backwards: [],
  late: [],
  otherId: [],
  otherData: [],
  mislabelled: [],
  unknown: [],
  unverified: [],
};

/** By each of these texts the one that came first with it; names those with which another one came. */
function othersOf(pairs: Iterable<readonly [string, string]>): readonly string[] {
  const first = new Map<string, string>();
  const others = new Set<string>();
  for (const [name, value] of pairs) {
    if ((first.get(name) ?? value) !== value) others.add(name);
    else first.set(name, value);
  }
  return [...others];
}

/** One status at its place in the journal. */
interface Step extends Place {
  readonly key: string;
  readonly isCharged: boolean;
}

function backwardsOf(steps: readonly Step[]): readonly string[] {
  const seen = new Set<string>();
  const found: string[] = [];
  const newest = new Map<string, number>();
  for (const { key, task, at, isCharged } of steps) {
    const before = newest.get(task) ?? -Infinity;
    if (!seen.has(key) && before > at) found.push(key);
    seen.add(key);
    if (!isCharged) newest.set(task, Math.max(before, at));
  }
  return found;
}

/** Those behind which nothing newer of their task comes, though something newer came before. */
function lateOf(steps: readonly Step[]): readonly string[] {
  const all = new Map<string, number>();
  for (const { task, at } of steps) all.set(task, Math.max(all.get(task) ?? -Infinity, at));
  const late = new Set<string>();
  const behind = new Map<string, number>();
  for (const { key, task, at } of steps.toReversed()) {
    const newestBehind = behind.get(task) ?? -Infinity;
    if ((all.get(task) ?? at) > at && newestBehind <= at) late.add(key);
    behind.set(task, Math.max(newestBehind, at));
  }
  return [...late];
}

function isMislabelled({ subject, time }: Arrival, place: Place | undefined): boolean {
  if (!place) return subject !== undefined;
  return subject !== place.task || Date.parse(time ?? '') !== place.at;
}

/** Judges by what the sink has on disk, and by how the store has ended. */
export function judge({ sent, journal }: Facts): Verdict {
  const arrivals = journal.filter((line) => line.what === 'arrival');
  const known = new Map(sent.map((one) => [one.key, one]));
  const arrived = new Set(arrivals.map(({ key }) => key));
  const steps = arrivals.flatMap(({ key }): readonly Step[] => {
    const { place, isCharged = false } = known.get(key) ?? {};
    return place ? [{ key, ...place, isCharged }] : [];
  });
  const newest = new Map<string, number>();
  for (const { task, at } of steps) newest.set(task, Math.max(newest.get(task) ?? -Infinity, at));

  const isOvertaken = ({ place, state }: Sent): boolean =>
    state === 'stale' && place !== undefined && (newest.get(place.task) ?? -Infinity) > place.at;
  const isLost = (one: Sent): boolean =>
    !arrived.has(one.key) && (one.isAcknowledged || one.state === 'applied') && !isOvertaken(one);
  const isUnfinished = ({ isAcknowledged, state }: Sent): boolean =>
    isAcknowledged && (state === 'queued' || state === 'leased' || state === 'absent');
  const keysOf = (isWrong: (one: Sent) => boolean): string[] => sent.filter(isWrong).map(({ key }) => key);
  const wrongArrivals = (isWrong: (one: Arrival) => boolean): string[] => [
    ...new Set(arrivals.filter(isWrong).map(({ key }) => key)),
  ];
  return {
    lost: keysOf(isLost),
    dead: keysOf(({ state }) => state === 'dead'),
    unfinished: keysOf(isUnfinished),
    backwards: backwardsOf(steps),
    late: lateOf(steps),
    otherId: [
      ...othersOf(arrivals.map(({ key, id }) => [key, id])),
      ...othersOf(arrivals.map(({ key, id }) => [id, key])),
    ],
    otherData: othersOf(arrivals.map(({ key, dataHash }) => [key, dataHash])),
    mislabelled: wrongArrivals((one) => known.has(one.key) && isMislabelled(one, known.get(one.key)?.place)),
    unknown: wrongArrivals(({ key }) => !known.has(key)),
    unverified: journal.flatMap((line) => (line.what === 'refused' ? [line.error] : [])),
  };
}
