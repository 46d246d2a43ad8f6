// Shares one piece of work among concurrent callers, on runtimes that allow it.
// Called for key fetches, chunks loaded on demand, health checks and the startup check.

import { backgroundTimer, type Schedule } from './time-limits.ts';

/**
 * True if a request may wait for a promise that another one made. False on workerd, where a promise dies with
 * its request: another request that awaits it never resumes.
 */
export function requestsMayShare(): boolean {
  return globalThis.navigator?.userAgent !== 'Cloudflare-Workers';
}

/**
 * Runs `work` once for all callers that ask under one key while it runs. If requests may not share, each
 * caller runs its own; `work` itself decides where the result is kept.
 * @param running work in progress, by key; kept by the caller.
 */
export function singleFlight<K, T>(running: Map<K, Promise<T>>, key: K, work: () => Promise<T>): Promise<T> {
  const joined = running.get(key);
  if (joined !== undefined) return joined;
  const begun = work().finally(() => running.delete(key));
  if (requestsMayShare()) running.set(key, begun);
  return begun;
}

/**
 * A value that is made at first use and kept. A failed attempt is repeated at the next use. If requests may
 * not share, each makes its own until one is there, and the first is kept.
 */
export function once<T>(make: () => T | Promise<T>): () => Promise<T> {
  let made: { readonly value: T } | undefined;
  const running = new Map<'value', Promise<T>>();
  return async () => {
    if (made) return made.value;
    return singleFlight(running, 'value', async () => {
      const value = await make();
      made ??= { value };
      return made.value;
    });
  };
}

/**
 * A background timer of the process, for work that no request waits for. None is set if a request owns its
 * I/O (workerd). It would end with that request, or fire where nothing may be fetched.
 */
export const processTimer: Schedule = (task, ms) =>
  requestsMayShare() ? backgroundTimer(task, ms) : () => undefined;
