import type { AcceptDecision, EventClaim, TaskClaim } from '../store.ts';
import { isAfterTerminal, isStale } from './order.ts';
import type { FirstTerminal, RecordRow, Rows, TaskRow } from './rule-rows.ts';
import { areOtherChannels, type Found, heldTerminal, isTold, sourceOf, toldTerminal } from './channels.ts';

/*
 * A task's first terminal status, and what comes after it (admission.md §5.4, §5.4a).
 */

const STALE: AcceptDecision = { kind: 'stale', changed: false };
const DUPLICATE: AcceptDecision = { kind: 'done', changed: false, state: 'stale', died: false };

/**
 * Rule 3, behind what is stale: a second terminal status of a task (verification.md §2.19). Undefined: it is taken, as
 * every one is that has no `terminalHash`. The answer 409 ends the event at its sender, so the status that it loses to has
 * to be safe: a 503 brings it again until that is so.
 */
export function secondTerminal(
  { terminalHash }: EventClaim,
  held: Found | undefined,
): AcceptDecision | undefined {
  if (terminalHash === undefined || !held) return undefined;
  if (!isSafe(held)) return { kind: 'final-unsafe' };
  if (differs(held.first, terminalHash)) return { kind: 'already-final' };
  return DUPLICATE;
}

/** Applied, or acknowledged. */
const isSafe = ({ first, record }: Found): boolean => first.state !== 'open' || record?.acked === true;

/** What another channel told first, or a sender of another edition, has no such hash. */
const differs = ({ hash }: FirstTerminal, other: string): boolean => hash !== '' && hash !== other;

/** Rule 3: older than what was applied, told before by another channel, or behind an end that nothing may follow. */
export function notNewer(
  { task: claim }: EventClaim,
  task: TaskRow | undefined,
  held: Found | undefined,
): AcceptDecision | undefined {
  if (isStale(claim, task)) return STALE;
  if (isTold(claim, task))
    return claim?.instant !== undefined && claim.instant === task?.mark ? DUPLICATE : STALE;
  return isInterim(claim) && held && isSafe(held) ? STALE : undefined;
}

const isInterim = (claim: TaskClaim | null | undefined): claim is TaskClaim =>
  claim?.keepsEnd === true && !claim.terminal;

/**
 * The same of a record that was there before the end, when it is leased. While the end waits to be handled what is older
 * goes first; what is newer would make it stale.
 */
export function isPastEnd(
  rows: Pick<Rows, 'record'>,
  { task: claim }: RecordRow,
  task: TaskRow | undefined,
  now: number,
): boolean {
  const held = isInterim(claim) && task ? heldTerminal(rows, task, now) : undefined;
  if (!held || !isSafe(held)) return false;
  const { first, record } = held;
  if (first.state !== 'open' || record?.state === 'dead') return true;
  return isNewer(claim, record?.task);
}

const isNewer = (claim: TaskClaim | null | undefined, end: TaskClaim | null | undefined): boolean =>
  claim?.instant !== undefined && end?.instant !== undefined && claim.instant > end.instant;

/** Another webhook has told an end of the task before, under another key. */
export function isSecondEnd({ key, task: claim }: EventClaim, held: Found | undefined): boolean {
  if (!claim?.terminal || !held || held.first.key === key) return false;
  return !areOtherChannels(sourceOf(held.first), claim.told?.source ?? 'webhook');
}

/** What its handler is told of an event's place in its task: an end came before it. */
export function followsEnd(
  rows: Pick<Rows, 'record'>,
  { key, task: claim }: { readonly key: string; readonly task?: TaskClaim | null | undefined },
  task: TaskRow | undefined,
  now: number,
): boolean {
  if (isAfterTerminal(claim, task)) return true;
  if (!claim?.terminal || !task) return false;
  const held = heldTerminal(rows, task, now);
  return held !== undefined && held.first.key !== key;
}

/** A terminal status is dropped whose key was used before: for another status, another task, or no task's. */
export function dropsEnd({ task: claim }: EventClaim, { task: known }: RecordRow): boolean {
  return claim?.terminal === true && !(known?.terminal && known.id === claim.id);
}

/**
 * Of the task's row, when an event is inserted that `secondTerminal` let pass; undefined: it stays.
 * @param first another one that is known, by whichever channel.
 */
export function terminalAtInsert(
  { key, task: claim, terminalHash }: EventClaim,
  first: Found | undefined,
): FirstTerminal | undefined {
  if (!claim?.terminal || first) return undefined;
  const told = toldTerminal(claim);
  return { key, hash: terminalHash ?? '', state: 'open', ...(told && { told }) };
}
