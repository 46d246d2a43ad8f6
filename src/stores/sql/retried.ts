import { sleep } from '../sleep.ts';

/** Tries of a transaction that the server rolls back because of others, and the first pause between them. */
const MOST_TRIES = 5;
const FIRST_PAUSE_MS = 5;

/** What was rolled back because of others is made again. */
export interface Retries {
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
