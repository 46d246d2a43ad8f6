import type { AcceptDecision, AcceptRequest, AcceptResult, EventClaim } from '../contract.ts';
import { bytesFull, entriesFull, noncesFull, pressure } from './caps.ts';
import { insertEvent, insertStale } from './insert.ts';
import { isStale } from './order.ts';
import { onRecord } from './on-record.ts';
import type { NonceRow, RecordRow, Rows } from './rows.ts';
import type { Step } from './step.ts';

/** `Store.accept`, rules 1 to 5 in their order. Runs inside one atomic step of the backend. */
export function accept(rows: Rows, request: AcceptRequest, now: number): AcceptResult {
  rows.purge(now);
  const decision = decide({ rows, request, now, used: rows.usage(request.sender, request.nonce?.keyid) });
  return { ...decision, pressure: pressure(rows, request, now) };
}

function decide(step: Step): AcceptDecision {
  const { rows, request, now } = step;
  const event = request.event;
  const record = event && rows.record(request.sender, event.key, now);
  const { sender, nonce } = request;
  const known = nonce && rows.nonce({ sender, keyid: nonce.keyid, nonce: nonce.nonce }, now);
  const refused = checkNonce(step, known, record);
  if (refused) return { kind: refused };
  const decision: AcceptDecision = event ? decideEvent(step, event, record) : { kind: 'burned' };
  // The nonce goes with the event or not at all: burned before the event is safe, it would lose the event.
  if (decision.kind !== 'over-cap') saveNonce(step, known);
  return decision;
}

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
    if (!entriesFull(step)) insertStale(step, event);
    return { kind: 'stale', changed: false };
  }
  if (entriesFull(step)) return { kind: 'over-cap', limit: 'records' };
  if (bytesFull(step, event.body.length)) return { kind: 'over-cap', limit: 'pending-bytes' };
  return insertEvent(step, event, task);
}

/** Check 13: kept from the store's now for as long as it has to live on the receiver's clock. */
function saveNonce(step: Step, known: NonceRow | undefined): void {
  const { rows, request, now } = step;
  if (!request.nonce) return;
  const { keyid, nonce, expiresAtMs, nowMs } = request.nonce;
  if (known?.acceptId === request.acceptId) return;
  rows.saveNonce({
    sender: request.sender,
    keyid,
    nonce,
    key: request.event?.key ?? null,
    acceptId: request.acceptId,
    expiresAt: known?.expiresAt ?? now + Math.max(0, expiresAtMs - nowMs),
  });
}
