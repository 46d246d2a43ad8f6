// Compares the kept states of a media buy or a subscription with a snapshot of the seller (owed.md §6.4 to §6.7).
// Pure.
// Called by the reconciler; states.ts changes kept states when events arrive.
import type { KeptState } from './states.ts';

/**
 * The time after which a state's webhook should have arrived: five minutes to coalesce, five to be delivered. Ms: 10
 * min.
 */
export const SETTLE_MS = 600_000;

/** A state in a snapshot. */
export interface SnapshotEntry {
  readonly id: string;
  /** The time of its last transition, on the seller's clock, Unix ms; absent if the snapshot names none. */
  readonly at?: number;
  readonly to?: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** The content of a snapshot for one row that keeps states. */
export interface SnapshotAnswer {
  /** The entries, each id once. */
  readonly entries: readonly SnapshotEntry[];
  /** True if some entry could not be read: a state that seems absent may be in that entry. */
  readonly isPartial?: boolean;
  /** True for a media buy that is terminal: nothing of it is impaired. */
  readonly isTerminal: boolean;
  /** The time that the seller gives for the snapshot, on its clock, Unix ms. Absent: `askedAt` is used. */
  readonly asOf?: number;
  /** The time at which the seller was asked, on the store's clock, Unix ms. */
  readonly askedAt: number;
}

/** A state that the snapshot shows and that handlers have to be given. */
export interface ToldState {
  /** Absent if the state has ended. */
  readonly entry?: SnapshotEntry;
  readonly state: {
    readonly id: string;
    /** The time of the state, on the seller's clock, later than that of the kept state which it replaces. Unix ms. */
    readonly at: number;
    readonly to?: string;
    readonly ended: boolean;
  };
  /** The kept state with which this one was compared; undefined if none was kept. */
  readonly seen: KeptState | undefined;
  /** True if a webhook should have reported it by now. */
  readonly isMissed: boolean;
}

/** The result of comparing a snapshot with the kept states. */
export interface Judged {
  readonly told: readonly ToldState[];
  /** The kept states after the snapshot (`wasOpen`, `absentAt`). The same list if nothing has changed. */
  readonly states: readonly KeptState[];
  /** True if some states of the snapshot do not fit into the row: handlers are not given these. */
  readonly isFull: boolean;
}

export interface JudgeLimits {
  /** The most states that are kept. */
  readonly most: number;
  /** The time since which states have been kept: an older state cannot have been kept. Unix ms. */
  readonly since: number;
  /**
   * True if the event was deleted before a handler completed it: then no handler knows its state. @param key of the
   * event.
   */
  readonly isGone: (key: string) => boolean;
}

/** A kept state after the snapshot, and what handlers are to be given of it. */
interface One {
  readonly state: KeptState;
  readonly told?: ToldState;
}

export function judged(
  kept: readonly KeptState[],
  answer: SnapshotAnswer,
  { most, since, isGone }: JudgeLimits,
): Judged {
  const entries = new Map(answer.isTerminal ? [] : answer.entries.map((entry) => [entry.id, entry]));
  const ones = kept.map((state): One => {
    const entry = entries.get(state.id);
    entries.delete(state.id);
    const isKnown = state.key === undefined || !isGone(state.key);
    return entry ? present(state, entry, answer, isKnown) : absent(state, answer, isKnown);
  });
  const room = Math.max(0, most - kept.filter(({ isEnded }) => !isEnded).length);
  const news = [...entries.values()].flatMap((entry) => first(entry, answer, since) ?? []);
  const latest = news.toSorted((a, b) => b.state.at - a.state.at).slice(0, room);
  const isMarked = ones.some(({ state }, at) => isMarkedAnew(state, kept[at]));
  return {
    told: [...ones.flatMap(({ told }) => told ?? []), ...latest],
    states: isMarked ? ones.map(({ state }) => state) : kept,
    isFull: news.length > room,
  };
}

/** True if the snapshot has changed the kept state. */
const isMarkedAnew = (state: KeptState, before: KeptState | undefined): boolean =>
  state.absentAt !== before?.absentAt || state.wasOpen !== before?.wasOpen;

const timeOf = ({ asOf, askedAt }: SnapshotAnswer): number => asOf ?? askedAt;

/**
 * Returns the time up to which webhooks should have arrived, for answers of any age. The later of both times is used,
 * because a seller's clock may be ahead.
 */
const latestOf = ({ asOf = -Infinity, askedAt }: SnapshotAnswer): number => Math.max(asOf, askedAt);

/** Judges an entry for which no state is kept. Undefined if its webhook may still arrive. */
function first(entry: SnapshotEntry, answer: SnapshotAnswer, since: number): ToldState | undefined {
  const at = entry.at ?? timeOf(answer) - SETTLE_MS;
  if (at + SETTLE_MS > latestOf(answer)) return undefined;
  return toldOpen(entry, at, undefined, entry.at !== undefined && at >= since);
}

const toldOpen = (
  entry: SnapshotEntry,
  at: number,
  seen: KeptState | undefined,
  isMissed: boolean,
): ToldState => ({
  entry,
  state: { id: entry.id, at, ...(entry.to !== undefined && { to: entry.to }), ended: false },
  seen,
  isMissed,
});

/** True if a webhook of the state would have arrived by now. @param entryAt the time of the state in the snapshot. */
const isSettled = ({ at, keptAt }: KeptState, answer: SnapshotAnswer, entryAt = at): boolean =>
  Math.max(at, entryAt) + SETTLE_MS <= latestOf(answer) && keptAt + SETTLE_MS <= answer.askedAt;

/** Returns a time for the state that replaces the kept one. It is always later than the kept state's. */
const after = ({ at }: KeptState, { asOf = -Infinity }: SnapshotAnswer): number => Math.max(asOf, at + 1);

/** Judges a kept state that the snapshot shows. @param isKnown true if handlers know of it, or will. */
function present(state: KeptState, entry: SnapshotEntry, answer: SnapshotAnswer, isKnown: boolean): One {
  const isSame = isSameWord(entry.to, state.to);
  const at = entry.at ?? (isSame ? state.at : timeOf(answer) - SETTLE_MS);
  const isLater = at > state.at;
  const isOpen = isLater || (isSame && isStill(state, at));
  const is = isOpen ? seenOpen(state) : state;
  const isTold = isLater || (isOpen ? !isKnown : isNewer(state, at, answer));
  if (!isTold || !isSettled(state, answer, at)) return { state: is };
  return {
    state: is,
    told: toldOpen(entry, isLater ? at : after(state, answer), is, isLater && entry.at !== undefined),
  };
}

const isSameWord = (one: string | undefined, other: string | undefined): boolean =>
  one === undefined || other === undefined || one === other;

/**
 * True if the kept state is the same transition and has not ended. A pull may have saved a later time than the
 * entry's.
 */
const isStill = ({ isEnded, at: keptAt, by }: KeptState, at: number): boolean =>
  !isEnded && (at === keptAt || by === 'pull');

/**
 * True if the answer is newer than the kept state, although its entry's time is not later. Either the answer's time
 * says so. Or the entry is the very transition by which a webhook ended the state. Or only an answer ended the state.
 */
function isNewer(state: KeptState, at: number, { asOf }: SnapshotAnswer): boolean {
  if (asOf !== undefined && asOf >= state.at + SETTLE_MS) return true;
  if (!state.isEnded) return false;
  return state.by === 'webhook' ? at === state.at : asOf === undefined;
}

function seenOpen(state: KeptState): KeptState {
  if (state.isEnded || (state.wasOpen && state.absentAt === undefined)) return state;
  const { absentAt: _absent, ...is } = state;
  return { ...is, wasOpen: true };
}

/**
 * True if an answer proves that the state is absent. An answer from before the state, or soon after it, need not show
 * it.
 */
const saysAbsent = (state: KeptState, answer: SnapshotAnswer): boolean =>
  isSettled(state, answer) && state.at + SETTLE_MS <= timeOf(answer);

/** Judges a kept state that the snapshot does not show. */
function absent(state: KeptState, answer: SnapshotAnswer, isKnown: boolean): One {
  const { isTerminal, isPartial, askedAt } = answer;
  const isOver = state.isEnded && isKnown;
  if (isOver || (isPartial && !isTerminal) || !saysAbsent(state, answer)) return { state };
  const { absentAt = askedAt } = state;
  // The webhook that reports its end may still arrive.
  if (!isTerminal && absentAt + SETTLE_MS > askedAt) return { state: { ...state, absentAt } };
  const is = { id: state.id, at: after(state, answer), ended: true };
  return { state, told: { state: is, seen: state, isMissed: !isTerminal && isKnown && wasOpen(state) } };
}

/**
 * True if the state was open. If no snapshot showed it after the last webhook, that webhook may have reported its
 * end.
 */
const wasOpen = (state: KeptState): boolean =>
  !state.isEnded && (state.by === 'pull' || state.wasOpen === true);
