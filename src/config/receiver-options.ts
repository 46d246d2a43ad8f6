import type { Alarm, Logger } from '../shared/alarms.ts';
import type { Verification } from '../crypto/engine.ts';
import type { HeaderFields, HeadersInput } from '../shared/delivery.ts';
import type { EditionName } from '../shared/editions.ts';
import type { Event, ResultSchemas, TaskEvent } from '../events/event.ts';
import type { HandlerContext } from '../events/handler-context.ts';
import type { Handlers, OnChallenge } from '../events/handlers.ts';
import type { Observe } from '../events/observation.ts';
import type { EventRegistrations } from '../events/event-registration.ts';
import type { ReceiverInbox, WorkerOptions } from '../inbox/inbox-contract.ts';
import type { PressureState } from '../keys/admission-pressure.ts';
import type { KeyFetch } from '../keys/key-resolver.ts';
import type { UnavailableCode } from '../shared/codes.ts';
import type { Outcome } from '../shared/outcome.ts';
import type { AdvancedOptions } from './advanced-options.ts';
import type { Sender } from './sender-entry.ts';
import type { Durability, Store } from '../stores/store.ts';

/** Third argument of `verifyAndDispatch`. */
export interface RequestInfo {
  /** Request target or absolute URL as received. Needed where `publicUrl` ends in `/*`. */
  readonly url?: string;
  /** `url` is as the platform writes it, e.g. `Request.url`: characters may be percent-encoded that were sent as they are. */
  readonly urlNormalised?: boolean;
  /** `POST`. */
  readonly method?: string;
  /** Aborts waiting for a duplicate's first copy; a handler that runs is not stopped by it. */
  readonly signal?: AbortSignal;
}

/** Answers that an adapter needs besides those of `open`. None of its outcomes has an event. */
export interface Door {
  readonly maxBodyBytes: number;
  /** The body was read before the adapter, and its bytes are gone: 503, with an alarm. `detail` says what to change. */
  readonly consumed: (detail: string) => Outcome;
  /** The answer to an exception: 503, and the log says what it was. */
  readonly fault: (error: unknown) => Outcome;
}

/** How an event's run ended, or the event without one (then runs and attempts so far): what `onHandled` gets. */
export interface Handled extends Pick<HandlerContext, 'run' | 'chargedAttempts'> {
  /** Agent URL. */
  readonly sender: string;
  /** Idempotency key. */
  readonly key: string;
  /** As `ctx.deliveryId`. */
  readonly deliveryId: string;
  /** As `event.url`. */
  readonly url?: string;
  readonly taskId?: string;
  readonly operationId?: string;
  /** Absent where the stored body is gone (`stale`, found by a worker) or cannot be read any more. */
  readonly kind?: Event['kind'];
  readonly family?: string;
  /** Kind `task`. */
  readonly status?: TaskEvent['status'];
  /**
   * - `applied`: the handler returned, or its transaction committed, and the store knows.
   * - `failed`: it threw, ran over `maxRunMs` or was interrupted by `stop()`; the event runs again.
   * - `dead`: so, and no run is left; kept for you.
   * - `stale`: never run, for its task has a newer status.
   */
  readonly state: 'applied' | 'failed' | 'dead' | 'stale';
  /**
   * From the event's arrival to the begin of this run, ms. Mode `inline`: from the arrival of the delivery that ran it, or
   * of the call of `redrive`; a worker's: from when the event was stored, by the store's clock.
   */
  readonly waitedMs: number;
  /** From the begin of the handler to its end, ms; without what the store needed afterwards. 0 where there was no run. */
  readonly durationMs: number;
  /** What it threw, or why it is over: the text that is `lastError` of `receiver.inbox.inspect`. */
  readonly error?: string;
}

