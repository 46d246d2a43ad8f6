// Compares the reports of one task that come by several channels: a webhook, the answer to the call, a poll
// (admission.md §5.9).
// Called by the rules of accept, leases, completions and registrations. Only reports that name their channel
// (`TaskClaim.told`) are judged.
import type { EventChannel } from '../../events/event.ts';
import { isOperationRow } from '../constants.ts';
import type { AcceptDecision, TaskClaim, ToldClaim } from '../store.ts';
import { isAfterTerminal, markExpiry, taskRow } from './order.ts';
import type { Accepting } from './task-wait.ts';
import type { FirstTerminal, LastTold, RecordRow, RecordState, Rows, TaskRow } from './rule-rows.ts';

/**
 * The answer to a call may end the operation immediately, without naming a task. So a terminal status is saved in the
 * row of its task, and in a row that the operation has among the tasks.
 */

export interface Found {
  readonly first: FirstTerminal;
  /** The record of the event that first reported the terminal status; undefined if the record has expired. */
  readonly record: RecordRow | undefined;
}

/**
 * Finds the first terminal status that any channel reported for the event's task, or for its operation. Undefined if
 * there is none, or if the event names no channel.
 */
export function firstTold(
  step: Accepting,
  claim: TaskClaim | undefined,
  task: TaskRow | undefined,
): Found | undefined {
  if (!claim?.told) return undefined;
  const { rows, request, now } = step;
  const { operation } = claim.told;
  const own = task && heldTerminal(rows, task, now);
  if (own || operation === undefined) return own;
  const row = rows.task(request.sender, operation, now);
  const found = row && heldTerminal(rows, row, now);
  // A seller may use an `operation_id` again. Then the terminal status in the operation's row belongs to another task,
  // and is ignored.
  if (!found || !isAnotherTasks(found.first, claim)) return found;
  // The terminal status of another task counts only if it was the answer to the call, and nothing was applied for the
  // event's own task. Then the seller has made up the id of the event's task.
  return sourceOf(found.first) === 'response' && !isApplied(task) ? found : undefined;
}

const isApplied = (task: TaskRow | undefined): boolean =>
  task !== undefined && (task.told !== null || task.mark !== null);

/**
 * Finds the first terminal status in the row of a task or an operation. Undefined if there is none. Also undefined if
 * it was never applied, and its event has expired, ended without a run (DONE(stale)), or belongs to another task.
 */
export function heldTerminal(
  rows: Pick<Rows, 'record'>,
  { sender, id, terminal: first }: TaskRow,
  now: number,
): Found | undefined {
  if (!first) return undefined;
  const record = rows.record(sender, first.key, now);
  if (first.state !== 'open') return { first, record };
  if (!record || record.state === 'stale' || isReused(record, id)) return undefined;
  return { first, record };
}

/**
 * True if the record's key was used again, after its record expired, for an event of another task. False for an event
 * that names its channel: one status of that event is saved under the ids of its task and its operation.
 */
const isReused = ({ task }: RecordRow, id: string): boolean => !task?.told && task?.id !== id;

/**
 * True unless both reports came by webhook. Two webhooks of one task are judged by the rules of the protocol's edition,
 * not by this file.
 */
export const areOtherChannels = (one: EventChannel, two: EventChannel): boolean =>
  one !== 'webhook' || two !== 'webhook';

export const sourceOf = ({ told }: FirstTerminal): EventChannel => told?.source ?? 'webhook';

/**
 * Judges an event whose task or operation has already ended by the report of another channel (part of rule 3 of
 * accept). Undefined if that end does not decide the event, so that the next rules apply.
 */
export function afterFirst(
  step: Accepting,
  claim: TaskClaim | undefined,
  found: Found | undefined,
): AcceptDecision | undefined {
  if (!claim?.told || !found) return undefined;
  if (!areOtherChannels(sourceOf(found.first), claim.told.source)) return undefined;
  return claim.terminal ? secondEnd(step, claim, claim.told, found) : afterEnd(claim.told, found);
}

const DUPLICATE = { kind: 'done', changed: false, state: 'stale', died: false } as const;

/**
 * Answers a second terminal status, from another channel, as a duplicate: the first status wins, even if the two
 * differ. If the event of the first is not acknowledged yet, it is acknowledged now, so that a worker runs it.
 */
