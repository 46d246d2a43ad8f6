// Judges a task's first terminal status, and statuses that come after it (admission.md §5.4, §5.4a).
// Called by rules 3 (staleness) and 5 (insertion) of accept, and when a record is leased.
import type { AcceptDecision, EventClaim, TaskClaim } from '../store.ts';
import { isAfterTerminal, isStale } from './order.ts';
import type { FirstTerminal, RecordRow, Rows, TaskRow } from './rule-rows.ts';
import { areOtherChannels, type Found, heldTerminal, isTold, sourceOf, toldTerminal } from './channels.ts';

const STALE: AcceptDecision = { kind: 'stale', changed: false };
const DUPLICATE: AcceptDecision = { kind: 'done', changed: false, state: 'stale', died: false };

/**
 * Judges a second terminal status of a task: part of rule 3 of accept, after staleness (verification.md §2.19).
 * Undefined: the event is accepted, as is every event without a `terminalHash`. A different status is refused by a 409,
 * which ends the event at its sender. So the first status must be applied or acknowledged before; until then the answer
 * is 503, and the sender tries again.
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

/** True if the first terminal status cannot be lost: it was applied, or its record is acknowledged. */
const isSafe = ({ first, record }: Found): boolean => first.state !== 'open' || record?.acked === true;

/**
 * True if both terminal statuses have a hash and the hashes differ. A status from another channel or edition has no
 * hash.
 */
const differs = ({ hash }: FirstTerminal, other: string): boolean => hash !== '' && hash !== other;

/**
 * Judges an event that brings no newer status (part of rule 3 of accept). It is older than the newest applied status,
 * or another channel reported it before, or the task has ended and no further status counts. Undefined: none of these.
 */
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
 * True if a record must not run any more because its task has ended since it was stored. Checked when the record is
 * leased. While the terminal status waits for its handler, older statuses still run first. A newer one must not run,
 * because it would make the terminal status stale.
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

/** True if another webhook has reported a terminal status of the same task before, under another key. */
export function isSecondEnd({ key, task: claim }: EventClaim, held: Found | undefined): boolean {
  if (!claim?.terminal || !held || held.first.key === key) return false;
  return !areOtherChannels(sourceOf(held.first), claim.told?.source ?? 'webhook');
}

/** True if a terminal status of the event's task came before the event. Then the handler gets `afterTerminal`. */
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

/**
 * True if a terminal status is dropped because its key was used before. The earlier event was a non-terminal status, of
 * another task, or of no task at all.
 */
export function dropsEnd({ task: claim }: EventClaim, { task: known }: RecordRow): boolean {
  return claim?.terminal === true && !(known?.terminal && known.id === claim.id);
}

/**
 * Returns the first terminal status to save in the task's row, for an event that `secondTerminal` accepted. Undefined:
 * the row stays as it is.
 *
 * @param first an earlier terminal status of the task, from any channel.
 */
export function terminalAtInsert(
  { key, task: claim, terminalHash }: EventClaim,
  first: Found | undefined,
): FirstTerminal | undefined {
  if (!claim?.terminal || first) return undefined;
  const told = toldTerminal(claim);
  return { key, hash: terminalHash ?? '', state: 'open', ...(told && { told }) };
}
