// Caches routes by the id in their URLs, so that a delivery need not read the store. The routes of registrations ask it
// for each delivery.
import type { Sender } from '../config/sender-entry.ts';
import { putBounded } from '../shared/bounded.ts';

/** The time for which a route is cached, and so until a change by another process is seen. Ms. */
export const ROUTE_KEPT_MS = 10_000;

/** The largest number of routes that are cached. */
const MOST_ROUTES = 10_000;

/** A cache of routes that were found, and of ids without one. The oldest are dropped first. */
export function rememberedRoutes(now: () => number): {
  readonly get: (id: string) => Sender[] | undefined;
  readonly put: (id: string, senders: Sender[], isRetired: boolean) => Sender[];
  /** True if credentials of a cached route were retired. */
  readonly isRetired: (id: string) => boolean;
  readonly forget: (id: string) => void;
} {
  const known = new Map<
    string,
    { readonly senders: Sender[]; readonly isRetired: boolean; readonly at: number }
  >();
  return {
    get: (id) => {
      const found = known.get(id);
      return found && now() - found.at < ROUTE_KEPT_MS ? found.senders : undefined;
    },
    isRetired: (id) => known.get(id)?.isRetired === true,
    put: (id, senders, isRetired) => {
      putBounded(known, id, { senders, isRetired, at: now() }, MOST_ROUTES);
      return senders;
    },
    forget: (id) => void known.delete(id),
  };
}
