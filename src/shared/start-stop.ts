// Orders overlapping calls of `start` and `stop`: the last call decides (admission.md §2.13).
// Used by receivers, verifiers, registrations, pollers and reconcilers.

/** `start` and `stop` of a receiver, registrations or a poller. */
export interface StartStop {
  /**
   * Starts. A repeated call returns the same promise. A call during `stop` starts when the stop has ended. After a
   * rejection it may be called again.
   */
  readonly start: () => Promise<void>;
  /** Stops immediately, even if a start is in progress. A repeated call returns the same promise. */
  readonly stop: () => Promise<void>;
}

interface Change {
  readonly kind: 'start' | 'stop';
  done: Promise<void>;
}

/**
 * Makes `start` and `stop`. If several calls are in progress, the last one decides.
 * @param begin performs the start. It is not called before the last `end` has settled, and must resolve soon if `end`
 * is called meanwhile.
 * @param end performs the stop. It is called immediately, even if nothing was started.
 */
export function startStop(begin: () => Promise<void>, end: () => Promise<void>): StartStop {
  let last: Change | undefined;
  let ending: Promise<void> | undefined;

  const change = (kind: Change['kind'], run: (isLast: () => boolean) => Promise<void>): Promise<void> => {
    if (last?.kind === kind) return last.done;
    const mine: Change = { kind, done: Promise.resolve() };
    last = mine;
    const isLast = (): boolean => last === mine;
    mine.done = run(isLast).catch((error: unknown) => {
      if (isLast()) last = undefined;
      throw error;
    });
    return mine.done;
  };

  return {
    start: () =>
      change('start', async (isLast) => {
        if (ending) await ending.catch(() => undefined);
        if (isLast()) await begin();
      }),
    stop: () =>
      change('stop', () => {
        ending ??= end().finally(() => {
          ending = undefined;
        });
        return ending;
      }),
  };
}
