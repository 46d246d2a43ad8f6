import type { Schedule } from '../../src/for-tests.ts';

/** Timers that fire when the test says so. */
export interface Timers {
  readonly schedule: Schedule;
  /** Ms of those that wait. */
  readonly waiting: () => number[];
  /** Takes out the only one. */
  readonly next: () => { readonly task: () => void };
  /** Fires the only one; resolves when another waits instead. */
  readonly fire: () => Promise<void>;
}

export function timers(): Timers {
  const pending = new Set<{ readonly task: () => void; readonly ms: number }>();
  let added = (): void => undefined;
  const next: Timers['next'] = () => {
    const [timer] = pending;
    if (timer === undefined || pending.size !== 1) throw new Error(`${pending.size} timers wait`);
    pending.delete(timer);
    return timer;
  };
  return {
    next,
    schedule: (task, ms) => {
      const timer = { task, ms };
      pending.add(timer);
      added();
      return () => {
        pending.delete(timer);
      };
    },
    waiting: () => [...pending].map(({ ms }) => ms),
    fire: async () => {
      const { task } = next();
      const another = new Promise<void>((resolve) => {
        added = resolve;
      });
      task();
      await another;
    },
  };
}
