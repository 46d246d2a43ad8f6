// Keeps the states that notifications report, e.g. of an impairment, in the row of their media buy or subscription
// (owed.md §6).
// Called in the atomic step that inserts an event, and in the one that completes it.
import {
  holderIn,
  isUnchanged,
  keptState,
  noted,
  type Noted,
  stateDone,
  type StateHolder,
} from '../../states/states.ts';
import type { Stream } from '../../windows/stream.ts';
import type { ClaimedState, EventClaim, RegistrationRow, StateClaim } from '../store.ts';
import type { RecordRow, Rows } from './rule-rows.ts';
import type { Accepting } from './task-wait.ts';

/** The row that keeps the state of a thing, e.g. of an impairment, and the media buy of that thing. */
interface Place {
  /** undefined: no row keeps the state. */
  readonly row: RegistrationRow | undefined;
  readonly mediaBuyId: string | undefined;
}

/** The members of an operation's row that name its media buy, and the row of the media buy's account. */
interface OfMediaBuy {
  readonly mediaBuyId?: string;
  /** The id of the row of the account, if it differs from `mediaBuyId`. */
  readonly streamId?: string;
}

function placeOf({ rows, request: { sender }, now }: Accepting, { holder, mediaBuyId }: StateClaim): Place {
  if (!holder) return { row: undefined, mediaBuyId };
  const { kind, id } = holder;
  if (kind !== 'operation') return { row: rows.registration(kind, sender, id, now), mediaBuyId };
  const operation = rows.registration(kind, sender, id, now);
  const { mediaBuyId: named, streamId = named }: OfMediaBuy = operation ? JSON.parse(operation.value) : {};
  const row = streamId === undefined ? undefined : rows.registration('stream', sender, streamId, now);
  return { row, mediaBuyId: named };
}

/**
 * True if the kept state is not the one with which a pulled state was compared: another event changed it, or its row is
 * gone. Then the pulled state must not be reported (owed.md §6.6).
 */
export function isJudgedAnew(step: Accepting, { state }: EventClaim): boolean {
  if (state?.seen === undefined) return false;
  const { row } = placeOf(step, state);
  return !row || !isUnchanged(keptState(holderIn(row.value), state.id, step.now), state.seen);
}

/** The state that an event reports, as the record of the event keeps it. */
interface Claimed {
  readonly claimedState: ClaimedState | null;
  /** True if the row had too many states, so that a state that has not ended was dropped. */
  readonly isDropped: boolean;
}

const NONE: Claimed = { claimedState: null, isDropped: false };

/**
 * Keeps the state that an event reports, when the event is inserted (owed.md §6.1). If the sender emitted the
 * notification again and its state is no newer than the kept one, the media buy's account becomes due (§6.7).
 */
export function claimState(step: Accepting, { key, state }: EventClaim, isReemission: boolean): Claimed {
  if (!state) return NONE;
  const { now } = step;
  const place = placeOf(step, state);
  const { row } = place;
  const known = row ? holderIn(row.value) : {};
  const is = noted(known, state, now, key);
  const claimedState = claimedOf(state, is, place);
  if (!row) return { claimedState, isDropped: false };
  const isNews = is.at > (keptState(known, state.id, now)?.at ?? Infinity);
  const asked = isReemission && !isNews ? askedAgain(row, is.holder, now) : undefined;
  const kept = is.holder === known ? undefined : lookedAt(withHolder(row, is.holder), now);
  const saved = asked ?? kept;
  if (saved) step.rows.saveRegistration(saved, now);
  return { claimedState, isDropped: is.isDropped };
}

const claimedOf = (
  { id }: StateClaim,
  { at, isEnded, isRepeated }: Noted<StateHolder>,
  { row, mediaBuyId }: Place,
): ClaimedState => ({
  id,
  at,
  ...(isEnded && { isEnded }),
  ...(isRepeated && { isRepeated }),
  ...(mediaBuyId !== undefined && { mediaBuyId }),
  ...(row && { holder: { kind: row.kind === 'stream' ? 'stream' : 'snapshot', id: row.id } }),
});

const withHolder = (row: RegistrationRow, holder: StateHolder): RegistrationRow => ({
  ...row,
  value: JSON.stringify(holder),
});

/** Makes the row of a closed media buy due, because something arrived late for it. */
const lookedAt = (row: RegistrationRow, now: number): RegistrationRow =>
  row.list === 'closed' ? { ...row, dueAt: Math.ceil(now) } : row;

/**
 * The shortest time after which another re-emitted notification makes the account of the same media buy due. Ms: 15
 * min.
 */
const REEMITTED_MS = 900_000;

/**
 * Makes a media buy's account due, so that the seller is asked about the media buy, because the seller emitted a
 * notification again.
 *
 * @returns undefined for a subscription, and for a media buy that nobody has registered. Also undefined if another
 *   re-emission made the account due within the last `REEMITTED_MS`.
 */
function askedAgain(row: RegistrationRow, holder: StateHolder, now: number): RegistrationRow | undefined {
  if (row.kind !== 'stream' || row.list === null) return undefined;
  const stream = holder as Stream;
  if (Math.abs(now - (stream.reemittedAt ?? -Infinity)) < REEMITTED_MS) return undefined;
  return {
    ...withHolder(row, { ...stream, changedAt: now, reemittedAt: now } as Stream),
    dueAt: Math.ceil(now),
  };
}

/** Records that the handler of an event has completed, so that handlers know the reported state from then on. */
export function completeState(
  rows: Rows,
  { sender, key }: RecordRow,
  { id, holder }: ClaimedState,
  now: number,
): void {
  const row = holder && rows.registration(holder.kind, sender, holder.id, now);
  const done = row && stateDone(holderIn(row.value), id, key);
  if (done) rows.saveRegistration(withHolder(row, done), now);
}
