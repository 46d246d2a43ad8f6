// Asks the store to admit one verified delivery. The result is an event whose handler must run, or an answer for the
// sender (admission.md §3).
// Called by the receiver's `proceed`; a redrive (a repeated run that the owner asked for) of mode `inline` uses
// `acceptAlone` and `acceptRequest`.

import type { Event } from '../events/event.ts';
import { withMembers } from '../events/event-members.ts';
import type { Outages } from '../receiver/outages.ts';
import { refused, type Unavailability, unavailable, type Verdict } from '../shared/outcome.ts';
import type { AcceptDecision, AcceptRequest, AcceptResult, Store } from '../stores/store.ts';
import { announce, hasDied } from './announce.ts';
import {
  bareRequest,
  burn,
  type BurnContext,
  rateAbuse,
  replayed,
  type RequestContext,
  unreadable,
} from './burn.ts';
import { type EndedContext, tellEnded } from './on-handled.ts';
import type { Read, ReadChallenge, ReadEvent } from './read.ts';
import type { EventName, Running } from './running.ts';
import { readStored, type AdmittedEvent } from './admitted-event.ts';
import type { Waiting } from './wait.ts';
import { isThenable } from '../shared/realms.ts';
import { tellEnds, toldBefore, withWarnings } from './second-terminal.ts';

interface AcceptAloneContext {
  readonly store: Pick<Store, 'accept'>;
  readonly running: Pick<Running, 'askAlone'>;
  readonly newId: () => string;
  readonly outages: Outages;
}

/**
 * Calls `Store.accept`, and calls it again if the event is a suspect: an event whose process ended while running it
 * (admission.md §4.6). Before the second call it reserves this process's only slot for suspects, so that a crash is
 * charged to one suspect only. If the slot is taken, the first result is returned: `in-flight` with `suspect`.
 */
export async function acceptAlone(
  request: AcceptRequest,
  deliveryId: string,
  context: AcceptAloneContext,
): Promise<AcceptResult> {
  const first = await context.store.accept(request);
  return afterFirst(first, request, deliveryId, context) ?? first;
}

function afterFirst(
  first: AcceptResult,
  request: AcceptRequest,
  deliveryId: string,
  context: AcceptAloneContext,
): Promise<AcceptResult> | undefined {
  context.outages.store();
  return isSuspect(first) ? askAgain(first, request, deliveryId, context) : undefined;
}

type InFlight = Extract<AcceptResult, { kind: 'in-flight' }>;

const isSuspect = (result: AcceptResult): result is InFlight =>
  result.kind === 'in-flight' && result.suspect === true;

async function askAgain(
  first: InFlight,
  request: AcceptRequest,
  deliveryId: string,
  { store, running, newId }: AcceptAloneContext,
): Promise<AcceptResult> {
  // The first call has recorded the nonce, so this second call for the same event omits it.
  const { nonce: _bound, ...bare } = request;
  const again = { ...bare, acceptId: newId(), alone: true, ...(first.replay && { replay: true }) };
  const isLeased = ({ kind }: AcceptResult): boolean => kind === 'won';
  return (await running.askAlone(deliveryId, () => store.accept(again), isLeased)) ?? first;
}

interface AcceptContext extends RequestContext {
  readonly running: Running;
}

function taskRunning({ claim, identity }: ReadEvent, running: Running): string | undefined {
  return claim.task && running.keyOf(identity.sender.agentUrl, claim.task.id);
}

/**
 * True if this process already runs the event, or another event of its task, even if the lease of that run has expired.
 * Two such runs must not overlap.
 */
function runsHere(read: ReadEvent, running: Running): boolean {
  return running.has(read.deliveryId) || taskRunning(read, running) !== undefined;
}

export function acceptRequest(read: Read | ReadChallenge, context: AcceptContext): AcceptRequest {
  const { config, running } = context;
  const request = bareRequest(read, context);
  if (!read.claim) return request;
  request.event = read.claim;
  // The members below tell the store which process takes the lease, and what this process already runs. A delivery in
  // mode `inbox` takes no lease.
  if (config.mode === 'inbox') return request;
  request.process = running.process();
  if (running.has(read.deliveryId)) request.isRunning = true;
  const runningKey = taskRunning(read, running);
  if (runningKey !== undefined) request.runningKey = runningKey;
  return request;
}

type Win = Extract<AcceptDecision, { kind: 'won' }>;

/** An event that is leased to this delivery. */
export interface WonDelivery extends AdmittedEvent {
  /** The event as read from this delivery. The stored first copy of its body may differ. */
  readonly event: Event;
  /** True if the payload differs from the stored first copy. The handler receives the first copy. */
  readonly changed: boolean;
}

