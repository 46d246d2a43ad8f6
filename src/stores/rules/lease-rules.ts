// Makes leases and the answers about them; attempts and runs are counted here (admission.md §4.3 and §4.5).
// Called by the other rules, and by the optimistic store's `lease`.
import { ConfigError } from '../../shared/errors.ts';
import type { AcceptDecision, Lease } from '../store.ts';
import { LONGEST_LEASE_MS } from '../constants.ts';
import type { RecordRow } from './rule-rows.ts';
import { stepLeftMs } from './task-wait.ts';

/** The owner that takes a lease, and for how long. */
export interface Lessee {
  readonly owner: string;
  readonly leaseMs: number;
  readonly retentionMs: number;
  readonly process?: string;
  /** True if the delivery's bytes were seen before: then the lease raises no attempts (admission.md §4.5). */
  readonly replay?: boolean;
}

/**
 * Checks a length of time. A lease until `NaN` would never be live, or would fail deep in a backend. A lease above
 * the maximum would look as if the store's clock had been set back (admission.md §4.11).
 *
 * @throws ConfigError for a length that is not above 0, or over `most`.
 */
export function requireLength(
  name: 'leaseMs' | 'forMs' | 'backoffMs',
  ms: number,
  most: number = LONGEST_LEASE_MS,
): void {
  if (ms > 0 && ms <= most) return;
  throw new ConfigError(`${name}: ${String(ms)} is not a number of ms above 0, ${most} at most.`);
}

/**
 * Returns the record, leased to a new owner. `runs` grows by one. The attempt is counted now, not when the run ends.
 *
 * At most one attempt is counted in a back-off step; a counted attempt sets `notBefore` to 0. Bytes that came before
 * count one only if `attempts` is 0. Otherwise anybody who recorded a delivery could use up its event's attempts.
 */
export function leased(record: RecordRow, lessee: Lessee, now: number): RecordRow {
  const { owner, leaseMs, retentionMs, process = null, replay = false } = lessee;
  const leaseUntil = now + leaseMs;
  const isCharged = record.attempts === 0 || (!replay && stepLeftMs(record, now) === 0);
  return {
    ...record,
    state: 'leased',
    owner,
    process,
    runs: record.runs + 1,
    attempts: record.attempts + (isCharged ? 1 : 0),
    leaseUntil,
    notBefore: isCharged ? 0 : record.notBefore,
    parkedUntil: 0,
    // A record that was never acknowledged expires `retentionMs` after its last attempt, but never under a live
    // lease.
    expiresAt: record.acked ? null : Math.max(now + retentionMs, leaseUntil),
  };
}

/** Returns `attempts` as it was before the current lease. */
export function attemptsBefore({ attempts, notBefore }: RecordRow): number {
  return attempts - (notBefore === 0 ? 1 : 0);
}

/** Makes the lease as its owner sees it. */
export function leaseOf({ runs, attempts, suspect }: RecordRow, owner: string): Lease {
  return { owner, run: runs, chargedAttempts: attempts, ...(suspect && { suspect }) };
}

/**
 * Makes the answer `won` for a record that this accept has leased. `body` is the stored first copy, given only if the
 * caller's copy differs.
 */
export function wonAnswer(record: RecordRow, changed: boolean, body?: Uint8Array): AcceptDecision {
  return {
    kind: 'won',
    changed,
    lease: leaseOf(record, record.claimedBy),
    ...(body && { body }),
    reemission: record.reemission,
    afterTerminal: record.afterTerminal,
    afterFinal: record.afterFinal,
    ...(record.windows && { windows: record.windows }),
    ...(record.claimedState && { claimedState: record.claimedState }),
    ahead: record.ahead,
  };
}

/** Makes the answer for the accept that has inserted a record. */
export function insertedAnswer(record: RecordRow): AcceptDecision {
  const { claim, reemission, ahead } = record;
  if (claim === 'won') return wonAnswer(record, false);
  return claim === 'queued'
    ? { kind: 'queued', changed: false, reemission, ahead }
    : { kind: 'task-busy', changed: false };
}