function secondEnd(
  { rows }: Accepting,
  claim: TaskClaim,
  { hash }: ToldClaim,
  { first, record }: Found,
): AcceptDecision {
  if (record && OPEN.has(record.state)) {
    rows.updateRecord({ ...record, task: toldTwice(record.task, claim), acked: true, expiresAt: null });
  }
  const firstHash = first.told?.hash;
  const differs = firstHash !== undefined && hash !== undefined && hash !== firstHash;
  return { ...DUPLICATE, first: { source: sourceOf(first), ...(differs && { hash: firstHash }) } };
}

const OPEN: ReadonlySet<RecordState> = new Set(['queued', 'leased', 'dead'] as const);

/**
 * Adds facts of another channel's report to the claim of a terminal status that is not applied yet. The facts are a
 * newer time, and the id of the task or operation.
 */
function toldTwice(own: TaskClaim | null, other: TaskClaim): TaskClaim | null {
  if (!own?.told) return own;
  const { operation = own.id === other.id ? other.told?.operation : other.id } = own.told;
  const newest = newestOf(own, other.instant);
  const told: ToldClaim = {
    ...own.told,
    ...(operation !== undefined && { operation }),
    ...(newest !== undefined && { newest }),
  };
  return { ...own, told };
}

/**
 * Returns the newest time of a terminal status that two channels reported. Undefined: the first report had no time.
 * Null: a later report had none. In both cases the status never counts as too old.
 */
function newestOf({ instant, told }: TaskClaim, other: string | undefined): string | null | undefined {
  const known = told?.newest === undefined ? instant : told.newest;
  if (known === undefined || known === null) return known;
  if (other === undefined) return null;
  return known < other ? other : known;
}

/**
 * Returns the claim whose time decides if a record is stale. For the first terminal status of a task, that is the
 * newest time that any channel gave. Otherwise the status could become stale and be lost, because the other channel's
 * report of it was answered as a duplicate.
 */
export function orderedBy({ key, task: claim }: RecordRow, task: TaskRow | undefined): TaskClaim | null {
  if (claim?.told?.newest === undefined || task?.terminal?.key !== key) return claim;
  const { newest } = claim.told;
  const { instant: _own, ...untimed } = claim;
  return newest === null ? untimed : { ...untimed, instant: newest };
}

/**
 * Saves the found terminal status in the rows of the task and of the operation that a terminal event names, because
 * both have one end. A row that has a terminal status keeps it. Called only if the sender has room for rows.
 */
export function join(step: Accepting, claim: TaskClaim | undefined, found: Found | undefined): void {
  if (!claim?.told || !claim.terminal || !found) return;
  const { rows, request, now } = step;
  for (const id of [claim.id, claim.told.operation]) {
    const row = id === undefined ? undefined : rows.task(request.sender, id, now);
    if (id === undefined || (row && heldTerminal(rows, row, now))) continue;
    const expiresAt = markExpiry(now, request.retentionMs);
    rows.saveTask(taskRow(row, { sender: request.sender, id }, { terminal: found.first, expiresAt }));
  }
}

/**
 * Judges a status whose task has already ended by the report of another channel. If the answer to the call ended the
 * operation, that end has no time, so no status counts as newer. Otherwise returns undefined, and the newest applied
 * status decides.
 */
function afterEnd({ source }: ToldClaim, { first }: Found): AcceptDecision | undefined {
  if (sourceOf(first) !== 'response') return undefined;
  return source === 'webhook'
    ? { ...DUPLICATE, first: { source: 'response' } }
    : { kind: 'stale', changed: false };
}

/**
 * True if another channel has already reported this status, or a later one. A status with a time is compared with the
 * applied status of the same time. A status without a time is compared with the last applied one, if the buyer asked
 * for it. It is also outdated by any status that was applied since the buyer asked.
 */
export function isTold(claim: TaskClaim | null | undefined, task: TaskRow | undefined): boolean {
  if (!claim?.told || !task) return false;
  if (isAfterEnd(claim, claim.told, task)) return true;
  if (!task.told) return false;
  return claim.instant === undefined
    ? isOutdated(claim.told, task.told)
    : isMarked(claim.instant, claim.told, task);
}

