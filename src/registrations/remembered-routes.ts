// Caches the routes (URLs and senders) by the id in their URLs, so that a delivery need not read the store. `routesOf`
// looks up each delivery here.
import type { Sender } from '../config/sender-entry.ts';
import { putBounded } from '../shared/bounded.ts';

/** The time for which a route is cached. A change by another process may go unnoticed for as long. Ms. */
export const ROUTE_KEPT_MS = 10_000;

/** The largest number of routes that are cached. */
const MOST_ROUTES = 10_000;

/** Caches routes, and also ids for which no route was found. The oldest entries are dropped first. */
export function rememberedRoutes(now: () => number): {
  readonly get: (id: string) => Sender[] | undefined;
  readonly put: (id: string, senders: Sender[], isRetired: boolean) => Sender[];
  /** True if the cache has a route with this id whose credentials were retired. */
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
