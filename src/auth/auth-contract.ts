// The types that every authentication scheme shares: a proof by headers, completed by the body
// (verification.md §2.22, §2.33).
// Implemented by `bearer.ts`, `hmac.ts` and `rfc9421/verify.ts`; used by the stages and the receiver.

import type { RaiseAlarm } from '../shared/alarms.ts';
import type { CryptoEngine, Hashes } from '../crypto/engine.ts';
import type { Delivery, Head } from '../shared/delivery.ts';
import type { Candidate, KeyResolver, KeySearch } from '../keys/key-resolver.ts';
import type { Refusal, Unavailability } from '../shared/outcome.ts';
import type { Protocols } from '../shared/wire-names.ts';
import type { AuthPolicy, SenderEntry } from '../config/sender-entry.ts';

/** When a signature was made and when it ends (RFC 9421 §2.3). Unix seconds. */
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
  /** The accepted protocol names. */
  readonly protocols: Protocols;
  readonly engine: CryptoEngine;
  readonly hashes: Hashes;
  readonly keys: KeyResolver;
  readonly hostCheck: 'strict' | 'off';
  readonly raiseAlarm: RaiseAlarm;
  /** Absent if there is no set-up to question: `explain` has a delivery and no receiver. */
  readonly setUp?: SetUpWatch;
}

/**
 * Finds out if a failed check is the receiver's own fault, which is never final (verification.md §2.34,
 * §2.35). It accepts nothing.
 */
export interface SetUpWatch {
  /**
   * Called for every delivery after a signature of the sender verified over the request's URL, within its
   * window.
   */
  readonly verified: (sender: SenderEntry, request: HeadRequest) => void;
  /** Counts deliveries that no base explained, by sender (verification.md §4.16). */
  readonly unexplained: Map<string, Unexplained>;
  /**
   * Tries, after check 10 failed under these keys, whether the signature is for another URL than `publicUrl`,
   * one that the request gives evidence of.
   * @returns the answer if one verified.
   */
  readonly signedElsewhere: (
    request: HeadRequest,
    candidates: readonly Candidate[],
    verifies: VerifiesFor,
  ) => Promise<Unavailability | undefined>;
  /**
   * Tries, after check 5 failed, whether this receiver's clock is wrong.
   * @returns the answer if it is.
   */
  readonly outsideWindow: (request: HeadRequest, late: LateDelivery) => Promise<Unavailability | undefined>;
}

/** Number of deliveries of one sender, within a second, that no base explained. */
export interface Unexplained {
  /** Receiver's clock, Unix ms. */
  readonly since: number;
  readonly count: number;
}

/** A delivery outside its window by the receiver's clock, and the means to examine it further. */
export interface LateDelivery {
  readonly window: SignatureWindow;
  /** Performs check 7. */
  readonly find: () => Promise<KeySearch>;
  /**
   * Performs checks 8 to 10: the candidate whose key verifies, or `undecided` if that could not be decided.
   */
  readonly signer: (candidates: readonly Candidate[]) => Promise<Candidate | 'undecided' | undefined>;
}

/**
 * Performs checks 8 to 10 of one delivery for another URL, under these keys. Returns the candidate whose key
 * verified.
 */
export type VerifiesFor = (
  target: Target,
  candidates: readonly Candidate[],
) => Promise<Candidate | undefined>;

/** A URL that a delivery may be for, and the senders that may call it. */
export interface Addressed {
  /** The URL's base, identified by the object alone; absent for the first base. */
  readonly base?: object;
  readonly target: Target;
  /** All of one scheme. */
  readonly senders: readonly SenderEntry[];
}

/** A delivery without its body, whose senders and scheme are known from registration. */
export interface HeadRequest extends Addressed {
  readonly delivery: Head;
  /** Other URLs that the delivery may be for (verification.md §4.16). */
  readonly others?: (() => Promise<readonly Addressed[]>) | undefined;
  /** Arrival of the delivery, on the receiver's clock in Unix ms. */
  readonly arrivedAt: number;
}

/** The request with its body. */
export interface AuthRequest extends HeadRequest {
  readonly delivery: Delivery;
}

/** The sender, and the nonce to be claimed with the event (signatures only). */
export interface Identity {
  readonly kind: 'authentic';
  readonly sender: SenderEntry;
  readonly scheme: AuthPolicy['scheme'];
  /** The URL that it was judged by, if that may not be the first. */
  readonly target?: Target;
  /** True if the sender's previous credentials matched (HMAC and bearer). */
  readonly isPrevious?: true;
  /** SHA-256 of the raw body in hex, if a check has compared it (signatures only). */
  readonly bodyHash?: string;
  readonly nonce?: { readonly keyid: string; readonly nonce: string; readonly expiresAtMs: number };
}

/**
 * Result of a scheme. Refusals, and faults of ours with a check's code, are values; other faults are thrown.
 */
export type AuthResult = Identity | Refusal | Unavailability;

/** A complete body. */
export interface WholeBody {
  readonly rawBody: Uint8Array;
  /** SHA-256 in hex, if it was computed while the body arrived. */
  readonly hash?: string | undefined;
  /** Time of the last byte, on the receiver's clock in Unix ms. */
  readonly wholeAt: number;
}

/** Headers that passed: the proof in them, and the check that is left for the body. */
export interface Proof {
  readonly kind: 'proof';
  /** The sender; undefined if only the body can tell (HMAC). */
  readonly sender: SenderEntry | undefined;
  /** Signatures only. */
  readonly nonce?: Identity['nonce'];
  readonly complete: (body: WholeBody) => AuthResult | Promise<AuthResult>;
}

/** The part of a scheme that headers alone decide. */
export type Prove = (
  context: AuthContext,
  request: HeadRequest,
) => Proof | Refusal | Unavailability | Promise<Proof | Refusal | Unavailability>;

export type Authenticate = (context: AuthContext, request: AuthRequest) => Promise<AuthResult>;

/** Both halves of a scheme, for a delivery whose body is there. */
export const whole =
  (prove: Prove): Authenticate =>
  async (context, request) => {
    const found = await prove(context, request);
    if (found.kind !== 'proof') return found;
    return found.complete({ rawBody: request.delivery.rawBody, wholeAt: request.arrivedAt });
  };
