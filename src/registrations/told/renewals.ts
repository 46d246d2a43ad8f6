// Renews a seller's credentials: creates a new route (secret URL segment with credentials) beside the former one
// (told.md §5). The seller is given the new route only when all its rows have been stored for a while. The rows have
// two different `sender` values, so they are written in two transactions. If a process dies in between, the renewal has
// no `tellFrom`, and any other process continues it.
import { encodeBase64Url } from '../../codec/encoding.ts';
import type { Hashes } from '../../crypto/engine.ts';
import type { RegistrationRow, StoreRegistrations } from '../../stores/store.ts';
import { ROUTE_KEPT_MS } from '../remembered-routes.ts';
import { ROUTE_KINDS } from '../route-kind.ts';
import { makeRouteToken, type RandomBytes, seal, type Secrets } from '../secrets.ts';
import { wakeTurns } from './move-row.ts';
import {
  hasFormers,
  isOlderThan,
  type NextRoute,
  type OtherCredentials,
  type OwnRoute,
  ownRouteIn,
  ownRoutesIn,
  type OwnRoutes,
  placeOfRoute,
} from './own-routes.ts';

export interface RenewalsContext {
  readonly registrations: StoreRegistrations;
  readonly secrets: Secrets;
  readonly hashes: Hashes;
  readonly randomBytes: RandomBytes;
  /** Drops a changed route from the cache of this process. */
  readonly reread: (id: string) => void;
  /** The age from which credentials are due for renewal. Ms. */
  readonly renewAfterMs: number;
}

export interface Renewals {
  /** True if the credentials of a route are old enough to be renewed. */
  readonly isDue: (route: OwnRoute | undefined, now: number) => boolean;
  /**
   * Renews the seller's credentials that are due (told.md §5.1). While the former routes of an earlier renewal are not
   * retired, only completes the rows of that renewal.
   */
  readonly begin: (agentUrl: string) => Promise<void>;
  /** Continues a renewal whose rows another process has not stored completely. */
  readonly goOn: (agentUrl: string) => Promise<void>;
}

/** The number of random bytes of new credentials: 43 characters in Base64url. */
const CREDENTIAL_BYTES = 32;
/** The wait before sellers are given a new route: by then every process has read the new rows. Ms. */
const TELL_AFTER_MS: number = 2 * ROUTE_KEPT_MS;

export function renewalsOf(context: RenewalsContext): Renewals {
  const { registrations, secrets, hashes, randomBytes, reread, renewAfterMs } = context;

  const isDue: Renewals['isDue'] = (route, now) => isOlderThan(route, renewAfterMs, now);

  const made = async (of: OwnRoute): Promise<NextRoute> => {
    const { id: random, secretId } = makeRouteToken(secrets, hashes, randomBytes);
    const credentials = encodeBase64Url(randomBytes(CREDENTIAL_BYTES));
    return { random, secretId, sealed: await seal(secrets, placeOfRoute(of), credentials, randomBytes) };
  };

  const goOn = async (agentUrl: string): Promise<void> => {
    const routes = await registrations.run(agentUrl, ownRoutesIn);
    const open = Object.values(routes).filter(({ next }) => next && next.tellFrom === undefined);
    if (open.length === 0) return;
    await registrations.run('', (rows) => {
      for (const route of open)
        for (const row of tokenRows(route, (id) => rows.get('route', id))) rows.save(row);
    });
    for (const { random, next, formers = [] } of open) {
      for (const id of [random, next?.random, ...formers]) if (id !== undefined) reread(id);
    }
    await registrations.run(agentUrl, (rows, now) => {
      for (const { scheme, next } of open) {
        const row = rows.get('route', scheme);
        const is = row && ownRouteIn(row);
        if (!row || is?.next?.random !== next?.random || is?.next?.tellFrom !== undefined) continue;
        rows.save({
          ...row,
          value: JSON.stringify({ ...is, next: { ...is?.next, tellFrom: now + TELL_AFTER_MS } }),
        });
      }
    });
  };

  const dueOf = (routes: OwnRoutes, now: number): readonly OwnRoute[] =>
    ROUTE_KINDS.flatMap((kind) => routes[kind] ?? []).filter((route) => isDue(route, now));

  return {
    isDue,
    goOn,
    begin: async (agentUrl) => {
      const due = await registrations.run(agentUrl, (rows, now) => {
        const routes = ownRoutesIn(rows);
        const found = dueOf(routes, now);
        if (found.length === 0 || !hasFormers(routes)) return found;
        // No renewal may begin, because former routes are not all retired. The seller's row is made due, so that
        // move-loop.ts retires those no longer used.
        wakeTurns(rows, agentUrl, now);
        return [];
      });
      if (due.length > 0) {
        const nexts = new Map(
          await Promise.all(due.map(async (route) => [route.scheme, await made(route)] as const)),
        );
        await registrations.run(agentUrl, (rows, now) => {
          const routes = ownRoutesIn(rows);
          if (hasFormers(routes)) return;
          for (const route of dueOf(routes, now)) {
            const next = nexts.get(route.scheme);
            const row = next && rows.get('route', route.scheme);
            if (row)
              rows.save({ ...row, value: JSON.stringify({ ...route, next: { ...next, madeAt: now } }) });
          }
          wakeTurns(rows, agentUrl, now);
        });
      }
      await goOn(agentUrl);
    },
  };
}

/**
 * Returns the rows of a renewal that lead from the token in a delivery's URL to the route. Deliveries at the new route
 * may still use the credentials of the former one. Deliveries at every former route may use the new credentials.
 */
function tokenRows(
  { next, formers = [], formerUsedAt: _used, unusedSince: _since, retiredAt: _retired, ...route }: OwnRoute,
  get: (id: string) => RegistrationRow | undefined,
): readonly RegistrationRow[] {
  if (!next?.random || !next.sealed || !route.random || !route.sealed) return [];
  const { tellFrom: _told, ...is } = next;
  const fresh: OwnRoute = { ...route, ...is, also: { route: route.random, sealed: route.sealed } };
  const also: OtherCredentials = { route: next.random, sealed: next.sealed };
  const row: RegistrationRow = {
    kind: 'route',
    sender: '',
    id: next.random,
    value: JSON.stringify(fresh),
    dueAt: null,
    list: null,
    expiresAt: null,
  };
  const former = [route.random, ...formers].flatMap((id) => {
    const known = get(id);
    return known
      ? [{ ...known, value: JSON.stringify({ ...ownRouteIn(known), also } satisfies OwnRoute) }]
      : [];
  });
  return [row, ...former];
}
