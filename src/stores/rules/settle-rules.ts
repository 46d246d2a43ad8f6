// Ends and prolongs leases: `complete`, `fail` and `renew`. Also decides `alive` and `peek` of a store (admission.md
// §4.1 to §4.9).
// Called by memory, SQLite and the optimistic store inside one atomic step, with the current time passed in.
import { Fault } from '../../shared/errors.ts';
import type {
  AliveRequest,
  CompleteRequest,
  CompleteResult,
  FailRequest,
  FailResult,
  PeekResult,
  RenewRequest,
} from '../store.ts';
import { LONGEST_WAIT_MS } from '../constants.ts';
import { attemptsBefore, requireLength } from './lease-rules.ts';
import type { TaskChange } from './order.ts';
import { holderOf, isLive, markExpiry } from './order.ts';
import { freeTask, putOffUntil, stepLeftMs } from './task-wait.ts';
import type { RecordRow, RecordState, Rows, TaskRow } from './rule-rows.ts';
import { completeWindows } from './report-windows.ts';
import { completeState } from './states.ts';
import { endApplied, endOperation, toldAtEnd } from './channels.ts';

interface LeaseClaim {
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
}

/**
 * Finds the record that `owner` has leased and whose task it holds. An expired lease is still its owner's if nobody
 * took it over, because the store may have been unreachable. Owners are compared, and not the number of leases: after a
 * failover that lost data the number can repeat.
 */
export function heldBy(rows: Rows, lease: LeaseClaim, now: number): RecordRow | undefined {
  const record = rows.record(lease.sender, lease.key, now);
  if (record?.state !== 'leased' || record.owner !== lease.owner) return undefined;
  const task = record.task && rows.task(record.sender, record.task.id, now);
  // Every lease of a task's event writes the task's row. So if the row is gone, no other record has leased the task.
  return !task || task.holder === record.key ? record : undefined;
}

/** Makes the error of a transaction whose `request` names a lease that its owner no longer has. */
export function leaseLost(): Fault {
  return new Fault('lease_lost', 'The lease went to another owner; nothing was written.');
}

/**
 * True if `owner` was the last to lease the record, and the record is in `state`: then the same call was made before.
 */
function endedBy(rows: Rows, lease: LeaseClaim, state: RecordState, now: number): boolean {
  const record = rows.record(lease.sender, lease.key, now);
  return record !== undefined && record.owner === lease.owner && record.state === state;
}

/**
 * Completes an event, for `Store.complete`. The record becomes applied, and the rows of its task, operation, report
 * windows and reported state are updated.
 */
export function complete(rows: Rows, request: CompleteRequest, now: number): CompleteResult {
  const record = heldBy(rows, request, now);
  if (!record) return endedBy(rows, request, 'applied', now) ? 'done' : 'lost';
  rows.updateRecord({
    ...record,
    state: 'applied',
    suspect: false,
    acked: true,
    bodyBytes: 0,
    url: undefined,
    windows: null,
    claimedState: null,
    expiresAt: now + request.retentionMs,
  });
  freeTask(rows, record, now, (task) => taskChange(record, task, now, request.retentionMs));
  endOperation(rows, record, now, request.retentionMs);
  if (record.windows) completeWindows(rows, record, record.windows, now);
  if (record.claimedState) completeState(rows, record, record.claimedState, now);
  return 'done';
}

/**
 * Ends a run that failed, for `Store.fail`.
 *
 * @throws ConfigError for a `backoffMs` that is not from 0 to 1 h.
 */
export function fail(rows: Rows, request: FailRequest, now: number): FailResult {
  if (request.backoffMs !== 0) requireLength('backoffMs', request.backoffMs, LONGEST_WAIT_MS);
  const record = heldBy(rows, request, now);
  if (!record) {
    if (endedBy(rows, request, 'queued', now)) return 'queued';
    return endedBy(rows, request, 'dead', now) ? 'dead' : 'lost';
  }
  const failed = failure(record, request, now);
  rows.updateRecord(failed);
  // A record that was given back without a run is still the next of its task, so its task is not freed.
  if (!request.unstarted || !isQueuedHere(failed)) freeTask(rows, record, now);
  return failed.state === 'dead' ? 'dead' : 'queued';
}

/** True if workers will lease the record again; false if its sender has to send it again. */
const isQueuedHere = ({ state, acked }: RecordRow): boolean => state === 'queued' && acked;

