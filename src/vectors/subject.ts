// Types of an implementation under test: its functions, the requests that it receives, and the answers that it gives.
import type { Jwk } from '../crypto/engine.ts';
import type { HeadersInput } from '../shared/delivery.ts';
import type { Recovery } from '../events/error-codes.ts';
import type { Transport } from '../events/event.ts';
import type { EditionName } from '../shared/editions.ts';

/**
 * One HTTP request of a conformance vector, which the implementation under test has to answer: the argument of
 * `deliver` of an `OpenReceiver`.
 */
export interface VectorRequest {
  readonly method: string;
  /** The absolute URL that the sender was given. */
  readonly url: string;
  readonly headers: HeadersInput;
  readonly body: Uint8Array;
}

/**
 * A seller that a conformance vector registers with the receiver under test (`Setup.senders`): its agent URL, its
 * keys, and its authentication.
 */
export interface VectorSender {
  readonly agentUrl: string;
  /** The keys that may sign for the sender. They are JWKs as in the vector, and some of them must be refused. */
  readonly keys: readonly Jwk[];
  readonly edition: EditionName;
  /** The legacy authentication of the sender. Absent: the sender signs. */
  readonly legacy?: {
    readonly scheme: 'hmac' | 'bearer';
    readonly secret: string;
    readonly previousSecret?: string;
    /** The header field that contains only the bearer token. Absent: `Authorization`. */
    readonly header?: string;
  };
  /** The token that a sender on the agent transport sends in addition to a signature. Absent: no token is expected. */
  readonly notificationToken?: {
    readonly token: string;
    readonly previousToken?: string;
    readonly onMismatch?: 'warn' | 'refuse';
  };
}

/**
 * The state that a receiver under test must have before the first request of a conformance vector. It consists of its
 * URL, sellers, clock, limits, and nonces that were used before. `Subject.open` receives it.
 */
export interface Setup {
  /** The URL that the senders were given. All requests of one vector go to it. */
  readonly url: string;
  /** The only protocol name that is accepted in wire identifiers. Absent: both known names. */
  readonly protocol?: string | undefined;
  readonly senders: readonly VectorSender[];
  /** The receiver's clock, Unix ms. */
  readonly nowMs: number;
  /** The nonces that were used before the first request. */
  readonly usedNonces: readonly { readonly keyid: string; readonly nonce: string }[];
  /** The ids of keys that have reached their limit of unexpired nonces. */
  readonly fullKids: readonly string[];
  /** The key ids on the revocation list that the senders' operator publishes. */
  readonly revokedKids: readonly string[];
  /** The time for which the revocation list has been stale, ms: counted from its `next_update` plus grace. */
  readonly revocationStaleMs?: number;
  readonly limits: VectorLimits;
  /** The media types that are accepted in addition to `application/json`. */
  readonly contentTypes?: readonly string[];
  /**
   * The owner's decision on a proof of control (a seller's challenge to the URL). Absent: the receiver has no hook for
   * that decision.
   */
  readonly challenge?: 'accept' | 'refuse';
}

/**
 * The limits of the receiver under test that a conformance vector sets (`Setup.limits`). They are the unexpired nonces
 * per key id, the records per sender, and the bytes of a body.
 */
export interface VectorLimits {
  readonly maxNoncesPerKey?: number;
  readonly maxRecordsPerSender?: number;
  readonly maxBodyBytes?: number;
}

/**
 * The circumstances in which one request of a conformance vector arrives: the time, and if the handler must fail. They
 * are passed to `deliver` of an `OpenReceiver`.
 */
export interface Arrival {
  /** The receiver's clock, Unix ms. */
  readonly nowMs: number;
  /** True if the handler must throw when it is called for this event. */
  readonly handlerFails: boolean;
}

/**
 * The answer of the receiver under test to one request of a conformance vector, as `deliver` of an `OpenReceiver`
 * returns it. Leave out members that your implementation cannot determine; they are not compared.
 */
export interface SubjectAnswer {
  /** The HTTP status. */
  readonly status: number;
  /** The error code; absent or null if there is none. */
  readonly code?: string | null | undefined;
  /** The number of the failed check, e.g. `10` or `9a`. */
  readonly check?: number | string | undefined;
  /** The kind of outcome: `accepted`, `duplicate`, `stale`, `challenge`, `refused` or `unavailable`. */
  readonly kind?: string | undefined;
  /** The answer's body, as text. */
  readonly body?: string | undefined;
  /** The answer's `WWW-Authenticate`; null if it has none. */
  readonly wwwAuthenticate?: string | null | undefined;
  /** The agent URL of the authenticated sender. */
  readonly sender?: string | null | undefined;
  /** True if the handler was called. */
  readonly handled?: boolean | undefined;
  /** True if the payload differs from that of the first copy. */
  readonly changed?: boolean | undefined;
  /** True if the event's `notification_id` was seen before under another idempotency key. */
  readonly reemission?: boolean | undefined;
  /** The kind of event: `task`, `delivery-report` or `other`. */
  readonly eventKind?: string | undefined;
  /** The event's family, as its body names it; null if the event has no family, or its body does not name one. */
  readonly family?: string | null | undefined;
  /** The codes of the event's warnings. */
  readonly warnings?: readonly string[] | undefined;
}

