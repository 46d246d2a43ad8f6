import type {
  CompleteRequest,
  CompleteResult,
  FailRequest,
  FailResult,
  PeekResult,
  RenewRequest,
} from '../contract.ts';
import { holderOf, isLive, markExpiry, taskRow } from './order.ts';
import { freeTask } from './park.ts';
import type { RecordRow, RecordState, Rows } from './rows.ts';

interface LeaseClaim {
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
}

/**
 * The record whose live lease `owner` holds. Authorized by equality of the owner, not by the fence: after a lost
 * failover a fence can start again.
 */
export function heldBy(rows: Rows, lease: LeaseClaim, now: number): RecordRow | undefined {
  const record = rows.record(lease.sender, lease.key, now);
  return record && record.owner === lease.owner && isLive(record, now) ? record : undefined;
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
    acked: true,
    bodyBytes: 0,
    expiresAt: now + request.retentionMs,
  });
  moveMark(rows, record, now, request.retentionMs);
  freeTask(rows, record);
  return 'done';
}

/** `Store.fail`. */
export function fail(rows: Rows, request: FailRequest, now: number): FailResult {
  const record = heldBy(rows, request, now);
  if (!record) {
    if (endedBy(rows, request, 'queued', now)) return 'queued';
    return endedBy(rows, request, 'dead', now) ? 'dead' : 'lost';
  }
  const failed = failure(record, request, now);
  rows.updateRecord(failed);
  freeTask(rows, record);
  return failed.state === 'dead' ? 'dead' : 'queued';
}

function failure(record: RecordRow, request: FailRequest, now: number): RecordRow {
  const { permanent, unstarted = false, retry, backoffMs, retentionMs } = request;
  const given = { ...record, lastError: request.error ?? record.lastError };
  if (!unstarted && (permanent || record.attempts >= retry.attempts)) {
    return { ...given, state: 'dead', acked: true, expiresAt: null };
  }
  return {
    ...given,
    state: 'queued',
    attempts: record.attempts - (unstarted ? 1 : 0),
    notBefore: now + backoffMs,
    expiresAt: record.acked ? null : now + retentionMs,
  };
}

/** `Store.renew`. */
export function renew(rows: Rows, request: RenewRequest, now: number): 'renewed' | 'lost' {
  const record = heldBy(rows, request, now);
  if (!record) return 'lost';
  const leaseUntil = now + request.leaseMs;
  const expiresAt = record.expiresAt === null ? null : Math.max(record.expiresAt, leaseUntil);
  rows.updateRecord({ ...record, leaseUntil, expiresAt });
  return 'renewed';
}

/** `Store.peek`. */
export function peek(rows: Rows, sender: string, key: string, now: number): PeekResult {
  const record = rows.record(sender, key, now);
  if (!record) return 'absent';
  if (record.state === 'applied' || record.state === 'stale' || record.state === 'dead') return record.state;
  if (isLive(record, now)) return 'busy';
  const task = record.task ? rows.task(sender, record.task.id, now) : undefined;
  return holderOf(rows, task, now) ? 'busy' : 'free';
}

/** The task's newest applied status. The task itself is free: its holder's lease is live no more. */
function moveMark(rows: Rows, record: RecordRow, now: number, retentionMs: number): void {
  const { task, ahead, sender } = record;
  if (task?.instant === undefined || ahead) return;
  const known = rows.task(sender, task.id, now);
  // Never back: a store's clock that was set back can make a lost lease look live.
  if (known?.mark != null && task.instant < known.mark) return;
  const mark = { mark: task.instant, markTerminal: task.terminal };
  rows.saveTask(
    taskRow(known, { sender, id: task.id }, { ...mark, expiresAt: markExpiry(now, retentionMs) }),
  );
}
