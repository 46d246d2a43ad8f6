// The results of a delivery (admission.md §2.5). A verdict is the decision, which the stages make. An outcome is a
// verdict with its HTTP answer, which `finishOutcome` makes; callers and hooks get the outcome.

import type { RefusedCode, UnavailableCode } from './codes.ts';
import type { WebhookChallenge } from '../events/challenge.ts';
import type { Event } from '../events/event.ts';

/**
 * The number of a check that a delivery has to pass; lower numbers are checked first. 1 to 13 concern the signature and
 * its nonce, 14 the JSON of the body. It is the member `check` of a refused outcome.
 */
export type CheckId = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | '9a' | 10 | 11 | 12 | 13 | 14;

/**
 * The HTTP answer to a delivery (`outcome.response`), which an adapter writes without additions. `body` is UTF-8
 * text, empty if there is none.
 */
export interface Reply {
  readonly status: number;
  /** The header fields, with names in their usual spelling, e.g. `WWW-Authenticate`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * The reason why a delivery is refused through a fault of its sender, e.g. a wrong signature. A receiver answers it
 * with 4xx; functions of `proto-webhooks/rfc9421` return it too. `code` is the reason for programs, `detail` is for
 * the operator's log only.
 */
export interface Refusal {
  readonly kind: 'refused';
  readonly code: RefusedCode;
  readonly detail: string;
  /** The number of the check that failed, if one did. */
  readonly check?: CheckId;
  /** Set if the 401 asks for a bearer token, and not for a signature. */
  readonly challenge?: 'bearer';
}

export const refused = (code: RefusedCode, detail: string, check?: CheckId): Refusal => ({
  kind: 'refused',
  code,
  detail,
  ...(check !== undefined && { check }),
});

/**
 * The outcome of a delivery that could not be decided because of a fault on the receiver's side, answered with 503
 * and `Retry-After`. `code` is the reason for programs, `detail` is for the operator's log only.
 */
export interface Unavailability {
  readonly kind: 'unavailable';
  readonly code: UnavailableCode;
  readonly detail: string;
  readonly check?: CheckId;
  /** The wait that the answer states in `Retry-After`, ms. Absent: the receiver's option `retryAfterMs` is used. */
  readonly retryAfterMs?: number;
}

export const unavailable = (code: UnavailableCode, detail: string): Unavailability => ({
  kind: 'unavailable',
  code,
  detail,
});

/**
 * State of an accepted event. `applied`: its handler has succeeded. `queued`: it is stored, and a worker will run
 * it. `dead`: it failed for good and is kept for the owner.
 */
export type EventState = 'applied' | 'queued' | 'dead';

/**
 * The outcome of a delivery whose event was accepted, answered with 200. `state` tells if the event's handler has
 * succeeded. An earlier delivery of the event may have failed; if its body differed, `changed` is true, and the
 * earlier body is handled.
 */
export interface Acceptance<E = Event> {
  readonly kind: 'accepted';
  /**
   * `applied`: the handler succeeded. `queued`: a worker will run it. `dead`: it failed for good, and the event is
   * kept for an operator.
   */
  readonly state: EventState;
  readonly event: E;
  /** True if the payload differs from the first copy under its key. The first copy is handled. */
  readonly changed: boolean;
}

/**
 * The outcome of a delivery that repeats an accepted event, or the end of a task that was reported before, answered
 * with 200. No handler runs for it. `state` is the first event's state; `changed` is true if the body differs from the
 * first event's.
 */
export interface Duplication<E = Event> {
  readonly kind: 'duplicate';
  /**
   * The state of the first copy. `stale`: it was older than its task's state, or repeated a terminal status, and
   * was not applied.
   */
  readonly state: EventState | 'stale';
  readonly event: E;
  /** True if the payload differs from the first copy under its key. */
  readonly changed: boolean;
}

/**
 * The outcome of a delivery whose event reports an older status of its task than one that was already applied,
 * answered with 200. Its handler does not run.
 */
export interface Staleness<E = Event> {
  readonly kind: 'stale';
  readonly event: E;
}

/**
 * The outcome of a delivery that is an accepted proof of control of your URL. The answer is
 * 200, and its body repeats the seller's challenge.
 */
export interface ChallengeEcho {
  readonly kind: 'challenge';
  readonly challenge: WebhookChallenge;
}

/** The decision about a delivery, before `respond` makes the answer. */
export type Verdict<E = Event> =
  Acceptance<E> | Duplication<E> | Staleness<E> | ChallengeEcho | Refusal | Unavailability;

interface Answered<E> {
  readonly response: Reply;
  /** The authenticated sender's agent URL. */
  readonly sender?: string;
  /**
   * The URL for which the delivery was verified, as in the event. Absent if the delivery was refused before its URL was
   * known.
   */
  readonly url?: string;
  /** UUID version 8 of sender and idempotency key. It is the same on every retry. */
  readonly deliveryId?: string;
  /** The event that the delivery reports. Present if the body was authentic and readable. */
  readonly event?: E;
  readonly code?: RefusedCode | UnavailableCode;
}

/** A verdict with its answer. */
export type OutcomeOf<V extends Verdict> = V & Answered<Event>;

/**
 * The result of a delivery, with which `receiver.verifyAndDispatch` resolves: the decision (`kind`) and the HTTP
 * answer (`response`). Nothing that a sender can send makes it reject.
 */
export type Outcome<E = Event> = Verdict<E> & Answered<E>;