/**
 * Told of each run once, after the store has taken its end, in both modes; of a run past its deadline when that ends. Also of
 * an event that comes to its end without a run. Not told: where the process died, where the store did not take the end, and
 * where another process took the event over (`lease_lost`): so at most once a run. What it throws, promises or takes its
 * time for changes no answer.
 */
export type OnHandled = (handled: Handled) => void;

/** A fault, as `outcome.code` and `outcome.detail` have it. For your own eyes: the text may name hosts. */
export interface HealthFault {
  readonly code: UnavailableCode;
  readonly message: string;
  /** Unix ms, the receiver's clock. */
  readonly at: number;
}

/** The store, asked now: one read of one record, or the check of `ready()` where none has succeeded yet. */
export interface StoreHealth {
  readonly ok: boolean;
  /** When it was asked: at most once a second, however often `health` is called. Unix ms. */
  readonly checkedAt: number;
  /** Why it is not ok. `misconfigured`: waiting does not help, the message names the fix. */
  readonly fault?: HealthFault;
  /** The last delivery that was answered 503 for the store's sake; gone with the next one that the store took. */
  readonly deliveryFault?: HealthFault;
}

/** The worker of this process. */
export interface WorkerHealth {
  /**
   * - `off`: `start()` was not called, or nothing is left to a worker: mode `inline` without registrations.
   * - `starting`: the store has not answered it yet.
   * - `running`: its last call of the store was answered.
   * - `failing`: its last call failed; it tries again, at least every 30 s.
   * - `stopped`: by `stop()`.
   */
  readonly state: 'off' | 'starting' | 'running' | 'failing' | 'stopped';
  /** When it last asked the store for events and was answered. Unix ms. */
  readonly lastLookedAt?: number;
  /** Its last call's, until one is answered. */
  readonly error?: string;
  /** Handlers under way in this process, those of mode `inline` too. */
  readonly handlers: number;
}

/** What this process saw of a seller. Instants are Unix ms, the receiver's clock; absent: not since it began. */
export interface SenderHealth {
  readonly agentUrl: string;
  /** Last answered 2xx. */
  readonly lastAcceptedAt?: number;
  /** Last answered anything else: proved to be of this seller, or under a key id of its set. */
  readonly lastRefusedAt?: number;
  /** Why, as `outcome.code`. */
  readonly lastCode?: string;
  /** The end of its key set's lifetime, as fetched here. Past: it could not be fetched again, or nothing needed it since. */
  readonly keysFreshUntil?: number;
}

/** How a receiver and its process are: what `receiver.health()` resolves with. */
export interface Health {
  /** False once `stop()` is over, until `start()` is called. No fault of a store, seller or worker changes it. */
  readonly live: boolean;
  /** Deliveries are taken: the checks of `ready()` have succeeded, the store answers, and nothing is stopping. */
  readonly ready: boolean;
  readonly store: StoreHealth;
  readonly worker: WorkerHealth;
  /** Sellers of a `senders` list, and those that a function gave and that delivered here; at most 1 000, the latest ones. */
  readonly senders: readonly SenderHealth[];
  /** Key ids that have come into use; absent until keys are looked for. */
  readonly admissionPressure?: PressureState;
}

/** A delivery that was refused, for `onRefused`. Bearer tokens and cookies are among its headers as they came. */
export interface RefusedDelivery {
  /** Exactly as received. Absent where the headers decided and the body was not read. */
  readonly rawBytes?: Uint8Array;
  /** Lower-case name → the value of each line, in order. */
  readonly headers: HeaderFields;
  readonly method: string;
  /** Request target as received; undefined for the call with two arguments. */
  readonly url: string | undefined;
  /** The URL that it was judged by, as `publicUrl` says; undefined where `publicUrl` ends in `/*` and the request told none. */
  readonly targetUri: string | undefined;
  /** Agent URL of the sender that it is proved to be of, or else whose key it names; undefined: nobody's that is known. */
  readonly sender: string | undefined;
  /** Of kind `refused`. */
  readonly outcome: Outcome;
}

