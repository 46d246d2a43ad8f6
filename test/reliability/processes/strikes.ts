/** Does something harmful so many times, as the work goes on and not as time passes. */
export interface Strikes {
  /** @param done of the work, so far. */
  readonly notice: (done: number) => void;
  /** Resolves when all have struck, also those that were not due yet. */
  readonly rest: () => Promise<void>;
}

/** One after the other, at even shares of the work. @param work all of it, by the measure of `notice`. */
export function strikesOf(times: number, work: number, strike: () => Promise<void>): Strikes {
  let due = 0;
  let last: Promise<void> = Promise.resolve();
  const upTo = (count: number): void => {
    for (; due < Math.min(times, count); due += 1) {
      last = last.then(strike);
      // It is awaited in `rest`.
      last.catch(() => undefined);
    }
  };
  return {
    notice: (done) => upTo(Math.floor((done * (times + 1)) / work)),
    rest: async () => {
      upTo(times);
      await last;
    },
  };
}

/** Plays each of them once, so many at a time. */
export async function inTurns<T>(
  all: readonly T[],
  atOnce: number,
  play: (one: T) => Promise<unknown>,
): Promise<void> {
  const waiting = all.values();
  const turn = async (): Promise<void> => {
    for (const one of waiting) await play(one);
  };
  await Promise.all(Array.from({ length: atOnce }, turn));
}
