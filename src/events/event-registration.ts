// The interface between a receiver and its registrations: the calls to sellers that the owner made and stored (told.md
// §1.3, §4.2, verification.md §6.9, §7.9).
// Implemented by the folder `registrations`; called by the stages.

import type { Logger, RaiseAlarm } from '../shared/alarms.ts';
import type { Bases } from '../config/public-url.ts';
import type { Sender } from '../config/sender-entry.ts';
import type { Store } from '../stores/store.ts';
import type { WarningCode } from '../shared/codes.ts';
import type { WebhookChallenge } from './challenge.ts';
import type { Event, EventRegistration, TaskEvent } from './event.ts';
import type { Observe } from './observation.ts';

/**
 * Marks a `senders` function that registrations made. A receiver that gets such a function must also get the
 * registrations.
 */
export const OF_REGISTRATIONS: unique symbol = Symbol.for('proto-webhooks.of-registrations') as never;

/**
 * The result of `ofEvent` of `EventRegistrations`: the registered call that an event belongs to, and warnings if the
 * event contradicts the call.
 */
export interface KnownRegistration {
  /** The registered call. Absent if no registered call has the event's ids. */
  readonly registration?: EventRegistration;
  readonly warnings: readonly WarningCode[];
}

/**
 * The result of `createRegistrations` as a receiver uses it, passed as its option `registrations`. It finds the call
 * that an event belongs to, and provides the URL and the sellers.
 */
export interface EventRegistrations {
  /** Used as `publicUrl` of a receiver if its owner did not set that option. Each URL ends in `/*`. */
  readonly publicUrl?: string | readonly string[];
  /**
   * Returns the sellers that were given this URL; none for a URL that is not below `publicUrl`. A receiver asks this
   * function about URLs below `publicUrl`, and the owner's option `senders` about all others.
   */
  readonly senders?: (url: URL) => readonly Sender[] | Promise<readonly Sender[]>;
  /**
   * Returns the registered call (operation) of an event that is about to be handled; undefined if the event names none.
   * If the outcome of the call is still unknown, the event decides it. Rejects with a Fault if the store cannot answer;
   * the event is then run again.
   */
  readonly ofEvent: (event: Event) => Promise<KnownRegistration | undefined>;
  /**
   * Returns the token that the seller was asked to repeat in webhooks of the event's operation; undefined if there is
   * none.
   */
  readonly tokenOf?: (event: Event) => Promise<string | undefined>;
  /**
   * Answers a proof of control that the verified `sender` signed: true, or the reason for a no. Undefined if the
   * challenge names no subscription of these registrations; then `onChallenge` is asked. Rejects with a Fault if the
   * store cannot answer; the seller may then send the challenge again.
   */
  readonly answersChallenge?: (
    challenge: WebhookChallenge,
    sender: string,
  ) => Promise<true | string | undefined>;
  /**
   * Returns the owner's `ref` of the subscription that the sender's event names; undefined if these registrations have
   * no such subscription. Rejects with a Fault if the store cannot answer; the event is then run again.
   */
  readonly subscriptionRef?: (sender: string, subscriberId: string) => Promise<string | undefined>;
  /**
   * Records that an authentic delivery of the sender came by a URL. `isPrevious` is true if the previous credentials of
   * the URL matched, and undefined if the delivery was signed. It never throws, and no answer waits for it.
   * @returns the URL as registrations name it. `written`: the write of this record, if this delivery began one.
   * Undefined for a URL that registrations did not give out.
   */
  readonly heard?: (
    url: string,
    sender: string,
    isPrevious?: boolean,
  ) =>
    | { readonly url: { readonly base: string; readonly route: string }; readonly written?: Promise<void> }
    | undefined;
  /**
   * Called for a refused delivery without a signature. Returns a value if HMAC or bearer credentials of this URL have
   * been retired, no matter which credentials the delivery has; otherwise undefined. `written`: the write that records
   * this use, which raises an alarm once a day.
   */
  readonly retired?: (url: string, sender: string) => { readonly written?: Promise<void> } | undefined;
  /**
   * Called when an event with a terminal status was handled, or became DEAD (gets no more runs). The event's task is
   * then no longer polled.
   */
  readonly ended?: (event: TaskEvent) => Promise<void>;
  /**
   * Checks the options of a receiver that is to use these registrations. If the receiver has no option `senders`, it
   * uses `senders` of these registrations.
   * @throws ConfigError if the receiver has another store, has the senders of other registrations, or does not serve
   * the URLs of these registrations.
   */
  readonly requireTheirs?: (receiver: {
    readonly store: Store;
    readonly senders?: unknown;
    readonly bases: Bases;
  }) => void;
  /**
   * Connects a receiver. If the answer of a seller ends an operation, it becomes an event of this receiver. Alarms and
   * log lines of the registrations go to this receiver, unless the registrations have their own `onAlarm` or `logger`.
   */
  readonly observeBy?: (observe: Observe, raiseAlarm: RaiseAlarm, logger?: Logger) => void;
}

/** The options of a receiver that `requireTheirs` compares with the registrations. */
export type ReceiverOfRegistrations = Parameters<NonNullable<EventRegistrations['requireTheirs']>>[0];
