import type { SafeLogger } from '../shared/logging.ts';
import { Fault } from '../shared/errors.ts';
import type { Store } from '../stores/store.ts';
import { backgroundTimer } from '../shared/time-limits.ts';

export interface LeaseKeeper {
  /** Stops renewing; the lease stays as it is. */
  readonly stop: () => void;
}

interface LeaseRequest {
  readonly store: Pick<Store, 'renew'>;
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly maxRunMs: number;
  readonly log: SafeLogger;
  /** Aborts when the receiver has stopped: its store is closed. */
  readonly closed: AbortSignal;
  /** As of `Running`. */
  readonly beat: () => void;
}

/** Renews once; says whether the lease may still be ours. */
async function isStillHeld({ store, log, sender, key, owner, leaseMs }: LeaseRequest): Promise<boolean> {
  try {
    return (await store.renew({ sender, key, owner, leaseMs })) === 'renewed';
  } catch (error) {
    // The lease may run out meanwhile. A store that was away for everybody still takes the renewal of its owner, and
    // what somebody else has by then is lost when the store says so, by its owner.
    log.warn({ err: error }, 'a lease could not be renewed');
    return true;
  }
}

/**
 * Renews a lease until told to stop. JavaScript cannot stop a handler, and a lease released under one that runs
 * would let two overlap; so it is renewed past the handler's deadline, up to `maxRunMs` (a crash, for the store).
 */
export function keepLease(
  request: LeaseRequest,
  /** Called once, if the run is over: the store says that the lease is lost, or `maxRunMs` is over. */
  ended: (why: 'lost' | 'abandoned') => void,
): LeaseKeeper {
  const { renewMs, maxRunMs, closed, beat } = request;
  let isStopped = false;
  let isRenewing = false;
  const end = (why: 'lost' | 'abandoned'): void => {
    // A renewal that was under way when the run was settled finds the lease gone, as it should be.
    if (isStopped || closed.aborted) return;
    stop();
    ended(why);
  };
  /** One at a time. */
  const renew = async (): Promise<void> => {
    beat();
    if (isRenewing) return;
    isRenewing = true;
    const isHeld = await isStillHeld(request);
    isRenewing = false;
    if (!isHeld) end('lost');
  };
  // A handler that never settles must not hold a process that is stopping; one at work has its own I/O. That the
  // receiver has stopped is looked at here: a listener for it would be one more for each delivery.
  const tick = (): (() => void) =>
    backgroundTimer(() => {
      if (closed.aborted) {
        stop();
        return;
      }
      cancelTick = tick();
      void renew();
    }, renewMs);
  let cancelTick = tick();
  const cancelLimit = backgroundTimer(() => end('abandoned'), maxRunMs);
  const stop = (): void => {
    isStopped = true;
    cancelTick();
    cancelLimit();
  };
  return { stop };
}

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
  readonly lease: LeaseRequest;
  /** When the run began, on the clock of `performance.now()`. */
  readonly began: number;
  readonly abort: AbortController;
  readonly handlerDeadlineMs: number;
  /** The lease is over, and what the handler has under way is to be given up: with this, as its signal. */
  readonly givenUp: (why: Fault) => void;
  /** Called once: how the run ended, or that it goes on past its deadline. */
  readonly tell: (end: RunEnd | DeadlineExceeded) => void;
}

interface Watch {
  /** To be called by what runs the handler, when it is done. */
  readonly ended: (end: RunEnd) => void;
  /** The lease is renewed no more. */
  readonly stop: () => void;
}

/** Renews the lease, and ends the wait for the handler at its deadline, or when the lease is over. */
export function watchRun(request: WatchRequest): Watch {
  const { lease, began, abort, handlerDeadlineMs, givenUp } = request;
  // Told of the end, or of the overrun; after an overrun, of the end that comes then.
  let { tell } = request;
  let hasEnded = false;
  const finish = (end: RunEnd): void => {
    if (hasEnded) return;
    hasEnded = true;
    cancelDeadline();
    tell(end);
  };
  const overrun = (): void => {
    abort.abort(new Fault('handler_timeout', `the handler ran over ${handlerDeadlineMs} ms`));
    const before = tell;
    const finished = new Promise<RunEnd>((resolve) => {
      tell = resolve as typeof tell;
    });
    before({ kind: 'overrun', finished });
  };
  const giveUp = (kind: 'lost' | 'abandoned'): void => {
    const why = new Fault(kind === 'lost' ? 'lease_lost' : 'handler_timeout', 'the lease is over');
    abort.abort(why);
    givenUp(why);
    finish({ kind });
  };
  const keeper = keepLease(lease, giveUp);
  // As in `keepLease`: a receiver that has stopped is not to be kept alive by a handler that never settles.
  const leftMs = handlerDeadlineMs - (performance.now() - began);
  const cancelDeadline = backgroundTimer(overrun, Math.max(0, leftMs));
  return {
    ended: finish,
    stop() {
      tell = silent;
      keeper.stop();
    },
  };
}

const silent = (): void => {};
