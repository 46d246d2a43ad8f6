import type { EventChannel } from '../../events/event.ts';
import { type AcceptDecision, isOperationRow, type TaskClaim, type ToldClaim } from '../contract.ts';
import { isAfterTerminal, markExpiry, taskRow } from './order.ts';
import type { Step } from './park.ts';
import type { FirstTerminal, LastTold, RecordRow, Rows, TaskRow } from './rows.ts';

/*
 * What several channels tell of one task (admission.md §5.9): a webhook, the first answer, a poll. Only where the claim says by
 * which channel it came (`TaskClaim.told`).
 *
 * An answer that ends the operation at once names no task. So a terminal status is noted by task and by operation: the
 * operation has a row among the tasks.
 */

interface Found {
  readonly first: FirstTerminal;
  /** Its record; undefined once that is forgotten. */
  readonly record: RecordRow | undefined;
}

/** The first terminal status that any channel told of the event's task, or of its operation. */
export function firstTold(
  step: Step,
  claim: TaskClaim | undefined,
  task: TaskRow | undefined,
): Found | undefined {
  if (!claim?.told) return undefined;
  const { rows, request, now } = step;
  const { operation } = claim.told;
  const own = task && heldTerminal(step, task);
  if (own || operation === undefined) return own;
  const row = rows.task(request.sender, operation, now);
  const found = row && heldTerminal(step, row);
  // Of another task: its seller has repeated an operation_id, and one task's end is not the other's.
  const of = found?.first.told?.task;
  return of === undefined || of === claim.id ? found : undefined;
}

/** Not one whose event was forgotten before it was applied, or was ended without a run: then there is none. */
function heldTerminal({ rows, request, now }: Step, { terminal: first }: TaskRow): Found | undefined {
  if (!first) return undefined;
  const record = rows.record(request.sender, first.key, now);
  if (first.state === 'open' && (!record || record.state === 'stale')) return undefined;
  return { first, record };
}

/** Two webhooks of a task are its edition's affair. */
const areOtherChannels = (one: EventChannel, two: EventChannel): boolean =>
  one !== 'webhook' || two !== 'webhook';

const sourceOf = ({ told }: FirstTerminal): EventChannel => told?.source ?? 'webhook';

/** Rule 3 for a task, or an operation, that has ended by another channel's word. */
export function afterFirst(
  step: Step,
  claim: TaskClaim | undefined,
  found: Found | undefined,
): AcceptDecision | undefined {
  if (!claim?.told || !found) return undefined;
  if (!areOtherChannels(sourceOf(found.first), claim.told.source)) return undefined;
  return claim.terminal ? secondEnd(step, claim.told, found) : afterEnd(claim.told, found);
}

const DUPLICATE = { kind: 'done', changed: false, state: 'stale', died: false } as const;

/** The first one wins, whatever it says, and where it is not safe yet, another channel's word makes it so. */
function secondEnd({ rows }: Step, { hash }: ToldClaim, { first, record }: Found): AcceptDecision {
  if (record && !record.acked) rows.updateRecord({ ...record, acked: true, expiresAt: null });
  const firstHash = first.told?.hash;
  const differs = firstHash !== undefined && hash !== undefined && hash !== firstHash;
  return { ...DUPLICATE, first: { source: sourceOf(first), ...(differs && { hash: firstHash }) } };
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
 * Whether a task has ended: `safe` where the event that said so first is acknowledged, so that no channel has to tell it again;
 * `unsafe` where its handler has yet to succeed, and its sender may give up.
 * @param id of the task's row.
 */
export function taskEnd(
  rows: Pick<Rows, 'task' | 'record'>,
  sender: string,
  id: string,
  now: number,
): 'safe' | 'unsafe' | undefined {
  const first = rows.task(sender, id, now)?.terminal;
  if (!first) return undefined;
  if (first.state !== 'open') return 'safe';
  const record = rows.record(sender, first.key, now);
  if (!record || record.state === 'stale') return undefined;
  return record.acked ? 'safe' : 'unsafe';
}

/** What is noted of a terminal status beside its key. */
export function toldTerminal({ id, terminal, told }: TaskClaim): FirstTerminal['told'] {
  if (!told || !terminal) return undefined;
  const { source, hash } = told;
  return { source, ...(hash !== undefined && { hash }), ...(!isOperationRow(id) && { task: id }) };
}

/** The operation of a terminal status that was applied has ended too. */
export function endOperation(
  rows: Rows,
  { sender, key, task }: RecordRow,
  now: number,
  retentionMs: number,
): void {
  const operation = task?.terminal ? task.told?.operation : undefined;
  const known = operation === undefined ? undefined : rows.task(sender, operation, now);
  if (known?.terminal?.key !== key) return;
  const terminal = { ...known.terminal, state: 'applied' } as const;
  rows.saveTask(taskRow(known, known, { terminal, expiresAt: markExpiry(now, retentionMs) }));
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
