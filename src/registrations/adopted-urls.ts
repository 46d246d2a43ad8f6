// Caches the URLs that sellers used before they were registered. These have no token, so they are found by path and
// query. The routes of registrations look them up here, for deliveries.
import type { Sender } from '../config/sender-entry.ts';
import { soon } from './operation-rows.ts';
import { ROUTE_KEPT_MS } from './remembered-routes.ts';

/** The shortest time between two reads of adopted URLs for an unknown path. Ms. */
export const REFRESH_MS = 1000;

/** The pause after which a delivery that waits for a running read checks again whether it has ended. Ms. */
const LOOK_MS = 20;

interface AdoptedUrlsOptions {
  /** Reads them all, by path and query. */
  readonly load: () => Promise<ReadonlyMap<string, Sender[]>>;
  /** Ms, of a clock that is never set. */
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

/** Adopted URLs, by path and query. */
export function adoptedUrls({ load, now, sleep }: AdoptedUrlsOptions): {
  readonly at: (path: string) => Sender[] | Promise<Sender[]>;
  /** True if one is known now. */
  readonly has: (path: string) => boolean;
  readonly refresh: () => Promise<void>;
} {
  let byPath: ReadonlyMap<string, Sender[]> = new Map();
  /** When the read of `byPath` began, and when the last read began. */
  let readAt = -Infinity;
  let startedAt = -Infinity;
  /** The number of reads that have begun, and that of the newest one that has ended, with its error. */
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
   * Waits for a read that begins from now on, so that it finds URLs that were adopted before the delivery. It polls
   * instead of sharing a promise with another delivery: on some platforms such a promise never resolves
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
      // A read that began after this delivery is running.
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
