import type { Sender } from '../config/sender-entry.ts';
import { putBounded } from '../shared/bounded.ts';

/** How long a route is cached: a change by another process is seen after that. Ms. */
export const ROUTE_KEPT_MS = 10_000;

/** Routes that are cached. */
const MOST_ROUTES = 10_000;

/** A cache of looked-up routes, found or not; the oldest are dropped first. */
export function rememberedRoutes(now: () => number): {
  readonly get: (id: string) => Sender[] | undefined;
  readonly put: (id: string, senders: Sender[], isRetired: boolean) => Sender[];
  /** True if credentials that counted at one that is cached were retired. */
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
