import { MAX_TEXT } from '../codec/printable.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { TaskStatus } from '../events/event.ts';
import { isTerminal } from '../events/status.ts';
import { storedId } from '../stages/ids.ts';
import type { RegistrationRow, RegistrationRows } from '../stores/contract.ts';
import type { JsonObject } from './json.ts';
import type { RouteScheme, Seller } from './seller.ts';
import { storedObject } from './rows.ts';

/*
 * An operation as it is kept, and the steps by which it is settled and found. Whose a task is says a row of its own, written with
 * the operation's.
 */

/** How far an operation is; what it is listed as. */
export type OperationState = 'calling' | 'open' | 'ended' | 'orphaned' | 'refused';

/** Which operation is meant. */
export interface OperationName {
  readonly agentUrl: string;
  readonly operationId: string;
}

/** An operation as anybody sees it. */
export interface OperationSeen {
  readonly agentUrl: string;
  readonly operationId: string;
  readonly taskType: string;
  readonly state: OperationState;
  readonly ref?: string;
  readonly context?: JsonObject;
  readonly taskId?: string;
  readonly status?: TaskStatus;
  /** Unix ms, on the store's clock. */
  readonly createdAt: number;
}

/** What the seller has answered. */
export interface SellerAnswer {
  readonly status: TaskStatus;
  readonly taskId?: string;
  /** The result, or what the status says: what a webhook would have in `result`. */
  readonly data?: unknown;
}

/**
 * `known`: nothing new. `other-task`: the operation is another task's already; nothing was changed. `task-taken`: settled, but
 * the task is another operation's already: events of it that name no operation are that one's.
 */
export type Settled = 'settled' | 'known' | 'other-task' | 'task-taken' | 'absent';

/** What an event says of the operation that it is of. */
export interface OperationTold {
  readonly agentUrl: string;
  readonly operationId?: string;
  readonly taskId?: string;
  /** Of an event that tells of a task. */
  readonly status?: TaskStatus;
}

/** The operation that an event is of. */
export interface OperationFound {
  readonly operation: OperationSeen;
  /** The event names another operation than its task's, or a task that is not the operation's. */
  readonly isMismatch: boolean;
}

/** What a row says. */
export interface Stored {
  readonly seller: Seller;
  readonly taskType: string;
  readonly state: OperationState;
  readonly ref?: string;
  /** As JSON text: its members are the caller's. */
  readonly context?: string;
  readonly taskId?: string;
  readonly status?: TaskStatus;
  readonly createdAt: number;
  readonly requestKey: string;
  /** From then on the seller may not know the request any more. Unix ms. */
  readonly keyUntil: number;
  readonly keyMs: number;
  readonly scheme: RouteScheme;
  /** Id of the secret that the token is made by; absent: none was asked for. */
  readonly token?: string;
  /** The arguments, until it is settled. */
  readonly sealed?: string;
  readonly withoutConfig?: true;
}

export const storedIn = ({ value }: RegistrationRow): Stored => storedObject(value) as unknown as Stored;

/** @param dueAt null: nobody has to call it. */
export function rowOf(
  { agentUrl, operationId }: OperationName,
  stored: Stored,
  dueAt: number | null,
  expiresAt: number | null,
): RegistrationRow {
  const value = JSON.stringify(stored);
  return {
    kind: 'operation',
    sender: agentUrl,
    id: operationId,
    value,
    dueAt,
    list: stored.state,
    expiresAt,
  };
}

export function seenOf({ sender, id }: RegistrationRow, stored: Stored): OperationSeen {
  const { taskType, state, ref, context, taskId, status, createdAt } = stored;
  return {
    agentUrl: sender,
    operationId: id,
    taskType,
    state,
    createdAt,
    ...(ref !== undefined && { ref }),
    ...(context !== undefined && { context: storedObject(context) as JsonObject }),
    ...(taskId !== undefined && { taskId }),
    ...(status !== undefined && { status }),
  };
}

/** Whose a task is. */
function watchOf(
  { agentUrl, operationId }: OperationName,
  id: string,
  expiresAt: number | null,
): RegistrationRow {
  const value = JSON.stringify({ operationId });
  return { kind: 'watch', sender: agentUrl, id, value, dueAt: null, list: null, expiresAt };
}

/** What is encrypted goes when nobody has to call it any more. */
export function withoutArguments({ sealed: _gone, ...stored }: Stored): Stored {
  return stored;
}

