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

/*
 * The steps by which an operation is settled, found, adopted and ended, over the rows of its seller. Whose a task is says a row of
 * its own, written with the operation's.
 */

/**
 * Whether an end may have to be told again by another channel: not where it is safe. `unsafe`: an event that says so is about to
 * be handled; it may fail, its sender may give up, or what is newer may make it stale.
 */
type End = 'safe' | 'unsafe';

/**
 * Whether the task of a row is the operation's, or becomes it: it was adopted before its call was answered, or the operation that
 * it was of has another one.
 */
function takesTask(step: SellerStep, row: RegistrationRow, { operationId }: OperationName): boolean {
  const { operationId: owner, taskId } = watchIn(row);
  const other = owner === operationId ? undefined : operationIn(step, owner);
  if (!other || differ(other.stored.taskId, taskId)) return true;
  if (!other.stored.isAdopted) return false;
  step.rows.save(endedRow(other, other.stored.status, step));
  return true;
}

/** Operations of one task that are ended with it, beside the one that it is of. */
const MOST_OTHERS = 100;

/** The operation ends with the task of another one. */
function endsWith(step: SellerStep, row: RegistrationRow, { operationId }: OperationName): void {
  const watch = watchIn(row);
  const others = new Set(watch.others).add(operationId);
  if (row.list === null || others.size > MOST_OTHERS) return;
  step.rows.save({ ...row, value: JSON.stringify({ ...watch, others: [...others] }) });
}

/**
 * Whose the task of an operation is, and whether it is watched.
 * @param begunAt as of `Watch`.
 * @returns whether it is this operation's.
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
  // One that was given up is polled again: its end is told, and may be lost.
  else if (!own || (end === 'unsafe' && row.list === 'unresolved'))
    rows.save({ ...row, dueAt: now, list: 'watched' });
  return true;
}

/** The media buy of an operation, and where its account is kept. */
function named(mediaBuyId: string, { hashes }: SellerStep): Pick<Stored, 'mediaBuyId' | 'streamId'> {
  const streamId = storedId(mediaBuyId, hashes);
  return { mediaBuyId, ...(streamId !== mediaBuyId && { streamId }) };
}

/** Whose the media buy is that came of an operation; it stays whose it was. */
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

/** Whether an answer is the end of its task. */
const isEndOf = ({ status, isOpen: goesOn }: SellerAnswer): boolean => isTerminal(status) && !goesOn;

/** Whether it is settled by that. What was refused or given up has been done all the same if its seller says so. */
function isNews(stored: Stored, answer: SellerAnswer): boolean {
  const { taskId } = answer;
  if (differ(taskId, stored.taskId)) return true;
  const isNamed = taskId !== undefined && stored.taskId === undefined;
  return stored.state === 'open' ? isNamed || isEndOf(answer) : stored.state !== 'ended';
}

/** Of a task, by the id of its row. */
const lastStatus = (rows: RegistrationRows, id: string): TaskStatus | undefined =>
  rows.lastTold(id)?.status as TaskStatus | undefined;

/** Whether an operation is over by an answer, and with which status. */
function endOf(
  { rows, hashes }: SellerStep,
  taskId: string | undefined,
  answer: SellerAnswer,
  told: End,
): { readonly status: TaskStatus; readonly end: End | undefined } {
  const { status, taskId: named } = answer;
  const id = taskId === undefined ? undefined : storedId(taskId, hashes);
  // An end that names no task says nothing of the one that is known: it may end otherwise.
  if (isEndOf(answer)) return { status, end: named === taskId ? told : 'unsafe' };
  const task = id === undefined ? undefined : rows.get('watch', id);
  if (id === undefined || task?.list !== null || isReplaced(task)) return { status, end: undefined };
  // The task's end was told before.
  return { status: lastStatus(rows, id) ?? status, end: 'safe' };
}

const moved = ({ moves = 0 }: Stored, { replaces }: SellerAnswer): Pick<Stored, 'moves'> =>
  replaces === undefined ? {} : { moves: moves + 1 };

/**
 * Settles it by its call's answer, or by what an event tells of its task. An answer may name another task than an event did
 * before: it is the one that was asked for.
 * @param told what an end is, where it is told.
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

/** Whether the row of a task is the operation's as it is. */
const goesOn = (row: RegistrationRow, { operationId }: OperationName): boolean =>
  watchIn(row).operationId === operationId && !isReplaced(row);

const isReplaced = (row: RegistrationRow): boolean => watchIn(row).isReplaced === true;

/**
 * The call is over, and what was its task is no more: another one has taken its place (calls.md §1.5).
 * @returns since when the operation has been watched under one task after the other.
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

/** Which operation a row of a task or of a media buy is of. */
function ownerIn({ rows }: SellerStep, id: string): string | undefined {
  const row = rows.get('watch', id);
  return row && watchIn(row).operationId;
}

const taskOwner = (step: SellerStep, taskId: string | undefined): string | undefined =>
  taskId === undefined ? undefined : ownerIn(step, storedId(taskId, step.hashes));

