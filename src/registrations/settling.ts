// Settles, finds, adopts and ends operations (registered calls), each in one store transaction on the seller's rows
// (calls.md §1.5). Operations, `adopt` and the poller use it. The row of a task names the task's operation.
import { MAX_TEXT } from '../codec/printable.ts';
import type { TaskStatus } from '../events/event.ts';
import { isTerminal } from '../events/status.ts';
import { storedId } from '../stages/ids.ts';
import type { RegistrationRow, RegistrationRows } from '../stores/store.ts';
import type { SellerStep } from './seller-step.ts';
import { mediaBuyRowId } from './known.ts';
import {
  isOpen,
  type OperationFound,
  type OperationName,
  type OperationTold,
  reasonOfEnd,
  rowOf,
  seenOf,
  type SellerAnswer,
  type Settled,
  type Stored,
  storedIn,
  withoutArguments,
} from './operation.ts';
import { keepStream, noteEnding } from './streams.ts';
import { endedWatch, type Watch, watchIn, watchRow } from './watch-task.ts';

/**
 * Tells if polling must go on after the reported end of a task. `safe`: no. `unsafe`: yes, because the event of the end
 * is yet to be handled. Its handling may fail, be given up, or find the event stale.
 */
type End = 'safe' | 'unsafe';

/**
 * True if an operation may own the task of a row. It may not if the task belongs to another operation, unless that
 * operation has another task by now or was made by `adopt`. In the last case that operation is ended here.
 */
function takesTask(step: SellerStep, row: RegistrationRow, { operationId }: OperationName): boolean {
  const { operationId: owner, taskId } = watchIn(row);
  const other = owner === operationId ? undefined : operationIn(step, owner);
  if (!other || differ(other.stored.taskId, taskId)) return true;
  if (!other.stored.isAdopted) return false;
  step.rows.save(endedRow(other, other.stored.status, step));
  return true;
}

/** The largest number of operations that end together with a task, in addition to the task's own operation. */
const MOST_OTHERS = 100;

/** Records in the row of a task that a further operation ends together with the task. */
function endsWith(step: SellerStep, row: RegistrationRow, { operationId }: OperationName): void {
  const watch = watchIn(row);
  const others = new Set(watch.others).add(operationId);
  if (row.list === null || others.size > MOST_OTHERS) return;
  step.rows.save({ ...row, value: JSON.stringify({ ...watch, others: [...others] }) });
}

/**
 * Writes the row of an operation's task, which names the operation and says if the task is polled.
 * @param begunAt the time at which polling of the operation's first task began, if that task was replaced.
 * @returns true if the task belongs to this operation; false if it stays with another operation.
 */
function keepTask(
  step: SellerStep,
  of: OperationName,
  stored: Stored,
  end: End | undefined,
  begunAt?: number,
): boolean {
  const { rows, hashes, now, retentionMs } = step;
  if (stored.taskId === undefined) return true;
  const id = storedId(stored.taskId, hashes);
  const known = rows.get('watch', id);
  if (known && !takesTask(step, known, of)) {
    endsWith(step, known, of);
    return false;
  }
  const own = known && goesOn(known, of) ? known : undefined;
  const made = { ...watchOf(of, stored, now), ...(begunAt !== undefined && { begunAt }) };
  const row = own ?? watchRow({ sender: of.agentUrl, id }, made, 'watched', { dueAt: now });
  if (end === 'safe') rows.save(endedWatch(row, now + retentionMs));
  // Polling that was given up begins again, because the event that reported the end may get lost.
  else if (!own || (end === 'unsafe' && row.list === 'unresolved'))
    rows.save({ ...row, dueAt: now, list: 'watched' });
  return true;
}

/** Returns the members that name an operation's media buy: its id, and the id of its stream's row if that differs. */
function named(mediaBuyId: string, { hashes }: SellerStep): Pick<Stored, 'mediaBuyId' | 'streamId'> {
  const streamId = storedId(mediaBuyId, hashes);
  return { mediaBuyId, ...(streamId !== mediaBuyId && { streamId }) };
}

