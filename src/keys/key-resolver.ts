// The interface of the key resolver: checks 7 and 9, and the functions that fetch documents (verification.md
// §2.7, §2.9, §5).
// Implemented by `resolver.ts`; used by the signature check, the receiver and calls to sellers.

import type { PressureState } from './admission-pressure.ts';
import type { Jwk, VerifyKey } from '../crypto/engine.ts';
import type { SenderEntry } from '../config/sender-entry.ts';

/** A key of a sender's set or pins, imported once. */
export interface SenderKey {
  readonly kid: string;
  /** The JWK as published; check 8 reads `use`, `key_ops`, purpose, `kty`, `crv` and `alg` from it. */
  readonly jwk: Jwk;
  /** The imported key, or the reason why it cannot be imported (check 8). */
  readonly verifyKey: VerifyKey | string;
}

export interface Candidate {
  readonly sender: SenderEntry;
  readonly key: SenderKey;
  /** The same key in the pins of publishers, if pins narrow the JWKS: revoked in one means revoked. */
  readonly pins?: readonly Jwk[];
  /**
   * Called once a signature has verified; absent if the key is known to be this sender's alone at its URL
   * (verification.md §2.36). Returns the reason why it is not, or not yet; undefined if it is. Never rejects.
   */
  readonly firstUse?: () => Promise<string | undefined>;
}

/**
 * Result of check 7. `undecided` lists, for the log, the senders that could not be asked, with reasons. If it
 * is not empty and no candidate verifies, the answer is 503 and never 401.
 */
export interface KeySearch {
  readonly candidates: readonly Candidate[];
  readonly undecided: readonly string[];
}

/** Result of check 9. */
export type RevocationState = 'valid' | 'revoked' | 'stale';

/**
 * A delivery that needs keys. Its fetches and its waiting time are counted over all questions with the same
 * object.
 */
export interface KeyRequest {
  /** Senders that may have sent it. */
  readonly senders: readonly SenderEntry[];
  /** Arrival in Unix ms: only a fetch that began at or after it may prove a key unknown. */
  readonly arrivedAt: number;
}

export interface KeyResolver {
  /**
   * Finds the senders whose cached set has `keyid`. If none has, fetches the sets again (30 s cooldown per
   * URL, at most 8 at a time and 32 per call) and searches them.
   *
   * If there are candidates, `undecided` is empty: senders that were not asked are asked in `findReplaced`,
   * which has to be called before "invalid" is answered. Never rejects. Returns no promise if nothing has to
   * be fetched.
   */
  find(keyid: string, request: KeyRequest): KeySearch | Promise<KeySearch>;
  /**
   * Searches again after every candidate failed to verify. Fetches the set of each sender that is not pinned
   * and whose set is older than 30 s (or was never fetched). Returns the keys under `keyid` that differ from
   * `tried`. `undecided`: a fetch failed or had to be omitted.
   */
  findReplaced(keyid: string, request: KeyRequest, tried: readonly Candidate[]): Promise<KeySearch>;
  /**
   * Performs check 9. `stale`: the sender has a revocation list, and it is older than its grace: 503.
   * @param request the delivery that waits; if absent, the call has a budget of its own.
   */
  revocation(
    sender: SenderEntry,
    keyid: string,
    request?: KeyRequest,
  ): RevocationState | Promise<RevocationState>;
  /**
   * Notes that a signature of the candidate's key was accepted as its sender's. Waits for nothing. Absent if
   * nobody records it.
   */
  verified?(candidate: Candidate, request: Pick<KeyRequest, 'senders'>): void;
  /**
   * Agent URL of a sender with a key of that id in the cache; nothing is fetched. Use it to describe an
   * unverified delivery, never to answer one.
   * @param senders all that this process has looked for, if absent.
   */
  whose(keyid: string, senders?: readonly SenderEntry[]): string | undefined;
  /**
   * End of the lifetime of a sender's cached key set, in Unix ms; undefined if none is cached or its keys are
   * not fetched. Fetches nothing. Never rejects.
   */
  freshUntil(sender: SenderEntry): Promise<number | undefined>;
  /** Counts of key ids that came into use lately. Undefined if no key was looked for. */
  pressure?(): PressureState | undefined;
  /**
   * Imports pins (@throws ConfigError naming sender and kid) and starts fetching the documents of senders;
   * waits for no fetch.
   */
  warm(senders: readonly SenderEntry[]): Promise<void>;
  /** Ends background work; running fetches are aborted. */
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
  /** The agent URL of the seller whose document is fetched, by which name look-ups take turns. */
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
