// Keeps the states of things, e.g. of impairments, and changes them when an event arrives (owed.md §6.1). Pure.
// Called by the rules of the store, inside their atomic step, and by the reconciler.
import { MARK_AHEAD_MS } from '../stores/constants.ts';
import type { KeptState, StateClaim } from '../stores/store-accounts.ts';

export type { KeptState } from '../stores/store-accounts.ts';

/** The value of a row that keeps states. */
export interface StateHolder {
  readonly states?: readonly KeptState[];
}

/**
 * The time for which an ended state is kept. So an event that was sent before the end, but arrives after it, changes
 * nothing. Ms: 30 days.
 */
const ENDED_MS = 30 * 86_400_000;

/**
 * The largest number of states kept for a media buy (`stream`), and for one event type of a subscription (`snapshot`)
 * (owed.md §6.8).
 */
export const MOST_STATES = { stream: 100, snapshot: 1000 } as const;

/** The longest id of a thing whose state is kept. Sellers make ids of at most 255 characters. */
export const MAX_STATE_ID = 255;

/** The length to which the name of a state (`KeptState.to`) is cut, because a seller may send any text. */
const MAX_WORD = 64;

/** Cuts the name of a state to the length in which names are kept and compared. */
export const stateWord = (word: string): string => word.slice(0, MAX_WORD);

/**
 * Returns a seller's time. Undefined if the time is far ahead of the store's clock, because it would hide all later
 * changes.
 *
 * @param now the store's time. Unix ms.
 */
export const countedInstant = (at: number | undefined, now: number): number | undefined =>
  at !== undefined && at <= now + MARK_AHEAD_MS ? at : undefined;

/** False for a state that ended longer ago than `ENDED_MS`: it is forgotten. */
const isRemembered = ({ isEnded, keptAt }: KeptState, now: number): boolean =>
  !isEnded || keptAt + ENDED_MS > now;

/** Returns the kept states, without states that ended too long ago. @param now the store's time. Unix ms. */
export const statesIn = ({ states = [] }: StateHolder, now: number): readonly KeptState[] =>
  states.filter((one) => isRemembered(one, now));

export const keptState = (holder: StateHolder, id: string, now: number): KeptState | undefined =>
  statesIn(holder, now).find((one) => one.id === id);

/** The kept states after an event, and the facts about the state that the event reported. */
export interface Noted<S extends StateHolder> {
  readonly holder: S;
  /** The time that counts as the time of the reported change. Unix ms. */
  readonly at: number;
  readonly isEnded: boolean;
  /**
   * True if a pull reported the same change before. If the event itself is a pull that reports an end: true if a
   * webhook may have reported that end.
   */
  readonly isRepeated: boolean;
  /** True if there were too many states, so that a state that has not ended is no longer kept. */
  readonly isDropped: boolean;
}

/**
 * Adds the state that an event reports to the kept states, unless the kept state is newer (owed.md §6.1).
 *
 * @param now the store's time. Unix ms.
 * @param key the key of the event.
 */
export function noted<S extends StateHolder>(
  holder: S,
  claim: StateClaim,
  now: number,
  key?: string,
): Noted<S> {
  const states = statesIn(holder, now);
  const kept = states.find((one) => one.id === claim.id);
  const at = instantOf(claim, kept, now);
  const is = told(claim, kept, { at, keptAt: now });
  const isEnded = is.isEnded === true;
  if (kept && at < kept.at) return { holder, at, isEnded, isRepeated: false, isDropped: false };
  const isSame = kept !== undefined && isSameChange(kept, is);
  const { isFirst, wasOpen }: Partial<KeptState> = kept ? (isSame ? kept : {}) : { isFirst: true };
  const state: KeptState = {
    ...is,
    ...(isFirst && { isFirst }),
    ...(wasOpen && { wasOpen }),
    ...(key !== undefined && { key }),
  };
  const others = states.filter((one) => one !== kept);
  const { states: fitting, isDropped } = fitted([...others, state], MOST_STATES[kindOf(claim)]);
  return {
    holder: { ...holder, states: fitting },
    at,
    isEnded,
    isRepeated: isPulled(claim) ? isEnded && mayHaveEnded(kept) : isSame && wasPulled(kept),
    isDropped,
  };
}

