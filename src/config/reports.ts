// Defines the reports of a receiver to its owner: runs of handlers, refused deliveries, its own health. These are only
// types; receiver-options.ts exports them.
import type { UnavailableCode } from '../shared/codes.ts';
import type { HeaderFields } from '../shared/delivery.ts';
import type { Event, TaskEvent } from '../events/event.ts';
import type { HandlerContext } from '../events/handler-context.ts';
import type { PressureState } from '../keys/admission-pressure.ts';
import type { Outcome } from '../shared/outcome.ts';

/**
 * The end of a run of an event's handler, passed to `onHandled`: the event, the result, the duration and the error. An
 * event may also end without a run. Then `run` and `chargedAttempts` count the earlier runs.
 */
export interface Handled extends Pick<HandlerContext, 'run' | 'chargedAttempts'> {
  /** The agent URL of the sender. */
  readonly sender: string;
  /** The idempotency key of the event. */
  readonly key: string;
  /** The id that the handler gets as `ctx.deliveryId`. */
  readonly deliveryId: string;
  /** The same URL as `event.url`. */
  readonly url?: string;
  readonly taskId?: string;
  readonly operationId?: string;
  /** The kind of event. Absent if the stored body is gone (`stale`, found by a worker) or cannot be read. */
  readonly kind?: Event['kind'];
  readonly family?: string;
  /** The task's status, for kind `task`. */
  readonly status?: TaskEvent['status'];
  /**
   * The state after the run.
   *
   * - `applied`: the handler returned or its transaction committed, and the store recorded it.
   * - `failed`: the handler threw, exceeded `maxRunMs` or was interrupted by `stop()`; the event runs again.
   * - `dead`: the handler failed and no run is left; the event stays stored for you.
   * - `stale`: the event was never run, because its task has a newer status.
   */
  readonly state: 'applied' | 'failed' | 'dead' | 'stale';
  /**
   * The time from the event's arrival to the begin of this run, ms. In mode `inline` it counts from the delivery, or
   * call of `redrive`, that ran the handler. For a worker it counts from the storing of the event, on the store's
   * clock.
   */
  readonly waitedMs: number;
  /** The duration of the handler, ms, without the store's work afterwards. 0 if there was no run. */
  readonly durationMs: number;
  /**
   * The error of the handler, or the reason why the event ended. It is the same text as `lastError` of
   * `receiver.inbox.inspect`.
   */
  readonly error?: string;
}

/**
 * The hook `onHandled` of `createReceiver`, for logs and metrics. It is called once for each run of a handler, after
 * the store has recorded its end, in both modes. A run past its deadline is reported when it ends. An event that
 * ends without a run is reported too.
 *
 * It is not called if the process died, the store did not record the end, or another process took the event over
 * (`lease_lost`). So it is called at most once per run. Its errors, promises and duration change no answer.
 */
export type OnHandled = (handled: Handled) => void;

/**
 * A fault that `receiver.health()` reports, e.g. an unreachable store: its code, message and time. Do not show it to
 * sellers, because the message may name hosts.
 */
export interface HealthFault {
  readonly code: UnavailableCode;
  /** The text for the operator, which may name hosts. */
  readonly message: string;
  /** The time of the fault, Unix ms on the receiver's clock. */
  readonly at: number;
}

/**
 * The state of the receiver's store, as `receiver.health()` reports it. The check reads one record. Before the first
 * success of `ready()`, it does everything that `ready()` checks.
 */
export interface StoreHealth {
  /** True if the check succeeded. */
  readonly ok: boolean;
  /** The time of the last check, Unix ms. `health` checks the store at most once per second. */
  readonly checkedAt: number;
  /** The fault, if the store is not ok. For `misconfigured` waiting does not help, and the message has the fix. */
  readonly fault?: HealthFault;
  /**
   * The fault of the last delivery that was answered 503 because of the store. It is removed by the next delivery
   * that the store takes.
   */
  readonly deliveryFault?: HealthFault;
}

/**
 * The state of the background worker that runs the handlers of stored events in this process, as `receiver.health()`
 * reports it. `receiver.start()` starts the worker.
 */
