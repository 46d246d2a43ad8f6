import type { AcceptDecision } from '../contract.ts';
import type { RecordRow } from './rows.ts';

/** Who takes a lease, and for how long. */
export interface Lessee {
  readonly owner: string;
  readonly leaseMs: number;
  readonly retentionMs: number;
}

/** The record, leased: new owner, fence + 1, and the attempt counted now, not at its end. */
export function leased(record: RecordRow, { owner, leaseMs, retentionMs }: Lessee, now: number): RecordRow {
  const leaseUntil = now + leaseMs;
  return {
    ...record,
    state: 'leased',
    owner,
    fence: record.fence + 1,
    attempts: record.attempts + 1,
    leaseUntil,
    parkedUntil: 0,
    // Never acknowledged: `retentionMs` after its last attempt, and never under a live lease.
    expiresAt: record.acked ? null : Math.max(now + retentionMs, leaseUntil),
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
