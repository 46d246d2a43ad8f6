import { Fault } from '../../shared/errors.ts';
import type { Backend } from '../backend.ts';
import { type StepWatch, stepWatch } from '../step-watch.ts';

/** The store's clock as this process knows it, and whether it was set back. */
export interface StoreClock extends Pick<StepWatch, 'told'> {
  /**
   * What the store said just now; a reply that was long under way is behind what is known already, and is left.
   * Unix ms, with the offset.
   * @param since when it was asked, by `performance.now()`.
   * @param isRight the store has refused what was planned with what is known: it is set in any case.
   */
  readonly seen: (now: number, since: number, isRight?: boolean) => void;
  /**
   * Never ahead of the store's own by more than the two clocks drift apart between two answers: leases that are planned
   * with it come out shorter, not longer (admission.md §8.8). Unix ms, with the offset.
   */
  readonly now: () => number;
}

/** The best answer counts for so long: then the two clocks may have drifted apart. Ms. */
const BEST_MS = 1000;

/** @param clockOffsetMs `StoreOptions.clockOffsetMs`. */
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

/** Whether a store is open, and what it has under way. */
export interface State {
  /** Opens, also after `close`, for which it waits; called again, nothing. */
  readonly open: () => Promise<void>;
  /** @throws Fault `store_unavailable` before `open` and after `close`. */
  readonly check: () => void;
  /** Keeps `close` waiting. */
  readonly during: <T>(work: () => Promise<T>) => Promise<T>;
  /** Nothing new from now on; resolves when what runs has ended and the backend is released, however often called. */
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
      // Unless it was closed meanwhile.
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
      // Closed once more meanwhile: that is the last word.
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