/** `onRefused` with a limit: what `captureRefused` returns. */
export interface RefusedHook {
  /** Told after the answer was decided: what it throws, promises or takes its time for changes no answer. */
  readonly handle: (delivery: RefusedDelivery) => void;
  /** Bytes of a body that it wants to see where the headers decided: of one a second that names a known key id. 0. */
  readonly maxBodyBytes?: number;
}

/** `onRefused`: a function, or an object where bodies are wanted that were not read. */
export type OnRefused = RefusedHook['handle'] | RefusedHook;

/**
 * What `receiver.open` gives for headers that passed: the body is wanted. Used once. It ends by itself where it is not
 * ended within `bodyDeadlineMs`.
 */
export interface Ticket {
  readonly kind: 'ticket';
  /**
   * The next bytes of the body, exactly as received; they are kept as they are, so do not change them.
   * @returns false: no more is wanted, `outcome` says why. Stop reading.
   */
  readonly add: (chunk: Uint8Array) => boolean;
  /**
   * The body is whole: check 11, the store, the handler. Gives `outcome`; where it ended before, that one.
   * @throws ConfigError (rejects) after `abort`.
   */
  readonly end: () => Promise<Outcome>;
  /** The sender is gone: nothing is left of it. Behind an end: nothing. */
  readonly abort: () => void;
  /** How it ended, whatever ended it; undefined: aborted. Never rejects. */
  readonly outcome: Promise<Outcome | undefined>;
}

export type { HandlerContext } from '../events/handler-context.ts';
export type { Handler, Handlers, NotificationHandlers } from '../events/handlers.ts';

/**
 * Who may call: one list for every URL of the receiver; a list by path, exactly as sellers were given it, whatever the query is;
 * or a function of the URL alone, where `[]` answers 401, a failure 503. A path that is not there is 401.
 */
export type SenderSource =
  readonly Sender[] | SendersByPath | ((url: URL) => readonly Sender[] | Promise<readonly Sender[]>);

/** E.g. `{ '/webhooks/a': [{ agentUrl: 'https://a.example/mcp' }] }`; `publicUrl` ends in `/*`. */
export type SendersByPath = Readonly<Record<string, readonly Sender[]>>;

/** How often an event is run before it is DEAD, and how long workers wait in between. */
export interface RetryOptions {
  /** Runs that are charged (`ctx.chargedAttempts`) before the event is DEAD. 12. */
  readonly attempts?: number;
  /** First back-off of a worker, ms. 1 000. */
  readonly baseMs?: number;
  /** Longest back-off of a worker, ms. 300 000; 3 600 000 at most. */
  readonly maxMs?: number;
  /** Runs that ended with the process, while the event ran alone and 1 to 60 min apart, before it is DEAD. 5. */
  readonly crashes?: number;
}

/** Events are remembered for less than the contract requires, which every sender was told. */
export interface ShorterRetention {
  /** At least 600 000. */
  readonly ms: number;
  readonly toldToSenders: true;
}

/** What an answered event has to survive, and what a store keeps whose settings cannot be read. */
export interface DurabilityOptions {
  /** A store that keeps less is refused, at the start and while it runs. `disk`; `process` for memory with `allowLoopback`. */
  readonly require?: Durability;
  /** What the backend's settings keep; it counts only where they cannot be read. */
  readonly declared?: Durability;
}

