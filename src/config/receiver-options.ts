// Defines the options of `createReceiver` and the receiver itself: types alone. Every folder that makes or serves a
// receiver imports them (admission.md §2).
import type { Alarm, Logger } from '../shared/alarms.ts';
import type { Verification } from '../crypto/engine.ts';
import type { HeadersInput } from '../shared/delivery.ts';
import type { EditionName } from '../shared/editions.ts';
import type { Event, ResultSchemas } from '../events/event.ts';
import type { Handlers, OnChallenge } from '../events/handlers.ts';
import type { Observe } from '../events/observation.ts';
import type { EventRegistrations } from '../events/event-registration.ts';
import type { ReceiverInbox, WorkerOptions } from '../inbox/inbox-contract.ts';
import type { KeyFetch } from '../keys/key-resolver.ts';
import type { Outcome } from '../shared/outcome.ts';
import type { AdvancedOptions } from './advanced-options.ts';
import type { Health, OnHandled, OnRefused } from './reports.ts';
import type { Sender } from './sender-entry.ts';
import type { Durability, Store } from '../stores/store.ts';

/**
 * Facts about a delivery beside its headers and body, passed to `receiver.verifyAndDispatch` and `receiver.open`.
 *
 * `url` is the target of the request line (path and query, as `req.url` in Node) or the absolute URL, not decoded.
 * Set `urlNormalised` if the platform has rewritten it. The others are the method, and a signal that ends the wait
 * for a duplicate's first copy.
 */
export interface RequestInfo {
  /** The request target or absolute URL as received. Required if `publicUrl` ends in `/*`. */
  readonly url?: string;
  /**
   * True if the platform normalised `url`, as in `Request.url`. Characters may then be percent-encoded that were
   * sent as they are.
   */
  readonly urlNormalised?: boolean;
  /** The request method. Default: `POST`. */
  readonly method?: string;
  /** Aborts the wait for the first copy of a duplicate. It does not stop a running handler. */
  readonly signal?: AbortSignal;
}

/**
 * The 503 answers that a framework adapter gives if it cannot pass a request to the receiver: `receiver.door`, for
 * authors of adapters. It covers a body that other code has already read, and an exception in the adapter. No event
 * is stored for them.
 */
export interface Door {
  /** The largest body that the receiver accepts, bytes. */
  readonly maxBodyBytes: number;
  /**
   * Returns the answer for a body that was read before the adapter, so that its bytes are lost: 503, with an alarm.
   * `detail` says what to change.
   */
  readonly consumed: (detail: string) => Outcome;
  /** Returns the answer for an exception: 503. The log has the error. */
  readonly fault: (error: unknown) => Outcome;
}

/**
 * A delivery whose headers were accepted and whose body is still to come, returned by `receiver.open`. Pass the
 * body's bytes to `add` as they arrive, then call `end` for the answer. Use it once. It ends by itself if it is not
 * ended within `bodyDeadlineMs`.
 */
export interface Ticket {
  readonly kind: 'ticket';
  /**
   * Adds the next bytes of the body, exactly as received. They are not copied, so do not change them.
   * @returns false if the delivery is decided, see `outcome`: stop reading.
   */
  readonly add: (chunk: Uint8Array) => boolean;
  /**
   * Ends the body, and runs the body's check, the store and the handler. It returns `outcome`; if the ticket ended
   * before, the former one.
   * @throws ConfigError (rejects) after `abort`.
   */
  readonly end: () => Promise<Outcome>;
  /** Drops the delivery without a trace, because the sender disconnected. After `end` it has no effect. */
  readonly abort: () => void;
  /** The outcome, however the ticket ended; undefined if it was aborted. It never rejects. */
  readonly outcome: Promise<Outcome | undefined>;
}

export type * from './reports.ts';
export type { HandlerContext } from '../events/handler-context.ts';
export type { Handler, Handlers, NotificationHandlers } from '../events/handlers.ts';

/**
 * The sellers that may call the receiver: the value of the option `senders` of `createReceiver`. It takes one of
 * three forms:
 *
 * - one list for every URL of the receiver;
 * - a list by path, exactly as sellers were given it, whatever the query; a path that is missing is answered with
 *   401;
 * - a function of the delivery's absolute URL, a `URL`: `[]` is answered with 401, a failure with 503.
 */
