// Decides `Store.accept` by five rules, in this order: nonce, known record, staleness, caps, insertion (admission.md
// §3.1 to §3.5).
// Memory, SQLite and the optimistic store call `accept` inside one atomic step, with the time of their own clock.
// Verifiers call `lookAtNonce`, which checks a nonce without saving it.
import type { AcceptDecision, AcceptRequest, AcceptResult, EventClaim } from '../store.ts';
import { insertedAnswer, requireLength } from './lease-rules.ts';
import { onRecord } from './duplicate.ts';
import { holderOf, isAhead, markExpiry, runsHere, taskRow } from './order.ts';
import { parkedUntil, seenLease, type Accepting } from './task-wait.ts';
import { isAfterFinal, noteNotification } from './final-report.ts';
import { pressure } from './pressure.ts';
import { cameBefore, claimWindows } from './report-windows.ts';
import { claimState, isJudgedAnew } from './states.ts';
import type { Claim, NonceRow, RecordRow, Rows, TaskRow, Usage } from './rule-rows.ts';
import { dropsEnd, followsEnd, isSecondEnd, notNewer, secondTerminal, terminalAtInsert } from './terminal.ts';
import { afterFirst, firstTold, type Found, heldTerminal, join } from './channels.ts';

/**
 * The largest number of expired rows that one accept asks the store to delete for each reached cap. It bounds the cost
 * of a refusal. If an owner lowered a cap by much, the expired rows over it are deleted by several calls of accept.
 */
const PURGE_MOST = 4096;

/**
 * The number of expired rows that are deleted at a time to make room for a new body. Bodies differ in size, so the
 * bytes are counted again after each deletion.
 */
const PURGE_BYTES_STEP = 256;

function excess(used: number, max: number): number {
  return Math.min(used - max + 1, PURGE_MOST);
}

/**
 * True if one more nonce would exceed a cap (verification.md §2.9a). Expired nonces are deleted first, so that they do
 * not count.
 */
function noncesFull({ rows, request, now, used }: Accepting, keyid: string): boolean {
  const { sender, limits } = request;
  const { maxNoncesPerKey, maxNoncesPerSender = Infinity, maxNonces } = limits;
  const isFull = ({ nonces, senderNonces, allNonces }: Usage): boolean =>
    nonces >= maxNoncesPerKey || senderNonces >= maxNoncesPerSender || allNonces >= maxNonces;
  if (!isFull(used)) return false;
  if (used.nonces >= maxNoncesPerKey) {
    rows.purgeNonces(now, excess(used.nonces, maxNoncesPerKey), { sender, keyid });
  }
  if (used.senderNonces >= maxNoncesPerSender) {
    rows.purgeNonces(now, excess(used.senderNonces, maxNoncesPerSender), { sender });
  }
  if (used.allNonces >= maxNonces) rows.purgeNonces(now, excess(used.allNonces, maxNonces), undefined);
  return isFull(rows.usage(sender, keyid));
}

/** True if the sender has no room for one more record, even after its expired rows are deleted (contract.md §9.6). */
function entriesFull({ rows, request, now, used }: Accepting): boolean {
  const max = request.limits.maxRecordsPerSender;
  if (used.entries < max) return false;
  rows.purgeSender(request.sender, now, excess(used.entries, max));
  return rows.usage(request.sender, undefined).entries >= max;
}

/**
 * True if `bytes` more would exceed the sender's cap on the bytes of unfinished bodies, even after expired rows are
 * deleted.
 */
function bytesFull({ rows, request, now, used }: Accepting, bytes: number): boolean {
  const room = request.limits.maxPendingBytesPerSender - bytes;
  let left = used;
  for (let purged = 0; purged < PURGE_MOST && left.pendingBytes > room; purged += PURGE_BYTES_STEP) {
    const before = left.entries;
    rows.purgeSender(request.sender, now, PURGE_BYTES_STEP);
    left = rows.usage(request.sender, undefined);
    if (left.entries === before) return true;
  }
  return left.pendingBytes > room;
}

