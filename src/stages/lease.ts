import type { SafeLogger } from '../shared/logging.ts';
import { Fault } from '../shared/errors.ts';
import type { CompleteRequest, Store } from '../stores/store.ts';
import { backgroundTimer } from '../shared/time-limits.ts';
import type { Config } from '../config/resolve-options.ts';

/** How a handler's run ended. `lost`: the store says that another owner has the event. `abandoned`: `maxRunMs` is over. */
export type RunEnd =
  | { readonly kind: 'returned' }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'lost' }
  | { readonly kind: 'abandoned' };

/** The deadline is over, and the handler still runs. */
export interface DeadlineExceeded {
  readonly kind: 'overrun';
  /** How it ends. Never rejects. */
  readonly finished: Promise<RunEnd>;
}

/** What a run needs: its lease renewed, and an end to the wait for it. */
export interface WatchRequest {
  readonly store: Pick<Store, 'renew'>;
  /** Whose lease of which event it is. */
  readonly complete: Pick<CompleteRequest, 'sender' | 'key' | 'owner'>;
  readonly config: Pick<Config, 'leaseMs' | 'renewMs' | 'maxRunMs' | 'handlerDeadlineMs'>;
  readonly log: SafeLogger;
  /** Aborts when the receiver has stopped: its store is closed. */
  readonly closed: AbortSignal;
  /** As of `Running`. */
  readonly beat: () => void;
  /** When the run began, on the clock of `performance.now()`. */
  readonly began: number;
  readonly abort: AbortController;
  /** The lease is over, and what the handler has under way is to be given up: with this, as its signal. */
  readonly givenUp: (why: Fault) => void;
  /** Called once: how the run ended, or that it goes on past its deadline. */
  readonly tell: (end: RunEnd | DeadlineExceeded) => void;
}

/** A run that is being watched. Times are of `performance.now()`; Infinity: never. */
export interface Watch {
  readonly request: WatchRequest;
  /**
   * JavaScript cannot stop a handler, and a lease released under one that runs would let two overlap; so it is renewed past
   * the handler's deadline, up to `maxRunMs` (a crash, for the store).
   */
  renewAt: number;
  limitAt: number;
  deadlineAt: number;
  /** When its one timer fires. */
  dueAt: number;
  cancel: () => void;
  isRenewing: boolean;
  hasEnded: boolean;
  /** Told of the end, or of the overrun; after an overrun, of the end that comes then. */
  tell: (end: RunEnd | DeadlineExceeded) => void;
}

/** Renews the lease, and ends the wait for the handler at its deadline, or when the lease is over. */
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

/** A handler that never settles must not hold a process that is stopping; one at work has its own I/O. */
function schedule(watch: Watch, now: number): void {
  const { renewAt, limitAt, deadlineAt } = watch;
  watch.dueAt = Math.min(renewAt, limitAt, deadlineAt);
  if (watch.dueAt === Infinity) return;
  watch.cancel = backgroundTimer(() => look(watch), Math.max(0, watch.dueAt - now));
}

/** At each time at which something may be due. */
function look(watch: Watch): void {
  const { request, dueAt } = watch;
  // A timer may come a little early.
  const now = Math.max(dueAt, performance.now());
  if (now >= watch.deadlineAt) overrun(watch);
  // A listener for the receiver's end would be one more for each delivery.
  if (request.closed.aborted) release(watch);
  else if (now >= watch.limitAt) giveUp(watch, 'abandoned');
  else if (now >= watch.renewAt) {
    watch.renewAt = now + request.config.renewMs;
    void renew(watch);
  }
  schedule(watch, now);
}

/** One at a time. */
async function renew(watch: Watch): Promise<void> {
  watch.request.beat();
  if (watch.isRenewing) return;
  watch.isRenewing = true;
  const isHeld = await isStillHeld(watch.request);
  watch.isRenewing = false;
  // A renewal that was under way when the run was settled finds the lease gone, as it should be.
  if (!isHeld && watch.limitAt !== Infinity && !watch.request.closed.aborted) giveUp(watch, 'lost');
}

/** Renews once; says whether the lease may still be ours. */
async function isStillHeld({ store, log, complete, config }: WatchRequest): Promise<boolean> {
  const { sender, key, owner } = complete;
  try {
    return (await store.renew({ sender, key, owner, leaseMs: config.leaseMs })) === 'renewed';
  } catch (error) {
    // The lease may run out meanwhile. A store that was away for everybody still takes the renewal of its owner, and
    // what somebody else has by then is lost when the store says so, by its owner.
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

/** The lease is renewed no more, and stays as it is. */
function release(watch: Watch): void {
  watch.renewAt = watch.limitAt = Infinity;
}

/** To be called by what runs the handler, when it is done: there is no deadline any more. */
export function endWatch(watch: Watch, end: RunEnd): void {
  if (watch.hasEnded) return;
  watch.hasEnded = true;
  watch.deadlineAt = Infinity;
  watch.tell(end);
}

/** The run is settled, or will not be: nothing of it is looked at any more. */
export function stopWatch(watch: Watch): void {
  release(watch);
  watch.deadlineAt = Infinity;
  watch.tell = nothing;
  watch.cancel();
}
