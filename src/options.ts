import type { Alarm, Logger } from './alarms.ts';
import type { OnChallenge } from './challenge-contract.ts';
import type { Sodium, Verification } from './crypto/engine.ts';
import type { EditionName } from './edition.ts';
import type { Event, ResultSchemas } from './events/event.ts';
import type { HeadersInput } from './delivery.ts';
import type { Door, RequestInfo } from './door-contract.ts';
import type { OnHandled } from './handled-contract.ts';
import type { Health } from './health-contract.ts';
import type { Handlers } from './events/handlers.ts';
import type { EventRegistrations } from './events/registration.ts';
import type { AdmissionPressure } from './keys/admission-pressure.ts';
import type { ReceiverInbox, WorkerOptions } from './inbox/contract.ts';
import type { NameLookUp, Transport } from './keys/contract.ts';
import type { Outcome } from './outcome.ts';
import type { OnRefused } from './refused-contract.ts';
import type { Sender } from './senders.ts';
import type { Durability, Store } from './stores/contract.ts';
import type { Ticket } from './ticket-contract.ts';

export type { Door, RequestInfo } from './door-contract.ts';
export type { Handled, OnHandled } from './handled-contract.ts';
export type * from './health-contract.ts';
export type { OnRefused, RefusedDelivery } from './refused-contract.ts';
export type { Ticket } from './ticket-contract.ts';
export type { Handler, HandlerContext, Handlers, NotificationHandlers } from './events/handlers.ts';

/** Who may call: one list for one URL, or a function of the URL alone; `[]` answers 401, a failure 503. */
export type SenderSource = readonly Sender[] | ((url: URL) => readonly Sender[] | Promise<readonly Sender[]>);

/** How often an event is run before it is DEAD, and how long workers wait in between. */
export interface RetryOptions {
  /** Runs of the handler before the event is DEAD. 12. */
  readonly attempts?: number;
  /** First back-off of a worker, ms. 1000. */
  readonly baseMs?: number;
  /** Longest back-off of a worker, ms. 300 000. */
  readonly maxMs?: number;
  /** Runs that ended with the process, while the event ran alone, before it is DEAD. 5. */
  readonly crashes?: number;
}

/** `createReceiver`'s options. Mistakes throw `ConfigError` at construction, with the fix in the message. */
export interface ReceiverOptions<S extends ResultSchemas = ResultSchemas, Tx = unknown> {
  /** Exactly the URL that sellers were given; one that ends in `/*` takes path and query from the request. */
  readonly publicUrl: string;
  readonly senders: SenderSource;
  readonly store: Store<Tx>;
  readonly handlers: Handlers<S, Tx>;
  /**
   * Whether a seller that asks for a proof of control may activate its subscription: yes only to one that you asked for,
   * and where `challenge.authMatches`. Asked where `seller_agent_url` is the verified sender's, 5 s at most, maybe more
   * than once for one challenge. Without it, and for anything but `true`, the answer is 403; where it throws, 503.
   */
  readonly onChallenge?: OnChallenge;
  /** Name in wire identifiers. `proto`. */
  readonly protocol?: string;
  /** Edition of the protocol, overridable per sender. `3.0`. */
  readonly edition?: EditionName;
  /**
   * `inline`: the handler runs before the reply. `inbox`: the event is durable, then answered, and workers
   * (`receiver.start()`, here or in other processes on the same store) run the handler. `inline`.
   */
  readonly mode?: 'inline' | 'inbox';
  /** Mode `inbox`: how this process works, once started. */
  readonly worker?: WorkerOptions;
  /**
   * Mode `inbox`: where an event has been due for so many ms and no worker has leased it, the alarm `queue_unattended` is
   * raised, by processes that only receive too. 60 000.
   */
  readonly queueUnattendedMs?: number;
  /** Standard Schemas by task type: what fits is `event.parsed`. */
  readonly resultSchemas?: S;
  /**
   * What you registered with sellers: each event has `registration` where its operation is known, and a warning where
   * what it says does not fit. Costs a look-up in the store for each event that is handled.
   */
  readonly registrations?: EventRegistrations;
  /**
   * Types taken beside `application/json`, of the form `application/…+json`: `['application/a2a+json']` for an agent
   * transport's own push. None.
   */
  readonly contentTypes?: readonly string[];
  /** Bytes. 1 048 576. */
  readonly maxBodyBytes?: number;
  /**
   * Bytes of bodies that the doors hold at once, for deliveries not yet answered; over it 503 `overloaded`.
   * 134 217 728, or eight bodies of `maxBodyBytes` where that is more.
   */
  readonly maxBufferedBytes?: number;
  /** Ms from the first byte to the last. 10 000. */
  readonly bodyDeadlineMs?: number;
  /** Ms until `ctx.signal` fires, and inline the reply is 503. 8 000; inbox 900 000. */
  readonly handlerDeadlineMs?: number;
  /** Ms until a handler that does not settle counts as crashed. 900 000. */
  readonly maxRunMs?: number;
  /** Ms a lease holds without renewal. 8 000; inbox 30 000. */
  readonly leaseMs?: number;
  /** Ms between renewals. A quarter of `leaseMs`. */
  readonly renewMs?: number;
  /** Ms a duplicate waits for the first copy's handler. 8 000. */
  readonly waitMs?: number;
  /** Ms a finished event is remembered: 24 h (86 400 000) to 8 days. */
  readonly retentionMs?: number;
  /** Set where `retentionMs` is under 24 h and every sender was told (contract.md §9.3). */
  readonly shorterRetentionToldToSenders?: boolean;
  /** 1 000 000. */
  readonly maxRecordsPerSender?: number;
  /** Bytes. 268 435 456. */
  readonly maxPendingBytesPerSender?: number;
  /** Live nonces per key id. 100 000. */
  readonly maxNoncesPerKey?: number;
  /** Live nonces of one sender, over all its key ids. 1 000 000. */
  readonly maxNoncesPerSender?: number;
  /** Live nonces of all senders, approximate. 10 000 000. */
  readonly maxNonces?: number;
  /** Refuse to start on a store that promises less. `disk`. */
  readonly requireDurability?: Durability;
  /**
   * Refuse every store but the one with this identity (`storeId` of `ready()`): an empty one in its place, where a volume
   * was not mounted, would take finished events for new ones.
   */
  readonly expectStoreId?: string;
  /** Counts where the backend's settings cannot be read. */
  readonly declaredDurability?: Durability;
  /** Which threads verify signatures. `auto`. */
  readonly verification?: Verification;
  /** The module `sodium-native`, to verify Ed25519 in half the time. Not with `verification: 'pool'`. */
  readonly sodium?: Sodium;
  /** `off`: the request's `Host` is not compared with `publicUrl`. `strict`. */
  readonly hostCheck?: 'strict' | 'off';
  /** Development: http and private addresses in `publicUrl`, agent and key URLs. */
  readonly allowLoopback?: boolean;
  readonly retry?: RetryOptions;
  /** When to raise the alarm `admission_pressure`: more new key ids than usual. Off. */
  readonly admissionPressure?: AdmissionPressure;
  /** `Retry-After` of 429 and 503, seconds. 5. */
  readonly retryAfterSeconds?: number;
  /** Unix ms. `Date.now`. */
  readonly now?: () => number;
  /** Fetches key documents. The platform's own by default. */
  readonly transport?: Transport;
  /**
   * How Node looks up the names in key URLs: `direct` asks DNS servers, so that one seller's silent name server holds up
   * no other seller; `system` is for hosts files, split DNS and names of a container's network. `direct`.
   */
  readonly dns?: NameLookUp;
  readonly logger?: Logger;
  /** Told of each delivery, before its answer leaves: what it throws or promises changes no answer. */
  readonly onOutcome?: (outcome: Outcome<Event<S>>) => void;
  /** Told how each run of a handler ended, in both modes: at most once a run, after the store has taken its end. */
  readonly onHandled?: OnHandled;
  /** Told of what the owner has to act on: docs/errors.md has each code. What it throws or promises changes no answer. */
  readonly onAlarm?: (alarm: Alarm) => void;
  /**
   * Told of each delivery that was refused, with its headers and, where it was read, its body: `captureRefused` of
   * `proto-webhooks/node` writes them to files that `explain` reads.
   */
  readonly onRefused?: OnRefused;
}

