// Judges the states that are kept of a media buy or a subscription by a snapshot (owed.md §6.4 to §6.7). Pure.
// Called by the reconciler; states.ts has the states as events change them.
import type { KeptState } from './states.ts';

/**
 * The time after which the webhook of a state must have come: five minutes for coalescence, five for the way. Ms: 10
 * min.
 */
export const SETTLE_MS = 600_000;

/** A state as a snapshot has it. */
export interface SnapshotEntry {
  readonly id: string;
  /** The time of its last transition, on the seller's clock, Unix ms; absent if the snapshot names none. */
  readonly at?: number;
  readonly to?: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** The content of a snapshot about one holder of states. */
export interface SnapshotAnswer {
  /** The entries, each id once. */
  readonly entries: readonly SnapshotEntry[];
  /** True if some entry could not be read: a state that seems absent may be that one. */
  readonly isPartial?: boolean;
  /** True for a media buy that is terminal: nothing of it is impaired. */
  readonly isTerminal: boolean;
  /** The instant that the seller names for it, on its clock, Unix ms; absent: it is the time of the question. */
  readonly asOf?: number;
  /** The time of the question on the store's clock, Unix ms. */
  readonly askedAt: number;
}

/** A state that handlers are to be told. */
export interface ToldState {
  /** Absent if the state has ended. */
  readonly entry?: SnapshotEntry;
  readonly state: {
    readonly id: string;
    /** Later than the instant that it replaces, on the seller's clock. Unix ms. */
    readonly at: number;
    readonly to?: string;
    readonly ended: boolean;
  };
  /** The kept state when this one was judged. */
  readonly seen: KeptState | undefined;
  /** True if its webhook should have come by now. */
  readonly isMissed: boolean;
}

/** The result of a snapshot. */
export interface Judged {
  readonly told: readonly ToldState[];
  /** The kept states, with the marks of the snapshot. It is the same list if there are none. */
  readonly states: readonly KeptState[];
  /** True if there is no room for some states of the snapshot: these are not told. */
  readonly isFull: boolean;
}

export interface JudgeLimits {
  /** The most states that are kept. */
  readonly most: number;
  /** The time since which states have been kept: nobody kept an older one. Unix ms. */
  readonly since: number;
  /** True if an event is gone that no handler has completed: then nobody knows of its state. @param key of the event. */
  readonly isGone: (key: string) => boolean;
}

/** A kept state as the snapshot leaves it. */
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

/** True if a snapshot marks the kept state. */
const isMarkedAnew = (state: KeptState, before: KeptState | undefined): boolean =>
  state.absentAt !== before?.absentAt || state.wasOpen !== before?.wasOpen;

const timeOf = ({ asOf, askedAt }: SnapshotAnswer): number => asOf ?? askedAt;

/**
 * Returns the time by which webhooks are judged to have come, even if the answer is an old one. A seller's clock may be
 * ahead.
 */
const latestOf = ({ asOf = -Infinity, askedAt }: SnapshotAnswer): number => Math.max(asOf, askedAt);

/** Judges an entry that is not kept. */
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

/** True if its webhook has had its time. @param entryAt the instant that the snapshot has of it. */
const isSettled = ({ at, keptAt }: KeptState, answer: SnapshotAnswer, entryAt = at): boolean =>
  Math.max(at, entryAt) + SETTLE_MS <= latestOf(answer) && keptAt + SETTLE_MS <= answer.askedAt;

/** Returns an instant for the state that follows the kept one: it is later than that. */
const after = ({ at }: KeptState, { asOf = -Infinity }: SnapshotAnswer): number => Math.max(asOf, at + 1);

/** Judges a kept state that the snapshot has. @param isKnown true if handlers know of it, or will. */
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

/** True for the same transition, with none behind it. A pull may have told it with a later instant than its own. */
const isStill = ({ isEnded, at: keptAt, by }: KeptState, at: number): boolean =>
  !isEnded && (at === keptAt || by === 'pull');

/**
 * True if an answer is newer than the kept state, although its entry is not later. Either the answer says so; or it has
 * the very transition by which a webhook ended the state; or only an answer ended it.
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

/** True if an answer proves absence: one from before a state, or soon after it, need not have it. */
const saysAbsent = (state: KeptState, answer: SnapshotAnswer): boolean =>
  isSettled(state, answer) && state.at + SETTLE_MS <= timeOf(answer);

/** Judges a kept state that the snapshot does not have. */
function absent(state: KeptState, answer: SnapshotAnswer, isKnown: boolean): One {
  const { isTerminal, isPartial, askedAt } = answer;
  const isOver = state.isEnded && isKnown;
  if (isOver || (isPartial && !isTerminal) || !saysAbsent(state, answer)) return { state };
  const { absentAt = askedAt } = state;
  // The webhook of its end may be on its way.
  if (!isTerminal && absentAt + SETTLE_MS > askedAt) return { state: { ...state, absentAt } };
  const is = { id: state.id, at: after(state, answer), ended: true };
  return { state, told: { state: is, seen: state, isMissed: !isTerminal && isKnown && wasOpen(state) } };
}

/** True if the state was open. If no snapshot had it since, the last webhook may have told its end. */
const wasOpen = (state: KeptState): boolean =>
  !state.isEnded && (state.by === 'pull' || state.wasOpen === true);
