// The store's time as this process knows it (admission.md §8.8), and the state of a store: open or closed (§2.13).
// Called by optimistic-store.ts. batch-commit.ts reads and sets the time, and SQLite uses the same state.
import { Fault } from '../../shared/errors.ts';
import type { Backend } from '../backend.ts';
import { type StepWatch, stepWatch } from '../step-watch.ts';

/** The store's time as this process knows it. `told` adds to an answer if the store's clock was set back. */
export interface StoreClock extends Pick<StepWatch, 'told'> {
  /**
   * Takes a time that the store reported. A reply that took long gives an older time than the one that is known, and
   * is ignored. Unix ms, with the offset.
   *
   * @param since the time at which the store was asked, by `performance.now()`.
   * @param isRight true if the store refused a plan because its time was wrong: then the time is always taken.
   */
  readonly seen: (now: number, since: number, isRight?: boolean) => void;
  /**
   * Returns the store's time. Between two replies it can be ahead of the store's own time only by the drift of the
   * two clocks. So leases that are planned with it become shorter, not longer (admission.md §8.8). Unix ms, with the
   * offset.
   */
  readonly now: () => number;
}

/** The time for which the best reply is used; after that the two clocks may have drifted apart. Ms. */
const BEST_MS = 1000;

/**
 * Makes the `StoreClock` of a store.
 *
 * @param clockOffsetMs `StoreOptions.clockOffsetMs`.
 */
export function storeClock(clockOffsetMs: () => number): StoreClock {
  const watch = stepWatch();
  let store = 0;
  let own = -Infinity;
  return {
    told: watch.told,
    seen: (now, since, isRight = false) => {
      const at = performance.now();
      watch.seen(now, since);
      const storeNow = now - clockOffsetMs();
      if (!isRight && at - own < BEST_MS && storeNow < store + at - own) return;
      store = storeNow;
      own = at;
    },
    now: () => Math.floor(store + performance.now() - own + clockOffsetMs()),
  };
}

/** The state of a store: open or not, and the work that is running. */
export interface State {
  /** Opens the store, also after a `close`, which it waits for. A second call does nothing. */
  readonly open: () => Promise<void>;
  /**
   * Checks that the store is open.
   *
   * @throws Fault `store_unavailable` before `open` and after `close`.
   */
  readonly check: () => void;
  /** Runs work that `close` waits for. */
  readonly during: <T>(work: () => Promise<T>) => Promise<T>;
  /**
   * Closes the store to new work. Resolves when running work has ended and the backend is released. It may be called
   * more than once.
   */
  readonly close: (idle: () => Promise<void>) => Promise<void>;
}

export function stateOf(backend: Pick<Backend, 'name' | 'open' | 'close'>): State {
  const running = new Set<Promise<unknown>>();
  let state: 'not open yet' | 'open' | 'closed' = 'not open yet';
  let opening: Promise<void> | undefined;
  let closing: Promise<void> | undefined;
  let closes = 0;
  const check = (): void => {
    if (state === 'open') return;
    throw new Fault(
      'store_unavailable',
      `The ${backend.name} store is ${state}. Await receiver.${state === 'closed' ? 'start' : 'ready'}(), or store.open() if no receiver has it.`,
    );
  };
  const begin = async (): Promise<void> => {
    try {
      await backend.open();
      // If `close` was called meanwhile, the store stays closed.
      if (closing === undefined) state = 'open';
    } finally {
      opening = undefined;
    }
  };
  const release = async (idle: () => Promise<void>): Promise<void> => {
    try {
      await opening?.catch(() => undefined);
      await idle();
      while (running.size > 0) await Promise.allSettled(running);
      await backend.close();
    } finally {
      closing = undefined;
    }
  };
  const open = async (): Promise<void> => {
    if (closing) {
      const before = closes;
      await closing.catch(() => undefined);
      // If `close` was called again meanwhile, the store stays closed.
      if (closes !== before) return check();
    }
    if (state !== 'open') await (opening ??= begin());
  };
  return {
    check,
    open,
    during: async (work) => {
      check();
      const done = work();
      running.add(done);
      try {
        return await done;
      } finally {
        running.delete(done);
      }
    },
    close: async (idle) => {
      closes += 1;
      if (state === 'closed' && !closing && !opening) return;
      state = 'closed';
      await (closing ??= release(idle));
    },
  };
}