/** `createReceiver`'s options. Mistakes throw `ConfigError` at construction, with the fix in the message. */
export interface ReceiverOptions<S extends ResultSchemas = ResultSchemas, Tx = unknown> {
  /**
   * Exactly the URL that sellers were given; one that ends in `/*` takes path and query from the request. Required, unless
   * `registrations` bring it.
   */
  readonly publicUrl?: string | undefined;
  /** Who may call. Required, unless `registrations` bring theirs; given beside them, more senders at other paths. */
  readonly senders?: SenderSource | undefined;
  readonly store: Store<Tx>;
  readonly handlers: Handlers<S, Tx>;
  /**
   * Whether a seller that asks for a proof of control may activate its subscription: yes only to one that you asked for,
   * and where `challenge.authMatches`. Asked where `seller_agent_url` is the verified sender's, 5 s at most, maybe more
   * than once for one challenge. Without it, and for anything but `true`, the answer is 403; where it throws, 503.
   */
  readonly onChallenge?: OnChallenge;
  /** The one name that is accepted in wire identifiers. Both known ones: `proto` and `adcp`, each whole. */
  readonly protocol?: string | undefined;
  /**
   * Edition of the protocol, overridable per sender: narrows what is accepted to it, and decides 409 and 503 of duplicates.
   * Without it what any edition accepts is accepted, and answered as 3.0.
   */
  readonly edition?: EditionName;
  /**
   * `inline`: the handler runs before the reply. `inbox`: the event is durable, then answered, and workers
   * (`receiver.start()`, here or in other processes on the same store) run the handler. `inline`.
   */
  readonly mode?: 'inline' | 'inbox';
  /** Mode `inbox`: how this process works, once started. */
  readonly worker?: WorkerOptions;
  /** Standard Schemas by task type: what fits is `event.parsed`. */
  readonly resultSchemas?: S;
  /**
   * What you registered with sellers (`createRegistrations` of `proto-webhooks/registrations`). They bring `publicUrl` and
   * `senders`; each event has `registration` where its operation is known, and a warning where what it says does not fit.
   * Costs a look-up in the store for each event that is handled.
   */
  readonly registrations?: EventRegistrations;
  /**
   * Types taken beside `application/json`, of the form `application/…+json`. None, but `application/a2a+json`, an agent
   * transport's own push, of senders with a bearer token in a header of their own.
   */
  readonly contentTypes?: readonly string[];
  /** Bytes. 1 048 576. */
  readonly maxBodyBytes?: number;
  /** Ms until `ctx.signal` fires, and inline the reply is 503. 8 000; inbox 900 000. */
  readonly handlerDeadlineMs?: number;
  /** Ms a lease holds without renewal. 8 000; inbox 30 000; 600 000 at most. */
  readonly leaseMs?: number;
  /**
   * Ms a finished event is remembered, at most 8 days; under 24 h only as `{ ms, toldToSenders: true }`, where every sender
   * was told (contract.md §9.3). 86 400 000.
   */
  readonly retentionMs?: number | ShorterRetention;
  /** 1 000 000. */
  readonly maxRecordsPerSender?: number;
  /** Bytes. 268 435 456. */
  readonly maxPendingBytesPerSender?: number;
  /** Live nonces per key id. 100 000, or `maxNoncesPerSender` where that is less; never over it. */
  readonly maxNoncesPerKey?: number;
  /** Live nonces of one sender, over all its key ids. 200 000, or `maxNonces` where that is less; never over it. */
  readonly maxNoncesPerSender?: number;
  /** Live nonces of all senders, approximate. 10 000 000. */
  readonly maxNonces?: number;
  /** What an answered event has to survive. Nothing has to be said for a memory store where `allowLoopback` is set. */
  readonly durability?: DurabilityOptions;
  /**
   * Refuse every store but the one with this identity (`storeId` of `ready()`): an empty one in its place, where a volume
   * was not mounted, would take finished events for new ones.
   */
  readonly expectStoreId?: string;
  /** Which threads verify signatures. `auto`. */
  readonly verification?: Verification;
  /** `off`: the request's `Host` is not compared with `publicUrl`. `strict`. */
  readonly hostCheck?: 'strict' | 'off';
  /** Development: http and private addresses in `publicUrl`, agent and key URLs. */
  readonly allowLoopback?: boolean;
  readonly retry?: RetryOptions;
  /** Unix ms. `Date.now`. */
  readonly now?: () => number;
  /** Fetches key documents. The platform's own by default. */
  readonly fetch?: KeyFetch;
  readonly logger?: Logger;
  /** Told of each delivery, before its answer leaves: what it throws or promises changes no answer. */
  readonly onOutcome?: (outcome: Outcome<Event<S>>) => void;
  /** Told how each run of a handler ended, in both modes: at most once a run, after the store has taken its end. */
  readonly onHandled?: OnHandled;
  /** Told of what the owner has to act on: docs/alarms.md has each code. What it throws or promises changes no answer. */
  readonly onAlarm?: (alarm: Alarm) => void;
  /**
   * Told of each delivery that was refused, with its headers and, where it was read, its body: `captureRefused` of
   * `proto-webhooks/node` writes them to files that `explain` reads.
   */
  readonly onRefused?: OnRefused;
  /** Derived from the other options, or seldom changed. */
  readonly advanced?: AdvancedOptions;
}

