// Compares reports of one task by several channels: a webhook, the first answer, a poll (admission.md §5.9).
// Called by accept, claims, completions and `run` of registrations.
// Only claims that name their channel (`TaskClaim.told`) are judged.
import type { EventChannel } from '../../events/event.ts';
import { isOperationRow } from '../constants.ts';
import type { AcceptDecision, TaskClaim, ToldClaim } from '../store.ts';
import { isAfterTerminal, markExpiry, taskRow } from './order.ts';
import type { Accepting } from './task-wait.ts';
import type { FirstTerminal, LastTold, RecordRow, RecordState, Rows, TaskRow } from './rule-rows.ts';

/**
 * An answer that ends the operation at once names no task. So a terminal status is saved under its task and under its
 * operation, which has a row of its own among the tasks.
 */

export interface Found {
  readonly first: FirstTerminal;
  /** The record of the event that reported the terminal status first; undefined once it is forgotten. */
  readonly record: RecordRow | undefined;
}

/** Finds the first terminal status that any channel reported for the event's task, or for its operation. */
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
  // A seller may use an `operation_id` again. Then the end that was found belongs to another task, and is ignored.
  if (!found || !isAnotherTasks(found.first, claim)) return found;
  // That end is still used if it was the answer to the call, and nothing was reported for the claim's task. In this
  // case the seller made up the task's id.
  return sourceOf(found.first) === 'response' && !isApplied(task) ? found : undefined;
}

const isApplied = (task: TaskRow | undefined): boolean =>
  task !== undefined && (task.told !== null || task.mark !== null);

/**
 * Finds the first terminal status of a task or an operation. Undefined if its event was forgotten before it was
 * applied, or ended without a run.
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
 * True if the key was forgotten and came again for another task. Always false for a claim with a channel: a task and
 * its operation are joined under different ids.
 */
const isReused = ({ task }: RecordRow, id: string): boolean => !task?.told && task?.id !== id;

/**
 * True unless both reports are webhooks: two webhooks of one task are judged by the rules of the edition, not in this
 * file.
 */
export const areOtherChannels = (one: EventChannel, two: EventChannel): boolean =>
  one !== 'webhook' || two !== 'webhook';

export const sourceOf = ({ told }: FirstTerminal): EventChannel => told?.source ?? 'webhook';

/** Rule 3 for a task or an operation that another channel reported as ended. */
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
 * Answers a second terminal status. The first one wins, even if they differ. If the first is not acknowledged yet,
 * this call acknowledges it.
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
 * Adds to the claim of an end that is not applied yet: the newer time that another channel gave, or its task or
 * operation.
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
 * Returns the newest time of an end that two channels reported. Undefined: the first report had no time. Null: a
 * later report had none. In both cases the end is never too old.
 */
function newestOf({ instant, told }: TaskClaim, other: string | undefined): string | null | undefined {
  const known = told?.newest === undefined ? instant : told.newest;
  if (known === undefined || known === null) return known;
  if (other === undefined) return null;
  return known < other ? other : known;
}

/**
 * Returns the claim by which a record is ordered. The first end of a task gets the newest time that any channel gave.
 * Otherwise it could become stale. The other channel's end was answered as its duplicate, and would be lost too.
 */
export function orderedBy({ key, task: claim }: RecordRow, task: TaskRow | undefined): TaskClaim | null {
  if (claim?.told?.newest === undefined || task?.terminal?.key !== key) return claim;
  const { newest } = claim.told;
  const { instant: _own, ...untimed } = claim;
  return newest === null ? untimed : { ...untimed, instant: newest };
}

/**
 * Joins the task and the operation that a terminal status names: a row without an end gets the end that was found.
 * Called only if the sender has room for rows.
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
 * Judges a status that comes after the end. If the answer to the call ended the operation, the end has no time, so
 * the status is never newer. Otherwise returns undefined, and the newest applied status decides.
 */
function afterEnd({ source }: ToldClaim, { first }: Found): AcceptDecision | undefined {
  if (sourceOf(first) !== 'response') return undefined;
  return source === 'webhook'
    ? { ...DUPLICATE, first: { source: 'response' } }
    : { kind: 'stale', changed: false };
}

/**
 * True if another channel has reported this status, or a later one. A status with a time is compared with the applied
 * status of the same time. One without a time is compared with the last applied status. It is also outdated by
 * anything applied since it was asked for.
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
 * Returns the progress of a task's end, by the event that reported it first; undefined if no end is known.
 *
 * - `done`: applied, or DEAD.
 * - `safe`: acknowledged, so no channel has to report it again. A newer status that is applied before it can still
 *   make it stale.
 * - `unsafe`: not acknowledged: its handler has not succeeded yet, and its sender may give up.
 *
 * @param id of the task's row.
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

/** Returns the saved facts of a terminal status beside its key: its channel, its hash and its task. */
export function toldTerminal({ id, terminal, told }: TaskClaim): FirstTerminal['told'] {
  if (!told || !terminal) return undefined;
  const { source, hash } = told;
  return { source, ...(hash !== undefined && { hash }), ...(!isOperationRow(id) && { task: id }) };
}

/**
 * Returns the row's first terminal status after an event is applied; undefined if the row stays as it is. An applied
 * end replaces one that is not applied: if two webhooks report ends, the first may never be applied.
 */
export function endApplied({ key, task }: RecordRow, first: FirstTerminal | null): FirstTerminal | undefined {
  if (!task?.terminal) return undefined;
  if (first?.key === key) return { ...first, state: 'applied' };
  if (first && first.state !== 'open') return undefined;
  const told = toldTerminal(task);
  return { key, hash: '', state: 'applied', ...(told && { told }) };
}

/** Saves an applied terminal status in its operation's row too, unless that row has the end of another task. */
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
 * Returns the last status for the task's row after one of its events is applied. `isMark` says if the event becomes
 * the newest status.
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
