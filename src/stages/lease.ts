// Watches one run: renews its lease, and ends the wait for the handler at its deadline (admission.md §4.8).
// Called by `dispatch` alone; one timer serves deadline, renewal and `maxRunMs`.

import type { SafeLogger } from '../shared/logging.ts';
import { Fault } from '../shared/errors.ts';
import type { CompleteRequest, Store } from '../stores/store.ts';
import { backgroundTimer } from '../shared/time-limits.ts';
import type { Config } from '../config/resolve-options.ts';

/**
 * The result of watching a handler's run. `lost`: the store says that another owner has the lease. `abandoned`:
 * `maxRunMs` has passed.
 */
export type RunEnd =
  | { readonly kind: 'returned' }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'lost' }
  | { readonly kind: 'abandoned' };

/** The result of watching a run if the deadline has passed and the handler is still running. */
export interface DeadlineExceeded {
  readonly kind: 'overrun';
  /** Resolves with the run's end. Never rejects. */
  readonly finished: Promise<RunEnd>;
}

/** Input for watching a run: the lease to renew, the limits, and the functions to call. */
export interface WatchRequest {
  readonly store: Pick<Store, 'renew'>;
  /** The event, and the owner of its lease. */
  readonly complete: Pick<CompleteRequest, 'sender' | 'key' | 'owner'>;
  readonly config: Pick<Config, 'leaseMs' | 'renewMs' | 'maxRunMs' | 'handlerDeadlineMs'>;
  readonly log: SafeLogger;
  /** Aborts when the receiver has stopped, because its store is then closed. */
  readonly closed: AbortSignal;
  /** `Running.beat`, which tells the store that this process is alive. */
  readonly beat: () => void;
  /** Start of the run, on the clock of `performance.now()`. */
  readonly began: number;
  readonly abort: AbortController;
  /**
   * Called if the lease is lost or `maxRunMs` has passed. It ends the handler's open transaction, with `why` as the
   * reason of the transaction's signal.
   */
  readonly givenUp: (why: Fault) => void;
  /** Called once: with the run's end, or at the deadline if the run still goes on. */
  readonly tell: (end: RunEnd | DeadlineExceeded) => void;
}

/** The state of a watched run. Times are those of `performance.now()`; Infinity means never. */
export interface Watch {
  readonly request: WatchRequest;
  /**
   * Time of the next renewal of the lease. Renewals go on after the handler's deadline, until `maxRunMs`: JavaScript
   * cannot stop a handler, and a second run must not overlap with it. After `maxRunMs` the store counts a crash.
   */
  renewAt: number;
  limitAt: number;
  deadlineAt: number;
  /** Time at which the run's only timer fires. */
  dueAt: number;
  cancel: () => void;
  isRenewing: boolean;
  hasEnded: boolean;
  /**
   * Called with the run's end, or with `overrun` at the deadline. After `overrun` it is replaced by a function that
   * gets the later end.
   */
  tell: (end: RunEnd | DeadlineExceeded) => void;
}

/** Renews the lease, and ends the wait for the handler at its deadline or when the lease is over. */
export function watchRun(request: WatchRequest): Watch {
  const { began, tell } = request;
  const { renewMs, maxRunMs, handlerDeadlineMs } = request.config;
  const watch: Watch = {
    request,
    renewAt: began + renewMs,
    limitAt: began + maxRunMs,
    deadlineAt: began + handlerDeadlineMs,
    dueAt: began,
    cancel: nothing,
    isRenewing: false,
    hasEnded: false,
    tell,
  };
  schedule(watch, began);
  return watch;
}

const nothing = (): void => {};

/** Starts a timer that does not keep a stopping process alive; a working handler has I/O that does. */
function schedule(watch: Watch, now: number): void {
  const { renewAt, limitAt, deadlineAt } = watch;
  watch.dueAt = Math.min(renewAt, limitAt, deadlineAt);
  if (watch.dueAt === Infinity) return;
  watch.cancel = backgroundTimer(() => look(watch), Math.max(0, watch.dueAt - now));
}

/**
 * Performs the actions that are due: ends the wait at the deadline, renews the lease, or ends the run at `maxRunMs`.
 * Then sets the timer for the next time.
 */
function look(watch: Watch): void {
  const { request, dueAt } = watch;
  // A timer may fire a little early, so the scheduled time is used if it is later.
  const now = Math.max(dueAt, performance.now());
  if (now >= watch.deadlineAt) overrun(watch);
  // The signal is checked here, because listening to it would cost one more listener per delivery.
  if (request.closed.aborted) release(watch);
  else if (now >= watch.limitAt) giveUp(watch, 'abandoned');
  else if (now >= watch.renewAt) {
    watch.renewAt = now + request.config.renewMs;
    void renew(watch);
  }
  schedule(watch, now);
}

/** Renews the lease, unless a renewal is still in progress. */
async function renew(watch: Watch): Promise<void> {
  watch.request.beat();
  if (watch.isRenewing) return;
  watch.isRenewing = true;
  const isHeld = await isStillHeld(watch.request);
  watch.isRenewing = false;
  // If the run was settled during the renewal, the renewal fails because the lease has ended, not because it was lost.
  if (!isHeld && watch.limitAt !== Infinity && !watch.request.closed.aborted) giveUp(watch, 'lost');
}

/** Tries to renew the lease once. Returns true if this process may still have the lease. */
async function isStillHeld({ store, log, complete, config }: WatchRequest): Promise<boolean> {
  const { sender, key, owner } = complete;
  try {
    return (await store.renew({ sender, key, owner, leaseMs: config.leaseMs })) === 'renewed';
  } catch (error) {
    // Returns true, although the lease may expire before the next try. If nobody could reach the store, the store will
    // still accept the renewal. If another owner has the lease by then, the store will say so.
    log.warn({ err: error }, 'a lease could not be renewed');
    return true;
  }
}

function overrun(watch: Watch): void {
  watch.deadlineAt = Infinity;
  const { abort, config } = watch.request;
  abort.abort(new Fault('handler_timeout', `the handler ran over ${config.handlerDeadlineMs} ms`));
  const { tell } = watch;
  const finished = new Promise<RunEnd>((resolve) => {
    watch.tell = resolve as typeof tell;
  });
  tell({ kind: 'overrun', finished });
}

function giveUp(watch: Watch, kind: 'lost' | 'abandoned'): void {
  release(watch);
  const why = new Fault(kind === 'lost' ? 'lease_lost' : 'handler_timeout', 'the lease is over');
  const { abort, givenUp } = watch.request;
  abort.abort(why);
  givenUp(why);
  endWatch(watch, { kind });
}

/** Stops the renewals, and leaves the lease unchanged in the store. */
function release(watch: Watch): void {
  watch.renewAt = watch.limitAt = Infinity;
}

/** Reports the run's end: the handler has ended, or the lease is over. The deadline then no longer applies. */
export function endWatch(watch: Watch, end: RunEnd): void {
  if (watch.hasEnded) return;
  watch.hasEnded = true;
  watch.deadlineAt = Infinity;
  watch.tell(end);
}

/** Ends the watch, because the run was settled or never will be settled. */
export function stopWatch(watch: Watch): void {
  release(watch);
  watch.deadlineAt = Infinity;
  watch.tell = nothing;
  watch.cancel();
}
