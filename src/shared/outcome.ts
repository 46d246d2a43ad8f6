import type { RefusedCode, UnavailableCode } from './codes.ts';
import type { WebhookChallenge } from '../events/challenge.ts';
import type { Event } from '../events/event.ts';

/** The checks of verification.md §2, by their numbers there. */
export type CheckId = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | '9a' | 10 | 11 | 12 | 13 | 14;

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
  readonly retryAfterMs?: number;
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
  /** The URL that it was judged by, as the event has it; absent where it was decided before that was known. */
  readonly url?: string;
  /** UUID version 8 of (sender, idempotency key): stable over every retry. */
  readonly deliveryId?: string;
  /** Present where the body was authentic and readable. */
  readonly event?: E;
  readonly code?: RefusedCode | UnavailableCode;
}

/** A verdict with its answer. */
export type OutcomeOf<V extends Verdict> = V & Answered<Event>;

/** What `verifyAndDispatch` resolves with. It never rejects for anything a sender can send. */
export type Outcome<E = Event> = Verdict<E> & Answered<E>;
