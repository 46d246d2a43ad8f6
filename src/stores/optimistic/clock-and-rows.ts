// Computes the store's time from its last reply (admission.md §8.8), and keeps a store's state: open or closed (§2.13).
// Called by optimistic-store.ts. batch-commit.ts reads and sets the time, and SQLite uses the same state.
import { Fault } from '../../shared/errors.ts';
import type { Backend } from '../backend.ts';
import { type StepWatch, stepWatch } from '../step-watch.ts';

/**
 * The store's time as this process computes it from the last reply. The method `told` adds to a store's answer by how
 * many ms the store's clock was set back.
 */
export interface StoreClock extends Pick<StepWatch, 'told'> {
  /**
   * Takes over a time that the store reported, Unix ms, with the offset. A slow reply reports an older time than the
   * known one, and is ignored.
   *
   * @param since the time at which the store was asked, by `performance.now()`.
   * @param isRight true if the store refused a commit because this process's time was wrong. Then the time is never
   *   ignored.
   */
  readonly seen: (now: number, since: number, isRight?: boolean) => void;
  /**
   * Returns the store's time, Unix ms, with the offset. Between two replies it exceeds the store's own time at most by
   * the drift of the two clocks. So leases that are computed with it become shorter, not longer (admission.md §8.8).
   */
  readonly now: () => number;
}

/**
 * A reported time that is earlier than the computed one is ignored for this long after a reply. Later it is taken over,
 * because the two clocks may have drifted apart. Ms.
 */
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

/** The state of a store (open or not), and the work that is running in it. */
export interface State {
  /**
   * Opens the store. After a `close` it first waits until the store is closed. It does nothing if the store is open.
   */
  readonly open: () => Promise<void>;
  /**
   * Checks that the store is open.
   *
   * @throws Fault `store_unavailable` before `open` and after `close`.
   */
  readonly check: () => void;
  /** Runs `work`; a `close` that is called meanwhile waits for its end. */
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
      // If `close` was called while the backend was being opened, the store stays closed.
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
      // If `close` was called again during this wait, the store stays closed.
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
