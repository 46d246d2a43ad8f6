import { setTimeout as wait } from 'node:timers/promises';

/* A store that is away for a moment: a server under load, or the lock of a file that another process holds. */

const TRIES = 600;
const WAIT_MS = 100;

/** The code of an error that has one. */
export const codeOf = (error: unknown): string | undefined => {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' ? code : undefined;
};

/** Does what changes nothing again while the store is away, for a minute. */
export async function whileAway<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (codeOf(error) !== 'store_unavailable' || tries === TRIES) throw error;
    }
    await wait(WAIT_MS);
  }
}
