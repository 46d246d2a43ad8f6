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
 * The record that `owner` has: LEASED to it, and its task too. Not by the clock: nobody has taken over what ran out while
 * the store was away. Authorized by equality of the owner and not by a count of leases: after a lost failover a count can
 * start again.
 */
export function heldBy(rows: Rows, lease: LeaseClaim, now: number): RecordRow | undefined {
  const record = rows.record(lease.sender, lease.key, now);
  if (record?.state !== 'leased' || record.owner !== lease.owner) return undefined;
  const task = record.task && rows.task(record.sender, record.task.id, now);
  // Who takes a task writes its row: one that was forgotten went to nobody.
  return !task || task.holder === record.key ? record : undefined;
}

/** Of a transaction whose `request` holds no lease. */
export function leaseLost(): Fault {
  return new Fault('lease_lost', 'The lease went to another owner; nothing was written.');
}

/** The record that `owner` had last, in `state`: the same call made again. */
function endedBy(rows: Rows, lease: LeaseClaim, state: RecordState, now: number): boolean {
  const record = rows.record(lease.sender, lease.key, now);
  return record !== undefined && record.owner === lease.owner && record.state === state;
}

/** `Store.complete`. */
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

/** `Store.fail`. @throws ConfigError for a `backoffMs` that is not a length of time, or 0. */
export function fail(rows: Rows, request: FailRequest, now: number): FailResult {
  if (request.backoffMs !== 0) requireLength('backoffMs', request.backoffMs, LONGEST_WAIT_MS);
  const record = heldBy(rows, request, now);
  if (!record) {
    if (endedBy(rows, request, 'queued', now)) return 'queued';
    return endedBy(rows, request, 'dead', now) ? 'dead' : 'lost';
  }
  const failed = failure(record, request, now);
  rows.updateRecord(failed);
  // What was given back is the next of its task.
  if (!request.unstarted || !isQueuedHere(failed)) freeTask(rows, record, now);
  return failed.state === 'dead' ? 'dead' : 'queued';
}

/** Workers have it again, and not its sender. */
const isQueuedHere = ({ state, acked }: RecordRow): boolean => state === 'queued' && acked;

function failure(record: RecordRow, request: FailRequest, now: number): RecordRow {
  const { permanent, unstarted = false, overrun = false, retry } = request;
  // A handler that reports has not ended its process.
  const suspect = record.suspect && (unstarted || overrun);
  const crashes = record.crashes + (overrun ? 1 : 0);
  const failed = { ...record, suspect, crashes, lastError: request.error ?? record.lastError };
  const isUsedUp = record.attempts >= retry.attempts || (overrun && crashes >= retry.crashes);
  const isDead = !unstarted && (permanent || isUsedUp);
  return isDead
    ? { ...failed, state: 'dead', acked: true, expiresAt: null }
    : queuedAgain(failed, record, request, now);
}

/** @param record as it was before. */
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

/** A run within a step leaves its end where it is: retries must not put it off. */
function stepEnd(record: RecordRow, backoffMs: number, now: number): number {
  return stepLeftMs(record, now) > 0 ? record.notBefore : now + backoffMs;
}

/** `Store.renew`. @throws ConfigError for a `leaseMs` that is not a length of time. */
export function renew(rows: Rows, request: RenewRequest, now: number): 'renewed' | 'lost' {
  requireLength('leaseMs', request.leaseMs);
  const record = heldBy(rows, request, now);
  if (!record) return 'lost';
  const leaseUntil = now + request.leaseMs;
  const expiresAt = record.expiresAt === null ? null : Math.max(record.expiresAt, leaseUntil);
  rows.updateRecord({ ...record, leaseUntil, expiresAt });
  return 'renewed';
}

/** `Store.alive`. @throws ConfigError for a `forMs` that is not a length of time. */
export function alive(rows: Rows, { process: id, forMs }: AliveRequest, now: number): void {
  requireLength('forMs', forMs, Number.MAX_VALUE);
  rows.saveProcess({ id, expiresAt: now + forMs }, now);
}

/** `Store.peek`. */
export function peek(rows: Rows, sender: string, key: string, now: number): PeekResult {
  const record = rows.record(sender, key, now);
  if (!record) return 'absent';
  if (record.state === 'applied' || record.state === 'stale' || record.state === 'dead') return record.state;
  if (isLive(record, now)) return 'busy';
  const task = record.task ? rows.task(sender, record.task.id, now) : undefined;
  return holderOf(rows, task, now, { key }) ? 'busy' : 'free';
}

/** The task's newest applied status, and what that means for its first terminal one. */
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
  // Never back: a store's clock that was set back can make a lost lease look live.
  if (known?.mark != null && task.instant < known.mark) return undefined;
  return { mark: task.instant, markTerminal: task.terminal };
}
