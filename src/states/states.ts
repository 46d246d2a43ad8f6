// The states of things as they are kept, and their change by an event (owed.md §6.1). Pure.
// Called by the rules of the store, inside their step, and by the reconciler.
import { MARK_AHEAD_MS } from '../stores/constants.ts';
import type { KeptState, StateClaim } from '../stores/store-accounts.ts';

export type { KeptState } from '../stores/store-accounts.ts';

/** A row that keeps states. */
export interface StateHolder {
  readonly states?: readonly KeptState[];
}

/** The time for which an end is remembered: an event sent before it that comes behind it changes nothing. Ms: 30 days. */
const ENDED_MS = 30 * 86_400_000;

/** The most states that are kept of a media buy, and of a subscription and type (owed.md §6.8). */
export const MOST_STATES = { stream: 100, snapshot: 1000 } as const;

/** The longest id of which a state is kept: sellers make ids of at most 255 characters. */
export const MAX_STATE_ID = 255;

/** The longest name of a state, because `KeptState.to` is a seller's text. */
const MAX_WORD = 64;

/** Cuts a state's name as it is kept and compared. */
export const stateWord = (word: string): string => word.slice(0, MAX_WORD);

/**
 * Returns a seller's instant, if it counts: one well ahead of the store's clock would hide all that follow.
 *
 * @param now the store's clock. Unix ms.
 */
export const countedInstant = (at: number | undefined, now: number): number | undefined =>
  at !== undefined && at <= now + MARK_AHEAD_MS ? at : undefined;

/** False for a state that ended long ago. */
const isRemembered = ({ isEnded, keptAt }: KeptState, now: number): boolean =>
  !isEnded || keptAt + ENDED_MS > now;

/** Returns the states that count at a time. @param now the store's clock. Unix ms. */
export const statesIn = ({ states = [] }: StateHolder, now: number): readonly KeptState[] =>
  states.filter((one) => isRemembered(one, now));

export const keptState = (holder: StateHolder, id: string, now: number): KeptState | undefined =>
  statesIn(holder, now).find((one) => one.id === id);

/** The result of an event for the kept states. */
export interface Noted<S extends StateHolder> {
  readonly holder: S;
  /** The time of the event, as it counts. Unix ms. */
  readonly at: number;
  /** True if the state is over. */
  readonly isEnded: boolean;
  /** True if a pull told the same change before. For an end that a pull tells: true if a webhook may have told it. */
  readonly isRepeated: boolean;
  /** True if there were too many, so that a state that has not ended is no longer kept. */
  readonly isDropped: boolean;
}

/** Keeps the state that an event tells (owed.md §6.1). @param key of the event. @param now the store's clock. Unix ms. */
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

/** Makes the state of an event. A pulled state that has not ended is one that a snapshot has. */
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

/** True if the last webhook may have told the end that a pull tells: it shows neither (owed.md §6.4). */
const mayHaveEnded = (kept: KeptState | undefined): boolean =>
  kept?.by === 'webhook' && kept.origin === undefined && !kept.isFirst && !kept.wasOpen;

const kindOf = ({ holder }: StateClaim): keyof typeof MOST_STATES =>
  holder?.kind === 'snapshot' ? 'snapshot' : 'stream';

/**
 * Returns the instant of a change. A pull replaces the state that it was judged by, whatever instant that has (owed.md
 * §6.5).
 */
function instantOf({ at, seen }: StateClaim, kept: KeptState | undefined, now: number): number {
  const said = countedInstant(at, now) ?? now;
  return seen !== undefined && kept ? Math.max(said, kept.at + 1) : said;
}

/** True if an event tells the kept change once more. */
const isSameChange = (
  kept: KeptState,
  { at, to, isEnded }: Pick<KeptState, 'at' | 'to' | 'isEnded'>,
): boolean => kept.at === at && kept.to === to && kept.isEnded === isEnded;

/**
 * Drops states if there are too many: ended ones first, then the oldest. They stand in the order in which they were
 * kept.
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

/** True if no event came between two looks at a kept state (owed.md §6.6). The marks of snapshots do not count. */
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

/** Notes that the event of a key is done. @returns undefined if no state waits for it. */
export function stateDone<S extends StateHolder>(holder: S, id: string, key: string): S | undefined {
  const { states = [] } = holder;
  const at = states.findIndex((one) => one.id === id && one.key === key);
  const { key: _done, ...state } = states[at] ?? {};
  return at < 0 ? undefined : { ...holder, states: states.with(at, state as KeptState) };
}

/** Reads the row that keeps `states`. @param value of the row: JSON. */
export const holderIn = (value: string): StateHolder => JSON.parse(value) as StateHolder;
