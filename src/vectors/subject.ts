import type { Jwk } from '../crypto/engine.ts';
import type { HeadersInput } from '../shared/delivery.ts';
import type { Recovery } from '../events/error-codes.ts';
import type { Transport } from '../events/event.ts';
import type { EditionName } from '../shared/editions.ts';

/** One HTTP request of a vector. */
export interface VectorRequest {
  readonly method: string;
  /** The absolute URL that the sender was given. */
  readonly url: string;
  readonly headers: HeadersInput;
  readonly body: Uint8Array;
}

/** A sender as a vector wants it registered. */
export interface VectorSender {
  readonly agentUrl: string;
  /** The keys that may sign for it. JWKs as they stand in the vector: some of them must be refused. */
  readonly keys: readonly Jwk[];
  readonly edition: EditionName;
  /** Registered with a legacy scheme; absent: signatures. */
  readonly legacy?: {
    readonly scheme: 'hmac' | 'bearer';
    readonly secret: string;
    readonly previousSecret?: string;
    /** Bearer: the field that has the token alone; absent: `Authorization`. */
    readonly header?: string;
  };
  /** The token that its agent transport echoes beside a signature. */
  readonly notificationToken?: {
    readonly token: string;
    readonly previousToken?: string;
    readonly onMismatch?: 'warn' | 'refuse';
  };
}

/** What has to be so before the first request of a vector arrives. */
export interface Setup {
  /** Registered with the senders: all requests of one vector go there. */
  readonly url: string;
  /** The one name that is accepted in wire identifiers; absent: both known ones. */
  readonly protocol?: string | undefined;
  readonly senders: readonly VectorSender[];
  /** The receiver's clock, Unix ms. */
  readonly nowMs: number;
  /** Nonces that were seen. */
  readonly usedNonces: readonly { readonly keyid: string; readonly nonce: string }[];
  /** Key ids whose senders' cap of live nonces is reached. */
  readonly fullKids: readonly string[];
  /** Key ids on the operator's revocation list. */
  readonly revokedKids: readonly string[];
  /** The list is so many seconds past its `next_update` and its grace. */
  readonly revocationStaleSeconds?: number;
  readonly limits: VectorLimits;
  /** Media types taken beside `application/json`. */
  readonly contentTypes?: readonly string[];
  /** What the owner says to a proof of control; absent: nobody is asked. */
  readonly challenge?: 'accept' | 'refuse';
}

/** Caps of the receiver, where a vector sets them. */
export interface VectorLimits {
  readonly maxNoncesPerKey?: number;
  readonly maxRecordsPerSender?: number;
  readonly maxBodyBytes?: number;
}

/** How one request arrives. */
export interface Arrival {
  /** The receiver's clock, Unix ms. */
  readonly nowMs: number;
  /** The handler of this event throws, if it is called. */
  readonly handlerFails: boolean;
}

/** What a receiver answered. What an implementation cannot tell is left out, and is not compared. */
export interface SubjectAnswer {
  /** HTTP status. */
  readonly status: number;
  /** The code of verification.md §2; absent or null where there is none. */
  readonly code?: string | null | undefined;
  /** Number of the check that failed, e.g. `10` or `9a`. */
  readonly check?: number | string | undefined;
  /** `accepted`, `duplicate`, `stale`, `challenge`, `refused`, `unavailable`. */
  readonly kind?: string | undefined;
  /** The answer's body, as text. */
  readonly body?: string | undefined;
  /** The answer's `WWW-Authenticate`; null where it has none. */
  readonly wwwAuthenticate?: string | null | undefined;
  /** Agent URL of the authenticated sender. */
  readonly sender?: string | null | undefined;
  /** The handler was called. */
  readonly handled?: boolean | undefined;
  /** The payload differs from the first copy's. */
  readonly changed?: boolean | undefined;
  /** The event's `notification_id` was seen under another key. */
  readonly reemission?: boolean | undefined;
  /** `task`, `delivery-report` or `other`. */
  readonly eventKind?: string | undefined;
  /** What the event's body calls itself; null where it is not an event of a family, or has no name. */
  readonly family?: string | null | undefined;
  /** Codes of the event's warnings. */
  readonly warnings?: readonly string[] | undefined;
}

/** A receiver that was set up for one vector. */
export interface OpenReceiver {
  /** Its answer to one request. */
  readonly deliver: (request: VectorRequest, arrival: Arrival) => SubjectAnswer | Promise<SubjectAnswer>;
  /** Called once, after the vector's last request. */
  readonly close?: () => unknown;
}

/** Canonical `@target-uri` and `@authority`. */
export interface CanonicalUrl {
  readonly targetUri: string;
  readonly authority: string;
}

/** What extraction gives for a payload. */
export interface Extracted {
  /** `tool`, `agent`, or undefined. */
  readonly format: string | undefined;
  /** Undefined where there is none. */
  readonly data: unknown;
}

/** What a caller takes from the answer to its call. */
export interface AnswerData {
  /** Undefined where there is none. */
  readonly data: unknown;
  /** `wrapper_detected`: the data part was only `{response: {…}}`. */
  readonly error?: string | undefined;
}

/** An error as a caller reads it from an answer. What an implementation cannot tell is left out, and is not compared. */
export interface AnswerError {
  readonly code?: string | undefined;
  /** The seller's text, or a message with it. */
  readonly message?: string | undefined;
  /** What the caller does: call again, change the request, or ask a person. */
  readonly recovery: Recovery;
  readonly field?: string | undefined;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  readonly retryAfterMs?: number | undefined;
}

/** One answer that names another place. */
export interface Redirect {
  /** HTTP status. */
  readonly status: number;
  /** Its `Location`; absent: it has none. */
  readonly location?: string;
}

/** A publisher's document that is fetched. */
export interface Discovery {
  /** At its well-known path, or where an `authoritative_location` leads. */
  readonly target: 'well-known' | 'authoritative';
  readonly url: string;
  /** The answers in their order; behind the last one is the document. */
  readonly redirects: readonly Redirect[];
}

/** Where the document was had, or why not. */
export type Discovered =
  { readonly ok: true; readonly url: string } | { readonly ok: false; readonly reason: string };

/**
 * What vectors are run against: this library, or an implementation of yours. Kinds of vectors whose function is left
 * out are not run; a signature base is compared only where `signatureBase` is there.
 */
export interface Subject {
  /** Signatures, HMAC, bearer, envelopes, sequences. */
  readonly open?: (setup: Setup) => OpenReceiver | Promise<OpenReceiver>;
  /** The base that a verifier builds for `sig1` of a request; undefined where it builds none. */
  readonly signatureBase?: (request: VectorRequest) => string | undefined;
  /** URL canonicalization. Throws for a URL that has no canonical form. */
  readonly targetUri?: (url: string) => CanonicalUrl;
  /** Format detection and extraction. */
  readonly extract?: (payload: unknown) => Extracted;
  /** The data in the answer to a call. */
  readonly answerData?: (response: unknown, transport: Transport) => AnswerData | Promise<AnswerData>;
  /** The error in the answer to a call; undefined where a caller finds none that says what it is. */
  readonly answerError?: (
    response: unknown,
    transport: Transport,
  ) => AnswerError | undefined | Promise<AnswerError | undefined>;
  /** Fetches a publisher's document. */
  readonly discover?: (discovery: Discovery) => Discovered | Promise<Discovered>;
  /** Whether a receiver can be configured with a shared secret. */
  readonly takesSecret?: (secret: string) => boolean;
}
