import type { Identity } from '../auth/contract.ts';
import type { Config } from '../config/resolve.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { AcceptRequest, NonceClaim } from '../stores/contract.ts';
import type { Read, ReadChallenge } from './read.ts';
import type { Running } from './running.ts';
import { storedId } from './stored-id.ts';

export interface AcceptContext {
  readonly config: Config;
  readonly hashes: Hashes;
  /** Random id per call. */
  readonly newId: () => string;
  /** Receiver's clock, Unix ms. */
  readonly now: () => number;
  readonly running: Running;
}

/** A seller chooses keyid and nonce, and how long they are. */
function nonceClaim(nonce: NonNullable<Identity['nonce']>, { hashes, now }: AcceptContext): NonceClaim {
  return {
    ...nonce,
    keyid: storedId(nonce.keyid, hashes),
    nonce: storedId(nonce.nonce, hashes),
    // Check 5 passes at that very millisecond, and stores forget at the instant that they are given.
    expiresAtMs: nonce.expiresAtMs + 1,
    nowMs: now(),
  };
}

/** Whose lease it is to be, and whether its event runs here already. In the inbox a door leases nothing. */
function lessee(read: Read | ReadChallenge, { config, running }: AcceptContext): Partial<AcceptRequest> {
  if (config.mode === 'inbox' || !read.claim) return {};
  return { process: running.process(), ...(running.has(read.deliveryId) && { isRunning: true }) };
}

/** What the store is asked for one delivery. */
export function acceptRequest(read: Read | ReadChallenge, context: AcceptContext): AcceptRequest {
  const { config } = context;
  const { sender, nonce } = read.identity;
  return {
    acceptId: context.newId(),
    sender: sender.agentUrl,
    mode: config.mode,
    ...(nonce && { nonce: nonceClaim(nonce, context) }),
    ...(read.claim && { event: read.claim }),
    leaseMs: config.leaseMs,
    ...lessee(read, context),
    limits: { ...config.limits, maxNoncesPerKey: sender.maxNoncesPerKey },
    retry: config.retry,
    retentionMs: config.retentionMs,
  };
}