/** Records which operation made a media buy, unless another operation is recorded already. */
function keepMediaBuy(step: SellerStep, of: OperationName, stored: Stored): void {
  const { rows, hashes, now, retentionMs } = step;
  if (stored.mediaBuyId === undefined) return;
  const id = mediaBuyRowId(stored.mediaBuyId, hashes);
  const known = rows.get('watch', id);
  if (known && watchIn(known).operationId !== of.operationId) return;
  if (known && isKept(known, step)) return;
  const row = known ?? watchRow({ sender: of.agentUrl, id }, watchOf(of, stored, now), null);
  rows.save(endedWatch(row, now + retentionMs));
}

const watchOf = ({ operationId }: OperationName, stored: Stored, now: number): Watch => ({
  operationId,
  taskId: stored.taskId ?? '',
  taskType: stored.taskType,
  hasWebhooks: !stored.withoutConfig,
  ...(stored.seller.edition && { edition: stored.seller.edition }),
  ...(stored.ref !== undefined && { ref: stored.ref }),
  ...(stored.account !== undefined && { account: stored.account }),
  ...(stored.status && { status: stored.status }),
  since: now,
  changes: 0,
  failures: 0,
});

/** True if an answer ends its task, i.e. if its status is final and it has a result (`isOpen` is not set). */
const isEndOf = ({ status, isOpen: goesOn }: SellerAnswer): boolean => isTerminal(status) && !goesOn;

/** True if an answer changes the operation. It can change a refused or orphaned one, which may have been done. */
function isNews(stored: Stored, answer: SellerAnswer): boolean {
  const { taskId } = answer;
  if (differ(taskId, stored.taskId)) return true;
  const isNamed = taskId !== undefined && stored.taskId === undefined;
  return stored.state === 'open' ? isNamed || isEndOf(answer) : stored.state !== 'ended';
}

/** Returns the latest status of a task that a webhook, answer or poll reported. @param id the id of the task's row. */
const lastStatus = (rows: RegistrationRows, id: string): TaskStatus | undefined =>
  rows.lastTold(id)?.status as TaskStatus | undefined;

/**
 * Returns an operation's status after an answer. `end` tells if the polling of its task can stop; it is undefined if
 * the operation goes on.
 */
function endOf(
  { rows, hashes }: SellerStep,
  taskId: string | undefined,
  answer: SellerAnswer,
  told: End,
): { readonly status: TaskStatus; readonly end: End | undefined } {
  const { status, taskId: named } = answer;
  const id = taskId === undefined ? undefined : storedId(taskId, hashes);
  // An answer without a task id ends the call only. A task that is known may end differently, so it is polled on.
  if (isEndOf(answer)) return { status, end: named === taskId ? told : 'unsafe' };
  const task = id === undefined ? undefined : rows.get('watch', id);
  if (id === undefined || task?.list !== null || isReplaced(task)) return { status, end: undefined };
  // The row is no longer polled: a webhook, an answer or a poll has already reported the end of the task.
  return { status: lastStatus(rows, id) ?? status, end: 'safe' };
}

const moved = ({ moves = 0 }: Stored, { replaces }: SellerAnswer): Pick<Stored, 'moves'> =>
  replaces === undefined ? {} : { moves: moves + 1 };

/**
 * Records an answer to a call, or an event of its task, in the operation. If the answer names another task than an
 * earlier event, the answer's task is used.
 * @param told tells if polling must go on (`End`), in case the answer is the end of the task.
 */