function isAfterEnd(claim: TaskClaim, { source }: ToldClaim, task: TaskRow): boolean {
  const { terminal: end } = task;
  if (claim.terminal || end === null || end.state === 'open') return false;
  return areOtherChannels(sourceOf(end), source) && !isAfterTerminal(claim, task);
}

function isMarked(instant: string, { status, source }: ToldClaim, { mark, told }: TaskRow): boolean {
  const marked = told?.marked;
  if (marked?.instant !== mark || marked?.instant !== instant) return false;
  return marked.status === status && areOtherChannels(marked.source, source);
}

function isOutdated({ status, askedAt }: ToldClaim, last: LastTold): boolean {
  return askedAt !== undefined && (last.status === status || last.at > askedAt);
}

/**
 * Returns the progress of a task's first terminal status, by the event that reported it; undefined if no terminal
 * status is known.
 *
 * - `done`: applied, or the event is DEAD.
 * - `safe`: the event is acknowledged, so no channel has to report the status again. A newer status that is applied
 *   before can still make the event stale.
 * - `unsafe`: the event is not acknowledged: its handler has not succeeded yet, and its sender may give up.
 *
 * @param id the id of the task's row.
 */
export function taskEnd(
  rows: Pick<Rows, 'task' | 'record'>,
  sender: string,
  id: string,
  now: number,
): 'done' | 'safe' | 'unsafe' | undefined {
  const first = rows.task(sender, id, now)?.terminal;
  if (!first) return undefined;
  if (first.state !== 'open') return 'done';
  const record = rows.record(sender, first.key, now);
  if (!record || record.state === 'stale') return undefined;
  if (record.state === 'dead') return 'done';
  return record.acked ? 'safe' : 'unsafe';
}

/**
 * Returns the facts that are saved with a terminal status: its channel, its hash and its task's id. Undefined if the
 * status is not terminal, or names no channel.
 */
export function toldTerminal({ id, terminal, told }: TaskClaim): FirstTerminal['told'] {
  if (!told || !terminal) return undefined;
  const { source, hash } = told;
  return { source, ...(hash !== undefined && { hash }), ...(!isOperationRow(id) && { task: id }) };
}

/**
 * Returns the first terminal status to save in a task's row when an event is applied; undefined if the row keeps its
 * value. An applied terminal status replaces one that is not applied, because the first of two webhooks may never be
 * applied.
 */
export function endApplied({ key, task }: RecordRow, first: FirstTerminal | null): FirstTerminal | undefined {
  if (!task?.terminal) return undefined;
  if (first?.key === key) return { ...first, state: 'applied' };
  if (first && first.state !== 'open') return undefined;
  const told = toldTerminal(task);
  return { key, hash: '', state: 'applied', ...(told && { told }) };
}

/**
 * Saves an applied terminal status in its operation's row too, unless that row has the terminal status of another task.
 */
export function endOperation(rows: Rows, record: RecordRow, now: number, retentionMs: number): void {
  const { sender, task } = record;
  const id = task?.told?.operation;
  if (!task?.terminal || id === undefined) return;
  const known = rows.task(sender, id, now);
  const first = known?.terminal ?? null;
  const terminal = isAnotherTasks(first, task) ? undefined : endApplied(record, first);
  const expiresAt = markExpiry(now, retentionMs);
  if (terminal) rows.saveTask(taskRow(known, { sender, id }, { terminal, expiresAt }));
}

function isAnotherTasks(first: FirstTerminal | null, { id }: TaskClaim): boolean {
  const of = first?.told?.task;
  return of !== undefined && of !== id;
}

/**
 * Returns the last applied status (`told`) for a task's row, when one of the task's events is applied. Undefined if the
 * event names no channel. `isMark` says if the event is the newest by its own time.
 */
export function toldAtEnd(
  { task }: RecordRow,
  known: TaskRow | undefined,
  isMark: boolean,
  now: number,
): LastTold | undefined {
  if (!task?.told) return undefined;
  const { status, source } = task.told;
  const marked =
    isMark && task.instant !== undefined ? { instant: task.instant, status, source } : known?.told?.marked;
  return { status, at: now, ...(marked && { marked }) };
}
