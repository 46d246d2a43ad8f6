// Defines the options of `createReceiver` and the receiver itself: only types. Every folder that makes or serves a
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
 * `url` is the target of the request line (path and query, as `req.url` in Node) or the absolute URL, not decoded. Set
 * `urlNormalised` if the platform has rewritten it. The other members are the method, and a signal that ends a
 * duplicate's wait for the first copy of its event.
 */
export interface RequestInfo {
  /** The request target or absolute URL as received. Required if `publicUrl` ends in `/*`. */
  readonly url?: string;
  /**
   * True if the platform normalised `url`, as in `Request.url`. Then characters may be percent-encoded that the sender
   * sent unencoded.
   */
  readonly urlNormalised?: boolean;
  /** The request method. Default: `POST`. */
  readonly method?: string;
  /** A signal that ends a duplicate's wait for the first copy of its event. A running handler is not stopped. */
  readonly signal?: AbortSignal;
}

/**
 * The 503 answers that a framework adapter gives if it cannot pass a request to the receiver: `receiver.door`, for
 * authors of adapters. Either other code has already read the body, or the adapter has thrown an exception. No event is
 * stored.
 */
export interface Door {
  /** The largest body that the receiver accepts, bytes. */
  readonly maxBodyBytes: number;
  /**
   * Returns the answer for a body that other code has read before the adapter, so that its exact bytes are lost: 503,
   * with an alarm. `detail` says what to change.
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
   * @returns false if the delivery is decided: stop reading, and take the answer from `outcome`.
   */
  readonly add: (chunk: Uint8Array) => boolean;
  /**
   * Ends the body: verifies it, stores the event and runs the handler. Returns `outcome`; if the ticket ended before,
   * the earlier outcome.
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
 * stored, but no longer run. It also sets the waits between a worker's runs.
 */
export interface RetryOptions {
  /** The number of runs that count as attempts (`ctx.chargedAttempts`), after which the event is DEAD. Default: 12. */
  readonly attempts?: number;
  /** The first wait of a worker before it repeats a failed run, ms. Default: 1 000. */
  readonly baseMs?: number;
  /** The longest wait of a worker before it repeats a failed run, ms, at most 3 600 000. Default: 300 000. */
  readonly maxMs?: number;
  /**
   * The number of crashes after which the event is DEAD. A crash is a run whose process died while the event ran alone;
   * such runs are 1 to 60 min apart. Default: 5.
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
  /** Confirms that every seller was informed of the shorter time. */
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
  /** The durability that you declare for the database. It is used only if the database's settings cannot be read. */
  readonly declared?: Durability;
}

/**
 * Options of `createReceiver`: the URL, the sellers, the store, the handlers, and limits, hooks and times. Mistakes
 * throw `ConfigError` at construction, with the fix in the message.
 */
export interface ReceiverOptions<S extends ResultSchemas = ResultSchemas, Tx = unknown> {
  /**
   * The exact URL that sellers were given, or a list of at most 8. If one ends in `/*`, path and query come from the
   * request. If there are several URLs, the request's `Host` selects one. Required, unless `registrations` provide the
   * URL.
   */
  readonly publicUrl?: string | readonly string[] | undefined;
  /**
   * The sellers that may call. Required, unless `registrations` provide the sellers. If both options are set, the
   * sellers of `senders` must have other paths than those of `registrations`.
   */
  readonly senders?: SenderSource | undefined;
  /** The store that keeps the events, e.g. `postgresStore({ pool })`. */
  readonly store: Store<Tx>;
  /** Your functions that handle the events. */
  readonly handlers: Handlers<S, Tx>;
  /**
   * Decides if a seller that asks for a proof of control may activate its subscription. Return true only for a
   * subscription that you requested, and only if `challenge.authMatches`. Subscriptions of `registrations` are answered
   * without this hook.
   *
   * It is called if `seller_agent_url` is the verified sender's, with at most 5 s to answer, perhaps more than once for
   * one challenge. The answer is 403 without the hook, or for any value but `true`; if the hook throws, 503.
   */
  readonly onChallenge?: OnChallenge;
  /**
   * The one protocol name that is accepted in wire identifiers. Default: both known names, `proto` and `adcp`; a
   * delivery must not mix them.
   */
  readonly protocol?: string | undefined;
  /**
   * The protocol edition; each sender may override it. It restricts what is accepted, and decides if some duplicates
   * are answered with 409 or 503. Default: everything that some edition accepts, answered as in 3.0.
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
   * Each event of a known operation has `registration`, and a warning if it contradicts the registration. Registrations
   * cost one look-up in the store per handled event.
   */
  readonly registrations?: EventRegistrations;
  /**
   * Media types that are accepted in addition to `application/json`, of the form `application/…+json`. Default: none.
   * `application/a2a+json` is always accepted from senders whose bearer token is in a header other than
   * `Authorization`.
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
   * The time for which a finished event is remembered, ms, at most 8 days. Less than 24 h needs the form `{ ms,
   * toldToSenders: true }`, which confirms that every sender was informed. Default: 86 400 000.
   */
  readonly retentionMs?: number | ShorterRetention;
  /** The largest number of stored events of one sender, including finished ones. Default: 1 000 000. */
  readonly maxRecordsPerSender?: number;
  /** The largest total size of the bodies of one sender's unfinished events, bytes. Default: 268 435 456. */
  readonly maxPendingBytesPerSender?: number;
  /**
   * The largest number of unexpired nonces per key id, at most `maxNoncesPerSender`. Default: 100 000, or
   * `maxNoncesPerSender` if that is less.
   */
  readonly maxNoncesPerKey?: number;
  /**
   * The largest number of unexpired nonces of one sender, over all its key ids, at most `maxNonces`. Default: 200 000,
   * or `maxNonces` if that is less.
   */
  readonly maxNoncesPerSender?: number;
  /** The approximate largest number of unexpired nonces of all senders. Default: 10 000 000. */
  readonly maxNonces?: number;
  /**
   * The durability that events must have before they are answered. A memory store needs no setting if `allowLoopback`
   * is set.
   */
  readonly durability?: DurabilityOptions;
  /**
   * The only accepted identity of the store (`storeId` of `ready()`). It protects against an empty store in place
   * of the real one, e.g. an unmounted volume, which would treat finished events as new.
   */
  readonly expectStoreId?: string;
  /** The threads that verify signatures: `main`, the runtime's `pool`, or `auto`, which chooses. Default: `auto`. */
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
  /** Called for each delivery, before its answer leaves. Its errors and promises change no answer. */
  readonly onOutcome?: (outcome: Outcome<Event<S>>) => void;
  /**
   * Called when a run of a handler has ended, in both modes: at most once per run, after the store has recorded the
   * end.
   */
  readonly onHandled?: OnHandled;
  /**
   * Called for each alarm, which the operator has to act on. The page docs/alarms.md explains each code. Its errors and
   * promises change no answer.
   */
  readonly onAlarm?: (alarm: Alarm) => void;
  /**
   * Called for each refused delivery, with its headers and, if it was read, its body. `captureRefused` of
   * `proto-webhooks/node` writes the deliveries to files, which the command `explain` reads.
   */
  readonly onRefused?: OnRefused;
  /** Options whose defaults follow from other options, or that rarely change. */
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
   * Runs the whole pipeline for a delivery: verifies it, stores its event once, runs the handler and decides the
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
   * @throws ConfigError (rejects) with the fix; Fault `shutting_down` after `stop`, `store_unavailable` if the store is
   * unreachable.
   */
  readonly ready: () => Promise<Readiness>;
  /**
   * Checks the store, and after `stop` opens it again, so that deliveries are accepted. A further call has no effect
   * until `stop`.
   *
   * In mode `inbox`, and with `registrations` in both modes, `start` starts the worker, which leases events and runs
   * their handlers in this process, until `stop`. For a process that only runs handlers, use the same receiver without
   * an adapter.
   *
   * The promise resolves when the worker runs. While the store is unreachable, the promise stays pending and `start`
   * tries again, at most every 30 s, and logs each failure as an error. `stop` resolves the promise. In mode `inline`
   * without `registrations` it settles as the promise of `ready` does.
   * @throws ConfigError (rejects) with the fix, if `ready` would.
   */
  readonly start: () => Promise<void>;
  /**
   * Stops the receiver. Running deliveries finish, and new ones are answered with 503 `shutting_down`. The worker
   * leases nothing more. Its running handlers have `leaseMs` to finish; their signals abort after three quarters of
   * that time.
   *
   * Then the store is closed, until `start`. If several receivers share a store, the last one to stop closes it. A
   * further call has no effect.
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
   * The event is durable once the promise resolves. A worker (`start`, in both modes) runs its handler.
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
  /** The 503 answers that an adapter gives if it cannot pass a request to the receiver; for authors of adapters. */
  readonly door: Door;
}
