// Stores the nonce of a delivery as used, without an event, so that the delivery's bytes cannot be replayed
// (verification.md §2.13).
// Called by `admit` for unreadable bodies, by proofs of control, and by a verifier's `commit`.

import type { Identity } from '../auth/auth-contract.ts';
import type { Config } from '../config/resolve-options.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { Outages } from '../receiver/outages.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';
import { type Refusal, refused, type Verdict } from '../shared/outcome.ts';
import type { AcceptRequest, NonceClaim, Store } from '../stores/store.ts';
import { announce } from './announce.ts';
import { storedNonce } from './ids.ts';
import type { Read, ReadEvent } from './read.ts';

/** The parts of the receiver from which a request to a store is made. */
export interface RequestContext {
  readonly config: Config;
  readonly hashes: Hashes;
  /** Returns a random id for each call. */
  readonly newId: () => string;
  /** Returns the time of the receiver's clock, Unix ms. */
  readonly now: () => number;
}

export interface BurnContext extends RequestContext {
  readonly store: Pick<Store, 'accept'>;
  readonly raiseAlarm: RaiseAlarm;
  readonly outages: Pick<Outages, 'store'>;
}

/** A delivery whose sender is authenticated, whatever its body contains. */
export interface Identified {
  readonly identity: Identity;
}

/**
 * Returns the nonce in the form for the store. That form limits the length of key id and nonce, and the number of key
 * ids, because a seller chooses both.
 */
function nonceClaim(nonce: NonNullable<Identity['nonce']>, { hashes, now }: RequestContext): NonceClaim {
  const { keyid, nonce: stored } = storedNonce(nonce, hashes);
  return {
    keyid,
    nonce: stored,
    // One ms more: a signature is still valid (check 5) in the last millisecond, but a store forgets the nonce at the
    // given time.
    expiresAtMs: nonce.expiresAtMs + 1,
    nowMs: now(),
  };
}

/** Makes the request to the store with the nonce and without an event; `acceptRequest` adds the event. */
export function bareRequest({ identity }: Identified, context: RequestContext): Writable<AcceptRequest> {
  const { config } = context;
  const { sender, nonce } = identity;
  const { maxNoncesPerKey } = sender;
  const { limits } = config;
  const request: Writable<AcceptRequest> = {
    acceptId: context.newId(),
    sender: sender.agentUrl,
    mode: config.mode,
    leaseMs: config.leaseMs,
    limits: limits.maxNoncesPerKey === maxNoncesPerKey ? limits : { ...limits, maxNoncesPerKey },
    retry: config.retry,
    retentionMs: config.retentionMs,
  };
  if (nonce) request.nonce = nonceClaim(nonce, context);
  return request;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

export const replayed = (): Refusal => refused('webhook_signature_replayed', 'the nonce was used before', 12);
export const rateAbuse = (): Refusal => refused('webhook_signature_rate_abuse', 'too many live nonces', '9a');

/** Returns the refusal of a body that could not be read as an event. */
export function unreadable({ reading }: Exclude<Read, ReadEvent>): Refusal {
  return refused(reading.code, reading.detail, reading.code === 'webhook_body_malformed' ? 14 : undefined);
}

/**
 * Stores the nonce of a delivery as used, without an event, in one atomic call of the store. Returns undefined if the
 * nonce was new and there was room for it; otherwise the refusal.
 */
export async function nonceRefusal(read: Identified, context: BurnContext): Promise<Refusal | undefined> {
  // A delivery of a legacy scheme has no nonce, so there is nothing to store.
  if (!read.identity.nonce) return undefined;
  const request = bareRequest(read, context);
  const result = await context.store.accept(request);
  context.outages.store();
  announce(result, { sender: request.sender, key: undefined }, context.raiseAlarm);
  if (result.kind === 'burned') return undefined;
  return result.kind === 'rate-abuse' ? rateAbuse() : replayed();
}

/**
 * Stores the nonce of a delivery as used. Returns `answer`, or a refusal if the nonce was used before or there is no
 * room for it.
 */
export async function burn<V extends Verdict>(
  read: Identified,
  answer: V,
  context: BurnContext,
): Promise<V | Refusal> {
  return (await nonceRefusal(read, context)) ?? answer;
}
