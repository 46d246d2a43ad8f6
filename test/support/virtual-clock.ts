import { setImmediate as turn } from 'node:timers/promises';
import { vi } from 'vitest';

/** Time that passes only while a test lets it: `Date` stands still in between. */
export interface VirtualClock {
  /** Ms since it was made. */
  readonly now: () => number;
  /** Resolves when so much of this time has passed; early where the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** Lets so much time pass; sleepers are woken in turn, and does what it does before the next one is. */
  readonly pass: (ms: number) => Promise<void>;
  /** Everything that can happen without time has happened. */
  readonly settled: () => Promise<void>;
  readonly end: () => void;
}

interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
}

/** Turns of the event loop in which work that needs no time goes on: a step of a store or a worker takes a few. */
const TURNS = 10;

/**
 * @param began which time `Date` says at first: now.
 * @param isBusy whether work goes on that turns of the event loop do not end, such as ciphers on the runtime's own threads.
 */
export function virtualClock(began: number = Date.now(), isBusy: () => boolean = () => false): VirtualClock {
  vi.useFakeTimers({ toFake: ['Date'], now: began });
  let now = 0;
  const sleepers = new Set<Sleeper>();
  const settled = async (): Promise<void> => {
    for (let left = TURNS; left > 0; left -= 1) {
      await turn();
      if (isBusy()) left = TURNS + 1;
    }
  };
  const goTo = (at: number): void => {
    now = at;
    vi.setSystemTime(began + at);
  };
  const earliest = (until: number): Sleeper | undefined => {
    let first: Sleeper | undefined;
    for (const sleeper of sleepers) {
      if (sleeper.at <= until && (!first || sleeper.at < first.at)) first = sleeper;
    }
    return first;
  };
  return {
    now: () => now,
    settled,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        const sleeper: Sleeper = {
          at: now + Math.max(0, ms),
          wake: () => {
            sleepers.delete(sleeper);
            signal?.removeEventListener('abort', sleeper.wake);
            resolve();
          },
        };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', sleeper.wake);
        if (signal?.aborted) sleeper.wake();
      }),
    pass: async (ms) => {
      const until = now + ms;
      await settled();
      for (let next = earliest(until); next; next = earliest(until)) {
        goTo(next.at);
        next.wake();
        await settled();
      }
      goTo(until);
      await settled();
    },
    end: () => vi.useRealTimers(),
  };
}
