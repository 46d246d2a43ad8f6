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

/** What every scheme needs, made once per receiver. */
export interface AuthContext {
  /** The accepted names. */
  readonly protocols: Protocols;
  readonly engine: CryptoEngine;
  readonly hashes: Hashes;
  readonly keys: KeyResolver;
  readonly hostCheck: 'strict' | 'off';
  readonly raiseAlarm: RaiseAlarm;
  /** Absent where nothing of the receiver's own is in question: `explain` has a delivery and no set-up. */
  readonly setUp?: SetUpWatch;
}

/**
 * Whether a failed check is the receiver's own fault, which is never final (verification.md §2.34, §2.35). What
 * it is asked accepts nothing.
 */
export interface SetUpWatch {
  /** A signature of the sender's verified over the request's URL, within its window. Called for every delivery. */
  readonly verified: (sender: SenderEntry, request: HeadRequest) => void;
  /** The deliveries that no base explained, by sender (verification.md §4.16). */
  readonly unexplained: Map<string, Unexplained>;
  /**
   * After check 10 failed under these keys: whether the signature is for another URL than `publicUrl`, that the request
   * gives evidence of.
   * @returns the answer where one verified.
   */
  readonly signedElsewhere: (
    request: HeadRequest,
    candidates: readonly Candidate[],
    verifies: VerifiesFor,
  ) => Promise<Unavailability | undefined>;
  /**
   * After check 5 failed: whether it is this receiver's clock that is wrong.
   * @returns the answer where it is.
   */
  readonly outsideWindow: (request: HeadRequest, late: LateDelivery) => Promise<Unavailability | undefined>;
}

/** The number of them within a second. */
export interface Unexplained {
  /** Receiver's clock, Unix ms. */
  readonly since: number;
  readonly count: number;
}

/** A delivery outside its window by the receiver's clock, and what can still be found out about it. */
export interface LateDelivery {
  readonly window: SignatureWindow;
  /** Check 7. */
  readonly find: () => Promise<KeySearch>;
  /** Checks 8 to 10: whose key verifies; `undecided` where that could not be asked. */
  readonly signer: (candidates: readonly Candidate[]) => Promise<Candidate | 'undecided' | undefined>;
}

/** Checks 8 to 10 of one delivery for another URL, under these keys. Gives whose key verified. */
export type VerifiesFor = (
  target: Target,
  candidates: readonly Candidate[],
) => Promise<Candidate | undefined>;

/** A URL that a delivery may be for, and who may call it. */
export interface Addressed {
  /** The base that the URL is of, which is known by its identity alone; absent: the first. */
  readonly base?: object;
  readonly target: Target;
  /** All of one scheme. */
  readonly senders: readonly SenderEntry[];
}

/** A delivery, up to its body, whose senders and scheme are known from registration. */
export interface HeadRequest extends Addressed {
  readonly delivery: Head;
  /** The other URLs that it may be for (verification.md §4.16). */
  readonly others?: (() => Promise<readonly Addressed[]>) | undefined;
  /** When the delivery arrived, receiver's clock, Unix ms. */
  readonly arrivedAt: number;
}

/** The same with its body. */
export interface AuthRequest extends HeadRequest {
  readonly delivery: Delivery;
}

/** Who sent it, and the nonce to be claimed with the event (signatures only). */
export interface Identity {
  readonly kind: 'authentic';
  readonly sender: SenderEntry;
  readonly scheme: AuthPolicy['scheme'];
  /** The URL that it was judged by, where that may not be the first. */
  readonly target?: Target;
  /** It was the sender's previous credentials that matched (HMAC and bearer). */
  readonly isPrevious?: true;
  /** SHA-256 of the raw body in hex, where a check has compared it (signatures only). */
  readonly bodyHash?: string;
  readonly nonce?: { readonly keyid: string; readonly nonce: string; readonly expiresAtMs: number };
}

/** Refusals are values, faults on our side that have a check's code too; other faults are thrown. */
export type AuthResult = Identity | Refusal | Unavailability;

/** A body, once it is whole. */
export interface WholeBody {
  readonly rawBody: Uint8Array;
  /** Its SHA-256 in hex, where that was computed while it came. */
  readonly hash?: string | undefined;
  /** When it was whole, receiver's clock, Unix ms. */
  readonly wholeAt: number;
}

/** Headers that passed: what they prove, and what is left for the body. */
export interface Proof {
  readonly kind: 'proof';
  /** Whose delivery it is; undefined where only the body tells (HMAC). */
  readonly sender: SenderEntry | undefined;
  /** Signatures only. */
  readonly nonce?: Identity['nonce'];
  readonly complete: (body: WholeBody) => AuthResult | Promise<AuthResult>;
}

/** What a scheme decides by headers alone. */
export type Prove = (
  context: AuthContext,
  request: HeadRequest,
) => Proof | Refusal | Unavailability | Promise<Proof | Refusal | Unavailability>;

export type Authenticate = (context: AuthContext, request: AuthRequest) => Promise<AuthResult>;

/** Both halves of a scheme, for a delivery that is there as a whole. */
export const whole =
  (prove: Prove): Authenticate =>
  async (context, request) => {
    const found = await prove(context, request);
    if (found.kind !== 'proof') return found;
    return found.complete({ rawBody: request.delivery.rawBody, wholeAt: request.arrivedAt });
  };