interface AdmitContext extends EndedContext, BurnContext, AcceptContext {
  readonly store: Store;
  readonly outages: Outages;
  readonly waiting: Waiting;
  /** Tells the worker of this process that an event was queued. */
  readonly queued: () => void;
}

/**
 * Admits a delivery in one atomic call of the store: deduplication, ordering and limits. The call also checks the
 * nonce: it is new (check 12), it is stored now (13), and there is room for it (9a).
 */
export async function admit(
  read: Read,
  context: AdmitContext,
  signal: AbortSignal | undefined,
): Promise<WonDelivery | Verdict> {
  if (read.claim === undefined) return burn(read, unreadable(read), context);
  const request = acceptRequest(read, context);
  const first = await context.store.accept(request);
  const rare = afterFirst(first, request, read.deliveryId, context);
  const result = rare ? await rare : first;
  const decided = afterAccept(result, read, context);
  // The decision on an ordinary delivery is not a promise, so nothing is awaited.
  const verdict = isThenable(decided) ? await decided : decided;
  return verdict ?? waitForOther(result, read, context, signal);
}

/**
 * Raises the alarms for the store's result and decides the answer. Returns undefined if the delivery has to wait for
 * another delivery's handler.
 */
function afterAccept(
  result: AcceptResult,
  read: ReadEvent,
  context: AdmitContext,
): Decided | Promise<Decided> {
  announce(result, nameOf(read), context.raiseAlarm);
  const isRare = hasDied(result) || isToldBefore(result) || result.secondEnd || result.endDropped;
  return isRare ? afterRare(result, read, context) : decide(result, read, context);
}

type Decided = WonDelivery | Verdict | undefined;

const nameOf = ({ identity, claim }: ReadEvent): EventName => ({
  sender: identity.sender.agentUrl,
  key: claim.key,
});

async function afterRare(result: AcceptResult, read: ReadEvent, context: AdmitContext): Promise<Decided> {
  if (hasDied(result)) await tellEnded(nameOf(read), 'dead', context);
  const verdict = isToldBefore(result)
    ? await toldBefore(result.first, read, context.raiseAlarm)
    : decide(result, read, context);
  return result.secondEnd || result.endDropped ? toldOfEnds(result, verdict, read, context) : verdict;
}

async function toldOfEnds(
  result: AcceptResult,
  verdict: WonDelivery | Verdict | undefined,
  { reading }: ReadEvent,
  { raiseAlarm }: AdmitContext,
): Promise<WonDelivery | Verdict | undefined> {
  const codes = tellEnds(result, reading.event, raiseAlarm);
  return verdict === undefined || verdict.kind === 'won' ? verdict : withWarnings(verdict, codes);
}

function won(win: Win, read: ReadEvent, context: AdmitContext): WonDelivery {
  const { sender: origin } = read.identity;
  const { reading, claim, deliveryId } = read;
  const { body, lease, changed } = win;
  return {
    kind: 'won',
    origin,
    key: claim.key,
    deliveryId,
    taskId: claim.task?.id,
    lease,
    flags: win,
    url: claim.url,
    firstCopy: () => (body ? readStored(origin, { ...claim, body }, context) : reading),
    once: false,
    event: reading.event,
    changed,
  };
}

/**
 * True for a suspect (an event whose process ended while running it) if this process's only slot for suspects is taken.
 * Such a delivery does not wait.
 */
function isPutOff(result: AcceptDecision): boolean {
  return result.kind === 'in-flight' && result.suspect === true;
}

type Done = Extract<AcceptDecision, { kind: 'done' }>;
type ToldBefore = Done & Required<Pick<Done, 'first'>>;

/** True if another channel (not a webhook) has already reported the end of the task. */
function isToldBefore(result: AcceptDecision): result is ToldBefore {
  return result.kind === 'done' && result.first !== undefined;
}

/**
 * Converts the store's decision to an answer. Returns undefined if the delivery has to wait for another delivery's
 * handler.
 */
