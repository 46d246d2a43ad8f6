// The interface of the key resolver: check 7 (find the key), check 9 (revocation), and the functions that fetch
// documents (verification.md §2.7, §2.9, §5).
// Implemented by `resolver.ts`; used by the signature check, the receiver and the code that calls sellers.

import type { PressureState } from './admission-pressure.ts';
import type { Jwk, VerifyKey } from '../crypto/engine.ts';
import type { SenderEntry } from '../config/sender-entry.ts';

/** A key from a sender's JWKS or pins, imported into the crypto engine. */
export interface SenderKey {
  readonly kid: string;
  /**
   * The JWK as published. Check 8 (key policy) reads `use`, `key_ops`, the purpose, `kty`, `crv` and `alg` from it.
   */
  readonly jwk: Jwk;
  /** The imported key, or the reason why it cannot be imported, for check 8 (key policy). */
  readonly verifyKey: VerifyKey | string;
}

export interface Candidate {
  readonly sender: SenderEntry;
  readonly key: SenderKey;
  /**
   * The entries of this key in publishers' files. Set if this sender's JWKS keys count only when publishers pin them
   * too. If one of these entries is revoked, so is the key.
   */
  readonly pins?: readonly Jwk[];
  /**
   * Call it after a signature has verified with this key. Returns undefined if the key is known to be this sender's;
   * otherwise the reason why it is not, or not yet, known (verification.md §2.36).
   * Absent if this is known already, e.g. because the URL has no other sender. Never rejects.
   */
  readonly firstUse?: () => Promise<string | undefined>;
}

/**
 * The result of check 7 (find the key). `undecided` lists the senders whose keys could not be fetched, with reasons,
 * for the log. If the list is not empty and no candidate verifies, the answer is 503 and never 401.
 */
export interface KeySearch {
  readonly candidates: readonly Candidate[];
  readonly undecided: readonly string[];
}

/** The result of check 9 (revocation). `stale`: the revocation list is too old to decide. */
export type RevocationState = 'valid' | 'revoked' | 'stale';

/** A delivery that needs keys. All calls with the same object share one budget of fetches and waiting time. */
export interface KeyRequest {
  /** The senders that may have sent the delivery. */
  readonly senders: readonly SenderEntry[];
  /**
   * The arrival of the delivery, Unix ms. Only a fetch that began at or after it can prove that a key does not exist.
   */
  readonly arrivedAt: number;
}

export interface KeyResolver {
  /**
   * Finds the keys with the id `keyid` in the cached key sets of the senders. If no set has one, fetches the sets
   * again. Each URL has a cooldown of 30 s. A delivery fetches for at most 32 senders and publishers, 8 at a time.
   *
   * If there are candidates, `undecided` is empty. Senders whose documents were not fetched are then left to
   * `findReplaced`. Call `findReplaced` before a delivery is answered as invalid.
   * Never rejects. Returns no promise if nothing has to be fetched.
   */
  find(keyid: string, request: KeyRequest): KeySearch | Promise<KeySearch>;
  /**
   * Searches again after no candidate could verify the signature. Fetches each sender's key set that is older than 30
   * s or was never fetched, unless configuration pins the sender's keys. Returns the keys under `keyid` that differ
   * from `tried`. `undecided` lists the senders whose fetch failed or had to be omitted.
   */
  findReplaced(keyid: string, request: KeyRequest, tried: readonly Candidate[]): Promise<KeySearch>;
  /**
   * Performs check 9 (revocation). `stale`: the sender has a revocation list that is older than its grace period
   * allows, so the answer is 503.
   * @param request the waiting delivery; without it, the call has fetch limits of its own.
   */
  revocation(
    sender: SenderEntry,
    keyid: string,
    request?: KeyRequest,
  ): RevocationState | Promise<RevocationState>;
  /**
   * Records, in the background, that a signature with the candidate's key was accepted from the candidate's sender.
   * Absent if nothing is recorded.
   */
  verified?(candidate: Candidate, request: Pick<KeyRequest, 'senders'>): void;
  /**
   * Returns the agent URL of a sender whose cached keys include `keyid`. Fetches nothing. Use it to describe an
   * unverified delivery, never to decide its answer.
   * @param senders the senders to search; by default all that this process has searched before.
   */
  whose(keyid: string, senders?: readonly SenderEntry[]): string | undefined;
  /**
   * Returns the time (Unix ms) at which the lifetime of a sender's cached key set ends. Undefined if no set is cached
   * or the sender's keys are configured. Fetches nothing. Never rejects.
   */
  freshUntil(sender: SenderEntry): Promise<number | undefined>;
  /** Returns counts of key ids that lately came into use. Undefined if no key has been searched yet. */
  pressure?(): PressureState | undefined;
  /**
   * Imports pins, and starts fetching the senders' documents without waiting for them.
   * @throws ConfigError (rejects) that names sender and kid, if a list of pins is invalid.
   */
  warm(senders: readonly SenderEntry[]): Promise<void>;
  /** Stops background work and aborts running fetches. */
  stop(): void;
  /** Allows fetches again after `stop`. */
  resume(): void;
}

/**
 * A function with the signature of `fetch` that fetches a seller's key documents (brand.json, JWKS,
 * revocation lists) instead of the package's own connections. It is the option `fetch` of `createReceiver`.
 * It is called with GET, must not follow redirects, and returns the body as a stream.
 */
export type KeyFetch = (url: string, init: KeyFetchInit) => Promise<Response>;

/**
 * The second argument of a `KeyFetch`: method, headers, deadline (`signal`) and size limit, bytes, of the request
 * for a key document.
 */
export interface KeyFetchInit {
  readonly method: 'GET';
  readonly headers: Readonly<Record<string, string>>;
  /** Always `manual`: a 3xx is returned unchanged and then refused. */
  readonly redirect: 'manual';
  /** Aborts at one deadline for connection, headers and body together. */
  readonly signal: AbortSignal;
  /** The largest body, bytes; a longer one is rejected, so reading more is useless. Absent: no limit. */
  readonly maxBytes?: number;
  /**
   * The agent URL of the seller whose document is fetched. Name look-ups are queued by it, so that sellers take turns.
   */
  readonly seller?: string;
}

/**
 * The way in which Node looks up the host names of key URLs: the option `advanced.dns`.
 *
 * - `direct`: asks DNS servers, with a time-out, so that one seller's silent name server delays no other seller.
 * - `system`: asks the operating system, including hosts files, split DNS and the names of a container's network.
 */
export type NameLookUp = 'direct' | 'system';

/**
 * A function with the signature of `fetch` that `createRegistry` uses in place of the package's own connections: the
 * option `fetch`. It is called with any HTTP method.
 */
export type AnyFetch = (url: string, init: AnyFetchInit) => Promise<Response>;

/**
 * The second argument of a `RegistryFetch`: method, headers, body, deadline (`signal`) and size limit of the
 * request, bytes.
 */
export interface AnyFetchInit extends Omit<KeyFetchInit, 'method'> {
  readonly method: string;
  readonly body?: Uint8Array<ArrayBuffer>;
}
