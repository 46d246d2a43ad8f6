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

/*
 * The states that notifications tell, with the row of their media buy or subscription (owed.md §6): written in the step that inserts
 * the event, and in the one that completes it.
 */

/** Where a state is kept. */
interface Place {
  /** undefined: nowhere. */
  readonly row: RegistrationRow | undefined;
  readonly mediaBuyId: string | undefined;
}

/** What a row of an operation says of its media buy. */
interface OfMediaBuy {
  readonly mediaBuyId?: string;
  /** Of the stream's row, where it is another text. */
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

/** Whether another event came since a state was judged that is to be told (owed.md §6.6). */
export function isJudgedAnew(step: Accepting, { state }: EventClaim): boolean {
  if (state?.seen === undefined) return false;
  const { row } = placeOf(step, state);
  return !row || !isUnchanged(keptState(holderIn(row.value), state.id, step.now), state.seen);
}

/** The state of an event. */
interface Claimed {
  readonly claimedState: ClaimedState | null;
  /** An older one had to go. */
  readonly isDropped: boolean;
}

const NONE: Claimed = { claimedState: null, isDropped: false };

/** At insertion: the state is kept (owed.md §6.1), and what was emitted again is asked about (§6.7). */
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

/** What comes late for a media buy that is closed is looked at, too. */
const lookedAt = (row: RegistrationRow, now: number): RegistrationRow =>
  row.list === 'closed' ? { ...row, dueAt: Math.ceil(now) } : row;

/** A seller that emits again makes its media buy asked about so often at most. Ms. */
const REEMITTED_MS = 900_000;

/** @returns undefined where it is not asked about for that: nobody has registered it, or it was a while ago. */
function askedAgain(row: RegistrationRow, holder: StateHolder, now: number): RegistrationRow | undefined {
  if (row.kind !== 'stream' || row.list === null) return undefined;
  const stream = holder as Stream;
  if (Math.abs(now - (stream.reemittedAt ?? -Infinity)) < REEMITTED_MS) return undefined;
  return {
    ...withHolder(row, { ...stream, changedAt: now, reemittedAt: now } as Stream),
    dueAt: Math.ceil(now),
  };
}

/** Its handler has completed: what it told is known there. */
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
