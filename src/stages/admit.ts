import type { RaiseAlarm } from '../alarms.ts';
import type { Identity } from '../auth/contract.ts';
import type { Config } from '../config/resolve.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { Event } from '../events/event.ts';
import type { Refusal, Unavailability, Verdict } from '../outcome.ts';
import type { AcceptDecision, AcceptRequest, EventClaim, NonceClaim, Store } from '../stores/contract.ts';
import { announce } from './announce.ts';
import type { Read } from './read.ts';
import { storedId } from './stored-id.ts';
import type { Waiting } from './wait.ts';

type Win = Extract<AcceptDecision, { kind: 'won' }>;

/** An event that is leased to this delivery: its handler is to run. */
export interface Won {
  readonly kind: 'won';
  readonly read: Read;
  readonly event: Event;
  readonly claim: EventClaim;
  readonly win: Win;
}

export interface AdmitContext {
  readonly config: Config;
  readonly store: Store;
  readonly hashes: Hashes;
  readonly waiting: Waiting;
  readonly raiseAlarm: RaiseAlarm;
  /** Random id per call. */
  readonly newId: () => string;
  /** Receiver's clock, Unix ms. */
  readonly now: () => number;
}

const refused = (code: Refusal['code'], detail: string, check?: Refusal['check']): Refusal => ({
  kind: 'refused',
  code,
  detail,
  ...(check !== undefined && { check }),
});

const unavailable = (code: Unavailability['code'], detail: string): Unavailability => ({
  kind: 'unavailable',
  code,
  detail,
});

/** Why the body gave no event. */
function unreadable({ reading }: Read): Refusal {
  if (reading.ok) throw new TypeError('a readable body has a claim');
  return refused(reading.code, reading.detail, reading.code === 'webhook_body_malformed' ? 14 : undefined);
}

/** A seller chooses keyid and nonce, and how long they are. */
function nonceClaim(nonce: NonNullable<Identity['nonce']>, { hashes, now }: AdmitContext): NonceClaim {
  return {
    ...nonce,
    keyid: storedId(nonce.keyid, hashes),
    nonce: storedId(nonce.nonce, hashes),
    nowMs: now(),
  };
}

function acceptRequest(read: Read, context: AdmitContext): AcceptRequest {
  const { config } = context;
  const { sender, nonce } = read.identity;
  return {
    acceptId: context.newId(),
    sender: sender.agentUrl,
    mode: 'inline',
    ...(nonce && { nonce: nonceClaim(nonce, context) }),
    ...(read.claim && { event: read.claim }),
    leaseMs: config.leaseMs,
    limits: { ...config.limits, maxNoncesPerKey: sender.maxNoncesPerKey },
    retry: config.retry,
    retentionMs: config.retentionMs,
  };
}

/** Checks 12, 13 and 9a, deduplication, ordering and caps: one atomic call of the store. */
export async function admit(
  read: Read,
  context: AdmitContext,
  signal: AbortSignal | undefined,
): Promise<Won | Verdict> {
  const { reading, claim, identity } = read;
  // Legacy schemes have no nonce to burn: nothing of an unreadable body needs the store.
  if (!claim && !identity.nonce) return unreadable(read);
  const request = acceptRequest(read, context);
  const result = await context.store.accept(request);
  announce(result, { sender: request.sender, key: claim?.key }, context.raiseAlarm);
  if (!claim || !reading.ok) return nonceVerdict(result, read);
  const settled = decide(result, read, reading.event, claim);
  return settled ?? waitForOther(result, { read, event: reading.event, claim, signal }, context);
}

const replayed = (): Refusal => refused('webhook_signature_replayed', 'the nonce was used before', 12);
const rateAbuse = (): Refusal => refused('webhook_signature_rate_abuse', 'too many live nonces', '9a');

/** What a nonce without an event was told. */
function nonceVerdict(result: AcceptDecision, read: Read): Refusal {
  if (result.kind === 'burned') return unreadable(read);
  return result.kind === 'rate-abuse' ? rateAbuse() : replayed();
}

/** What the store's decision means; undefined where another delivery's handler has to be waited for. */
function decide(
  result: AcceptDecision,
  read: Read,
  event: Event,
  claim: EventClaim,
): Won | Verdict | undefined {
  switch (result.kind) {
    case 'won':
      return { kind: 'won', read, event, claim, win: result };
    case 'queued':
      return { kind: 'accepted', state: 'queued', event, changed: result.changed };
    case 'done':
      return result.died
        ? { kind: 'accepted', state: 'dead', event, changed: result.changed }
        : { kind: 'duplicate', state: result.state, event, changed: result.changed };
    case 'stale':
      return { kind: 'stale', event };
    case 'conflict':
      return refused('payload_changed', `${claim.key} was used with another payload`);
    case 'over-cap':
      return refused('sender_over_limit', `the sender is over its cap of ${result.limit}`);
    case 'in-flight':
    case 'task-busy':
      return undefined;
    case 'replayed':
      return replayed();
    case 'rate-abuse':
      return rateAbuse();
    case 'burned':
      throw new TypeError('the store burned the nonce of an event alone');
  }
}

interface Waiter {
  readonly read: Read;
  readonly event: Event;
  readonly claim: EventClaim;
  readonly signal: AbortSignal | undefined;
}

/**
 * A 2xx for an event whose first copy is still running would lose it if that one then failed. So: wait, answer 200
 * once it is finished, take it over once it is free, else 503.
 */
async function waitForOther(
  first: AcceptDecision,
  { read, event, claim, signal }: Waiter,
  context: AdmitContext,
): Promise<Won | Verdict> {
  const { edition, agentUrl: sender } = read.identity.sender;
  const busy =
    first.kind === 'task-busy'
      ? unavailable('task_busy', 'another event of the same task is being handled')
      : unavailable('in_flight', 'another delivery of the same event is being handled');
  if (first.kind === 'in-flight' && edition.inFlight === 'unavailable') return busy;
  const changed = 'changed' in first && first.changed;
  const deadline = performance.now() + context.config.waitMs;
  for (;;) {
    const leftMs = deadline - performance.now();
    if (leftMs <= 0 || signal?.aborted) return busy;
    const seen = await context.waiting.until({ sender, key: claim.key, leftMs, signal });
    if (seen === 'busy') return busy;
    if (seen === 'applied' || seen === 'stale' || seen === 'dead') {
      return { kind: 'duplicate', state: seen, event, changed };
    }
    // The nonce is bound by the first accept; a takeover is another accept of the same event without it.
    const { nonce: _bound, ...request } = acceptRequest(read, context);
    const result = await context.store.accept(request);
    announce(result, { sender, key: claim.key }, context.raiseAlarm);
    const settled = decide(result, read, event, claim);
    if (settled) return settled;
  }
}
