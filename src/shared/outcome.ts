import type { WebhookChallenge } from '../events/challenge.ts';
import type { Event } from '../events/event.ts';

/** The checks of verification.md §2, by their numbers there. */
export type CheckId = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | '9a' | 10 | 11 | 12 | 13 | 14;

/** Refusals that authentication gives: all answered 401 but for `…_rate_abuse` (429). */
export type AuthenticationCode =
  | 'webhook_signature_header_malformed'
  | 'webhook_signature_params_incomplete'
  | 'webhook_signature_tag_invalid'
  | 'webhook_signature_alg_not_allowed'
  | 'webhook_signature_window_invalid'
  | 'webhook_signature_components_incomplete'
  | 'webhook_signature_key_unknown'
  | 'webhook_signature_key_purpose_invalid'
  | 'webhook_signature_key_revoked'
  | 'webhook_signature_rate_abuse'
  | 'webhook_target_uri_malformed'
  | 'webhook_signature_invalid'
  | 'webhook_signature_digest_mismatch'
  | 'webhook_signature_replayed'
  | 'webhook_body_malformed'
  | 'webhook_mode_mismatch'
  | 'webhook_token_mismatch';

/** Refusals of an authentic body that is not a valid envelope: 400 (verification.md §7.5). */
export type EnvelopeCode =
  'missing_idempotency_key' | 'missing_envelope_fields' | 'invalid_envelope_status' | 'invalid_envelope';

/** Every code of an outcome of kind `refused`: the sender's doing. */
export type RefusedCode =
  | 'method_not_allowed'
  | 'unsupported_media_type'
  | 'unsupported_content_encoding'
  | 'payload_too_large'
  | AuthenticationCode
  | EnvelopeCode
  | 'payload_changed'
  /** A second terminal status of a task that says something else: 409 in edition 3.2. */
  | 'task_already_final'
  /** A proof of control that the owner did not say yes to, or could not be asked about: 403. */
  | 'challenge_refused'
  | 'sender_over_limit';

/** Every code of an outcome of kind `unavailable`: a fault on our side, always 503, never 4xx. */
export type UnavailableCode =
  | 'keys_unavailable'
  | 'store_unavailable'
  /** The signature's window does not hold by this receiver's clock, and it is that clock which is wrong. */
  | 'clock_skew'
  | 'not_durable'
  | 'in_flight'
  | 'task_busy'
  | 'lease_lost'
  | 'handler_failed'
  | 'handler_timeout'
  | 'body_timeout'
  | 'body_consumed'
  | 'overloaded'
  | 'shutting_down'
  | 'misconfigured'
  | 'webhook_signature_revocation_stale'
  /** The signature verifies for our URL but `Host` names another: a proxy of ours rewrote it (verification.md §4.12). */
  | 'webhook_target_uri_malformed';

/** What an adapter writes, nothing added. `body` is UTF-8 text, empty where there is none. */
export interface Reply {
  readonly status: number;
  /** Field names in the form in which they go on the wire, e.g. `WWW-Authenticate`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A refusal or a fault before it becomes an answer. `detail` is for the owner's log only. */
export interface Refusal {
  readonly kind: 'refused';
  readonly code: RefusedCode;
  readonly detail: string;
  /** Which check of verification.md §2 failed, where one did. */
  readonly check?: CheckId;
  /** `bearer` answers 401 in its own form (verification.md §6.4). */
  readonly challenge?: 'bearer';
}

export const refused = (code: RefusedCode, detail: string, check?: CheckId): Refusal => ({
  kind: 'refused',
  code,
  detail,
  ...(check !== undefined && { check }),
});

/** A fault on our side: 503 with `Retry-After`. `detail` is for the owner's log only. */
export interface Unavailability {
  readonly kind: 'unavailable';
  readonly code: UnavailableCode;
  readonly detail: string;
  readonly check?: CheckId;
  /** For `Retry-After`, where it is known how long to wait; else the receiver's option. */
  readonly retryAfterSeconds?: number;
}

export const unavailable = (code: UnavailableCode, detail: string): Unavailability => ({
  kind: 'unavailable',
  code,
  detail,
});

/** `applied`: the handler's work is done. `queued`: durable, a worker will run it. `dead`: kept for the owner. */
export type EventState = 'applied' | 'queued' | 'dead';

/** Answered 200: this delivery's event was taken. */
export interface Acceptance<E = Event> {
  readonly kind: 'accepted';
  readonly state: EventState;
  readonly event: E;
  /** The payload differs from the first copy under its key; the first copy is what was handled. */
  readonly changed: boolean;
}

/** Answered 200: the event was taken before; this delivery changed nothing. */
export interface Duplication<E = Event> {
  readonly kind: 'duplicate';
  /** `stale`: the first copy was older than its task's state, or said a terminal status again, and was not applied. */
  readonly state: EventState | 'stale';
  readonly event: E;
  readonly changed: boolean;
}

/** Answered 200: older than the state already applied for its task; not applied (contract.md §9.7). */
export interface Staleness<E = Event> {
  readonly kind: 'stale';
  readonly event: E;
}

/** Answered 200 with the challenge: a proof of control that `onChallenge` said yes to (verification.md §7.9). */
export interface ChallengeEcho {
  readonly kind: 'challenge';
  readonly challenge: WebhookChallenge;
}

/** What the pipeline decided, before `respond` makes an answer of it. */
export type Verdict<E = Event> =
  Acceptance<E> | Duplication<E> | Staleness<E> | ChallengeEcho | Refusal | Unavailability;

interface Answered<E> {
  readonly response: Reply;
  /** The authenticated sender's agent URL. */
  readonly sender?: string;
  /** UUID version 8 of (sender, idempotency key): stable over every retry. */
  readonly deliveryId?: string;
  /** Present where the body was authentic and readable. */
  readonly event?: E;
  readonly code?: RefusedCode | UnavailableCode;
}

/** What `verifyAndDispatch` resolves with. It never rejects for anything a sender can send. */
export type Outcome<E = Event> = Verdict<E> & Answered<E>;
