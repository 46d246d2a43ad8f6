import type { Logger } from '../alarms.ts';
import type { Store } from '../stores/contract.ts';

export interface LeaseKeeper {
  /** Resolves when the lease is given up: it was lost, or `maxRunMs` is over. Never rejects. */
  readonly ended: Promise<'lost' | 'abandoned'>;
  /** Stops renewing; the lease stays as it is. */
  readonly stop: () => void;
}

/** Timers of Node can let the process end; those of other runtimes are numbers. */
function unref(timer: unknown): void {
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
}

/**
 * Renews a lease until told to stop. JavaScript cannot stop a handler, and a lease released under one that runs
 * would let two overlap; so it is renewed past the handler's deadline, up to `maxRunMs` (a crash, for the store).
 */
export function keepLease(request: LeaseRequest): LeaseKeeper {
  const { store, log, renewMs, maxRunMs, closed, ...lease } = request;
  let renewing = false;
  let timer: ReturnType<typeof setInterval> | undefined;
  let limit: ReturnType<typeof setTimeout> | undefined;
  const stop = (): void => {
    clearInterval(timer);
    clearTimeout(limit);
    closed.removeEventListener('abort', stop);
  };
  closed.addEventListener('abort', stop);
  const ended = new Promise<'lost' | 'abandoned'>((resolve) => {
    const end = (why: 'lost' | 'abandoned'): void => {
      stop();
      resolve(why);
    };
    const renew = async (): Promise<void> => {
      try {
        if ((await store.renew(lease)) === 'lost') end('lost');
      } catch (error) {
        // The store may answer the next one; if it does not, the lease runs out, which is what the fence is for.
        log.warn({ err: error }, 'a lease could not be renewed');
      } finally {
        renewing = false;
      }
    };
    timer = setInterval(() => {
      if (renewing) return;
      renewing = true;
      void renew();
    }, renewMs);
    limit = setTimeout(() => end('abandoned'), maxRunMs);
    // A handler that never settles must not hold a process that is stopping; one at work has its own I/O.
    unref(timer);
    unref(limit);
  });
  return { ended, stop };
}