export function settled(
  step: SellerStep,
  of: OperationName,
  stored: Stored,
  answer: SellerAnswer,
  told: End,
): Exclude<Settled, 'absent'> {
  if (!isNews(stored, answer)) return 'known';
  const { taskId = stored.taskId, mediaBuyId = stored.mediaBuyId } = answer;
  const { status, end } = endOf(step, taskId, answer, told);
  const is: Stored = {
    ...withoutArguments(stored),
    ...(end ? { state: 'ended', closedAt: step.now } : { state: 'open' }),
    status,
    ...(taskId !== undefined && { taskId }),
    ...moved(stored, answer),
    ...(mediaBuyId !== undefined && named(mediaBuyId, step)),
    ...reasonOfEnd(status, answer),
  };
  keepMediaBuy(step, of, is);
  keepStream(step, of, is);
  noteEnding(step, of, is, answer.ending);
  step.rows.save(rowOf(of, is, null, end ? step.now + step.retentionMs : null));
  const begunAt = answer.replaces === undefined ? undefined : endReplaced(step, of, answer.replaces);
  if (!keepTask(step, of, is, end, begunAt)) return 'task-taken';
  return differ(taskId, stored.taskId) && answer.replaces !== stored.taskId ? 'other-task' : 'settled';
}

/** True if the task in a row belongs to the operation, and no other task has replaced it. */
const goesOn = (row: RegistrationRow, { operationId }: OperationName): boolean =>
  watchIn(row).operationId === operationId && !isReplaced(row);

const isReplaced = (row: RegistrationRow): boolean => watchIn(row).isReplaced === true;

/**
 * Ends the polling of a task that another task has replaced (calls.md §1.5).
 * @returns the time at which polling of the operation's first task began. Undefined if the replaced task was not polled
 *   for this operation.
 */
function endReplaced(step: SellerStep, of: OperationName, taskId: string): number | undefined {
  const row = step.rows.get('watch', storedId(taskId, step.hashes));
  const watch = row && watchIn(row);
  if (!watch || row.list === null || watch.operationId !== of.operationId) return undefined;
  const value = JSON.stringify({ ...watch, isReplaced: true } satisfies Watch);
  step.rows.save(endedWatch({ ...row, value }, step.now + step.retentionMs));
  return watch.begunAt ?? watch.since;
}

interface Candidate {
  readonly row: RegistrationRow;
  readonly stored: Stored;
}

function operationIn({ rows, hashes }: SellerStep, operationId: string | undefined): Candidate | undefined {
  const row = operationId === undefined ? undefined : rows.get('operation', storedId(operationId, hashes));
  return row && { row, stored: storedIn(row) };
}

/** Returns the id of the operation that the row of a task or of a media buy names. */
function ownerIn({ rows }: SellerStep, id: string): string | undefined {
  const row = rows.get('watch', id);
  return row && watchIn(row).operationId;
}

const taskOwner = (step: SellerStep, taskId: string | undefined): string | undefined =>
  taskId === undefined ? undefined : ownerIn(step, storedId(taskId, step.hashes));

const mediaBuyOwner = (step: SellerStep, mediaBuyId: string | undefined): string | undefined =>
  mediaBuyId === undefined ? undefined : ownerIn(step, mediaBuyRowId(mediaBuyId, step.hashes));

/**
 * Returns the operation that made the media buy of a report. Undefined for an event of a task: another operation may
 * have made the media buy that the event names.
 */
const reportedOwner = (step: SellerStep, { status, mediaBuyId }: OperationTold): string | undefined =>
  status === undefined ? mediaBuyOwner(step, mediaBuyId) : undefined;

/** True if both values are known and different. */
const differ = (a: string | undefined, b: string | undefined): boolean =>
  a !== undefined && b !== undefined && a !== b;

/** The largest number of times that an operation's task is replaced. Each replaced task leaves a row in the store. */
const MOST_MOVES = 100;

/**
 * True if the event's task replaces the operation's task. The operation's task is then the A2A Task that carried the
 * event, and has ended with the call (calls.md §1.5).
 */
