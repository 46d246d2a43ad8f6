import type { AcceptDecision, EventClaim, RetryLimits } from '../contract.ts';
import { leased, wonAnswer } from './lease.ts';
import { isAfterTerminal, isAhead, isHeld, isLive, isStale, markExpiry, taskRow } from './order.ts';
import type { Claim, RecordRow, TaskRow } from './rows.ts';
import type { Step } from './step.ts';

/** Rule 2: the record exists. Record caps are not looked at: duplicates must get their 2xx. */
export function onRecord(step: Step, event: EventClaim, record: RecordRow): AcceptDecision {
  const changed = isChanged(event, record);
  const again = ANSWER_AGAIN[record.claim](step, record, changed);
  if (again && record.claimedBy === step.request.acceptId) return again;
  if (changed && event.onChanged === 'conflict') return { kind: 'conflict' };
  if (record.state === 'applied' || record.state === 'stale' || record.state === 'dead') {
    return { kind: 'done', changed, state: record.state, died: false };
  }
  if (step.request.mode === 'inbox') {
    // The answer will be 2xx, so from here on it is safe; its worker does the rest.
    if (!record.acked) step.rows.updateRecord({ ...record, acked: true, expiresAt: null });
    return { kind: 'in-flight', changed };
  }
  return isLive(record, step.now) ? { kind: 'in-flight', changed } : claim(step, record, changed);
}

/** Other bytes, or another canonical JSON where both copies have that fingerprint (verification.md, "Edition"). */
function isChanged(event: EventClaim, record: RecordRow): boolean {
  if (event.rawHash === record.rawHash) return false;
  return event.canonicalHash === undefined || event.canonicalHash !== record.canonicalHash;
}

type Again = (step: Step, record: RecordRow, changed: boolean) => AcceptDecision | undefined;

/** What an `acceptId` that comes again was told; undefined: decide anew. */
const ANSWER_AGAIN: Record<Claim, Again> = {
  won: (step, record, changed) => {
    // A lease that ran out, was given back or went to a worker is nobody's: a handler must not start on it.
    const mine = record.owner === record.claimedBy && record.state !== 'queued';
    const over = record.state === 'leased' && !isLive(record, step.now);
    return !mine || over ? undefined : wonAnswer(record, changed, firstCopy(step, record, changed));
  },
  queued: (_step, record, changed) => ({
    kind: 'queued',
    changed,
    reemission: record.reemission,
    ahead: record.ahead,
  }),
  stale: (_step, _record, changed) => ({ kind: 'stale', changed }),
  died: (_step, _record, changed) => ({ kind: 'done', changed, state: 'dead', died: true }),
  // `in-flight` and `task-busy` are how waiting begins; the same accept again is how it ends.
  waiting: () => undefined,
};

function firstCopy(step: Step, record: RecordRow, changed: boolean): Uint8Array | undefined {
  return changed && record.state !== 'applied' ? step.rows.body(record.sender, record.key) : undefined;
}

/** QUEUED, or its lease is over: its process died, which is counted here. */
function claim(step: Step, found: RecordRow, changed: boolean): AcceptDecision {
  const { rows, request, now } = step;
  const crashed = found.state === 'leased';
  const record: RecordRow = crashed
    ? { ...found, state: 'queued', owner: null, crashes: found.crashes + 1 }
    : found;
  if (isUsedUp(record, request.retry)) {
    rows.updateRecord({ ...record, ...claimed(step, 'died'), state: 'dead', acked: true, expiresAt: null });
    return { kind: 'done', changed, state: 'dead', died: true };
  }
  const task = record.task ? rows.task(record.sender, record.task.id, now) : undefined;
  if (isHeld(rows, task, now)) return { kind: 'task-busy', changed };
  if (isStale(record.task, task)) {
    const end = { state: 'stale', acked: true, bodyBytes: 0, expiresAt: now + request.retentionMs } as const;
    rows.updateRecord({ ...record, ...claimed(step, 'stale'), ...end });
    return { kind: 'stale', changed };
  }
  return lease(step, record, task, changed);
}

function claimed(step: Step, claim: Claim): Pick<RecordRow, 'claim' | 'claimedBy'> {
  return { claim, claimedBy: step.request.acceptId };
}

/** Takes record and task. The handler gets the stored first copy, so it is handed out where this one differs. */
function lease(step: Step, record: RecordRow, task: TaskRow | undefined, changed: boolean): AcceptDecision {
  const { rows, request, now } = step;
  const won: RecordRow = {
    ...leased(step, record),
    ahead: isAhead(record.task, now),
    afterTerminal: isAfterTerminal(record.task, task),
  };
  rows.updateRecord(won);
  if (record.task) {
    const of = { sender: record.sender, id: record.task.id };
    rows.saveTask(taskRow(task, of, { holder: record.key, expiresAt: markExpiry(now, request.retentionMs) }));
  }
  return wonAnswer(won, changed, firstCopy(step, won, changed));
}

/** Attempts count at lease, so an event that kills its process comes to its end too. */
function isUsedUp(record: RecordRow, retry: RetryLimits): boolean {
  return record.attempts >= retry.attempts || record.crashes >= retry.crashes;
}