function failure(record: RecordRow, request: FailRequest, now: number): RecordRow {
  const { permanent, unstarted = false, overrun = false, retry } = request;
  // A record whose handler reports its failure is no longer a suspect: the handler has not crashed the process.
  const suspect = record.suspect && (unstarted || overrun);
  const crashes = record.crashes + (overrun ? 1 : 0);
  const failed = { ...record, suspect, crashes, lastError: request.error ?? record.lastError };
  const isUsedUp = record.attempts >= retry.attempts || (overrun && crashes >= retry.crashes);
  const isDead = !unstarted && (permanent || isUsedUp);
  return isDead
    ? { ...failed, state: 'dead', acked: true, expiresAt: null }
    : queuedAgain(failed, record, request, now);
}

/**
 * Queues a record again after a failed run.
 *
 * @param record the record as it was before the failure.
 */
function queuedAgain(
  failed: RecordRow,
  record: RecordRow,
  { unstarted, overrun, backoffMs, retentionMs }: FailRequest,
  now: number,
): RecordRow {
  return {
    ...failed,
    state: 'queued',
    attempts: unstarted ? attemptsBefore(record) : record.attempts,
    notBefore:
      overrun && failed.suspect ? putOffUntil(record, failed.crashes, now) : stepEnd(record, backoffMs, now),
    expiresAt: record.acked ? null : now + retentionMs,
  };
}

/**
 * Returns the end of the wait after a failure (back-off). If the wait after an earlier failure is not over, its end
 * stays, so that retries cannot delay the record further.
 */
function stepEnd(record: RecordRow, backoffMs: number, now: number): number {
  return stepLeftMs(record, now) > 0 ? record.notBefore : now + backoffMs;
}

/**
 * Prolongs a lease, for `Store.renew`.
 *
 * @throws ConfigError for a `leaseMs` that is not above 0 and at most 10 min.
 */
export function renew(rows: Rows, request: RenewRequest, now: number): 'renewed' | 'lost' {
  requireLength('leaseMs', request.leaseMs);
  const record = heldBy(rows, request, now);
  if (!record) return 'lost';
  const leaseUntil = now + request.leaseMs;
  const expiresAt = record.expiresAt === null ? null : Math.max(record.expiresAt, leaseUntil);
  rows.updateRecord({ ...record, leaseUntil, expiresAt });
  return 'renewed';
}

/**
 * Keeps the row of a process from expiring for `forMs`, for `Store.alive`.
 *
 * @throws ConfigError for a `forMs` that is not finite and above 0.
 */
export function alive(rows: Rows, { process: id, forMs }: AliveRequest, now: number): void {
  requireLength('forMs', forMs, Number.MAX_VALUE);
  rows.saveProcess({ id, expiresAt: now + forMs }, now);
}

/** Returns the progress of an event, for `Store.peek`. */
export function peek(rows: Rows, sender: string, key: string, now: number): PeekResult {
  const record = rows.record(sender, key, now);
  if (!record) return 'absent';
  if (record.state === 'applied' || record.state === 'stale' || record.state === 'dead') return record.state;
  if (isLive(record, now)) return 'busy';
  const task = record.task ? rows.task(sender, record.task.id, now) : undefined;
  return holderOf(rows, task, now, { key }) ? 'busy' : 'free';
}

/**
 * Returns the change of a task's row when one of its events is applied: the newest time, the first terminal status and
 * the last status. Undefined if nothing changes.
 */
function taskChange(
  record: RecordRow,
  known: TaskRow | undefined,
  now: number,
  retentionMs: number,
): TaskChange | undefined {
  const mark = newMark(record, known);
  const terminal = endApplied(record, known?.terminal ?? null);
  const told = toldAtEnd(record, known, mark !== undefined, now);
  if (!mark && !terminal && !told) return undefined;
  return { ...mark, terminal, told, expiresAt: markExpiry(now, retentionMs) };
}

function newMark(
  { task, ahead }: RecordRow,
  known: TaskRow | undefined,
): Pick<TaskChange, 'mark' | 'markTerminal'> | undefined {
  if (task?.instant === undefined || ahead) return undefined;
  // The newest time of a task never goes back. If the store's clock was set back, a lost lease can look live, so an
  // older event may be completed late. Such an event changes nothing here.
  if (known?.mark != null && task.instant < known.mark) return undefined;
  return { mark: task.instant, markTerminal: task.terminal };
}
