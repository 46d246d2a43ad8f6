import type { KeptState } from './states.ts';

/*
 * What a snapshot makes of the states that are kept (owed.md §6.4). Pure.
 */

/** By then the webhook of a state has come: five minutes for coalescence, five for the way. Ms. */
export const SETTLE_MS = 600_000;

/** A state as a snapshot has it. */
export interface SnapshotEntry {
  readonly id: string;
  /** Its last transition, on the seller's clock, Unix ms; absent: the snapshot does not say. */
  readonly at?: number;
  readonly to?: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** What a snapshot says of one holder of states. */
export interface SnapshotAnswer {
  /** Each id once. */
  readonly entries: readonly SnapshotEntry[];
  /** Some entry could not be read: what is absent may be that one. */
  readonly isPartial?: boolean;
  /** Of a media buy that is terminal: nothing of it is impaired. */
  readonly isTerminal: boolean;
  /** The instant that the seller says it is of, on its clock, Unix ms; absent: when it was asked. */
  readonly asOf?: number;
  /** On the store's clock, Unix ms. */
  readonly askedAt: number;
}

/** A state that handlers are to be told. */
export interface ToldState {
  /** Absent: it has ended. */
  readonly entry?: SnapshotEntry;
  readonly state: {
    readonly id: string;
    /** Later than what it replaces, on the seller's clock. Unix ms. */
    readonly at: number;
    readonly to?: string;
    readonly ended: boolean;
  };
  /** What was kept of it when it was judged. */
  readonly seen: KeptState | undefined;
  /** Its webhook should have come by now. */
  readonly isMissed: boolean;
}

/** What a snapshot comes to. */
export interface Judged {
  readonly told: readonly ToldState[];
  /** Those that were kept, with what the snapshot marks of them. The same list where it marks nothing. */
  readonly states: readonly KeptState[];
  /** There is no room for some that the snapshot has: they are not told. */
  readonly isFull: boolean;
}

export interface JudgeLimits {
  /** States that are kept. */
  readonly most: number;
  /** States have been kept since then: what is older came when nobody kept it. Unix ms. */
  readonly since: number;
  /** Whether an event is gone that no handler has completed: then nobody knows of its state. @param key of the event. */
  readonly isGone: (key: string) => boolean;
}

/** One that is kept, as the snapshot leaves it. */
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

/** Whether a snapshot marks what was kept. */
const isMarkedAnew = (state: KeptState, before: KeptState | undefined): boolean =>
  state.absentAt !== before?.absentAt || state.wasOpen !== before?.wasOpen;

const timeOf = ({ asOf, askedAt }: SnapshotAnswer): number => asOf ?? askedAt;

/** By then webhooks had their time, also where the answer is an old one. A seller's clock may be ahead. */
const latestOf = ({ asOf = -Infinity, askedAt }: SnapshotAnswer): number => Math.max(asOf, askedAt);

/** An entry that is not kept. */
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

/** Its webhook has had its time. @param entryAt of what the snapshot has of it. */
const isSettled = ({ at, keptAt }: KeptState, answer: SnapshotAnswer, entryAt = at): boolean =>
  Math.max(at, entryAt) + SETTLE_MS <= latestOf(answer) && keptAt + SETTLE_MS <= answer.askedAt;

/** A state that follows the kept one has a later instant than that. */
const after = ({ at }: KeptState, { asOf = -Infinity }: SnapshotAnswer): number => Math.max(asOf, at + 1);

/** The snapshot has one that is kept. @param isKnown handlers know of it, or will. */
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

/** Of the same transition: nothing came behind it. A pull may have told it with a later instant than its own. */
const isStill = ({ isEnded, at: keptAt, by }: KeptState, at: number): boolean =>
  !isEnded && (at === keptAt || by === 'pull');

/**
 * Whether an answer is newer than what is kept, though its entry is not later: it says so; it has the very transition by which a webhook
 * ended it; or nothing but an answer ended it.
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

/** An answer from before a state, or soon after it, need not have it. */
const saysAbsent = (state: KeptState, answer: SnapshotAnswer): boolean =>
  isSettled(state, answer) && state.at + SETTLE_MS <= timeOf(answer);

/** The snapshot does not have one that is kept. */
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

/** Where no snapshot had it since, the last webhook may have told its end. */
const wasOpen = (state: KeptState): boolean =>
  !state.isEnded && (state.by === 'pull' || state.wasOpen === true);
