/** `start` and `stop`, as a receiver, registrations and a poller have them. */
export interface StartStop {
  /**
   * Begins; called again, the same promise. After a `stop` that is under way it begins when that is over. One that rejected may
   * be called again.
   */
  readonly start: () => Promise<void>;
  /** Ends, at once where a start is still under way; called again, the same promise. */
  readonly stop: () => Promise<void>;
}

interface Change {
  readonly kind: 'start' | 'stop';
  done: Promise<void>;
}

/**
 * The last call decides, however many are under way.
 * @param begin is not called before the last `end` has settled. Where `end` is called meanwhile it resolves soon.
 * @param end is called at once, before anything was begun too.
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
