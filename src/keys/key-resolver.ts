import type { PressureState } from './admission-pressure.ts';
import type { Jwk, VerifyKey } from '../crypto/engine.ts';
import type { SenderEntry } from '../config/sender-entry.ts';

/** A key of a sender's set, or of its pins, imported once. */
export interface SenderKey {
  readonly kid: string;
  /** As published; check 8 reads `use`, `key_ops`, purpose, `kty`, `crv`, `alg` from it. */
  readonly jwk: Jwk;
  /** The imported key, or why it cannot be one (check 8). */
  readonly verifyKey: VerifyKey | string;
}

export interface Candidate {
  readonly sender: SenderEntry;
  readonly key: SenderKey;
  /** The same key as publishers pin it, where their pins narrow the JWKS: what is revoked in one is revoked. */
  readonly pins?: readonly Jwk[];
  /**
   * To be asked once a signature has verified: why the key is not, or not yet, known to be this sender's and no other's
   * at its URL; undefined where it is (verification.md §2.36). Never rejects. Absent where it is known.
   */
  readonly firstUse?: () => Promise<string | undefined>;
}

/**
 * Check 7. `undecided` lists, for the log, the senders that could not be asked and why: where no candidate verifies
 * and it is not empty, the answer is 503 and never 401.
 */
export interface KeySearch {
  readonly candidates: readonly Candidate[];
  readonly undecided: readonly string[];
}

/** Check 9. */
export type RevocationState = 'valid' | 'revoked' | 'stale';

/** A delivery that needs keys. What it may fetch, and how long it waits, counts over all that is asked with one of these. */
export interface KeyRequest {
  /** Who may have sent it. */
  readonly senders: readonly SenderEntry[];
  /** Unix ms: only a fetch that began at or after it may show that a key is unknown. */
  readonly arrivedAt: number;
}

export interface KeyResolver {
  /**
   * The senders whose cached set has `keyid`; where none has, the sets are fetched again (30 s cooldown a URL, at
   * most 8 at a time and 32 a call) and searched.
   * Where there are candidates `undecided` is empty: senders that were not asked are asked in `findReplaced`,
   * which has to be called before "invalid" is answered. Never rejects. No promise where everything is at hand.
   */
  find(keyid: string, request: KeyRequest): KeySearch | Promise<KeySearch>;
  /**
   * After every candidate's key failed to verify: fetches again the set of each sender that is not pinned and whose
   * set is older than 30 s (or was never fetched), and gives the keys under `keyid` that differ from `tried`.
   * `undecided`: a fetch failed or had to be left out.
   */
  findReplaced(keyid: string, request: KeyRequest, tried: readonly Candidate[]): Promise<KeySearch>;
  /**
   * Check 9. `stale`: the sender has a revocation list and it is older than its grace: 503.
   * @param request of the delivery that waits for it; one by itself where absent.
   */
  revocation(
    sender: SenderEntry,
    keyid: string,
    request?: KeyRequest,
  ): RevocationState | Promise<RevocationState>;
  /** A signature of the candidate's key was taken as its sender's. Waits for nothing. Absent: nobody keeps that. */
  verified?(candidate: Candidate, request: Pick<KeyRequest, 'senders'>): void;
  /**
   * Who has a key of that id in the cache, by agent URL; nothing is fetched. For what is said of a delivery
   * that was not verified, never for what is answered.
   * @param senders all that were looked for in this process where absent.
   */
  whose(keyid: string, senders?: readonly SenderEntry[]): string | undefined;
  /**
   * Until when the cached key set of a sender is within its lifetime, Unix ms; undefined where none is cached or its keys
   * are not fetched. Nothing is fetched. Never rejects.
   */
  freshUntil(sender: SenderEntry): Promise<number | undefined>;
  /** How many key ids have come into use lately. Absent, or undefined: nothing was looked for. */
  pressure?(): PressureState | undefined;
  /** Imports pins (@throws ConfigError naming sender and kid) and starts fetching what senders need; waits for no fetch. */
  warm(senders: readonly SenderEntry[]): Promise<void>;
  /** Ends background work; running fetches are aborted. */
  stop(): void;
  /** After `stop`: documents are fetched again. */
  resume(): void;
}

/**
 * A function with the signature of `fetch` that fetches a seller's key documents (brand.json, JWKS, revocation
 * lists) in place of the package's own connections: the option `fetch` of `createReceiver`. It is called with GET,
 * must not follow redirects, and returns the body as a stream.
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