/**
 * A receiver that your `Subject` has set up for one conformance vector. The vector's requests are passed to its
 * `deliver`.
 */
export interface OpenReceiver {
  /** Delivers one request and returns the receiver's answer. */
  readonly deliver: (request: VectorRequest, arrival: Arrival) => SubjectAnswer | Promise<SubjectAnswer>;
  /** Closes the receiver. Called once, after the vector's last request. */
  readonly close?: () => unknown;
}

/** The canonical form of a URL, as `Subject.targetUri` returns it: `@target-uri` and `@authority` of RFC 9421. */
export interface CanonicalUrl {
  readonly targetUri: string;
  readonly authority: string;
}

/**
 * The result of `Subject.extract`: the transport (`tool` for MCP, `agent` for A2A) of a webhook body, and the data
 * in it.
 */
export interface Extracted {
  /** The transport of the body: `tool` or `agent`; undefined if it is neither. */
  readonly format: string | undefined;
  /** The data; undefined if the body has none. */
  readonly data: unknown;
}

/**
 * The result of `Subject.answerData`: the data that a client reads from a seller's answer to a call, e.g. to
 * `create_media_buy`.
 */
export interface AnswerData {
  /** The data; undefined if the answer has none. */
  readonly data: unknown;
  /** The error `wrapper_detected`, if the data part contained only `{response: {…}}`. */
  readonly error?: string | undefined;
}

/**
 * The result of `Subject.answerError`: the error that a client reads from a seller's answer to a call. Leave out
 * members that your implementation cannot determine; they are not compared.
 */
export interface AnswerError {
  readonly code?: string | undefined;
  /** The seller's text, or a message that contains that text. */
  readonly message?: string | undefined;
  /** The recommended reaction of the caller: repeat the call, change the request, or ask a person. */
  readonly recovery: Recovery;
  /** The path of the argument that caused the error. */
  readonly field?: string | undefined;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  /** The time that the seller asks the caller to wait, ms. */
  readonly retryAfterMs?: number | undefined;
}

/** One HTTP redirect in a conformance vector about finding a publisher's document: its status and `Location`. */
export interface Redirect {
  /** The HTTP status. */
  readonly status: number;
  /** The field `Location`. Absent: the answer has none. */
  readonly location?: string;
}

/**
 * A conformance vector about redirects: the URL at which a publisher's document is fetched, and the redirects that
 * the server answers. `Subject.discover` receives it.
 */
export interface Discovery {
  /** The kind of document: the one at the well-known path, or one at an `authoritative_location`. */
  readonly target: 'well-known' | 'authoritative';
  readonly url: string;
  /** The server's redirects, in their order. After the last redirect, the server answers with the document. */
  readonly redirects: readonly Redirect[];
}

/**
 * The result of `Subject.discover`: the URL at which the publisher's document was found, or the reason why it was
 * not.
 */
export type Discovered =
  { readonly ok: true; readonly url: string } | { readonly ok: false; readonly reason: string };

/**
 * The implementation that conformance vectors (requests with the answers that a receiver must give) test: this library,
 * or your own. If a function is absent, the vectors that need it are skipped. Signature bases are compared only if
 * `signatureBase` is present.
 */
export interface Subject {
  /** Sets up a receiver, for vectors about signatures, HMAC, bearer, envelopes and sequences. */
  readonly open?: (setup: Setup) => OpenReceiver | Promise<OpenReceiver>;
  /** Returns the signature base that a verifier builds for `sig1` of a request; undefined if it builds none. */
  readonly signatureBase?: (request: VectorRequest) => string | undefined;
  /** Canonicalises a URL. It throws for a URL that has no canonical form. */
  readonly targetUri?: (url: string) => CanonicalUrl;
  /** Detects the transport of a payload and extracts the data. */
  readonly extract?: (payload: unknown) => Extracted;
  /** Returns the data in a seller's answer to a call. */
  readonly answerData?: (response: unknown, transport: Transport) => AnswerData | Promise<AnswerData>;
  /** Returns the error in a seller's answer to a call; undefined if no error with a code or recovery is found. */
  readonly answerError?: (
    response: unknown,
    transport: Transport,
  ) => AnswerError | undefined | Promise<AnswerError | undefined>;
  /** Fetches a publisher's document. */
  readonly discover?: (discovery: Discovery) => Discovered | Promise<Discovered>;
  /** Returns true if a receiver accepts this shared secret in its configuration. */
  readonly takesSecret?: (secret: string) => boolean;
}
