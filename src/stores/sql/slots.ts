/** At most so many at once; the others wait, first come first served. */
export interface Slots {
  /** @param over ends the wait, with its reason; not the work. */
  run<T>(work: () => Promise<T>, over?: AbortSignal): Promise<T>;
  /** Resolves when nothing runs or waits. */
  idle(): Promise<void>;
}

export function slotsOf(most: number): Slots {
  const waiting: (() => void)[] = [];
  const idlers: (() => void)[] = [];
  let running = 0;
  const wait = (over: AbortSignal | undefined): Promise<void> =>
    new Promise((resolve, reject) => {
      const giveUp = (): void => {
        waiting.splice(waiting.indexOf(enter), 1);
        reject(over?.reason);
      };
      const enter = (): void => {
        over?.removeEventListener('abort', giveUp);
        resolve();
      };
      waiting.push(enter);
      over?.addEventListener('abort', giveUp, { once: true });
    });
  const leave = (): void => {
    const next = waiting.shift();
    // The slot goes from hand to hand: whoever comes now cannot slip in between.
    if (next) next();
    else running -= 1;
    if (running === 0) for (const resolve of idlers.splice(0)) resolve();
  };
  return {
    run: async (work, over) => {
      over?.throwIfAborted();
      if (running >= most) await wait(over);
      else running += 1;
      try {
        return await work();
      } finally {
        leave();
      }
    },
    idle: async () => {
      if (running > 0) await new Promise<void>((resolve) => idlers.push(resolve));
    },
  };
}