/** The members of a new record that depend on the mode, and on the rule that inserts the record. */
type Start = Pick<
  RecordRow,
  | 'state'
  | 'claim'
  | 'owner'
  | 'process'
  | 'leaseUntil'
  | 'acked'
  | 'parkedUntil'
  | 'reemission'
  | 'afterTerminal'
  | 'afterFinal'
  | 'windows'
  | 'claimedState'
  | 'bodyBytes'
  | 'expiresAt'
>;

/**
 * Makes a new record as one object literal. Nearly every delivery makes one, and copying an object of defaults would be
 * slower.
 */
function newRecord({ request, now }: Accepting, event: EventClaim, start: Start): RecordRow {
  const runs = start.state === 'leased' ? 1 : 0;
  return {
    sender: request.sender,
    key: event.key,
    state: start.state,
    claim: start.claim,
    claimedBy: request.acceptId,
    owner: start.owner,
    process: start.process,
    runs,
    leaseUntil: start.leaseUntil,
    attempts: runs,
    crashes: 0,
    suspect: false,
    crashedIn: null,
    acked: start.acked,
    insertedAt: now,
    notBefore: runs > 0 ? 0 : now,
    parkedUntil: start.parkedUntil,
    lastError: null,
    rawHash: event.rawHash,
    canonicalHash: event.canonicalHash ?? null,
    task: event.task ?? null,
    ...(event.traceparent !== undefined && { traceparent: event.traceparent }),
    ...(event.url !== undefined && start.bodyBytes > 0 && { url: event.url }),
    reemission: start.reemission,
    afterTerminal: start.afterTerminal,
    ahead: isAhead(event.task, now),
    afterFinal: start.afterFinal,
    windows: start.windows,
    claimedState: start.claimedState,
    bodyBytes: start.bodyBytes,
    expiresAt: start.expiresAt,
  };
}

/**
 * Inserts the record of an event that no handler gets, in the state DONE(stale). So the event's next copy is a
 * duplicate (rule 3 of accept). Called only if the sender has room for one more record.
 */
function insertEnded(step: Accepting, event: EventClaim, claim: Claim, first: Found | undefined): void {
  const start: Start = {
    state: 'stale',
    claim,
    owner: null,
    process: null,
    leaseUntil: 0,
    acked: true,
    parkedUntil: 0,
    reemission: false,
    afterTerminal: false,
    afterFinal: false,
    windows: null,
    claimedState: null,
    bodyBytes: 0,
    expiresAt: step.now + step.request.retentionMs,
  };
  step.rows.insertRecord(newRecord(step, event, start));
  join(step, event.task, first);
}

/**
 * Inserts the record of a new event, and saves its task and notification id (rule 5 of accept). In mode inline, the
 * record is leased to this accept immediately if its task is free.
 */
function insertEvent(
  step: Accepting,
  event: EventClaim,
  task: TaskRow | undefined,
  first: Found | undefined,
): Decided {
  const { rows, request, now } = step;
  const reemission = noteNotification(step, event);
  const { windows, isDropped } = claimWindows(step, event);
  const { claimedState, isDropped: isStateDropped } = claimState(step, event, reemission);
  const record = newRecord(step, event, startOf(step, event, task, { reemission, windows, claimedState }));
  rows.insertRecord(record, event.body);
  if (event.task) {
    // An acknowledged record that need not wait takes its task now, before a worker leases the record. Otherwise a
    // later event of the task could run first.
    const isNext = record.acked && record.parkedUntil === 0;
    const holder = record.state === 'leased' || isNext ? record.key : undefined;
    const of = { sender: request.sender, id: event.task.id };
    const terminal = terminalAtInsert(event, first);
    const expiresAt = markExpiry(now, request.retentionMs);
    rows.saveTask(taskRow(task, of, { holder, terminal, expiresAt }));
    const { operation } = event.task.told ?? {};
    if (operation !== undefined && terminal?.told) {
      const known = rows.task(request.sender, operation, now);
      rows.saveTask(taskRow(known, { sender: request.sender, id: operation }, { terminal, expiresAt }));
    }
  }
  return {
    ...insertedAnswer(record),
    ...(isDropped && { claimsDropped: true }),
    ...(isStateDropped && { stateDropped: true }),
  };
}

