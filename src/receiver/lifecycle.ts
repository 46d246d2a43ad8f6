import { settledWithin } from '../shared/time-limits.ts';

/** Counts what is under way, so that a receiver can stop without dropping any of it. */
export interface Lifecycle {
  /** From `drain` to `resume`. */
  readonly stopping: () => boolean;
  /** Aborts when this run of the receiver is over, its store about to be closed; `resume` makes a new one. */
  readonly closed: () => AbortSignal;
  /** Deliveries that have arrived and are not yet answered. */
  readonly inFlight: () => number;
  /** A delivery has arrived. The caller calls `answered` once, however the delivery ends. */
  readonly arrived: () => void;
  readonly answered: () => void;
  /** Work that goes on after the answer. Never rejects out of here. */
  readonly background: (work: Promise<unknown>) => void;
  /** Resolves when every delivery is answered, and background work is over or `graceMs` have passed since. */
  readonly drain: (graceMs: number) => Promise<void>;
  /** Ends the run, once it is drained. */
  readonly close: () => void;
  /** Deliveries are taken again; nothing where they are. */
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
    // Counted, and not kept: every delivery comes by here.
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
