// Counts deliveries and late work, so that a receiver can stop without dropping any (admission.md §2.13).
// Made once per receiver or verifier.

import { settledWithin } from '../shared/time-limits.ts';

/** Counts deliveries and background work, so that a receiver can stop without dropping any. */
export interface Lifecycle {
  /** True from `drain` to `resume`. */
  readonly stopping: () => boolean;
  /**
   * Aborts when this run of the receiver is over, just before its store is closed. `resume` makes a new
   * signal.
   */
  readonly closed: () => AbortSignal;
  /** Deliveries that have arrived and are not yet answered. */
  readonly inFlight: () => number;
  /** Counts an arrived delivery. The caller calls `answered` once, whatever the delivery's end. */
  readonly arrived: () => void;
  readonly answered: () => void;
  /** Adds work that goes on after the answer. Its rejection is swallowed here. */
  readonly background: (work: Promise<unknown>) => void;
  /**
   * Resolves when every delivery is answered, and when background work is over or `graceMs` have passed
   * since.
   */
  readonly drain: (graceMs: number) => Promise<void>;
  /** Ends the receiver's run after it was drained. */
  readonly close: () => void;
  /** Takes deliveries again; does nothing if they are taken already. */
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
    // Only counted, not kept: every delivery passes here.
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
