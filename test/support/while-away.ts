import { setTimeout as wait } from 'node:timers/promises';

/* A store that is away for a moment: a server under load, or the lock of a file that another process holds. */

const WAIT_MS = 100;
const MOST_MS = 60_000;

/** The code of an error that has one. */
export const codeOf = (error: unknown): string | undefined => {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' ? code : undefined;
};

/**
 * Does what changes nothing again while the store is away.
 * @param until ends the attempts; after a minute by default.
 */
export async function whileAway<T>(
  work: () => Promise<T>,
  until: AbortSignal = AbortSignal.timeout(MOST_MS),
): Promise<T> {
  for (;;) {
    until.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (codeOf(error) !== 'store_unavailable' || until.aborted) throw error;
    }
    await wait(WAIT_MS);
  }
}