const mediaBuyOwner = (step: SellerStep, mediaBuyId: string | undefined): string | undefined =>
  mediaBuyId === undefined ? undefined : ownerIn(step, mediaBuyRowId(mediaBuyId, step.hashes));

/** A delivery report names no operation. Of a task another one may have made the same media buy. */
const reportedOwner = (step: SellerStep, { status, mediaBuyId }: OperationTold): string | undefined =>
  status === undefined ? mediaBuyOwner(step, mediaBuyId) : undefined;

/** Both are known, and they are not the same. */
const differ = (a: string | undefined, b: string | undefined): boolean =>
  a !== undefined && b !== undefined && a !== b;

/** Tasks of an operation, one after the other: each leaves a row that is kept for long. */
const MOST_MOVES = 100;

/** Whether an event's task takes the place of the operation's, whose call is over (calls.md §1.5). */
const isSuccessor = ({ state, taskId, moves = 0 }: Stored, { callTaskId }: OperationTold): boolean =>
  state === 'open' && callTaskId !== undefined && callTaskId === taskId && moves < MOST_MOVES;

/** The operation of an event's task, else of the call that told of it. */
const taskOperation = (step: SellerStep, { taskId, callTaskId }: OperationTold): Candidate | undefined =>
  operationIn(step, taskOwner(step, taskId)) ?? operationIn(step, taskOwner(step, callTaskId));

/** The operation that an event names, else its task's, else that of the media buy that it reports on. */
function candidateOf(
  step: SellerStep,
  told: OperationTold,
): { readonly is: Candidate; readonly isMismatch: boolean } | undefined {
  const { operationId, taskId } = told;
  const named = operationIn(step, operationId);
  const namedTask = named?.stored.taskId;
  // Where the operation says itself what its task is, one read is enough.
  const owner = namedTask === undefined ? taskOperation(step, told) : undefined;
  const is = named ?? owner ?? operationIn(step, reportedOwner(step, told));
  if (!is) return undefined;
  // Which operation_id the seller of an adopted task was told is not known.
  const isOfOther = owner !== undefined && differ(operationId, owner.row.id) && !owner.stored.isAdopted;
  // A former task of it is the operation's no more. A report has a task of its own.
  const isOfOtherTask = differ(taskId, (named ?? owner)?.stored.taskId) && !isSuccessor(is.stored, told);
  return { is, isMismatch: isOfOther || isOfOtherTask };
}

/**
 * The operation that an event is of. It is settled by what the event tells where that fits, and known for longer where it has
 * ended.
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

/** An id that is too long is not kept: what the event tells counts all the same. */
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

/** The call of a polled task is over, and another task has taken its place: that one is polled from now on. @returns whether. */
export function replaceTask(step: SellerStep, row: RegistrationRow, to: SellerAnswer): boolean {
  const { operationId, taskId: replaces } = watchIn(row);
  const is = operationIn(step, operationId);
  if (!is || !isSuccessor(is.stored, { agentUrl: row.sender, callTaskId: replaces })) return false;
  const of = { agentUrl: row.sender, operationId };
  settled(step, of, is.stored, { ...to, replaces }, 'unsafe');
  return true;
}

/** What has ended is known for its time after the last event, or for half of it: each event would else be a write. */
function keepLonger(step: SellerStep, of: OperationName, { row, stored }: Candidate): void {
  const { rows, hashes, now, retentionMs } = step;
  keepMediaBuy(step, of, stored);
  if (isKept(row, step)) return;
  rows.save(rowOf(of, stored, null, now + retentionMs));
  const task = stored.taskId === undefined ? undefined : rows.get('watch', storedId(stored.taskId, hashes));
  if (task && task.expiresAt !== null && watchIn(task).operationId === of.operationId)
    rows.save(endedWatch(task, now + retentionMs));
}

/** For half of the retention at least. */
const isKept = ({ expiresAt }: RegistrationRow, { now, retentionMs }: SellerStep): boolean =>
  expiresAt === null || expiresAt - now >= retentionMs / 2;

/**
 * What a seller does already becomes an operation: open with a task, which is polled; ended where there is a media buy alone.
 * @param made the operation, where none is known for it yet.
 */
export function adopted(step: SellerStep, of: OperationName, made: Stored): RegistrationRow {
  const { rows, now, retentionMs } = step;
  const { taskId, mediaBuyId } = made;
  // A media buy that is known may have another task now.
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

/** Whose task was given up has asked for it anew. */
function pollAgain({ rows, hashes, now }: SellerStep, taskId: string): void {
  const row = rows.get('watch', storedId(taskId, hashes));
  if (row?.list !== 'unresolved') return;
  const { begunAt: _before, ...watch } = watchIn(row);
  rows.save(watchRow(row, { ...watch, since: now }, 'watched', { dueAt: now }));
}

const expiryOf = ({ state }: Stored, at: number): number | null => (isOpen(state) ? null : at);

/**
 * The task has ended: nobody polls it any more. Its operation has ended too, also where the event of the end was not taken for
 * the operation's.
 */
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

/** The task of that id has ended. */
export function endWatch(step: SellerStep, taskId: string): void {
  const row = step.rows.get('watch', storedId(taskId, step.hashes));
  if (row && row.list !== null) endTask(step, row);
}
