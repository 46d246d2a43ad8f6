// The store's clock as this process knows it (admission.md §8.8), and whether a store is open (§2.13).
// Called by optimistic-store.ts; batch-commit.ts reads and sets the clock, and SQLite has the same state of being open.
import { Fault } from '../../shared/errors.ts';
import type { Backend } from '../backend.ts';
import { type StepWatch, stepWatch } from '../step-watch.ts';

/** The store's clock as this process knows it. `told` says if it was set back. */
export interface StoreClock extends Pick<StepWatch, 'told'> {
  /**
   * Takes the time that the store has just told. A reply that was under way for long is behind what is known already,
   * and is ignored. Unix ms, with the offset.
   *
   * @param since the time of the question, by `performance.now()`.
   * @param isRight true if the store refused a plan for its clock: the time is set in any case.
   */
  readonly seen: (now: number, since: number, isRight?: boolean) => void;
  /**
   * Returns the store's time. It is ahead of the store's own by at most the drift of the two clocks between two
   * answers. So leases that are planned with it come out shorter, not longer (admission.md §8.8). Unix ms, with the
   * offset.
   */
  readonly now: () => number;
}

/** The time for which the best answer counts; after it the two clocks may have drifted apart. Ms. */
const BEST_MS = 1000;

/**
 * Makes the clock of a store.
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

/** The state of a store: open or not, and the work under way. */
export interface State {
  /** Opens, also after a `close`, for which it waits. A second call does nothing. */
  readonly open: () => Promise<void>;
  /**
   * Checks that the store is open.
   *
   * @throws Fault `store_unavailable` before `open` and after `close`.
   */
  readonly check: () => void;
  /** Runs work for which `close` waits. */
  readonly during: <T>(work: () => Promise<T>) => Promise<T>;
  /**
   * Closes the store to new work. Resolves when running work has ended and the backend is released, however often it
   * is called.
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
      // A close that came meanwhile wins.
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
      // A further close that came meanwhile has the last word.
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