export type SenderSource =
  readonly Sender[] | SendersByPath | ((url: URL) => readonly Sender[] | Promise<readonly Sender[]>);

/**
 * The sellers that may call each path, for a receiver whose `publicUrl` ends in `/*`. An example is
 * `{ '/webhooks/a': [{ agentUrl: 'https://a.example/mcp' }] }`.
 */
export type SendersByPath = Readonly<Record<string, readonly Sender[]>>;

/**
 * The option `retry` of `createReceiver`. It sets the number of failed runs or crashes after which an event is DEAD:
 * kept, but no longer run. It also sets the waits between a worker's runs.
 */
export interface RetryOptions {
  /** The number of charged runs (`ctx.chargedAttempts`) after which the event is DEAD. Default: 12. */
  readonly attempts?: number;
  /** The first back-off of a worker, ms. Default: 1 000. */
  readonly baseMs?: number;
  /** The longest back-off of a worker, ms, at most 3 600 000. Default: 300 000. */
  readonly maxMs?: number;
  /**
   * The number of crashes after which the event is DEAD. Crashes are runs that ended with the process while the event
   * ran alone, 1 to 60 min apart. Default: 5.
   */
  readonly crashes?: number;
}

/**
 * The form of the option `retentionMs` for less than the protocol's 24 h. It is allowed only if every seller was
 * informed, because a retry that arrives later is handled as a new event.
 */
export interface ShorterRetention {
  /** The time for which a finished event is remembered, ms, at least 600 000. */
  readonly ms: number;
  /** Confirms that every seller was informed. */
  readonly toldToSenders: true;
}

/**
 * The option `durability` of `createReceiver`. It sets the failure that stored events must survive (a crash, a power
 * failure, a lost machine) before the receiver answers 2xx. For a store whose settings cannot be read, you declare
 * its durability.
 */
export interface DurabilityOptions {
  /**
   * The required durability. A store with less is refused, at the start and while it runs. Default: `disk`;
   * `process` for a memory store with `allowLoopback`.
   */
  readonly require?: Durability;
  /** The durability that you declare for the database's settings. It is used only if they cannot be read. */
  readonly declared?: Durability;
}

/**
 * Options of `createReceiver`: the URL, the sellers, the store, the handlers, and limits, hooks and times. Mistakes
 * throw `ConfigError` at construction, with the fix in the message.
 */
