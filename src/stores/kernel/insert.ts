import type { AcceptDecision, EventClaim } from '../contract.ts';
import { leased, wonAnswer } from './lease.ts';
import { isAfterTerminal, isAhead, holderOf, markExpiry, taskRow } from './order.ts';
import { parkedUntil } from './park.ts';
import { noteReport } from './reports.ts';
import type { RecordRow, TaskRow } from './rows.ts';
import type { Step } from './step.ts';

/** A record before its first lease; what differs from case to case is overwritten. */
function fresh(step: Step, event: EventClaim): RecordRow {
  const { request, now } = step;
  return {
    sender: request.sender,
    key: event.key,
    state: 'queued',
    claim: 'waiting',
    claimedBy: request.acceptId,
    owner: null,
    fence: 0,
    leaseUntil: 0,
    attempts: 0,
    crashes: 0,
    acked: false,
    insertedAt: now,
    notBefore: now,
    parkedUntil: 0,
    lastError: null,
    rawHash: event.rawHash,
    canonicalHash: event.canonicalHash ?? null,
    task: event.task ?? null,
    reemission: false,
    afterTerminal: false,
    ahead: isAhead(event.task, now),
    afterFinal: false,
    bodyBytes: event.body.length,
    expiresAt: now + request.retentionMs,
  };
}

/** Rule 3, where there is room: DONE(stale), so that the next copy is a duplicate. It was never handed on. */
export function insertStale(step: Step, event: EventClaim): void {
  step.rows.insertRecord({
    ...fresh(step, event),
    state: 'stale',
    claim: 'stale',
    acked: true,
    bodyBytes: 0,
  });
}

/** Rule 5: record, task and notification id; inline and the task free, leased at once. */
export function insertEvent(step: Step, event: EventClaim, task: TaskRow | undefined): AcceptDecision {
  const { rows, request, now } = step;
  const reemission = noteNotification(step, event);
  const afterFinal = noteReport(step);
  const queued: RecordRow = { ...fresh(step, event), reemission, afterFinal };
  const record = atInsertion(step, queued, task);
  rows.insertRecord(record, event.body);
  if (event.task) {
    const holder = record.state === 'leased' ? { holder: record.key } : {};
    const of = { sender: request.sender, id: event.task.id };
    rows.saveTask(taskRow(task, of, { ...holder, expiresAt: markExpiry(now, request.retentionMs) }));
  }
  if (record.claim === 'won') return wonAnswer(record, false);
  if (record.claim === 'queued') return { kind: 'queued', changed: false, reemission, ahead: record.ahead };
  return { kind: 'task-busy', changed: false };
}

function atInsertion(step: Step, queued: RecordRow, task: TaskRow | undefined): RecordRow {
  const { rows, request, now } = step;
  const holder = holderOf(rows, task, now);
  if (request.mode === 'inbox') {
    const parked = holder ? { parkedUntil: parkedUntil(holder, now) } : {};
    return { ...queued, claim: 'queued', acked: true, expiresAt: null, ...parked };
  }
  if (holder) return queued;
  const won = { claim: 'won', claimedBy: request.acceptId } as const;
  const lease = leased(queued, { ...request, owner: request.acceptId }, now);
  return { ...lease, ...won, afterTerminal: isAfterTerminal(queued.task, task) };
}

/** Whether the id came before under another key: a re-emission, not a retry (interface.md, Persistent channels). */
function noteNotification(step: Step, event: EventClaim): boolean {
  const { rows, request, now } = step;
  if (event.notificationId === undefined) return false;
  const known = rows.notification(request.sender, event.notificationId, now);
  rows.saveNotification({
    sender: request.sender,
    id: event.notificationId,
    key: known?.key ?? event.key,
    expiresAt: markExpiry(now, request.retentionMs),
  });
  return known !== undefined && known.key !== event.key;
}
