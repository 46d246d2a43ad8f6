import type { EventChannel } from '../../events/event.ts';
import { isOperationRow } from '../constants.ts';
import type { AcceptDecision, TaskClaim, ToldClaim } from '../store.ts';
import { isAfterTerminal, markExpiry, taskRow } from './order.ts';
import type { Accepting } from './task-wait.ts';
import type { FirstTerminal, LastTold, RecordRow, RecordState, Rows, TaskRow } from './rule-rows.ts';

/*
 * What several channels tell of one task (admission.md §5.9): a webhook, the first answer, a poll. Only where the claim says by
 * which channel it came (`TaskClaim.told`).
 *
 * An answer that ends the operation at once names no task. So a terminal status is noted by task and by operation: the
 * operation has a row among the tasks.
 */

export interface Found {
  readonly first: FirstTerminal;
  /** Its record; undefined once that is forgotten. */
  readonly record: RecordRow | undefined;
}

/** The first terminal status that any channel told of the event's task, or of its operation. */
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
  // Of another task: its seller has repeated an operation_id, and one task's end is not the other's.
  if (!found || !isAnotherTasks(found.first, claim)) return found;
  // Unless the answer has ended the call: then a task of which nothing else was told is made up.
  return sourceOf(found.first) === 'response' && !isApplied(task) ? found : undefined;
}

const isApplied = (task: TaskRow | undefined): boolean =>
  task !== undefined && (task.told !== null || task.mark !== null);

/**
 * The first terminal status of a task, or an operation. Not one whose event was forgotten before it was applied, or was
 * ended without a run: then there is none.
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

/** Its key was forgotten, and came again for another task; of a joined operation the ids differ as well. */
const isReused = ({ task }: RecordRow, id: string): boolean => !task?.told && task?.id !== id;

/** Two webhooks of a task are its edition's affair. */
export const areOtherChannels = (one: EventChannel, two: EventChannel): boolean =>
  one !== 'webhook' || two !== 'webhook';

export const sourceOf = ({ told }: FirstTerminal): EventChannel => told?.source ?? 'webhook';

/** Rule 3 for a task, or an operation, that has ended by another channel's word. */
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

/** The first one wins, whatever it says, and where it is not safe yet, another channel's word makes it so. */
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

/** The claim of an end that is not applied yet, with what another channel adds to it: a newer time, or the other name. */
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

/** undefined: it has no time of its own, and is never too old. */
function newestOf({ instant, told }: TaskClaim, other: string | undefined): string | null | undefined {
  const known = told?.newest === undefined ? instant : told.newest;
  if (known === undefined || known === null) return known;
  if (other === undefined) return null;
  return known < other ? other : known;
}

/**
 * A record's claim as it is ordered: a task's first end is as new as the newest that told it, else what was acknowledged with it
 * would end with it as too old.
 */
export function orderedBy({ key, task: claim }: RecordRow, task: TaskRow | undefined): TaskClaim | null {
  if (claim?.told?.newest === undefined || task?.terminal?.key !== key) return claim;
  const { newest } = claim.told;
  const { instant: _own, ...untimed } = claim;
  return newest === null ? untimed : { ...untimed, instant: newest };
}

/**
 * The task and the operation that a terminal status names have one end: the one of the two that knew of none knows it now.
 * Where there is room for rows.
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

/** The answer that ended an operation has no time, and no status of a task can be newer. Else the mark says which is. */
function afterEnd({ source }: ToldClaim, { first }: Found): AcceptDecision | undefined {
  if (sourceOf(first) !== 'response') return undefined;
  return source === 'webhook'
    ? { ...DUPLICATE, first: { source: 'response' } }
    : { kind: 'stale', changed: false };
}

/**
 * Whether another channel has told of it already, or of what came after it: of a status with a time, the same one at the same
 * time; of one without, the status that the task has, or anything that was applied since it was asked for.
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
 * How far the end of a task is, by the event that said so first. `done`: applied, or DEAD. `safe`: acknowledged, so that no
 * channel has to tell it again, unless a newer status is applied before it and makes it stale. `unsafe`: its handler has yet to
 * succeed, and its sender may give up.
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

/** What is noted of a terminal status beside its key. */
export function toldTerminal({ id, terminal, told }: TaskClaim): FirstTerminal['told'] {
  if (!told || !terminal) return undefined;
  const { source, hash } = told;
  return { source, ...(hash !== undefined && { hash }), ...(!isOperationRow(id) && { task: id }) };
}

/**
 * The first end of a row, when an event is applied; undefined: it stays. What is applied takes the place of one that is not: of
 * two webhooks that may never be.
 */
export function endApplied({ key, task }: RecordRow, first: FirstTerminal | null): FirstTerminal | undefined {
  if (!task?.terminal) return undefined;
  if (first?.key === key) return { ...first, state: 'applied' };
  if (first && first.state !== 'open') return undefined;
  const told = toldTerminal(task);
  return { key, hash: '', state: 'applied', ...(told && { told }) };
}

/** The operation of a terminal status that was applied has ended too, unless another task's end was its own. */
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

/** Of the task's row, when one of its events is applied; `mark`: it is the newest one. */
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
