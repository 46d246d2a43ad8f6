// Watches one run: renews its lease, and ends the wait for the handler at its deadline (admission.md §4.8).
// Called by `dispatch` alone; one timer serves deadline, renewal and `maxRunMs`.

import type { SafeLogger } from '../shared/logging.ts';
import { Fault } from '../shared/errors.ts';
import type { CompleteRequest, Store } from '../stores/store.ts';
import { backgroundTimer } from '../shared/time-limits.ts';
import type { Config } from '../config/resolve-options.ts';

/**
 * End of a handler's run. `lost`: the store says that another owner has the event. `abandoned`: `maxRunMs` is
 * over.
 */
export type RunEnd =
  | { readonly kind: 'returned' }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'lost' }
  | { readonly kind: 'abandoned' };

/** The deadline is over, and the handler still runs. */
export interface DeadlineExceeded {
  readonly kind: 'overrun';
  /** Resolves with the run's end. Never rejects. */
  readonly finished: Promise<RunEnd>;
}

/** Parts of a watched run: the lease to renew, the limits, and whom to tell. */
export interface WatchRequest {
  readonly store: Pick<Store, 'renew'>;
  /** Owner and event of the lease. */
  readonly complete: Pick<CompleteRequest, 'sender' | 'key' | 'owner'>;
  readonly config: Pick<Config, 'leaseMs' | 'renewMs' | 'maxRunMs' | 'handlerDeadlineMs'>;
  readonly log: SafeLogger;
  /** Aborts when the receiver has stopped: its store is closed. */
  readonly closed: AbortSignal;
  /** `Running.beat`. */
  readonly beat: () => void;
  /** Start of the run, on the clock of `performance.now()`. */
  readonly began: number;
  readonly abort: AbortController;
  /**
   * Called if the lease is over: the handler's open transaction has to be given up, with this as its signal's
   * reason.
   */
  readonly givenUp: (why: Fault) => void;
  /** Called once, with the run's end or the news that it goes on past its deadline. */
  readonly tell: (end: RunEnd | DeadlineExceeded) => void;
}

/** A run that is being watched. Times are of `performance.now()`; Infinity means never. */
export interface Watch {
  readonly request: WatchRequest;
  /**
   * Time of the next renewal. Renewal goes on past the deadline up to `maxRunMs`. JavaScript cannot stop a
   * handler, and a lease released under a running one would let two overlap. At `maxRunMs` the store counts a
   * crash.
   */
  renewAt: number;
  limitAt: number;
  deadlineAt: number;
  /** Time at which its one timer fires. */
  dueAt: number;
  cancel: () => void;
  isRenewing: boolean;
  hasEnded: boolean;
  /** Called with the end or the overrun; after an overrun it is replaced and called with the later end. */
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

/** Starts a timer that does not keep a stopping process alive: a handler at work has I/O of its own. */
function schedule(watch: Watch, now: number): void {
  const { renewAt, limitAt, deadlineAt } = watch;
  watch.dueAt = Math.min(renewAt, limitAt, deadlineAt);
  if (watch.dueAt === Infinity) return;
  watch.cancel = backgroundTimer(() => look(watch), Math.max(0, watch.dueAt - now));
}

/**
 * Performs the steps that are due: the deadline, a renewal, the end after `maxRunMs`. Then sets the timer
 * again.
 */
function look(watch: Watch): void {
  const { request, dueAt } = watch;
  // A timer may fire a little early.
  const now = Math.max(dueAt, performance.now());
  if (now >= watch.deadlineAt) overrun(watch);
  // Polled here, because a listener for the receiver's end would be one more per delivery.
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
  // A renewal in flight while the run is settled rightly finds the lease gone.
  if (!isHeld && watch.limitAt !== Infinity && !watch.request.closed.aborted) giveUp(watch, 'lost');
}

/** Renews once; true if the lease may still be ours. */
async function isStillHeld({ store, log, complete, config }: WatchRequest): Promise<boolean> {
  const { sender, key, owner } = complete;
  try {
    return (await store.renew({ sender, key, owner, leaseMs: config.leaseMs })) === 'renewed';
  } catch (error) {
    // The lease may run out meanwhile. If the store was unreachable for everybody, it still takes the owner's
    // renewal. If somebody else has the lease by then, the store says so.
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

/** Ends the renewal and leaves the lease as it is. */
function release(watch: Watch): void {
  watch.renewAt = watch.limitAt = Infinity;
}

/** Called by the runner when the handler is done: the deadline no longer applies. */
export function endWatch(watch: Watch, end: RunEnd): void {
  if (watch.hasEnded) return;
  watch.hasEnded = true;
  watch.deadlineAt = Infinity;
  watch.tell(end);
}

/** Ends the watch, because the run is settled or never will be. */
export function stopWatch(watch: Watch): void {
  release(watch);
  watch.deadlineAt = Infinity;
  watch.tell = nothing;
  watch.cancel();
}
