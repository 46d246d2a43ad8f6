// Compares reports of one task by several channels: a webhook, the first answer, a poll (admission.md §5.9).
// Called by accept, claims, completions and `run` of registrations.
// Only claims that name their channel (`TaskClaim.told`) are judged.
import type { EventChannel } from '../../events/event.ts';
import { isOperationRow } from '../constants.ts';
import type { AcceptDecision, TaskClaim, ToldClaim } from '../store.ts';
import { isAfterTerminal, markExpiry, taskRow } from './order.ts';
import type { Accepting } from './task-wait.ts';
import type { FirstTerminal, LastTold, RecordRow, RecordState, Rows, TaskRow } from './rule-rows.ts';

/*
 * An answer that ends the operation at once names no task. So a terminal status is noted by task and by operation: the
 * operation has a row among the tasks.
 */

export interface Found {
  readonly first: FirstTerminal;
  /** The record of that event; undefined once it is forgotten. */
  readonly record: RecordRow | undefined;
}

/** Finds the first terminal status that any channel told of the event's task, or of its operation. */
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
  // A seller may repeat an operation_id: then the end is another task's, and not this one's.
  if (!found || !isAnotherTasks(found.first, claim)) return found;
  // Except if the answer ended the call: then the seller made up a task of which nothing else was told.
  return sourceOf(found.first) === 'response' && !isApplied(task) ? found : undefined;
}

const isApplied = (task: TaskRow | undefined): boolean =>
  task !== undefined && (task.told !== null || task.mark !== null);

/**
 * Finds the first terminal status of a task or an operation. There is none if its event was forgotten before it was
 * applied, or was ended without a run.
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
 * True if the key was forgotten and came again for another task. A claim with a channel is excluded: of a joined
 * operation ids differ as well.
 */
const isReused = ({ task }: RecordRow, id: string): boolean => !task?.told && task?.id !== id;

/** False for two webhooks of one task: the edition judges those, not this file. */
export const areOtherChannels = (one: EventChannel, two: EventChannel): boolean =>
  one !== 'webhook' || two !== 'webhook';

export const sourceOf = ({ told }: FirstTerminal): EventChannel => told?.source ?? 'webhook';

/** Rule 3 for a task or an operation that another channel has ended. */
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
 * Answers a second terminal status. The first one wins, whatever it says; if it is not safe yet, the other channel
 * makes it safe.
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

/** Adds to the claim of an end that is not applied yet: another channel's newer time, or its task or operation. */
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
 * Returns the newest time of an end that was told twice. Undefined: it has none of its own. Null: a channel told it
 * without a time. In both cases it is never too old.
 */
function newestOf({ instant, told }: TaskClaim, other: string | undefined): string | null | undefined {
  const known = told?.newest === undefined ? instant : told.newest;
  if (known === undefined || known === null) return known;
  if (other === undefined) return null;
  return known < other ? other : known;
}

/**
 * Returns the claim by which a record is ordered. A task's first end is as new as the newest that told it. Otherwise
 * it could become stale, and the other channel's end, which was acknowledged as its duplicate, would be lost with it.
 */
export function orderedBy({ key, task: claim }: RecordRow, task: TaskRow | undefined): TaskClaim | null {
  if (claim?.told?.newest === undefined || task?.terminal?.key !== key) return claim;
  const { newest } = claim.told;
  const { instant: _own, ...untimed } = claim;
  return newest === null ? untimed : { ...untimed, instant: newest };
}

/**
 * Joins the task and the operation that a terminal status names: the one that knew of no end now has the other's.
 * Called only if there is room for rows.
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
 * Judges a status after the end. The answer that ended an operation has no time, and no status of a task can be
 * newer. Otherwise the mark decides.
 */
function afterEnd({ source }: ToldClaim, { first }: Found): AcceptDecision | undefined {
  if (sourceOf(first) !== 'response') return undefined;
  return source === 'webhook'
    ? { ...DUPLICATE, first: { source: 'response' } }
    : { kind: 'stale', changed: false };
}

/**
 * True if another channel has told this status already, or a later one. A status with a time is told by the same
 * status at the same time. One without a time is told by the status that the task has, or by anything applied since
 * it was asked for.
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
 * Returns the progress of a task's end, by the event that told it first.
 *
 * - `done`: applied, or DEAD.
 * - `safe`: acknowledged, so no channel has to tell it again. A newer status that is applied before it can still
 *   make it stale.
 * - `unsafe`: its handler has yet to succeed, and its sender may give up.
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

/** Returns the facts that are noted of a terminal status beside its key: its channel, its hash, its task. */
export function toldTerminal({ id, terminal, told }: TaskClaim): FirstTerminal['told'] {
  if (!told || !terminal) return undefined;
  const { source, hash } = told;
  return { source, ...(hash !== undefined && { hash }), ...(!isOperationRow(id) && { task: id }) };
}

/**
 * Returns the first end of a row when an event is applied; undefined: the row stays as it is. An applied end replaces
 * one that is not: of two webhooks, the other may never be applied.
 */
export function endApplied({ key, task }: RecordRow, first: FirstTerminal | null): FirstTerminal | undefined {
  if (!task?.terminal) return undefined;
  if (first?.key === key) return { ...first, state: 'applied' };
  if (first && first.state !== 'open') return undefined;
  const told = toldTerminal(task);
  return { key, hash: '', state: 'applied', ...(told && { told }) };
}

/** Ends the operation of a terminal status that was applied, unless the end of another task is noted there. */
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

/** Returns the last status of a task's row when one of its events is applied; `isMark`: the event sets the mark. */
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
