// Marks the nonce of a delivery without an event as used, so that its bytes cannot be replayed (verification.md
// §2.13).
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

/** Parts from which a request to a store is made. */
export interface RequestContext {
  readonly config: Config;
  readonly hashes: Hashes;
  /** Returns a random id for each call. */
  readonly newId: () => string;
  /** Receiver's clock, Unix ms. */
  readonly now: () => number;
}

export interface BurnContext extends RequestContext {
  readonly store: Pick<Store, 'accept'>;
  readonly raiseAlarm: RaiseAlarm;
  readonly outages: Pick<Outages, 'store'>;
}

/** A delivery whose sender is proved, whatever its body contains. */
export interface Identified {
  readonly identity: Identity;
}

/**
 * Returns the nonce for the store. Its key id and nonce are limited in length and number, because a seller chooses
 * both.
 */
function nonceClaim(nonce: NonNullable<Identity['nonce']>, { hashes, now }: RequestContext): NonceClaim {
  const { keyid, nonce: stored } = storedNonce(nonce, hashes);
  return {
    keyid,
    nonce: stored,
    // One ms more, because check 5 still passes in the last millisecond, and a store forgets a nonce at the given
    // time.
    expiresAtMs: nonce.expiresAtMs + 1,
    nowMs: now(),
  };
}

/** Makes the request to the store with the nonce alone; `acceptRequest` adds the event. */
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

/** The refusal of a body that gave no event. */
export function unreadable({ reading }: Exclude<Read, ReadEvent>): Refusal {
  return refused(reading.code, reading.detail, reading.code === 'webhook_body_malformed' ? 14 : undefined);
}

/**
 * Marks the nonce of a delivery as used, without an event, in one atomic call of the store. Undefined if the nonce
 * was new and there was room for it; otherwise the refusal.
 */
export async function nonceRefusal(read: Identified, context: BurnContext): Promise<Refusal | undefined> {
  // Legacy schemes have no nonce to burn, so such a body needs no store.
  if (!read.identity.nonce) return undefined;
  const request = bareRequest(read, context);
  const result = await context.store.accept(request);
  context.outages.store();
  announce(result, { sender: request.sender, key: undefined }, context.raiseAlarm);
  if (result.kind === 'burned') return undefined;
  return result.kind === 'rate-abuse' ? rateAbuse() : replayed();
}

/**
 * Marks a nonce as used and returns the answer.
 * @param answer returned unless the nonce was used before or there is no room for it.
 */
export async function burn<V extends Verdict>(
  read: Identified,
  answer: V,
  context: BurnContext,
): Promise<V | Refusal> {
  return (await nonceRefusal(read, context)) ?? answer;
}
