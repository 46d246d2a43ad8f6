import type { AcceptDecision, EventClaim } from '../contract.ts';
import { wonAnswer } from './lease.ts';
import { isAfterTerminal, isAhead, holderOf, markExpiry, runsHere, taskRow } from './order.ts';
import { parkedUntil } from './park.ts';
import { isAfterFinal } from './reports.ts';
import type { Claim, RecordRow, TaskRow } from './rows.ts';
import { stamped } from './set-at.ts';
import type { Step } from './step.ts';
import { terminalAtInsert } from './terminal.ts';

/** What of a new record differs from case to case. */
type Start = Pick<
  RecordRow,
  | 'state'
  | 'claim'
  | 'owner'
  | 'process'
  | 'leaseUntil'
  | 'acked'
  | 'parkedUntil'
  | 'reemission'
  | 'afterTerminal'
  | 'afterFinal'
  | 'bodyBytes'
  | 'expiresAt'
>;

/** A new record: made at once and not by changes, for every delivery makes one. */
function newRecord({ request, now }: Step, event: EventClaim, start: Start): RecordRow {
  const runs = start.state === 'leased' ? 1 : 0;
  return {
    sender: request.sender,
    key: event.key,
    state: start.state,
    claim: start.claim,
    claimedBy: request.acceptId,
    owner: start.owner,
    process: start.process,
    fence: runs,
    leaseUntil: start.leaseUntil,
    attempts: runs,
    spared: false,
    crashes: 0,
    suspect: false,
    crashedIn: null,
    acked: start.acked,
    insertedAt: now,
    notBefore: now,
    parkedUntil: start.parkedUntil,
    setAt: now,
    lastError: null,
    rawHash: event.rawHash,
    canonicalHash: event.canonicalHash ?? null,
    task: event.task ?? null,
    ...(event.traceparent !== undefined && { traceparent: event.traceparent }),
    reemission: start.reemission,
    afterTerminal: start.afterTerminal,
    ahead: isAhead(event.task, now),
    afterFinal: start.afterFinal,
    bodyBytes: start.bodyBytes,
    expiresAt: start.expiresAt,
  };
}

/** Rule 3, where there is room: DONE(stale), so that the next copy is a duplicate. It was never handed on. */
export function insertEnded(step: Step, event: EventClaim, claim: Claim): void {
  const start: Start = {
    state: 'stale',
    claim,
    owner: null,
    process: null,
    leaseUntil: 0,
    acked: true,
    parkedUntil: 0,
    reemission: false,
    afterTerminal: false,
    afterFinal: false,
    bodyBytes: 0,
    expiresAt: step.now + step.request.retentionMs,
  };
  step.rows.insertRecord(newRecord(step, event, start));
}

/** Rule 5: record, task and notification id; inline and the task free, leased at once. */
export function insertEvent(step: Step, event: EventClaim, task: TaskRow | undefined): AcceptDecision {
  const { rows, request, now } = step;
  const reemission = noteNotification(step, event);
  const record = newRecord(step, event, startOf(step, event, task, reemission));
  rows.insertRecord(record, event.body);
  if (event.task) {
    const holder = record.state === 'leased' ? record.key : undefined;
    const of = { sender: request.sender, id: event.task.id };
    const terminal = terminalAtInsert(event, task);
    const expiresAt = markExpiry(now, request.retentionMs);
    rows.saveTask(taskRow(task, of, { holder, terminal, expiresAt }));
  }
  if (record.claim === 'won') return wonAnswer(record, false);
  if (record.claim === 'queued') return { kind: 'queued', changed: false, reemission, ahead: record.ahead };
  return { kind: 'task-busy', changed: false };
}

/** Inbox: QUEUED and acknowledged. Inline: LEASED to the accept, or QUEUED where another record holds the task. */
function startOf(step: Step, event: EventClaim, task: TaskRow | undefined, reemission: boolean): Start {
  const { rows, request, now } = step;
  const held = holderOf(rows, task, now, runsHere(request));
  const holder = held && stamped(rows, held, now);
  const isInbox = request.mode === 'inbox';
  const isLeased = !isInbox && !holder;
  const leaseUntil = now + request.leaseMs;
  const expiresAt = now + request.retentionMs;
  return {
    state: isLeased ? 'leased' : 'queued',
    claim: isLeased ? 'won' : isInbox ? 'queued' : 'waiting',
    owner: isLeased ? request.acceptId : null,
    process: (isLeased && request.process) || null,
    leaseUntil: isLeased ? leaseUntil : 0,
    acked: isInbox,
    parkedUntil: isInbox && holder ? parkedUntil(holder, now) : 0,
    reemission,
    afterTerminal: isLeased && isAfterTerminal(event.task, task),
    afterFinal: isAfterFinal(step),
    bodyBytes: event.body.length,
    // Never under a live lease.
    expiresAt: isInbox ? null : isLeased ? Math.max(expiresAt, leaseUntil) : expiresAt,
  };
}

/** Whether the id came before under another key: a re-emission, not a retry (contract.md §10.2). */
function noteNotification(step: Step, event: EventClaim): boolean {
  const { rows, request, now } = step;
  if (event.notificationId === undefined) return false;
  const known = rows.notification(request.sender, event.notificationId, now);
  rows.saveNotification({
    sender: request.sender,
    id: event.notificationId,
    key: known?.key ?? event.key,
    instant: null,
    expiresAt: markExpiry(now, request.retentionMs),
  });
  return known !== undefined && known.key !== event.key;
}