export interface ReceiverOptions<S extends ResultSchemas = ResultSchemas, Tx = unknown> {
  /**
   * The exact URL that sellers were given, or a list of at most 8. If one ends in `/*`, path and query come from the
   * request. Of several, the request's `Host` selects. Required, unless `registrations` provide it.
   */
  readonly publicUrl?: string | readonly string[] | undefined;
  /**
   * The sellers that may call. Required, unless `registrations` provide the sellers. If both options are set, the
   * sellers of this one call at other paths than those of `registrations`.
   */
  readonly senders?: SenderSource | undefined;
  /** The store that keeps the events, e.g. `postgresStore({ pool })`. */
  readonly store: Store<Tx>;
  /** Your functions that handle the events. */
  readonly handlers: Handlers<S, Tx>;
  /**
   * Decides if a seller that asks for a proof of control may activate its subscription. Return true only for a
   * subscription that you requested, and only if `challenge.authMatches`. Subscriptions of `registrations` are
   * answered without it.
   *
   * It is called if `seller_agent_url` is the verified sender's, with at most 5 s to answer, perhaps more than once for one
   * challenge. The answer is 403 without it, or for any value but `true`; if it throws, 503.
   */
  readonly onChallenge?: OnChallenge;
  /** The one name that is accepted in wire identifiers. Default: both known names, `proto` and `adcp`, each whole. */
  readonly protocol?: string | undefined;
  /**
   * The protocol edition; each sender may override it. It restricts what is accepted, and decides 409 and 503 for
   * duplicates. Default: everything that some edition accepts, answered as in 3.0.
   */
  readonly edition?: EditionName;
  /**
   * The mode. `inline`: the handler runs before the answer. `inbox`: the event is made durable, then answered.
   * Workers run the handler (`receiver.start()`, here or in other processes on the same store). Default: `inline`.
   */
  readonly mode?: 'inline' | 'inbox';
  /** Options of this process's worker in mode `inbox`, once it is started. */
  readonly worker?: WorkerOptions;
  /** Standard Schemas of results by task type. A result that fits becomes `event.parsed`. */
  readonly resultSchemas?: S;
  /**
   * The calls that you registered with sellers (`createRegistrations` of `proto-webhooks/registrations`). They
   * provide `publicUrl` and `senders`.
   *
   * Each event of a known operation has `registration`, and a warning if it contradicts the registration. It costs
   * one look-up in the store per handled event.
   */
  readonly registrations?: EventRegistrations;
  /**
   * Media types that are accepted in addition to `application/json`, of the form `application/…+json`. Default:
   * none. `application/a2a+json` is always accepted from senders with a bearer token in a header of their own.
   */
  readonly contentTypes?: readonly string[];
  /** The largest body, bytes. Default: 1 048 576. */
  readonly maxBodyBytes?: number;
  /**
   * The time after which `ctx.signal` aborts and, in mode `inline`, the answer is 503, ms. Default: 8 000; in mode
   * `inbox` 900 000.
   */
  readonly handlerDeadlineMs?: number;
  /** The duration of a lease without renewal, ms, at most 600 000. Default: 8 000; in mode `inbox` 30 000. */
  readonly leaseMs?: number;
  /**
   * The time for which a finished event is remembered, ms, at most 8 days. Less than 24 h needs the form
   * `{ ms, toldToSenders: true }`, if every sender was informed. Default: 86 400 000.
   */
  readonly retentionMs?: number | ShorterRetention;
  /** The largest number of records of one sender. Default: 1 000 000. */
  readonly maxRecordsPerSender?: number;
  /** The largest total size of one sender's unfinished bodies, bytes. Default: 268 435 456. */
  readonly maxPendingBytesPerSender?: number;
  /**
   * The largest number of live nonces per key id, at most `maxNoncesPerSender`. Default: 100 000, or
   * `maxNoncesPerSender` if that is less.
   */
  readonly maxNoncesPerKey?: number;
  /**
   * The largest number of live nonces of one sender, over all its key ids, at most `maxNonces`. Default: 200 000,
   * or `maxNonces` if that is less.
   */
  readonly maxNoncesPerSender?: number;
  /** The approximate largest number of live nonces of all senders. Default: 10 000 000. */
  readonly maxNonces?: number;
  /** The durability that answered events require. A memory store needs no setting if `allowLoopback` is set. */
  readonly durability?: DurabilityOptions;
  /**
   * The only accepted identity of the store (`storeId` of `ready()`). It protects against an empty store in place
   * of the real one, e.g. an unmounted volume, which would treat finished events as new.
   */
  readonly expectStoreId?: string;
  /** The threads that verify signatures. Default: `auto`. */
  readonly verification?: Verification;
  /** The check of the request's `Host` against `publicUrl`; `off` disables it. Default: `strict`. */
  readonly hostCheck?: 'strict' | 'off';
  /** If true, allows http and private addresses in `publicUrl`, agent URLs and key URLs, for development. */
  readonly allowLoopback?: boolean;
  /** The number of failed runs after which an event is DEAD, and the waits between a worker's runs. */
  readonly retry?: RetryOptions;
  /** Returns the current time, Unix ms. Default: `Date.now`. */
  readonly now?: () => number;
  /** Fetches key documents. Default: the platform's own connections. */
  readonly fetch?: KeyFetch;
  /** The logger. Default: the console. */
  readonly logger?: Logger;
  /** Called for each delivery, before its answer leaves. An error or promise of it changes no answer. */
  readonly onOutcome?: (outcome: Outcome<Event<S>>) => void;
  /**
   * Called when a run of a handler has ended, in both modes: at most once per run, after the store has recorded the
   * end.
   */
  readonly onHandled?: OnHandled;
  /**
   * Called for each alarm, which the operator has to act on. The page docs/alarms.md explains each code. An error
   * or promise of it changes no answer.
   */
  readonly onAlarm?: (alarm: Alarm) => void;
  /**
   * Called for each refused delivery, with its headers and, if it was read, its body. `captureRefused` of
   * `proto-webhooks/node` writes them to files that `explain` reads.
   */
  readonly onRefused?: OnRefused;
  /** Options that follow from other options or rarely change. */
  readonly advanced?: AdvancedOptions;
}

