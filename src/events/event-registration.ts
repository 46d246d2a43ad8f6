// The interface between a receiver and the registrations of calls to sellers (told.md §1.3, §4.2,
// verification.md §6.9, §7.9).
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
 * Marks a `senders` function that belongs to registrations. A receiver with such a function also needs the
 * registrations.
 */
export const OF_REGISTRATIONS: unique symbol = Symbol.for('proto-webhooks.of-registrations') as never;

/**
 * The result of `ofEvent` of `EventRegistrations`: the registered call that an event belongs to, and warnings if the
 * event contradicts the call.
 */
export interface KnownRegistration {
  /** The registration. Absent if the operation is unknown. */
  readonly registration?: EventRegistration;
  readonly warnings: readonly WarningCode[];
}

/**
 * The result of `createRegistrations` as a receiver uses it, passed as its option `registrations`. It finds the call
 * that an event belongs to, and provides the URL and the sellers.
 */
export interface EventRegistrations {
  /** The value of `ReceiverOptions.publicUrl` if that is absent. Each URL ends in `/*`. */
  readonly publicUrl?: string | readonly string[];
  /** The value of `ReceiverOptions.senders`: the sellers of the URLs below `publicUrl`, and no others. */
  readonly senders?: (url: URL) => readonly Sender[] | Promise<readonly Sender[]>;
  /**
   * Returns the operation of an event that is about to be handled; undefined if the event names none. An unsettled
   * operation is settled by the event. It rejects with a Fault if the store cannot answer; the event is then run
   * again.
   */
  readonly ofEvent: (event: Event) => Promise<KnownRegistration | undefined>;
  /** Returns the token that the seller was asked to repeat for the event's operation; undefined if there is none. */
  readonly tokenOf?: (event: Event) => Promise<string | undefined>;
  /**
   * Answers a proof of control that the verified `sender` signed: true, or the reason for a no. It is undefined if the
   * challenge names no subscription of these registrations; `onChallenge` is then asked. It rejects with a Fault if
   * the store cannot answer; the seller may then ask again.
   */
  readonly answersChallenge?: (
    challenge: WebhookChallenge,
    sender: string,
  ) => Promise<true | string | undefined>;
  /**
   * Returns the `ref` of the subscription that the sender's event names; undefined if it is none of these
   * registrations. It rejects with a Fault if the store cannot answer; the event is then run again.
   */
  readonly subscriptionRef?: (sender: string, subscriberId: string) => Promise<string | undefined>;
  /**
   * Notes that an authentic delivery of the sender came by a URL. `isPrevious` is true if the previous
   * credentials there matched, undefined if it was signed. It never throws, and no answer waits for it.
   * @returns the URL, as registrations name it, and the write that this delivery began; undefined if it is
   * none of theirs.
   */
  readonly heard?: (
    url: string,
    sender: string,
    isPrevious?: boolean,
  ) =>
    | { readonly url: { readonly base: string; readonly route: string }; readonly written?: Promise<void> }
    | undefined;
  /**
   * Called for a delivery that was refused. Its result is defined if HMAC or bearer credentials that counted at the
   * URL were retired, which is told as an alarm once a day.
   */
  readonly retired?: (url: string, sender: string) => { readonly written?: Promise<void> } | undefined;
  /** Called when a terminal status was applied, or is DEAD. Its task is then no longer polled. */
  readonly ended?: (event: TaskEvent) => Promise<void>;
  /**
   * Checks the options of a receiver that is to use these registrations. If its `senders` is undefined, theirs are
   * used.
   * @throws ConfigError if it has the store, senders or URL of others.
   */
  readonly requireTheirs?: (receiver: {
    readonly store: Store;
    readonly senders?: unknown;
    readonly bases: Bases;
  }) => void;
  /**
   * Connects a receiver. An answer that ends an operation becomes an event of it. Alarms go to its `onAlarm` and
   * log lines to its `logger`, unless the registrations have their own.
   */
  readonly observeBy?: (observe: Observe, raiseAlarm: RaiseAlarm, logger?: Logger) => void;
}

/** Options of a receiver that must be those of its registrations. */
export type ReceiverOfRegistrations = Parameters<NonNullable<EventRegistrations['requireTheirs']>>[0];
