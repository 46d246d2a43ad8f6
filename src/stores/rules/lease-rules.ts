// Makes leases and the answers that contain them, and counts attempts and runs (admission.md §4.3 and §4.5).
// Called by the other rules, and by the optimistic store's `lease`.
import { ConfigError } from '../../shared/errors.ts';
import type { AcceptDecision, Lease } from '../store.ts';
import { LONGEST_LEASE_MS } from '../constants.ts';
import type { RecordRow } from './rule-rows.ts';
import { stepLeftMs } from './task-wait.ts';

/** The owner that gets a lease, and the duration of the lease. */
export interface Lessee {
  readonly owner: string;
  readonly leaseMs: number;
  readonly retentionMs: number;
  readonly process?: string;
  /**
   * True if the delivery's bytes came before. A lease for them counts an attempt only if `attempts` is 0 (admission.md
   * §4.5).
   */
  readonly replay?: boolean;
}

/**
 * Checks a duration. A lease until `NaN` would be neither live nor over, or would fail deep in a backend. A lease above
 * the maximum would look as if the store's clock had been set back (admission.md §4.11).
 *
 * @throws ConfigError for a duration that is not above 0, or is over `most`.
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
 * Returns the record, leased to a new owner, with `runs` raised by one. The attempt is counted now, not when the run
 * ends.
 *
 * At most one attempt is counted in each back-off (the wait after a failure); then `notBefore` becomes 0. Bytes that
 * came before count an attempt only if `attempts` is 0. Otherwise anybody who recorded a delivery could use up its
 * event's attempts.
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

/** Returns `attempts` as it was before the current lease, which has counted an attempt if `notBefore` is 0. */
export function attemptsBefore({ attempts, notBefore }: RecordRow): number {
  return attempts - (notBefore === 0 ? 1 : 0);
}

/** Makes the `Lease` of a leased record, as its owner gets it. */
export function leaseOf({ runs, attempts, suspect }: RecordRow, owner: string): Lease {
  return { owner, run: runs, chargedAttempts: attempts, ...(suspect && { suspect }) };
}

/**
 * Makes the answer `won` for a record that was leased to this accept. `body` is the stored first copy, given only if
 * the body of the caller's delivery differs.
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
