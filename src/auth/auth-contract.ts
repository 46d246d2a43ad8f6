// The types that all authentication schemes share: headers give a proof, which the body completes (verification.md
// §2.22, §2.33).
// Implemented by `bearer.ts`, `hmac.ts` and `rfc9421/verify.ts`; used by the stages and the receiver.

import type { RaiseAlarm } from '../shared/alarms.ts';
import type { CryptoEngine, Hashes } from '../crypto/engine.ts';
import type { Delivery, Head } from '../shared/delivery.ts';
import type { Candidate, KeyResolver, KeySearch } from '../keys/key-resolver.ts';
import type { Refusal, Unavailability } from '../shared/outcome.ts';
import type { Protocols } from '../shared/wire-names.ts';
import type { AuthPolicy, SenderEntry } from '../config/sender-entry.ts';

/** The times at which a signature was made and at which it expires (RFC 9421 §2.3). Unix seconds. */
export interface SignatureWindow {
  readonly created: number;
  readonly expires: number;
}

/**
 * A webhook URL in canonical form, as signatures must cover it: the absolute URL, and its `host[:port]`.
 * `canonicalTargetUri` returns it, and `signatureBase` takes it.
 */
export interface Target {
  /** The canonical `@target-uri`. */
  readonly targetUri: string;
  /** The `host[:port]` of the target URI. */
  readonly authority: string;
}

/** Parts that every scheme needs, made once per receiver. */
export interface AuthContext {
  readonly protocols: Protocols;
  readonly engine: CryptoEngine;
  readonly hashes: Hashes;
  readonly keys: KeyResolver;
  readonly hostCheck: 'strict' | 'off';
  readonly raiseAlarm: RaiseAlarm;
  /**
   * Finds mistakes in the receiver's own URL and clock. Absent for `explain`, which examines a delivery without a
   * receiver.
   */
  readonly setUp?: SetUpWatch;
}

/**
 * Finds out if the receiver's own settings made a check fail; such a failure is never final (verification.md §2.34,
 * §2.35). It never accepts a delivery.
 */
export interface SetUpWatch {
  /** Called for every delivery whose signature verified for the request's URL and within its time window. */
  readonly verified: (sender: SenderEntry, request: HeadRequest) => void;
  /** For each sender, the number of deliveries that verified for no base URL (verification.md §4.16). */
  readonly unexplained: Map<string, Unexplained>;
  /**
   * Called after check 10 (the signature) failed with these keys. Checks if the signature is for a URL other than
   * `publicUrl`, of which the request gives evidence.
   * @returns the answer (503) if there is such a URL; otherwise undefined.
   */
  readonly signedElsewhere: (
    request: HeadRequest,
    candidates: readonly Candidate[],
    verifies: VerifiesFor,
  ) => Promise<Unavailability | undefined>;
  /**
   * Called after check 5 (the time window) failed: checks if this receiver's clock is wrong.
   * @returns the answer (503) if the clock is wrong; otherwise undefined.
   */
  readonly outsideWindow: (request: HeadRequest, late: LateDelivery) => Promise<Unavailability | undefined>;
}

/** The number of one sender's deliveries, within a second, that verified for no base URL. */
export interface Unexplained {
  /** Start of the second in which deliveries are counted: receiver's clock, Unix ms. */
  readonly since: number;
  readonly count: number;
}

/** A delivery that is outside its time window by the receiver's clock, and functions to examine it further. */
export interface LateDelivery {
  readonly window: SignatureWindow;
  /** Performs check 7: finds the keys that the delivery's key id may mean. */
  readonly find: () => Promise<KeySearch>;
  /**
   * Performs checks 8 to 10 (the key's purpose, revocation, the signature). Returns the candidate whose key verified,
   * `undecided` if some key could not be tried, or undefined if none verified.
   */
  readonly signer: (candidates: readonly Candidate[]) => Promise<Candidate | 'undecided' | undefined>;
}

/**
 * Performs checks 8 to 10 (the key's purpose, revocation, the signature) of one delivery for another URL, with these
 * keys. Returns the candidate whose key verified; undefined if none did.
 */
export type VerifiesFor = (
  target: Target,
  candidates: readonly Candidate[],
) => Promise<Candidate | undefined>;

/** A URL for which a delivery may be meant, and the senders that may call it. */
export interface Addressed {
  /**
   * The base URL (an entry of `publicUrl`) to which the URL belongs, identified by the object itself. Absent for the
   * first base URL.
   */
  readonly base?: object;
  readonly target: Target;
  /** The senders that may call the URL; all have the same scheme. */
  readonly senders: readonly SenderEntry[];
}

/** A delivery without its body. Its senders and scheme are known from configuration. */
export interface HeadRequest extends Addressed {
  readonly delivery: Head;
  /** Returns other URLs for which the delivery may be meant (verification.md §4.16). */
  readonly others?: (() => Promise<readonly Addressed[]>) | undefined;
  /** Arrival of the delivery, on the receiver's clock in Unix ms. */
  readonly arrivedAt: number;
}

/** A delivery with its body. */
export interface AuthRequest extends HeadRequest {
  readonly delivery: Delivery;
}

/** The authenticated sender, and for signatures the nonce that is recorded together with the event. */
export interface Identity {
  readonly kind: 'authentic';
  readonly sender: SenderEntry;
  readonly scheme: AuthPolicy['scheme'];
  /** The URL for which the delivery was verified, if that may not be the first URL that was tried. */
  readonly target?: Target;
  /** True if the sender's previous credentials matched (HMAC and bearer). */
  readonly isPrevious?: true;
  /** SHA-256 of the raw body in hex, if a check has compared it (signatures only). */
  readonly bodyHash?: string;
  readonly nonce?: { readonly keyid: string; readonly nonce: string; readonly expiresAtMs: number };
}

/**
 * The result of authentication by one scheme. Refusals are returned, and so are failures of the receiver's own
 * environment that have the number of a check. Other such failures are thrown.
 */
export type AuthResult = Identity | Refusal | Unavailability;

export interface WholeBody {
  readonly rawBody: Uint8Array;
  /** SHA-256 in hex, if it was computed while the body arrived. */
  readonly hash?: string | undefined;
  /** Time of the last byte, on the receiver's clock in Unix ms. */
  readonly wholeAt: number;
}

/** The result if the headers prove the sender. `complete` performs the check that the body must still pass. */
export interface Proof {
  readonly kind: 'proof';
  /** The sender; undefined if only the body can tell (HMAC). */
  readonly sender: SenderEntry | undefined;
  /** The nonce to be recorded. Present for signatures only. */
  readonly nonce?: Identity['nonce'];
  readonly complete: (body: WholeBody) => AuthResult | Promise<AuthResult>;
}

/** The part of a scheme that needs only the headers. */
export type Prove = (
  context: AuthContext,
  request: HeadRequest,
) => Proof | Refusal | Unavailability | Promise<Proof | Refusal | Unavailability>;

export type Authenticate = (context: AuthContext, request: AuthRequest) => Promise<AuthResult>;

/** Combines both parts of a scheme (headers, then body), for a delivery whose body is available. */
export const whole =
  (prove: Prove): Authenticate =>
  async (context, request) => {
    const found = await prove(context, request);
    if (found.kind !== 'proof') return found;
    return found.complete({ rawBody: request.delivery.rawBody, wholeAt: request.arrivedAt });
  };
