import { Fault } from '../../errors.ts';
import { orLate, sleep } from '../../time-limits.ts';

/** Tries of a transaction that the server rolls back because of others, and the first pause between them. */
const MOST_TRIES = 5;
const FIRST_PAUSE_MS = 5;

/** What was rolled back because of others is made again. */
interface Retries {
  readonly isRetryable: (error: unknown) => boolean;
  /** 0 ≤ n < 1. */
  readonly random: () => number;
  /** After so long nothing is tried again. Ms. */
  readonly forMs?: number;
}

/** @throws what the last try threw. */
export async function retried<T>(
  attempt: () => Promise<T>,
  { isRetryable, random, forMs = Infinity }: Retries,
): Promise<T> {
  const since = performance.now();
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!isRetryable(error) || tries >= MOST_TRIES || performance.now() - since >= forMs) throw error;
      await sleep(FIRST_PAUSE_MS * 2 ** tries * random());
    }
  }
}

/** At most so many at once; the others wait, first come first served. */
interface Slots {
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
    // The slot goes from hand to hand: a caller that comes now cannot take it in between.
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

/**
 * Waits for at most so long. What comes later goes to `late`.
 * @param what took longer, and whose, e.g. `Postgres: a statement`.
 * @throws Fault `store_unavailable` after that time.
 */
export function within<T>(
  running: Promise<T>,
  ms: number,
  what: string,
  late: (value: T) => void = () => undefined,
): Promise<T> {
  let isLate = false;
  const passOn = async (): Promise<void> => {
    const value = await running;
    if (isLate) late(value);
  };
  passOn().catch(() => undefined);
  return orLate(running, ms, () => {
    isLate = true;
    return new Fault('store_unavailable', `${what} took longer than ${ms} ms.`);
  });
}
