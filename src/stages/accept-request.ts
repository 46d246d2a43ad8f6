import type { Identity } from '../auth/contract.ts';
import type { Config } from '../config/resolve.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { AcceptRequest, NonceClaim } from '../stores/contract.ts';
import type { Read, ReadChallenge, ReadEvent } from './read.ts';
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

/** Whose lease it is to be, and what runs here already of its event and its task. In the inbox a door leases nothing. */
function lessee(read: Read | ReadChallenge, { config, running }: AcceptContext): Partial<AcceptRequest> {
  if (config.mode === 'inbox' || !read.claim) return {};
  const runningKey = taskRunning(read, running);
  return {
    process: running.process(),
    ...(running.has(read.deliveryId) && { isRunning: true }),
    ...(runningKey !== undefined && { runningKey }),
  };
}

function taskRunning({ claim, identity }: ReadEvent, running: Running): string | undefined {
  return claim.task && running.keyOf(identity.sender.agentUrl, claim.task.id);
}

/** Its event, or another one of its task, perhaps on a lease that has run out: it must not be started beside that. */
export function runsHere(read: ReadEvent, running: Running): boolean {
  return running.has(read.deliveryId) || taskRunning(read, running) !== undefined;
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