function decide(
  result: AcceptDecision,
  read: ReadEvent,
  context: AdmitContext,
): WonDelivery | Verdict | undefined {
  const { event } = read.reading;
  switch (result.kind) {
    case 'won':
      return won(result, read, context);
    case 'queued':
      context.queued();
      return { kind: 'accepted', state: 'queued', event: reemitted(event, result), changed: result.changed };
    case 'done':
      return result.died
        ? { kind: 'accepted', state: 'dead', event, changed: result.changed }
        : { kind: 'duplicate', state: result.state, event, changed: result.changed };
    case 'stale':
      return { kind: 'stale', event };
    case 'conflict':
      return refused('payload_changed', `${read.claim.key} was used with another payload`);
    case 'already-final':
      return refused('task_already_final', 'the task has another terminal status, which is kept');
    case 'final-unsafe':
      return unavailable('task_busy', 'another terminal status of the task is not safe yet');
    case 'over-cap':
      return refused('sender_over_limit', `the sender is over its cap of ${result.limit}`);
    case 'in-flight':
    case 'task-busy':
      return besideAnother(result, event, context);
    case 'backing-off':
      return backingOff(result.leftMs);
    case 'replayed':
      return replayed();
    case 'rate-abuse':
      return rateAbuse();
    case 'burned':
      throw new TypeError('the store burned the nonce of an event without the event');
  }
}

/**
 * Answers a delivery while another delivery or a worker runs the same event, or another event of its task. Returns
 * undefined if this delivery has to wait.
 */
function besideAnother(
  result: Extract<AcceptDecision, { kind: 'in-flight' | 'task-busy' }>,
  event: Event,
  { config }: AdmitContext,
): Verdict | undefined {
  if (isPutOff(result))
    return unavailable('in_flight', 'another event that may crash the process is running alone');
  // In mode `inbox` the event is stored safely already, whichever process works on it. So the sender is answered
  // without waiting for a handler.
  return config.mode === 'inbox'
    ? { kind: 'duplicate', state: 'queued', event, changed: result.changed }
    : undefined;
}

/** Longest delay that `Retry-After` may name. */
const LONGEST_RETRY_AFTER_MS = 86_400_000;

/**
 * Answers 503 with a delay, because the next run of the event is not due yet. One case is a replay (bytes that were
 * delivered before) of an event that failed. Without the delay, anybody who recorded the bytes could replay them until
 * the event is DEAD. The other case is any delivery of an event that was charged with a crash of its process
 * (admission.md §4.6).
 */
function backingOff(leftMs: number): Unavailability {
  const retryAfterMs = Math.min(leftMs, LONGEST_RETRY_AFTER_MS);
  const detail = 'the event failed or crashed its process before, and its next run is not due yet';
  return { ...unavailable('in_flight', detail), retryAfterMs };
}

const reemitted = (event: Event, { reemission }: { readonly reemission: boolean }): Event =>
  reemission ? withMembers(event, { reemission }) : event;

const busyBecause = ({ kind }: AcceptDecision): Unavailability =>
  kind === 'task-busy'
    ? unavailable('task_busy', 'another event of the same task is being handled')
    : unavailable('in_flight', 'another delivery of the same event is being handled');

/**
 * Waits until the handler of another delivery has ended, because a 2xx before that would lose the event if the handler
 * fails. Answers 200 once the event is finished (applied, stale or DEAD), takes it over once its lease is free, and
 * answers 503 otherwise.
 */
async function waitForOther(
  first: AcceptDecision,
  read: ReadEvent,
  context: AdmitContext,
  signal: AbortSignal | undefined,
): Promise<WonDelivery | Verdict> {
  const { edition, agentUrl: sender } = read.identity.sender;
  const { key } = read.claim;
  const isRunning = (): boolean => runsHere(read, context.running);
  const busy = busyBecause(first);
  if (first.kind === 'in-flight' && edition.inFlight === 'unavailable') return busy;
  const changed = 'changed' in first && first.changed;
  const replay = 'replay' in first && first.replay;
  const deadline = performance.now() + context.config.waitMs;
  for (;;) {
    const leftMs = deadline - performance.now();
    if (leftMs <= 0 || signal?.aborted) return busy;
    const seen = await context.waiting.until({ sender, key, leftMs, signal, isRunning });
    switch (seen) {
      case 'busy':
        return busy;
      case 'applied':
      case 'stale':
      case 'dead':
        return { kind: 'duplicate', state: seen, event: read.reading.event, changed };
      case 'absent':
      case 'free': {
        const settled = await takeOver(read, context, replay);
        if (settled) return settled;
      }
    }
  }
}

/**
 * Accepts the same event again, to take its lease. The nonce is omitted, because the first call has recorded it.
 * Returns undefined if the delivery has to go on waiting.
 */
async function takeOver(
  read: ReadEvent,
  context: AdmitContext,
  replay: boolean | undefined,
): Promise<WonDelivery | Verdict | undefined> {
  const { nonce: _bound, ...request } = acceptRequest(read, context);
  const result = await acceptAlone({ ...request, ...(replay && { replay }) }, read.deliveryId, context);
  return afterAccept(result, read, context);
}
