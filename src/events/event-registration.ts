import type { Logger, RaiseAlarm } from '../shared/alarms.ts';
import type { PublicUrl } from '../config/public-url.ts';
import type { Sender } from '../config/sender-entry.ts';
import type { Store } from '../stores/store.ts';
import type { WarningCode } from '../shared/codes.ts';
import type { Event, EventRegistration, TaskEvent } from './event.ts';
import type { Observe } from './observation.ts';

/** What the `senders` of registrations carries: a receiver that has it needs the registrations themselves. */
export const OF_REGISTRATIONS: unique symbol = Symbol.for('proto-webhooks.of-registrations') as never;

/** What registrations know of an event. */
export interface KnownRegistration {
  /** Absent: its operation is not known. */
  readonly registration?: EventRegistration;
  readonly warnings: readonly WarningCode[];
}

/** Where a receiver looks up what was registered: `createRegistrations` makes it. */
export interface EventRegistrations {
  /** `ReceiverOptions.publicUrl`, where that is not given: ends in `/*`. */
  readonly publicUrl?: string;
  /** `ReceiverOptions.senders`: the sellers of the URLs below `publicUrl`, and of no others. */
  readonly senders?: (url: URL) => readonly Sender[] | Promise<readonly Sender[]>;
  /**
   * Which operation an event about to be handled is of; one that nobody has settled is settled by it. undefined where the
   * event names none. Rejects with a Fault where the store cannot say: then the event is run again.
   */
  readonly ofEvent: (event: Event) => Promise<KnownRegistration | undefined>;
  /** The token that the seller was told to repeat for the event's operation; undefined where none was asked for. */
  readonly tokenOf?: (event: Event) => Promise<string | undefined>;
  /** A terminal status was applied, or is DEAD: nobody polls its task any more. */
  readonly ended?: (event: TaskEvent) => Promise<void>;
  /**
   * Of a receiver that is to have these registrations; its `senders` undefined: theirs.
   * @throws ConfigError where it has the store, senders or URL of others.
   */
  readonly requireTheirs?: (receiver: {
    readonly store: Store;
    readonly senders?: unknown;
    readonly publicUrl: PublicUrl;
  }) => void;
  /**
   * Of a receiver that has these registrations: an answer that ends an operation becomes an event by it, and alarms go to its
   * `onAlarm`, lines to its `logger`, where the registrations have none of their own.
   */
  readonly observeBy?: (observe: Observe, raiseAlarm: RaiseAlarm, logger?: Logger) => void;
}

/** Options of a receiver that have to be those of its registrations. */
export type ReceiverOfRegistrations = Parameters<NonNullable<EventRegistrations['requireTheirs']>>[0];
