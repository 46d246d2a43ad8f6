/** At most so many at once; the others wait, first come first served. */
export interface Slots {
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves when nothing runs or waits. */
  idle(): Promise<void>;
}

export function slotsOf(most: number): Slots {
  const waiting: (() => void)[] = [];
  const idlers: (() => void)[] = [];
  let running = 0;
  const enter = async (): Promise<void> => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
  };
  const leave = (): void => {
    const next = waiting.shift();
    // The slot goes from hand to hand: whoever comes now cannot slip in between.
    if (next) next();
    else running -= 1;
    if (running === 0) for (const resolve of idlers.splice(0)) resolve();
  };
  return {
    run: async (work) => {
      await enter();
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
