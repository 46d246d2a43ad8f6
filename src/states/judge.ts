// Compares the kept states of a media buy or a subscription with a snapshot, the seller's list of present states
// (owed.md §6.4 to §6.7). Pure.
// Called by the reconciler; states.ts changes kept states when events arrive.
import type { KeptState } from './states.ts';

/**
 * The time within which the webhook about a changed state should arrive: five minutes for the seller to collect
 * changes, five for the delivery. Ms: 10 min.
 */
export const SETTLE_MS = 600_000;

/** One present state in a snapshot, the seller's list of states. */
export interface SnapshotEntry {
  readonly id: string;
  /** The time of the state's last change, on the seller's clock, Unix ms; absent if the snapshot names none. */
  readonly at?: number;
  readonly to?: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** The part of a snapshot that is about one row of kept states. */
export interface SnapshotAnswer {
  /** The entries, each id once. */
  readonly entries: readonly SnapshotEntry[];
  /** True if some entry could not be read. Then a state that seems absent may be in that entry. */
  readonly isPartial?: boolean;
  /** True for a media buy whose status is terminal: it has no impairments any more. */
  readonly isTerminal: boolean;
  /** The time that the seller gives for the snapshot, on the seller's clock, Unix ms. Absent: `askedAt` is used. */
  readonly asOf?: number;
  /** The time at which the seller was asked for the snapshot, on the store's clock, Unix ms. */
  readonly askedAt: number;
}

/** A change that a snapshot shows of a state, and that handlers do not know of yet. */
export interface ToldState {
  /** The entry of the snapshot; absent if the state has ended. */
  readonly entry?: SnapshotEntry;
  readonly state: {
    readonly id: string;
    /**
     * The time of the change, on the seller's clock. It is later than the time of the kept state that it replaces. Unix
     * ms.
     */
    readonly at: number;
    readonly to?: string;
    readonly ended: boolean;
  };
  /** The kept state with which the entry was compared; undefined if none was kept. */
  readonly seen: KeptState | undefined;
  /** True if a webhook should have reported the change by now. */
  readonly isMissed: boolean;
}

/** The result of comparing a snapshot with the kept states. */
export interface Judged {
  readonly told: readonly ToldState[];
  /**
   * The kept states, with what the snapshot shows of them (`wasOpen`, `absentAt`). The same list if nothing has
   * changed.
   */
  readonly states: readonly KeptState[];
  /** True if the row has no room for some states of the snapshot. Handlers get no event for these states. */
  readonly isFull: boolean;
}

export interface JudgeLimits {
  /** The largest number of states that a row keeps. */
  readonly most: number;
  /** The time since which the row has kept states. Before that time no webhook could be noted in the row. Unix ms. */
  readonly since: number;
  /** True if the event with the key was deleted before a handler completed it: then no handler knows its state. */
  readonly isGone: (key: string) => boolean;
}

/** A kept state after its comparison with a snapshot, and the change that handlers are to get, if there is one. */
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

/** True if the snapshot has changed `absentAt` or `wasOpen` of the kept state. */
const isMarkedAnew = (state: KeptState, before: KeptState | undefined): boolean =>
  state.absentAt !== before?.absentAt || state.wasOpen !== before?.wasOpen;

const timeOf = ({ asOf, askedAt }: SnapshotAnswer): number => asOf ?? askedAt;

/**
 * Returns the time that decides if webhooks should have arrived: the later one of `asOf` and `askedAt`. The seller may
 * have made the answer earlier, so `asOf` may be old. If the seller's clock is ahead, `asOf` is later.
 */
const latestOf = ({ asOf = -Infinity, askedAt }: SnapshotAnswer): number => Math.max(asOf, askedAt);

/**
 * Judges an entry of a snapshot whose state is not kept. Returns undefined if the webhook of the state may still
 * arrive.
 */
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

/**
 * True if a webhook of the kept state would have arrived by now. @param entryAt the time of the state in the snapshot.
 */
const isSettled = ({ at, keptAt }: KeptState, answer: SnapshotAnswer, entryAt = at): boolean =>
  Math.max(at, entryAt) + SETTLE_MS <= latestOf(answer) && keptAt + SETTLE_MS <= answer.askedAt;

/**
 * Returns a time for the change that replaces a kept state: the answer's own time, but always later than the kept
 * state's.
 */
const after = ({ at }: KeptState, { asOf = -Infinity }: SnapshotAnswer): number => Math.max(asOf, at + 1);

/**
 * Judges a kept state that the snapshot shows. @param isKnown true if a handler has got the kept state, or will get it.
 */
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
 * True if the entry shows the same change as the kept state, which has not ended. The times may differ after a pull,
 * which may have saved a later time than the entry's.
 */
const isStill = ({ isEnded, at: keptAt, by }: KeptState, at: number): boolean =>
  !isEnded && (at === keptAt || by === 'pull');

/**
 * True if the answer is newer than the kept state, although its entry's time is not later. There are three cases.
 *
 * - The answer's own time (`asOf`) is later by `SETTLE_MS` or more.
 * - A webhook ended the state, by a change of exactly the entry's time.
 * - A pull ended the state, and the answer has no time of its own.
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
 * True if a state's absence from an answer shows that the state is over. An answer from before the state's change, or
 * less than `SETTLE_MS` after it, need not show the state.
 */
const saysAbsent = (state: KeptState, answer: SnapshotAnswer): boolean =>
  isSettled(state, answer) && state.at + SETTLE_MS <= timeOf(answer);

/** Judges a kept state that the snapshot does not show. */
function absent(state: KeptState, answer: SnapshotAnswer, isKnown: boolean): One {
  const { isTerminal, isPartial, askedAt } = answer;
  const isOver = state.isEnded && isKnown;
  if (isOver || (isPartial && !isTerminal) || !saysAbsent(state, answer)) return { state };
  const { absentAt = askedAt } = state;
  // The state is absent for the first time, or only for a short time: the webhook that reports its end may still come.
  if (!isTerminal && absentAt + SETTLE_MS > askedAt) return { state: { ...state, absentAt } };
  const is = { id: state.id, at: after(state, answer), ended: true };
  return { state, told: { state: is, seen: state, isMissed: !isTerminal && isKnown && wasOpen(state) } };
}

/**
 * True if the state was open for certain: a pull or a snapshot showed it after the last webhook. Otherwise that webhook
 * may have reported the state's end.
 */
const wasOpen = (state: KeptState): boolean =>
  !state.isEnded && (state.by === 'pull' || state.wasOpen === true);
