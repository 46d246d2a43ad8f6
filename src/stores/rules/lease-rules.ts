import { ConfigError } from '../../shared/errors.ts';
import type { AcceptDecision, Lease } from '../store.ts';
import { LONGEST_LEASE_MS } from '../constants.ts';
import type { RecordRow } from './rule-rows.ts';
import { stepLeftMs } from './task-wait.ts';

/** Who takes a lease, and for how long. */
export interface Lessee {
  readonly owner: string;
  readonly leaseMs: number;
  readonly retentionMs: number;
  readonly process?: string;
  /** Claimed by bytes that were seen before: they raise no attempts (admission.md §4.5). */
  readonly replay?: boolean;
}

/**
 * @throws ConfigError: a lease until `NaN` is over for no process, or fails deep in a backend; one that is longer than the
 * longest counts as left by a clock that was set back (admission.md §4.11).
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
 * The record, leased: new owner, one run more, and the attempt counted now, not at its end. It is counted once a back-off
 * step, which is used up by it (`notBefore` 0), and not for bytes that came before: else who has recorded a delivery could
 * use all attempts up.
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
    // Never acknowledged: `retentionMs` after its last attempt, and never under a live lease.
    expiresAt: record.acked ? null : Math.max(now + retentionMs, leaseUntil),
  };
}

/** `attempts` without that of its lease, where that has raised them. */
export function attemptsBefore({ attempts, notBefore }: RecordRow): number {
  return attempts - (notBefore === 0 ? 1 : 0);
}

/** What who runs it is told of its lease. */
export function leaseOf({ runs, attempts, suspect }: RecordRow, owner: string): Lease {
  return { owner, run: runs, chargedAttempts: attempts, ...(suspect && { suspect }) };
}

/** `won` for a record that this accept has leased; `body` is the first copy, where it is not the caller's own. */
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

/** What the accept that inserts a record is told. */
export function insertedAnswer(record: RecordRow): AcceptDecision {
  const { claim, reemission, ahead } = record;
  if (claim === 'won') return wonAnswer(record, false);
  return claim === 'queued'
    ? { kind: 'queued', changed: false, reemission, ahead }
    : { kind: 'task-busy', changed: false };
}
