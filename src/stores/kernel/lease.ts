import type { AcceptDecision } from '../contract.ts';
import type { RecordRow } from './rows.ts';
import type { Step } from './step.ts';

/** The record, leased to this accept: new owner, fence + 1, and the attempt counted now, not at its end. */
export function leased(step: Step, record: RecordRow): RecordRow {
  const { request, now } = step;
  const leaseUntil = now + request.leaseMs;
  return {
    ...record,
    state: 'leased',
    claim: 'won',
    claimedBy: request.acceptId,
    owner: request.acceptId,
    fence: record.fence + 1,
    attempts: record.attempts + 1,
    leaseUntil,
    // Never acknowledged: `retentionMs` after its last attempt, and never under a live lease.
    expiresAt: record.acked ? null : Math.max(now + request.retentionMs, leaseUntil),
  };
}

/** `won` for a record that this accept has leased; `body` is the first copy, where it is not the caller's own. */
export function wonAnswer(record: RecordRow, changed: boolean, body?: Uint8Array): AcceptDecision {
  return {
    kind: 'won',
    changed,
    lease: { owner: record.claimedBy, fence: record.fence, attempt: record.attempts },
    ...(body && { body }),
    reemission: record.reemission,
    afterTerminal: record.afterTerminal,
    afterFinal: record.afterFinal,
    ahead: record.ahead,
  };
}