/** What `ready()` found. */
export interface Readiness {
  /** Which store it is, for `expectStoreId`; undefined where the store does not say. */
  readonly storeId: string | undefined;
}

/** What `createReceiver` makes. */
export interface Receiver<S extends ResultSchemas = ResultSchemas> {
  /**
   * The whole corridor: verifies, admits once, runs the handler, decides the answer. Bound.
   * @param rawBytes the body exactly as received.
   * @throws ConfigError (rejects) only for a caller's mistake: parsed body, unusable headers, missing `url`.
   */
  readonly verifyAndDispatch: (
    rawBytes: Uint8Array,
    headers: HeadersInput,
    request?: RequestInfo,
  ) => Promise<Outcome<Event<S>>>;
  /**
   * Checks store, schema and settings, and fetches keys ahead (what cannot be had is an alarm). Called again it checks
   * again.
   * @throws ConfigError (rejects) with the fix; Fault `store_unavailable` where the store cannot be reached.
   */
  readonly ready: () => Promise<Readiness>;
  /**
   * Mode `inbox`: checks the store, then leases events and runs their handlers in this process, until `stop`. A
   * process that only works is the same receiver without a door. Called again, nothing.
   *
   * Resolves when the worker runs. Where the store cannot be reached it stays pending and tries again, at most every 30 s,
   * each time with a line at level error, until it can or `stop` is called, which resolves it.
   * @throws ConfigError (rejects) with the fix, and nothing else: in mode `inline`, after `stop`, and where `ready` would.
   */
  readonly start: () => Promise<void>;
  /**
   * Running deliveries finish, new ones get 503 `shutting_down`; the worker leases nothing more, and its handlers
   * have `leaseMs` to finish, their signals firing after three quarters of it. Then the store is closed.
   */
  readonly stop: () => Promise<void>;
  /**
   * How this process is, for `/livez` and `/readyz` (docs/observability.md). Asks the store at most once a second and for
   * 0.8 s at most, whoever calls; a store that is in trouble is checked as `ready` does. Never rejects.
   */
  readonly health: () => Promise<Health>;
  /** Events that are DEAD or stuck: look at them, run them again, let them go. */
  readonly inbox: ReceiverInbox;
  /**
   * The first half of `verifyAndDispatch`, for headers whose body is still coming: checks 1 to 10. Bound.
   * @returns the outcome, where the headers decide: answer it and read nothing; else a ticket that takes the body.
   * @throws ConfigError (rejects) only for a caller's mistake: unusable headers, missing `url`.
   */
  readonly open: (headers: HeadersInput, request?: RequestInfo) => Promise<Outcome<Event<S>> | Ticket>;
  /** For adapters: answers of their own. */
  readonly door: Door;
}
