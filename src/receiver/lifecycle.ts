// Counts running deliveries, and background work after their answers, so that a receiver loses none when it stops
// (admission.md §2.13).
// Made once per receiver or verifier.

import { settledWithin } from '../shared/time-limits.ts';

/** Counts deliveries and background work, so that a receiver can stop without losing any. */
export interface Lifecycle {
  /** True while the receiver stops or is stopped: from `drain` to `resume`. */
  readonly stopping: () => boolean;
  /**
   * Returns a signal that aborts when this run of the receiver ends, just before its store is closed. `resume`
   * makes a new signal.
   */
  readonly closed: () => AbortSignal;
  /** Returns the number of deliveries that have arrived and are not yet answered. */
  readonly inFlight: () => number;
  /** Counts a delivery that has arrived. The caller calls `answered` once, however the delivery ends. */
  readonly arrived: () => void;
  readonly answered: () => void;
  /** Adds background work that continues after an answer. If the promise rejects, the rejection is ignored. */
  readonly background: (work: Promise<unknown>) => void;
  /**
   * Begins the stop: waits until every delivery is answered, and then at most `graceMs` until background work has
   * ended.
   */
  readonly drain: (graceMs: number) => Promise<void>;
  /** Ends the receiver's run: aborts `closed`. Called after `drain`. */
  readonly close: () => void;
  /** Accepts deliveries again. Does nothing if they are already accepted. */
  readonly resume: () => void;
}

export function createLifecycle(): Lifecycle {
  const late = new Set<Promise<unknown>>();
  const idlers: (() => void)[] = [];
  let deliveries = 0;
  let stopping = false;
  let closing = new AbortController();

  const allAnswered = async (): Promise<void> => {
    if (deliveries > 0) await new Promise<void>((resolve) => idlers.push(resolve));
  };

  return {
    stopping: () => stopping,
    closed: () => closing.signal,
    inFlight: () => deliveries,
    // A plain counter costs the least, and `arrived` is called for every delivery.
    arrived: () => {
      deliveries += 1;
    },
    answered: () => {
      deliveries -= 1;
      if (deliveries === 0) for (const resolve of idlers.splice(0)) resolve();
    },
    background: (work) => {
      const settled = work.catch(() => {}).finally(() => late.delete(settled));
      late.add(settled);
    },
    async drain(graceMs) {
      stopping = true;
      await allAnswered();
      await settledWithin(Promise.all(late), graceMs);
    },
    close: () => closing.abort(),
    resume() {
      stopping = false;
      if (closing.signal.aborted) closing = new AbortController();
    },
  };
}
