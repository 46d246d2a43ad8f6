import type { AcceptDecision, AcceptRequest, AcceptResult, EventClaim } from '../contract.ts';
import { bytesFull, entriesFull, noncesFull, pressure } from './caps.ts';
import { insertEvent, insertEnded } from './insert.ts';
import { requireLength } from './lease.ts';
import { isStale } from './order.ts';
import { onRecord } from './on-record.ts';
import type { NonceRow, RecordRow, Rows } from './rows.ts';
import { steppedMs } from './set-at.ts';
import type { Step } from './step.ts';
import { secondTerminal } from './terminal.ts';

/**
 * `Store.accept`, rules 1 to 5 in their order. Runs inside one atomic step of the backend.
 * @throws ConfigError for a `leaseMs` that is no length of time.
 */
export function accept(rows: Rows, request: AcceptRequest, now: number): AcceptResult {
  requireLength('leaseMs', request.leaseMs);
  rows.purge(now);
  const { sender, nonce } = request;
  const known = nonce && rows.nonce({ sender, keyid: nonce.keyid, nonce: nonce.nonce }, now);
  const replay = request.replay ?? (known !== undefined && known.acceptId !== request.acceptId);
  const used = rows.usage(sender, nonce?.keyid);
  const record = request.event && rows.record(sender, request.event.key, now);
  const clockSteppedMs = record ? steppedMs(record, now) : 0;
  const decision = decide({ rows, request, now, used, replay }, known, record);
  return {
    ...decision,
    ...(clockSteppedMs > 0 && { clockSteppedMs }),
    pressure: pressure(rows, request, now),
  };
}

function decide(step: Step, known: NonceRow | undefined, record: RecordRow | undefined): AcceptDecision {
  const { event } = step.request;
  const refused = checkNonce(step, known, record);
  if (refused) return { kind: refused };
  const decision: AcceptDecision = event ? decideEvent(step, event, record) : { kind: 'burned' };
  // The nonce goes with the event or not at all: burned before the event is safe, it would lose the event.
  if (!UNRECORDED.has(decision.kind)) saveNonce(step, known);
  return decision;
}

/** Of these nothing is kept: the same bytes, which their sender may send again, are to get the same answer. */
const UNRECORDED: ReadonlySet<AcceptDecision['kind']> = new Set([
  'over-cap',
  'already-final',
  'final-unsafe',
] as const);

/** Rule 1 (admission.md §3.1; verification.md §2.9a, §2.12 and §2.13). */
function checkNonce(
  step: Step,
  known: NonceRow | undefined,
  record: RecordRow | undefined,
): 'replayed' | 'rate-abuse' | undefined {
  const { request } = step;
  if (!request.nonce) return undefined;
  if (!known) return noncesFull(step, request.nonce.keyid) ? 'rate-abuse' : undefined;
  const sameEvent = known.key === (request.event?.key ?? null);
  if (sameEvent && known.acceptId === request.acceptId) return undefined;
  // No record: the event ended and was forgotten, or was stale and left no record. Either way it was answered.
  return sameEvent && record && !record.acked ? undefined : 'replayed';
}

/** Rule 2 where the record exists, else rules 3, 4 and 5. */
function decideEvent(step: Step, event: EventClaim, record: RecordRow | undefined): AcceptDecision {
  const { rows, request, now } = step;
  if (record) return onRecord(step, event, record);
  const task = event.task && rows.task(request.sender, event.task.id, now);
  if (isStale(event.task, task)) {
    if (!entriesFull(step)) insertEnded(step, event, 'stale');
    return { kind: 'stale', changed: false };
  }
  const second = secondTerminal(step, event, task);
  // A duplicate is recorded too, so that its next copy is one, whatever is applied to the task meanwhile.
  if (second?.kind === 'done' && !entriesFull(step)) insertEnded(step, event, 'waiting');
  if (second) return second;
  if (entriesFull(step)) return { kind: 'over-cap', limit: 'records' };
  if (bytesFull(step, event.body.length)) return { kind: 'over-cap', limit: 'pending-bytes' };
  return insertEvent(step, event, task);
}

/** Check 13: kept from the store's now for as long as it has to live on the receiver's clock. */
function saveNonce(step: Step, known: NonceRow | undefined): void {
  const { rows, request, now } = step;
  // It stays the first one's: bytes that come again are known for it, also where their own accept is sent again.
  if (!request.nonce || known) return;
  const { keyid, nonce, expiresAtMs, nowMs } = request.nonce;
  rows.saveNonce({
    sender: request.sender,
    keyid,
    nonce,
    key: request.event?.key ?? null,
    acceptId: request.acceptId,
    expiresAt: now + Math.max(0, expiresAtMs - nowMs),
  });
}