const isSuccessor = ({ state, taskId, moves = 0 }: Stored, { callTaskId }: OperationTold): boolean =>
  state === 'open' && callTaskId !== undefined && callTaskId === taskId && moves < MOST_MOVES;

/** Returns the operation of an event's task, or else that of the A2A Task that carried the event. */
const taskOperation = (step: SellerStep, { taskId, callTaskId }: OperationTold): Candidate | undefined =>
  operationIn(step, taskOwner(step, taskId)) ?? operationIn(step, taskOwner(step, callTaskId));

/** Returns the operation that an event names, or else that of its task, or else that of its report's media buy. */
function candidateOf(
  step: SellerStep,
  told: OperationTold,
): { readonly is: Candidate; readonly isMismatch: boolean } | undefined {
  const { operationId, taskId } = told;
  const named = operationIn(step, operationId);
  const namedTask = named?.stored.taskId;
  // If the named operation has a task already, the row of the event's task need not be read.
  const owner = namedTask === undefined ? taskOperation(step, told) : undefined;
  const is = named ?? owner ?? operationIn(step, reportedOwner(step, told));
  if (!is) return undefined;
  // It is unknown which `operation_id` the seller was given for an adopted task, so the ids are not compared.
  const isOfOther = owner !== undefined && differ(operationId, owner.row.id) && !owner.stored.isAdopted;
  // A task that replaces the operation's task is no mismatch. An operation found by a media buy is not compared.
  const isOfOtherTask = differ(taskId, (named ?? owner)?.stored.taskId) && !isSuccessor(is.stored, told);
  return { is, isMismatch: isOfOther || isOfOtherTask };
}

/**
 * Finds the operation of an event, and records the event in it unless their ids contradict each other. If the operation
 * had ended before, the expiry of its row is postponed.
 */
export function found(step: SellerStep, told: OperationTold): OperationFound | undefined {
  const candidate = candidateOf(step, told);
  if (!candidate) return undefined;
  const { is, isMismatch } = candidate;
  const of = { agentUrl: told.agentUrl, operationId: is.row.id };
  const replaces = isSuccessor(is.stored, told) && { replaces: told.callTaskId };
  const answer = isMismatch ? undefined : answerTold({ ...told, ...replaces });
  const done = answer ? settled(step, of, is.stored, answer, 'unsafe') : 'known';
  if (done === 'known') keepLonger(step, of, is);
  const { token } = is.stored;
  return { operation: seenOf(is.row, is.stored), isMismatch, ...(token !== undefined && { token }) };
}

/** Returns an event's facts as an answer, without a too long task id; undefined if the event has no task status. */
function answerTold(told: OperationTold & Pick<SellerAnswer, 'replaces'>): SellerAnswer | undefined {
  const { status, taskId, mediaBuyId, ending, replaces, reason } = told;
  const isKept = taskId !== undefined && taskId.length <= MAX_TEXT;
  return (
    status && {
      status,
      ...(isKept && { taskId }),
      ...(mediaBuyId !== undefined && { mediaBuyId }),
      ...(ending !== undefined && { ending }),
      ...(isKept && replaces !== undefined && { replaces }),
      ...(reason !== undefined && { reason }),
    }
  );
}

/**
 * Replaces the task in `row`, an A2A Task that has ended with its call, by the task that the answer `to` names. Only
 * the new task is polled from now on.
 * @returns true if the task was replaced; false if the operation does not accept the new task.
 */
export function replaceTask(step: SellerStep, row: RegistrationRow, to: SellerAnswer): boolean {
  const { operationId, taskId: replaces } = watchIn(row);
  const is = operationIn(step, operationId);
  if (!is || !isSuccessor(is.stored, { agentUrl: row.sender, callTaskId: replaces })) return false;
  const of = { agentUrl: row.sender, operationId };
  settled(step, of, is.stored, { ...to, replaces }, 'unsafe');
  return true;
}