/**
 * Makes the members with which a new record begins. Mode inbox: QUEUED and acknowledged. Mode inline: LEASED to this
 * accept, or QUEUED if another record holds the task.
 */
function startOf(
  step: Accepting,
  event: EventClaim,
  task: TaskRow | undefined,
  found: Pick<Start, 'reemission' | 'windows' | 'claimedState'>,
): Start {
  const { rows, request, now } = step;
  const holding = holderOf(rows, task, now, { key: event.key, runsHere: runsHere(request) });
  const holder = holding && seenLease(rows, holding, now);
  const common = {
    ...found,
    afterFinal: isAfterFinal(step),
    bodyBytes: event.body.length,
  };
  const queued = {
    ...common,
    state: 'queued',
    owner: null,
    process: null,
    leaseUntil: 0,
    afterTerminal: false,
  } as const;
  if (request.mode === 'inbox') {
    const parked = holder ? parkedUntil(holder, now) : 0;
    return { ...queued, claim: 'queued', acked: true, parkedUntil: parked, expiresAt: null };
  }
  const expiresAt = now + request.retentionMs;
  if (holder) return { ...queued, claim: 'waiting', acked: false, parkedUntil: 0, expiresAt };
  const leaseUntil = now + request.leaseMs;
  return {
    ...common,
    state: 'leased',
    claim: 'won',
    owner: request.acceptId,
    process: request.process || null,
    leaseUntil,
    acked: false,
    parkedUntil: 0,
    afterTerminal: followsEnd(rows, event, task, now),
    // A record must not expire while its lease is live.
    expiresAt: Math.max(expiresAt, leaseUntil),
  };
}

/**
 * Decides `Store.accept` by its five rules: nonce, known record, staleness, caps, insertion. Runs inside one atomic
 * step of the store.
 *
 * @throws ConfigError for a `leaseMs` that is not above 0 and at most 10 min.
 */
export function accept(rows: Rows, request: AcceptRequest, now: number): AcceptResult {
  requireLength('leaseMs', request.leaseMs);
  rows.purge(now);
  const { sender, nonce } = request;
  const known = nonce && rows.nonce({ sender, keyid: nonce.keyid, nonce: nonce.nonce }, now);
  const replay = request.replay ?? (known !== undefined && known.acceptId !== request.acceptId);
  const used = rows.usage(sender, nonce?.keyid);
  const record = request.event && rows.record(sender, request.event.key, now);
  const decision = decide({ rows, request, now, used, replay }, known, record);
  return {
    ...decision,
    pressure: pressure(rows, request, now),
  };
}

type Decided = AcceptDecision &
  Pick<AcceptResult, 'secondEnd' | 'endDropped' | 'claimsDropped' | 'stateDropped'>;

function decide(step: Accepting, known: NonceRow | undefined, record: RecordRow | undefined): Decided {
  const { event } = step.request;
  const refused = checkNonce(step, known, record);
  if (refused) return { kind: refused };
  const decision: Decided = event ? decideEvent(step, event, record) : { kind: 'burned' };
  // The nonce is saved together with its event, or not at all. If only the nonce were saved, the sender's retry would
  // be refused as a replay, and the event would be lost.
  if (!UNRECORDED.has(decision.kind)) saveNonce(step, known);
  return decision;
}

/**
 * Decisions after which nothing is saved, not even the nonce: the sender may send the same bytes again, and must get
 * the same answer.
 */
const UNRECORDED: ReadonlySet<AcceptDecision['kind']> = new Set([
  'over-cap',
  'already-final',
  'final-unsafe',
] as const);

