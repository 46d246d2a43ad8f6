// Caches URLs that sellers used before they were registered. Such URLs contain no token, so they are found by path and
// query. The routes of registrations look them up here, for deliveries.
import type { Sender } from '../config/sender-entry.ts';
import { soon } from './operation-rows.ts';
import { ROUTE_KEPT_MS } from './remembered-routes.ts';

/** The shortest time between two reads of adopted URLs for an unknown path. Ms. */
export const REFRESH_MS = 1000;

/** The pause between two checks of a delivery that waits for a read which another delivery has begun. Ms. */
const LOOK_MS = 20;

interface AdoptedUrlsOptions {
  /** Reads all adopted URLs, by path and query. */
  readonly load: () => Promise<ReadonlyMap<string, Sender[]>>;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

/** Adopted URLs, by path and query. */
export function adoptedUrls({ load, now, sleep }: AdoptedUrlsOptions): {
  readonly at: (path: string) => Sender[] | Promise<Sender[]>;
  /** True if an adopted URL with that path and query is in the cache now. */
  readonly has: (path: string) => boolean;
  readonly refresh: () => Promise<void>;
} {
  let byPath: ReadonlyMap<string, Sender[]> = new Map();
  /** The time at which the read began whose result is in `byPath`, and that at which the latest read began. */
  let readAt = -Infinity;
  let startedAt = -Infinity;
  /** The number of reads that have begun, and the number and error of the latest one that has ended. */
  let begun = 0;
  let ended: { readonly nth: number; readonly error?: unknown } = { nth: 0 };
  const refresh = async (): Promise<void> => {
    const at = (startedAt = now());
    const nth = (begun += 1);
    try {
      const found = await load();
      // If two reads run concurrently, the one that began later wins.
      if (at >= readAt) [byPath, readAt] = [found, at];
      if (nth > ended.nth) ended = { nth };
    } catch (error) {
      if (nth > ended.nth) ended = { nth, error };
      throw error;
    }
  };
  /**
   * Waits for a read that begins from now on, because such a read finds each URL that was adopted before the delivery.
   * It polls instead of sharing a promise with another delivery: on some platforms such a promise never resolves
   * (`requestsMayShare`).
   */
  const nextRefresh = async (): Promise<void> => {
    const since = begun;
    let waitMs = startedAt + REFRESH_MS - now();
    do {
      await sleep(Math.max(0, waitMs));
      waitMs = startedAt + REFRESH_MS - now();
      if (ended.nth > since) break;
      if (waitMs <= 0) await refresh();
      // Another delivery's read has begun after this delivery arrived, so its result can be used.
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