/**
 * The result of `receiver.ready()`, which checks the store and fetches keys: the identity of the store that it
 * found.
 */
export interface Readiness {
  /** The identity of the store, for `expectStoreId`; undefined if the store has none. */
  readonly storeId: string | undefined;
}

/**
 * Receives the webhooks of your sellers: verifies each delivery, stores its event once, runs your handler and
 * decides the answer. `createReceiver` makes it. An adapter, e.g. `webhookHandler` of `proto-webhooks/node`,
 * connects it to HTTP.
 */
export interface Receiver<S extends ResultSchemas = ResultSchemas> {
  /**
   * Runs the whole pipeline for a delivery: verifies it, admits its event once, runs the handler and decides the
   * answer. The method is bound.
   * @param rawBytes the body exactly as received.
   * @throws ConfigError (rejects) only for a caller's mistake: parsed body, unusable headers, missing `url`.
   */
  readonly verifyAndDispatch: (
    rawBytes: Uint8Array,
    headers: HeadersInput,
    request?: RequestInfo,
  ) => Promise<Outcome<Event<S>>>;
  /**
   * Checks the store, its schema and settings, and fetches keys in advance. A key that cannot be fetched raises an
   * alarm. Each call checks again.
   * @throws ConfigError (rejects) with the fix; Fault `shutting_down` after `stop`, `store_unavailable` if the store is unreachable.
   */
  readonly ready: () => Promise<Readiness>;
  /**
   * Checks the store, and after `stop` opens it again, so that deliveries are accepted. A further call has no
   * effect; it may follow `stop`.
   *
   * In mode `inbox`, and with `registrations` in both modes, it starts the worker: it leases events and runs their
   * handlers in this process, until `stop`. A process that only works is the same receiver without an adapter.
   *
   * It resolves when the worker runs. While the store is unreachable it stays pending and tries again, at most
   * every 30 s, each time with an error line in the log. `stop` resolves it. In mode `inline` without
   * `registrations` it settles as `ready` does.
   * @throws ConfigError (rejects) with the fix, if `ready` would.
   */
  readonly start: () => Promise<void>;
  /**
   * Stops the receiver. Running deliveries finish, and new ones are answered with 503 `shutting_down`. The worker
   * leases nothing more. Its handlers have `leaseMs` to finish, and their signals abort after three quarters of it.
   *
   * Then the store is closed, until `start`. If several receivers have one store, the last one closes it. A further
   * call has no effect.
   */
  readonly stop: () => Promise<void>;
  /** `stop`, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>;
  /**
   * Returns the state of this process, for `/livez` and `/readyz` (docs/observability.md). It asks the store at
   * most once per second, for at most 0.8 s, for all callers together. A store in trouble is checked as in `ready`.
   * It never rejects.
   */
  readonly health: () => Promise<Health>;
  /** Manages events that are DEAD or stuck: list them, run them again, discard them. */
  readonly inbox: ReceiverInbox;
  /**
   * Makes an event of a report about a task that came by another channel, e.g. the answer of a call or a poll. It
   * is stored, ordered and handled like a webhook, and never twice. The method is bound.
   *
   * The event is durable when it resolves. A worker (`start`, in both modes) runs its handler.
   * @throws ConfigError (rejects) for a caller's mistake; Fault if the store cannot take it now: observe it again.
   */
  readonly observe: Observe;
  /**
   * Runs the first half of `verifyAndDispatch`, for headers whose body is still arriving: checks 1 to 10. The
   * method is bound.
   * @returns the outcome, if the headers decide: answer it and read nothing; otherwise a ticket that takes the body.
   * @throws ConfigError (rejects) only for a caller's mistake: unusable headers, missing `url`.
   */
  readonly open: (headers: HeadersInput, request?: RequestInfo) => Promise<Outcome<Event<S>> | Ticket>;
  /** The answers that adapters need. */
  readonly door: Door;
}
