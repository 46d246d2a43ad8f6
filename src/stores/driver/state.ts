import { Fault } from '../../errors.ts';
import type { Backend } from '../backend.ts';

/** Whether a store is open, and what it has under way. */
export interface State {
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
  const check = (): void => {
    if (state !== 'open') throw new Fault('store_unavailable', `The ${backend.name} store is ${state}.`);
  };
  return {
    check,
    open: async () => {
      if (state === 'closed') check();
      opening ??= backend.open();
      try {
        await opening;
      } catch (error) {
        opening = undefined;
        throw error;
      }
      if (state === 'not open yet') state = 'open';
    },
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
    close: (idle) => {
      state = 'closed';
      closing ??= (async () => {
        await opening?.catch(() => undefined);
        await idle();
        while (running.size > 0) await Promise.allSettled(running);
        await backend.close();
      })();
      return closing;
    },
  };
}