export interface WorkerHealth {
  /**
   * The state of the worker.
   *
   * - `off`: `start()` was not called, or there is no work for one: mode `inline` without registrations.
   * - `starting`: the store has not yet answered the worker.
   * - `running`: the store answered the worker's last call.
   * - `failing`: the worker's last call of the store failed; it tries again, at least every 30 s.
   * - `stopped`: by `stop()`.
   */
  readonly state: 'off' | 'starting' | 'running' | 'failing' | 'stopped';
  /** The time at which the store last answered the worker's request for events, Unix ms. */
  readonly lastLookedAt?: number;
  /** The error of the worker's last call of the store, until a call succeeds. */
  readonly error?: string;
  /** The number of running handlers in this process, including those of mode `inline`. */
  readonly handlers: number;
}

/**
 * The times of a seller's last accepted and last refused delivery to this process, and the state of its keys, as
 * `receiver.health()` reports them. Times are Unix ms on the receiver's clock; an absent time means never since the
 * start.
 */
export interface SenderHealth {
  readonly agentUrl: string;
  /** The time of the last 2xx answer. */
  readonly lastAcceptedAt?: number;
  /**
   * The time of the last answer other than 2xx to a delivery of this seller. The delivery was authenticated, or names a
   * key id of the seller's key set.
   */
  readonly lastRefusedAt?: number;
  /** The code of the answer at `lastRefusedAt`, as `outcome.code`. */
  readonly lastCode?: string;
  /**
   * The end of the lifetime of the seller's key set. A time in the past means that the set could not be fetched again,
   * or that no delivery has needed it since.
   */
  readonly keysFreshUntil?: number;
}

/**
 * The state of a receiver and its process, returned by `receiver.health()`: use it for the probes `/livez` and
 * `/readyz`.
 */
export interface Health {
  /**
   * False after `stop()` has finished, until `start()` is called. Faults of a store, seller or worker do not change
   * it.
   */
  readonly live: boolean;
  /**
   * True if deliveries are accepted: the checks of `ready()` succeeded, the store answers, and the receiver is not
   * stopping.
   */
  readonly ready: boolean;
  readonly store: StoreHealth;
  readonly worker: WorkerHealth;
  /**
   * The sellers of a `senders` list, or the sellers that a `senders` function returned and that delivered to this
   * process. At most the latest 1 000 are listed.
   */
  readonly senders: readonly SenderHealth[];
  /**
   * The numbers of key ids that this process has seen, for the alarm `admission_pressure`. Absent until keys are first
   * searched.
   */
  readonly admissionPressure?: PressureState;
  /**
   * Media buys whose reports no process reconciles: a process must run `createReconciler`. Only the first 100 media
   * buys in the store are checked, once a minute. Absent if there is none.
   */
  readonly unreconciled?: readonly {
    readonly agentUrl: string;
    readonly mediaBuyId: string;
    /**
     * The time at which a reconciler should have checked the media buy, Unix ms on the store's clock: over an hour ago.
     */
    readonly dueAt: number;
  }[];
}

/**
 * A delivery that the receiver refused with a 4xx answer, passed to `onRefused`: its request and the reason. Its
 * headers include bearer tokens and cookies as received.
 */
export interface RefusedDelivery {
  /** The body exactly as received. Absent if the headers decided and the body was not read. */
  readonly rawBytes?: Uint8Array;
  /** The header fields: a lower-case name maps to the values of its lines, in the order received. */
  readonly headers: HeaderFields;
  readonly method: string;
  /** The request target as received; undefined if the caller passed no request. */
  readonly url: string | undefined;
  /**
   * The URL for which the delivery was verified, as `publicUrl` says. Undefined if the delivery was refused before
   * its URL was known, unless `publicUrl` is one exact URL.
   */
  readonly targetUri: string | undefined;
  /**
   * The agent URL of the authenticated sender, or else of the sender whose key id the delivery names. Undefined if no
   * known sender fits.
   */
  readonly sender: string | undefined;
  /** The outcome of kind `refused`. */
  readonly outcome: Outcome;
}

/**
 * The hook `onRefused` of `createReceiver` as an object: the function, and the largest body, bytes, that is read for
 * it. `captureRefused` of `proto-webhooks/node` returns one.
 */
export interface RefusedHook {
  /** Called after the answer was decided. Its errors, promises and duration change no answer. */
  readonly handle: (delivery: RefusedDelivery) => void;
  /**
   * The largest body that is read for the hook if the headers alone led to the refusal, bytes. At most one body per
   * second is read, for a known key id. Default: 0.
   */
  readonly maxBodyBytes?: number;
}

/**
 * The hook `onRefused` of `createReceiver`, called for each delivery that is refused with 4xx. It is a function, or
 * an object (`RefusedHook`) if it wants bodies that would otherwise not be read.
 */
export type OnRefused = RefusedHook['handle'] | RefusedHook;
