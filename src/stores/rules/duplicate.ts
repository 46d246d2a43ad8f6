// Decides a delivery whose event has a record already: rule 2 of accept (admission.md §3.2, §3.7, §4.5).
// Called by accept-rules.ts; memory, SQLite and the optimistic store run it inside one atomic step.
import type { AcceptDecision, EventClaim } from '../store.ts';
import { claimRecord } from './claim.ts';
import { wonAnswer } from './lease-rules.ts';
import { isLive, runsHere } from './order.ts';
import type { Claim, RecordRow } from './rule-rows.ts';
import { putOffMs, seenLease, type Accepting, stepLeftMs } from './task-wait.ts';

/**
 * Answers a delivery whose event has a record already. Caps on records are not checked, because duplicates must get
 * their 2xx.
 */
export function onRecord(step: Accepting, event: EventClaim, found: RecordRow): AcceptDecision {
  const record = seenLease(step.rows, found, step.now);
  const changed = isChanged(event, record);
  const again = ANSWER_AGAIN[record.claim](step, record, changed);
  if (again && record.claimedBy === step.request.acceptId) return again;
  if (changed && event.onChanged === 'conflict') return { kind: 'conflict' };
  switch (record.state) {
    case 'applied':
    case 'stale':
    case 'dead':
      return { kind: 'done', changed, state: record.state, died: false };
    case 'queued':
    case 'leased':
      return onOpenRecord(step, record, changed);
  }
}

function onOpenRecord(step: Accepting, record: RecordRow, changed: boolean): AcceptDecision {
  if (step.request.mode === 'inbox') {
    // The delivery will be answered 2xx, so its record counts as acknowledged from now on. A worker runs the record,
    // and until then the record does not expire.
    if (!record.acked) step.rows.updateRecord({ ...record, acked: true, expiresAt: null });
    return { kind: 'in-flight', changed };
  }
  if (step.request.isRunning === true || isLive(record, step.now)) return waits(step, 'in-flight', changed);
  const leftMs = step.replay ? stepLeftMs(record, step.now) : 0;
  return leftMs > 0 ? { kind: 'backing-off', changed, leftMs } : claim(step, record, changed);
}

/**
 * Makes an answer after which the delivery waits and asks again. The answer repeats `replay`, because the next request
 * comes without the nonce that shows the replay.
 */
function waits<K extends 'in-flight' | 'task-busy'>({ replay }: Accepting, kind: K, changed: boolean) {
  return { kind, changed, ...(replay && { replay }) };
}

/**
 * True if the body differs from the stored first copy. If both have a hash of canonical JSON, that hash decides
 * (verification.md §2.21).
 */
function isChanged(event: EventClaim, record: RecordRow): boolean {
  if (event.rawHash === record.rawHash) return false;
  return event.canonicalHash === undefined || event.canonicalHash !== record.canonicalHash;
}

type Again = (step: Accepting, record: RecordRow, changed: boolean) => AcceptDecision | undefined;

/**
 * The answer to an accept that is repeated with the same `acceptId`, by the answer that it got first. Undefined: the
 * accept is decided anew.
 */
const ANSWER_AGAIN: Record<Claim, Again> = {
  won: (step, record, changed) => {
    // The answer `won` is not repeated for a lease that expired, was given back, or went to a worker. No handler may
    // start on such a lease.
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
  // An accept that was answered `in-flight` or `task-busy` is repeated to end its wait, so it is decided anew.
  waiting: () => undefined,
};

function firstCopy(step: Accepting, record: RecordRow, changed: boolean): Uint8Array | undefined {
  return changed && record.state !== 'applied' ? step.rows.body(record.sender, record.key) : undefined;
}

/**
 * Leases a record that is QUEUED or whose lease has expired. If the delivery's body differs from the stored first copy,
 * the answer includes the first copy, because handlers always get the first.
 */
function claim(step: Accepting, found: RecordRow, changed: boolean): AcceptDecision {
  const { rows, request, now } = step;
  const claimant = {
    ...request,
    owner: request.acceptId,
    replay: step.replay,
    takesSuspects: request.alone === true,
    runsHere: runsHere(request),
  };
  const claimed = claimRecord(rows, found, claimant, now, (claim) => ({
    claim,
    claimedBy: request.acceptId,
  }));
  switch (claimed.kind) {
    case 'won':
      return wonAnswer(claimed.record, changed, firstCopy(step, claimed.record, changed));
    case 'died':
      return { kind: 'done', changed, state: 'dead', died: true };
    case 'stale':
      return { kind: 'stale', changed };
    case 'suspect': {
      const leftMs = putOffMs(claimed.record, now);
      if (leftMs > 0) return { kind: 'backing-off', changed, leftMs };
      return { ...waits(step, 'in-flight', changed), suspect: true };
    }
    case 'busy':
      return waits(step, 'task-busy', changed);
  }
}
