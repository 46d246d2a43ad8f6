import type { Logger } from '../alarms.ts';
import type { Store } from '../stores/contract.ts';

export interface LeaseKeeper {
  /** Resolves when the run is over: the store says that the lease is lost, or `maxRunMs` is over. Never rejects. */
  readonly ended: Promise<'lost' | 'abandoned'>;
  /** Stops renewing; the lease stays as it is. */
  readonly stop: () => void;
}

/** Timers of Node can let the process end; those of other runtimes are numbers. */
export function unref(timer: unknown): void {
  (timer as { unref?: () => void } | undefined)?.unref?.();
}

export interface LeaseRequest {
  readonly store: Pick<Store, 'renew'>;
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly maxRunMs: number;
  readonly log: Logger;
  /** Aborts when the receiver has stopped: its store is closed. */
  readonly closed: AbortSignal;
  /** As of `Running`. */
  readonly beat: () => void;
}

/** Renews once, one at a time; says whether the lease may still be ours. */
function createRenewal(request: LeaseRequest): () => Promise<boolean> {
  const { store, log, sender, key, owner, leaseMs } = request;
  let renewing = false;
  return async () => {
    if (renewing) return true;
    renewing = true;
    try {
      return (await store.renew({ sender, key, owner, leaseMs })) === 'renewed';
    } catch (error) {
      // The lease may run out meanwhile. A store that was away for everybody still takes the renewal of its owner, and
      // what somebody else has by then is lost when the store says so: the fence is for that.
      log.warn({ err: error }, 'a lease could not be renewed');
      return true;
    } finally {
      renewing = false;
    }
  };
}

/**
 * Renews a lease until told to stop. JavaScript cannot stop a handler, and a lease released under one that runs
 * would let two overlap; so it is renewed past the handler's deadline, up to `maxRunMs` (a crash, for the store).
 */
export function keepLease(request: LeaseRequest): LeaseKeeper {
  const { renewMs, maxRunMs, closed, beat } = request;
  const isHeld = createRenewal(request);
  let stop = (): void => {};

  const ended = new Promise<'lost' | 'abandoned'>((resolve) => {
    const end = (why: 'lost' | 'abandoned'): void => {
      stop();
      resolve(why);
    };
    const tick = async (): Promise<void> => {
      beat();
      if (!(await isHeld())) end('lost');
    };
    const timer = setInterval(() => void tick(), renewMs);
    const limit = setTimeout(() => end('abandoned'), maxRunMs);
    // A handler that never settles must not hold a process that is stopping; one at work has its own I/O.
    unref(timer);
    unref(limit);
    stop = () => {
      clearInterval(timer);
      clearTimeout(limit);
      closed.removeEventListener('abort', stop);
    };
    if (closed.aborted) stop();
    else closed.addEventListener('abort', stop);
  });
  return { ended, stop };
}
