// Lets concurrent callers share one execution of some work, on runtimes that allow it.
// Called for key fetches, chunks loaded on demand, health checks and the startup check.

import { backgroundTimer, type Schedule } from './time-limits.ts';

/**
 * True if a request may wait for a promise that another request made. False on workerd: there a promise ends with
 * its request, and another request that awaits it never resumes.
 */
export function requestsMayShare(): boolean {
  return globalThis.navigator?.userAgent !== 'Cloudflare-Workers';
}

/**
 * Runs `work` once for all callers that use the same key while it runs. On runtimes where requests cannot share a
 * promise, each caller runs `work` itself. The result is not cached.
 * @param running work in progress, by key; owned by the caller.
 */
export function singleFlight<K, T>(running: Map<K, Promise<T>>, key: K, work: () => Promise<T>): Promise<T> {
  const joined = running.get(key);
  if (joined !== undefined) return joined;
  const begun = work().finally(() => running.delete(key));
  if (requestsMayShare()) running.set(key, begun);
  return begun;
}

/**
 * Returns a function that makes a value at its first call and keeps it. A failed attempt is repeated at the next call.
 * On runtimes where requests cannot share a promise, several callers may make a value at first. The first finished
 * value is kept.
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
 * A background timer of the process, for work that no request waits for. On workerd no timer is set, because it
 * would end with its request, or fire where nothing may be fetched.
 */
export const processTimer: Schedule = (task, ms) =>
  requestsMayShare() ? backgroundTimer(task, ms) : () => undefined;