/** Whether somebody waits for its end. */
export const isOpen = (state: OperationState): boolean => state === 'calling' || state === 'open';

const isOver = ({ state }: Stored): boolean => state === 'ended' || state === 'refused';

export const refusedRow = (of: OperationName, stored: Stored, expiresAt: number): RegistrationRow =>
  rowOf(of, { ...withoutArguments(stored), state: 'refused' }, null, expiresAt);

/** One step over the rows of a seller. */
interface Step {
  readonly rows: RegistrationRows;
  /** The store's clock, Unix ms. */
  readonly now: number;
  readonly hashes: Hashes;
  /** How long an operation is known after its end. Ms. */
  readonly retentionMs: number;
}

/** An operation that nobody has to call, and its task; that stays whose it was. @returns whether it is this one's. */
function keep(step: Step, of: OperationName, stored: Stored, expiresAt: number | null): boolean {
  const { rows, hashes } = step;
  rows.save(rowOf(of, stored, null, expiresAt));
  if (stored.taskId === undefined) return true;
  if (differ(ownerOf(step, stored.taskId), of.operationId)) return false;
  rows.save(watchOf(of, storedId(stored.taskId, hashes), expiresAt));
  return true;
}

/** Settles it by an answer, or by what a webhook tells. */
export function settled(
  step: Step,
  of: OperationName,
  stored: Stored,
  { status, taskId }: SellerAnswer,
): Exclude<Settled, 'absent'> {
  if (taskId !== undefined && stored.taskId !== undefined && taskId !== stored.taskId) return 'other-task';
  const isEnd = isTerminal(status);
  if (isOver(stored) || (stored.state === 'open' && !isEnd)) return 'known';
  const is: Stored = {
    ...withoutArguments(stored),
    state: isEnd ? 'ended' : 'open',
    status,
    ...(taskId !== undefined && { taskId }),
  };
  const isOwn = keep(step, of, is, isEnd ? step.now + step.retentionMs : null);
  return isOwn ? 'settled' : 'task-taken';
}

interface Candidate {
  readonly row: RegistrationRow;
  readonly stored: Stored;
}

function operationIn({ rows, hashes }: Step, operationId: string | undefined): Candidate | undefined {
  const row = operationId === undefined ? undefined : rows.get('operation', storedId(operationId, hashes));
  return row && { row, stored: storedIn(row) };
}

/** Whose operation a task is. */
function ownerOf({ rows, hashes }: Step, taskId: string | undefined): string | undefined {
  const watch = taskId === undefined ? undefined : rows.get('watch', storedId(taskId, hashes));
  return watch && String(storedObject(watch.value)['operationId']);
}

/** Both are known, and they are not the same. */
const differ = (a: string | undefined, b: string | undefined): boolean =>
  a !== undefined && b !== undefined && a !== b;

/**
 * The operation that an event is of: the one that it names, else its task's. It is settled by what the event tells where
 * that fits, and known for longer where it has ended.
 */
export function found(step: Step, told: OperationTold): OperationFound | undefined {
  const { agentUrl, operationId, taskId } = told;
  const named = operationIn(step, operationId);
  const namedTask = named?.stored.taskId;
  // Where the operation says itself what its task is, one read is enough.
  const owner = namedTask === undefined ? ownerOf(step, taskId) : undefined;
  const is = named ?? operationIn(step, owner);
  if (!is) return undefined;
  const isMismatch = differ(operationId, owner) || differ(taskId, namedTask);
  const of = { agentUrl, operationId: is.row.id };
  const answer = isMismatch ? undefined : answerTold(told);
  const done = answer ? settled(step, of, is.stored, answer) : 'known';
  if (done === 'known' || done === 'other-task') keepLonger(step, of, is);
  return { operation: seenOf(is.row, is.stored), isMismatch };
}

/** A task_id that is too long is not kept: what the event tells counts all the same. */
function answerTold({ status, taskId }: OperationTold): SellerAnswer | undefined {
  const isKept = taskId !== undefined && taskId.length <= MAX_TEXT;
  return status && { status, ...(isKept && { taskId }) };
}

/** What has ended is known for its time after the last event, or for half of it: each event would else be a write. */
function keepLonger(step: Step, of: OperationName, { row, stored }: Candidate): void {
  const { now, retentionMs } = step;
  if (row.expiresAt !== null && row.expiresAt - now < retentionMs / 2)
    keep(step, of, stored, now + retentionMs);
}
