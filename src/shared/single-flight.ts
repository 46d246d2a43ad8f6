import { backgroundTimer, type Schedule } from './time-limits.ts';

/**
 * Whether one request may wait for a promise that another one made. Not on workerd, where a promise dies with the request
 * that made it: another request that awaits it never resumes.
 */
export function requestsMayShare(): boolean {
  return globalThis.navigator?.userAgent !== 'Cloudflare-Workers';
}

/**
 * Runs `work` once for all callers that ask under one key while it runs. Where requests may not share, each caller runs
 * its own; what the result is kept in is up to `work`.
 * @param running what is under way, by key; kept by the caller.
 */
export function singleFlight<K, T>(running: Map<K, Promise<T>>, key: K, work: () => Promise<T>): Promise<T> {
  const joined = running.get(key);
  if (joined !== undefined) return joined;
  const begun = work().finally(() => running.delete(key));
  if (requestsMayShare()) running.set(key, begun);
  return begun;
}

/**
 * A value made at first use and kept. An attempt that failed is made again at the next use. Where requests may not
 * share, each makes its own until one is there, and the first is kept.
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
 * A background timer of the process, for what no request waits for. None is set where a request owns its I/O (workerd):
 * it would end with that request, or fire where nothing may be fetched.
 */
export const processTimer: Schedule = (task, ms) =>
  requestsMayShare() ? backgroundTimer(task, ms) : () => undefined;