/**
 * Judges the nonce of a delivery by rule 1 of accept, without saving the nonce. Returns undefined if the nonce is new
 * and fits the caps.
 */
export function lookAtNonce(
  rows: Rows,
  request: AcceptRequest,
  now: number,
): 'replayed' | 'rate-abuse' | undefined {
  const { sender, nonce } = request;
  const known = nonce && rows.nonce({ sender, keyid: nonce.keyid, nonce: nonce.nonce }, now);
  const used = rows.usage(sender, nonce?.keyid);
  return checkNonce({ rows, request, now, used, replay: false }, known, undefined);
}

/**
 * Judges the delivery's nonce: rule 1 of accept (admission.md §3.1; verification.md §2.9a, §2.12 and §2.13). Undefined:
 * the delivery goes on to the next rules.
 */
function checkNonce(
  step: Accepting,
  known: NonceRow | undefined,
  record: RecordRow | undefined,
): 'replayed' | 'rate-abuse' | undefined {
  const { request } = step;
  if (!request.nonce) return undefined;
  if (!known) return noncesFull(step, request.nonce.keyid) ? 'rate-abuse' : undefined;
  const sameEvent = known.key === (request.event?.key ?? null);
  if (sameEvent && known.acceptId === request.acceptId) return undefined;
  // The nonce may be known although the event has no record: the record expired, or the event was stale and got none.
  // In both cases the event was answered, so this is a replay.
  return sameEvent && record && !record.acked ? undefined : 'replayed';
}

/**
 * Decides an event whose nonce was accepted. An event with a record is judged by rule 2 of accept, a new one by rules 3
 * to 5 (staleness, caps, insertion).
 */
function decideEvent(step: Accepting, event: EventClaim, record: RecordRow | undefined): Decided {
  if (record)
    return { ...onRecord(step, event, record), ...(dropsEnd(event, record) && { endDropped: true }) };
  const { rows, request, now } = step;
  const task = event.task && rows.task(request.sender, event.task.id, now);
  const held = task && heldTerminal(rows, task, now);
  const decision = decideNew(step, event, task, held);
  return isSecondEnd(event, held) ? { ...decision, secondEnd: true } : decision;
}

function decideNew(
  step: Accepting,
  event: EventClaim,
  task: TaskRow | undefined,
  held: Found | undefined,
): Decided {
  const first = firstTold(step, event.task, task);
  const ended =
    afterFirst(step, event.task, first) ?? notNewer(event, task, held) ?? secondTerminal(event, held);
  // An event that needs no handler is recorded too, also if another channel reported its status before. So its next
  // copy is a duplicate, even if the task changes meanwhile.
  const claim = ended && RECORDED[ended.kind];
  if (claim && !entriesFull(step)) insertEnded(step, event, claim, first);
  if (ended) return ended;
  if (cameBefore(step, event) || isJudgedAnew(step, event))
    return { kind: 'done', changed: false, state: 'applied', died: false };
  if (entriesFull(step)) return { kind: 'over-cap', limit: 'records' };
  if (bytesFull(step, event.body.length)) return { kind: 'over-cap', limit: 'pending-bytes' };
  return insertEvent(step, event, task, first ?? held);
}

/** The `claim` (answer) that is saved with an event which needs no handler, by the decision on the event. */
const RECORDED: Partial<Record<AcceptDecision['kind'], Claim>> = { stale: 'stale', done: 'waiting' };

/**
 * Saves the nonce (check 13, verification.md §2.13). The rest of its lifetime by the receiver's clock is added to the
 * store's current time, because the clocks may differ.
 */
function saveNonce(step: Accepting, known: NonceRow | undefined): void {
  const { rows, request, now } = step;
  // A known nonce is not saved again, so its row keeps the `acceptId` of the first accept. Otherwise a replay would
  // pass as the first request once its own accept is repeated.
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
