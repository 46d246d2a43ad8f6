// Caches URLs that sellers used before they were registered. Such URLs contain no token, so they are found by path and
// query. The routes of registrations look them up here, for deliveries.
import type { Sender } from '../config/sender-entry.ts';
import { soon } from './operation-rows.ts';
import { ROUTE_KEPT_MS } from './remembered-routes.ts';

/**
 * The shortest time between two reads of the adopted URLs from the store. Deliveries to unknown paths cause such reads.
 * Ms.
 */
export const REFRESH_MS = 1000;

/** The pause between two checks by a delivery that waits for another delivery's read of the store to end. Ms. */
const LOOK_MS = 20;

interface AdoptedUrlsOptions {
  /** Reads all adopted URLs from the store. The keys of the map are path and query of the URLs. */
  readonly load: () => Promise<ReadonlyMap<string, Sender[]>>;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

/** Creates the cache of adopted URLs. Its keys are path and query of the URLs. */
export function adoptedUrls({ load, now, sleep }: AdoptedUrlsOptions): {
  readonly at: (path: string) => Sender[] | Promise<Sender[]>;
  /** True if an adopted URL with that path and query is in the cache now. */
  readonly has: (path: string) => boolean;
  readonly refresh: () => Promise<void>;
} {
  let byPath: ReadonlyMap<string, Sender[]> = new Map();
  /**
   * `readAt`: the time at which the read began whose result is in `byPath`. `startedAt`: the time at which the latest
   * read began.
   */
  let readAt = -Infinity;
  let startedAt = -Infinity;
  /**
   * `begun`: the number of reads that have begun. `ended`: the number of the latest read that has ended, and its error
   * if it failed.
   */
  let begun = 0;
  let ended: { readonly nth: number; readonly error?: unknown } = { nth: 0 };
  const refresh = async (): Promise<void> => {
    const at = (startedAt = now());
    const nth = (begun += 1);
    try {
      const found = await load();
      // If two reads run concurrently, the result of the read that began later is kept.
      if (at >= readAt) [byPath, readAt] = [found, at];
      if (nth > ended.nth) ended = { nth };
    } catch (error) {
      if (nth > ended.nth) ended = { nth, error };
      throw error;
    }
  };
  /**
   * Waits until a read of the store that begins from now on has ended. Only such a read surely finds each URL that was
   * adopted before the delivery. This function polls. It does not await the promise of another delivery, which on some
   * platforms never resolves (`requestsMayShare`).
   */
  const nextRefresh = async (): Promise<void> => {
    const since = begun;
    let waitMs = startedAt + REFRESH_MS - now();
    do {
      await sleep(Math.max(0, waitMs));
      waitMs = startedAt + REFRESH_MS - now();
      if (ended.nth > since) break;
      if (waitMs <= 0) await refresh();
      // Another delivery has begun a read since this delivery arrived. That read is enough, so this delivery soon
      // checks if it has ended.
      else if (begun > since) waitMs = Math.min(waitMs, LOOK_MS);
    } while (ended.nth <= since);
    if ('error' in ended) throw ended.error;
  };
  return {
    at: (path) => {
      const found = now() - readAt < ROUTE_KEPT_MS ? byPath.get(path) : undefined;
      return found ?? soon(nextRefresh()).then(() => byPath.get(path) ?? []);
    },
    has: (path) => byPath.has(path),
    refresh,
  };
}