/** Postpones an ended operation's expiry once half of its time is over: otherwise each event would cause a write. */
function keepLonger(step: SellerStep, of: OperationName, { row, stored }: Candidate): void {
  const { rows, hashes, now, retentionMs } = step;
  keepMediaBuy(step, of, stored);
  if (isKept(row, step)) return;
  rows.save(rowOf(of, stored, null, now + retentionMs));
  const task = stored.taskId === undefined ? undefined : rows.get('watch', storedId(stored.taskId, hashes));
  if (task && task.expiresAt !== null && watchIn(task).operationId === of.operationId)
    rows.save(endedWatch(task, now + retentionMs));
}

/** True if the row of an operation is kept for at least half of the retention time from now. */
const isKept = ({ expiresAt }: RegistrationRow, { now, retentionMs }: SellerStep): boolean =>
  expiresAt === null || expiresAt - now >= retentionMs / 2;

/**
 * Stores an operation for a task or a media buy that the seller has already. With a task, the operation is open, and
 * the task is polled. With only a media buy, the operation has ended.
 * @param made the new operation, which is written if the task or media buy has none yet.
 */
export function adopted(step: SellerStep, of: OperationName, made: Stored): RegistrationRow {
  const { rows, now, retentionMs } = step;
  const { taskId, mediaBuyId } = made;
  // A given task id is looked up only as a task: the operation that made the media buy may have another task by now.
  const owner = taskId === undefined ? mediaBuyOwner(step, mediaBuyId) : taskOwner(step, taskId);
  const known = operationIn(step, owner);
  const stored: Stored = known
    ? { ...known.stored, ...(mediaBuyId !== undefined && named(mediaBuyId, step)) }
    : {
        ...made,
        ...(mediaBuyId !== undefined && named(mediaBuyId, step)),
        state: taskId === undefined ? 'ended' : 'open',
      };
  const is = known ? { agentUrl: of.agentUrl, operationId: known.row.id } : of;
  const row = rowOf(is, stored, known?.row.dueAt ?? null, expiryOf(stored, now + retentionMs));
  rows.save(row);
  if (!known) keepTask(step, is, stored, undefined);
  else if (taskId !== undefined) pollAgain(step, taskId);
  keepMediaBuy(step, is, stored);
  return row;
}

/** Begins polling of the task again if it was given up, because `adopt` asks for the task. */
function pollAgain({ rows, hashes, now }: SellerStep, taskId: string): void {
  const row = rows.get('watch', storedId(taskId, hashes));
  if (row?.list !== 'unresolved') return;
  const { begunAt: _before, ...watch } = watchIn(row);
  rows.save(watchRow(row, { ...watch, since: now }, 'watched', { dueAt: now }));
}

const expiryOf = ({ state }: Stored, at: number): number | null => (isOpen(state) ? null : at);

/** Ends the polling of a task, and the task's operations, even if the event of the end was not assigned to them. */
export function endTask(step: SellerStep, row: RegistrationRow): void {
  const { rows, now, retentionMs } = step;
  rows.save(endedWatch(row, now + retentionMs));
  const { operationId, taskId, others = [] } = watchIn(row);
  for (const id of [operationId, ...others]) {
    const is = operationIn(step, id);
    if (is?.stored.state !== 'open' || differ(is.stored.taskId, taskId)) continue;
    rows.save(endedRow(is, lastStatus(rows, row.id) ?? is.stored.status, step));
  }
}

const endedRow = (
  { row, stored }: Candidate,
  status: TaskStatus | undefined,
  { now, retentionMs }: SellerStep,
): RegistrationRow => {
  const of = { agentUrl: row.sender, operationId: row.id };
  const ended: Stored = { ...stored, state: 'ended', closedAt: now, ...(status && { status }) };
  return rowOf(of, ended, null, now + retentionMs);
};

export function endWatch(step: SellerStep, taskId: string): void {
  const row = step.rows.get('watch', storedId(taskId, step.hashes));
  if (row && row.list !== null) endTask(step, row);
}