const isPulled = ({ seen }: StateClaim): boolean => seen !== undefined;
const wasPulled = ({ by }: KeptState): boolean => by === 'pull';

/**
 * Makes the state to keep for an event. A pulled state that has not ended counts as shown by a snapshot (`wasOpen`).
 */
function told(
  claim: StateClaim,
  kept: KeptState | undefined,
  times: Pick<KeptState, 'at' | 'keptAt'>,
): Omit<KeptState, 'isFirst' | 'key'> {
  const [to, from] = [claim.to, claim.from].map((word) => (word === undefined ? word : stateWord(word)));
  const origin = kept ? kept.origin : from;
  const isBack = kept !== undefined && to !== undefined && to === origin;
  const isEnded = claim.ended === true || (isBack && !isPulled(claim));
  return {
    id: claim.id,
    ...times,
    by: isPulled(claim) ? 'pull' : 'webhook',
    ...(to !== undefined && { to }),
    ...(origin !== undefined && { origin }),
    ...(isEnded && { isEnded }),
    ...(isPulled(claim) && !isEnded && { wasOpen: true }),
  };
}

/**
 * True if the last webhook may already have reported the end that a pull now reports (owed.md §6.4). That webhook's
 * change was not the first of this id, the first change named no `from`, and no snapshot showed the state as open. So
 * the change may be a beginning or an end.
 */
const mayHaveEnded = (kept: KeptState | undefined): boolean =>
  kept?.by === 'webhook' && kept.origin === undefined && !kept.isFirst && !kept.wasOpen;

const kindOf = ({ holder }: StateClaim): keyof typeof MOST_STATES =>
  holder?.kind === 'snapshot' ? 'snapshot' : 'stream';

/**
 * Returns the time of a reported change. A pulled state must replace the kept state with which it was compared. So the
 * pulled state's time is made later than the kept state's if necessary (owed.md §6.5).
 */
function instantOf({ at, seen }: StateClaim, kept: KeptState | undefined, now: number): number {
  const said = countedInstant(at, now) ?? now;
  return seen !== undefined && kept ? Math.max(said, kept.at + 1) : said;
}

/** True if an event reports the same change as the kept state. */
const isSameChange = (
  kept: KeptState,
  { at, to, isEnded }: Pick<KeptState, 'at' | 'to' | 'isEnded'>,
): boolean => kept.at === at && kept.to === to && kept.isEnded === isEnded;

/**
 * Drops states if there are too many: ended ones first, then the oldest. `states` are in the order in which they were
 * saved.
 */
function fitted(
  states: readonly KeptState[],
  most: number,
): { readonly states: readonly KeptState[]; readonly isDropped: boolean } {
  const excess = states.length - most;
  if (excess <= 0) return { states, isDropped: false };
  const ended = states.filter(({ isEnded }) => isEnded).slice(0, excess);
  const open = states.filter(({ isEnded }) => !isEnded).slice(0, excess - ended.length);
  const gone = new Set([...ended, ...open]);
  return { states: states.filter((one) => !gone.has(one)), isDropped: open.length > 0 };
}

/**
 * True if no event changed a state between two reads of it (owed.md §6.6). What snapshots show of the state is ignored.
 */
export function isUnchanged(one: KeptState | null | undefined, other: KeptState | null | undefined): boolean {
  if (!one || !other) return !one && !other;
  return COMPARED.every((name) => one[name] === other[name]);
}

const COMPARED = [
  'id',
  'at',
  'to',
  'keptAt',
  'by',
  'isEnded',
] as const satisfies readonly (keyof KeptState)[];

/**
 * Records that the event with `key` is done, by deleting the key from the state. @returns undefined if the state does
 * not have that key.
 */
export function stateDone<S extends StateHolder>(holder: S, id: string, key: string): S | undefined {
  const { states = [] } = holder;
  const at = states.findIndex((one) => one.id === id && one.key === key);
  const { key: _done, ...state } = states[at] ?? {};
  return at < 0 ? undefined : { ...holder, states: states.with(at, state as KeptState) };
}

/** Reads the value of a row that keeps states. @param value the row's value, JSON. */
export const holderIn = (value: string): StateHolder => JSON.parse(value) as StateHolder;
