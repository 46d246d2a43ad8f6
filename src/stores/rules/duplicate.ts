import type { AcceptDecision, EventClaim } from '../store.ts';
import { claimRecord } from './claim.ts';
import { wonAnswer } from './lease-rules.ts';
import { isLive, runsHere } from './order.ts';
import type { Claim, RecordRow } from './rule-rows.ts';
import { putOffMs, seenLease, type Accepting, stepLeftMs } from './task-wait.ts';

/** Rule 2: the record exists. Record caps are not looked at: duplicates must get their 2xx. */
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
    // The answer will be 2xx, so from here on it is safe; its worker does the rest.
    if (!record.acked) step.rows.updateRecord({ ...record, acked: true, expiresAt: null });
    return { kind: 'in-flight', changed };
  }
  if (step.request.isRunning === true || isLive(record, step.now)) return waits(step, 'in-flight', changed);
  const leftMs = step.replay ? stepLeftMs(record, step.now) : 0;
  return leftMs > 0 ? { kind: 'backing-off', changed, leftMs } : claim(step, record, changed);
}

/** A replay is told so: what it does when it has waited is a replay's too. */
function waits<K extends 'in-flight' | 'task-busy'>({ replay }: Accepting, kind: K, changed: boolean) {
  return { kind, changed, ...(replay && { replay }) };
}

/** Other bytes, or another canonical JSON where both copies have that fingerprint (verification.md §2.21). */
function isChanged(event: EventClaim, record: RecordRow): boolean {
  if (event.rawHash === record.rawHash) return false;
  return event.canonicalHash === undefined || event.canonicalHash !== record.canonicalHash;
}

type Again = (step: Accepting, record: RecordRow, changed: boolean) => AcceptDecision | undefined;

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

function firstCopy(step: Accepting, record: RecordRow, changed: boolean): Uint8Array | undefined {
  return changed && record.state !== 'applied' ? step.rows.body(record.sender, record.key) : undefined;
}

/** QUEUED, or its lease is over. The handler gets the stored first copy, so it is handed out where this one differs. */
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
