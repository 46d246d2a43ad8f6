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
 * `Store.accept`, and once more where the event is a suspect: then the one place of this process is kept for it before it
 * is leased, so that it is the only suspect that a crash can be charged to (admission.md §4.6). Where the place is taken,
 * what the store said at first: `in-flight` with `suspect`.
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
  // The first accept has bound the nonce; this one is another accept of the same event without it.
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

/** Its event, or another one of its task, perhaps on a lease that has run out: it must not be started beside that. */
function runsHere(read: ReadEvent, running: Running): boolean {
  return running.has(read.deliveryId) || taskRunning(read, running) !== undefined;
}

/** What the store is asked for one delivery. */
export function acceptRequest(read: Read | ReadChallenge, context: AcceptContext): AcceptRequest {
  const { config, running } = context;
  const request = bareRequest(read, context);
  if (!read.claim) return request;
  request.event = read.claim;
  // Whose lease it is to be, and what runs here already of its event and its task. In the inbox a door leases nothing.
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
  /** As this delivery brought it. */
  readonly event: Event;
  /** The payload differs from the first copy, which is what is handled. */
  readonly changed: boolean;
}

interface AdmitContext extends EndedContext, BurnContext, AcceptContext {
  readonly store: Store;
  readonly outages: Outages;
  readonly waiting: Waiting;
  /** An event was queued: a worker of this process has something to do. */
  readonly queued: () => void;
}

/** Checks 12, 13 and 9a, deduplication, ordering and caps: one atomic call of the store. */
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
  // An ordinary delivery makes no promise for it.
  const verdict = isThenable(decided) ? await decided : decided;
  return verdict ?? waitForOther(result, read, context, signal);
}

/** What an accept brought to light is told, and what it means: undefined where another delivery has to be waited for. */
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

/** A suspect, and the one place of this process for such is taken: it is not waited for. */
function isPutOff(result: AcceptDecision): boolean {
  return result.kind === 'in-flight' && result.suspect === true;
}

type Done = Extract<AcceptDecision, { kind: 'done' }>;
type ToldBefore = Done & Required<Pick<Done, 'first'>>;

/** Another channel has told of the task's end. */
function isToldBefore(result: AcceptDecision): result is ToldBefore {
  return result.kind === 'done' && result.first !== undefined;
}

/** What the store's decision means; undefined where another delivery's handler has to be waited for. */
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

/** Another delivery, or a worker, runs the event or one of its task. */
function besideAnother(
  result: Extract<AcceptDecision, { kind: 'in-flight' | 'task-busy' }>,
  event: Event,
  { config }: AdmitContext,
): Verdict | undefined {
  if (isPutOff(result))
    return unavailable('in_flight', 'another event that may crash the process is running alone');
  // In the inbox it is safe, whichever process works on it.
  return config.mode === 'inbox'
    ? { kind: 'duplicate', state: 'queued', event, changed: result.changed }
    : undefined;
}

/** The most that `Retry-After` may say. */
const LONGEST_RETRY_AFTER_MS = 86_400_000;

/**
 * Bytes that came before, of an event that failed: who recorded them could else make it fail until it is DEAD. Or an event
 * under which its process has ended more than once.
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
 * A 2xx for an event whose first copy is still running would lose it if that one then failed. So: wait, answer 200
 * once it is finished, take it over once it is free, else 503.
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

/** The nonce is bound by the first accept; a takeover is another accept of the same event without it. */
async function takeOver(
  read: ReadEvent,
  context: AdmitContext,
  replay: boolean | undefined,
): Promise<WonDelivery | Verdict | undefined> {
  const { nonce: _bound, ...request } = acceptRequest(read, context);
  const result = await acceptAlone({ ...request, ...(replay && { replay }) }, read.deliveryId, context);
  return afterAccept(result, read, context);
}