/** What `ready()` found. */
export interface Readiness {
  /** Which store it is, for `expectStoreId`; undefined where the store does not say. */
  readonly storeId: string | undefined;
}

/** What `createReceiver` makes. */
export interface Receiver<S extends ResultSchemas = ResultSchemas> {
  /**
   * The whole pipeline: verifies, admits once, runs the handler, decides the answer. Bound.
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
   * @throws ConfigError (rejects) with the fix; Fault `shutting_down` after `stop`, `store_unavailable` where the store cannot be reached.
   */
  readonly ready: () => Promise<Readiness>;
  /**
   * Checks the store, and after `stop` opens it again: deliveries are taken. Mode `inbox`, and with `registrations` in both
   * modes: leases events and runs their handlers in this process, until `stop`. A process that only works is the same receiver
   * without a door. Called again, nothing; it may follow `stop`.
   *
   * Resolves when the worker runs. Where the store cannot be reached it stays pending and tries again, at most every 30 s,
   * each time with a line at level error, until it can or `stop` is called, which resolves it. Mode `inline` without
   * `registrations`: settles as `ready` does.
   * @throws ConfigError (rejects) with the fix, where `ready` would.
   */
  readonly start: () => Promise<void>;
  /**
   * Running deliveries finish, new ones get 503 `shutting_down`; the worker leases nothing more, and its handlers
   * have `leaseMs` to finish, their signals firing after three quarters of it. Then the store is closed, until `start`,
   * unless another receiver has it: the last one closes it. Called again, nothing.
   */
  readonly stop: () => Promise<void>;
  /** `stop`, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>;
  /**
   * How this process is, for `/livez` and `/readyz` (docs/observability.md). Asks the store at most once a second and for
   * 0.8 s at most, for every caller; a store that is in trouble is checked as `ready` does. Never rejects.
   */
  readonly health: () => Promise<Health>;
  /** Events that are DEAD or stuck: look at them, run them again, let them go. */
  readonly inbox: ReceiverInbox;
  /**
   * What another channel told of a task, the answer of a call or of a poll, as an event: kept, ordered and handled like a
   * webhook's, and never twice. Durable when it resolves; a worker (`start`, in both modes) runs its handler. Bound.
   * @throws ConfigError (rejects) for the caller's mistakes; Fault where the store cannot take it now: observe it again.
   */
  readonly observe: Observe;
  /**
   * The first half of `verifyAndDispatch`, for headers whose body is still coming: checks 1 to 10. Bound.
   * @returns the outcome, where the headers decide: answer it and read nothing; else a ticket that takes the body.
   * @throws ConfigError (rejects) only for a caller's mistake: unusable headers, missing `url`.
   */
  readonly open: (headers: HeadersInput, request?: RequestInfo) => Promise<Outcome<Event<S>> | Ticket>;
  /** For adapters: answers of their own. */
  readonly door: Door;
}
