/** Counts what is under way, so that a receiver can stop without dropping any of it. */
export interface Lifecycle {
  readonly stopping: () => boolean;
  /** Deliveries that have arrived and are not yet answered. */
  readonly inFlight: () => number;
  /** A delivery, from its arrival to its answer. */
  readonly track: <T>(work: Promise<T>) => Promise<T>;
  /** Work that goes on after the answer. Never rejects out of here. */
  readonly background: (work: Promise<unknown>) => void;
  /** Resolves when every delivery is answered, and background work is over or `graceMs` have passed since. */
  readonly drain: (graceMs: number) => Promise<void>;
}

export function createLifecycle(): Lifecycle {
  const deliveries = new Set<Promise<unknown>>();
  const late = new Set<Promise<unknown>>();
  let stopping = false;

  function keep<T>(set: Set<Promise<unknown>>, work: Promise<T>): Promise<T> {
    const settled = work.catch(() => {}).finally(() => set.delete(settled));
    set.add(settled);
    return work;
  }

  return {
    stopping: () => stopping,
    inFlight: () => deliveries.size,
    track: (work) => keep(deliveries, work),
    background: (work) => {
      keep(late, work).catch(() => {});
    },
    async drain(graceMs) {
      stopping = true;
      await Promise.all(deliveries);
      let timer: ReturnType<typeof setTimeout> | undefined;
      const grace = new Promise((resolve) => {
        timer = setTimeout(resolve, graceMs);
      });
      await Promise.race([Promise.all(late), grace]);
      clearTimeout(timer);
    },
  };
}
