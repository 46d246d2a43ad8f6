// Renews a seller's credentials: makes a new route beside the former one (told.md §5). The seller is given the new
// route only when all its rows have been durable for a while. The rows belong to two senders, so they are written in
// two atomic changes. If a process dies in between, the renewal has no `tellFrom`, and any other process continues it.
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
  /** True if the credentials of a route are to be renewed. */
  readonly isDue: (route: OwnRoute | undefined, now: number) => boolean;
  /**
   * Renews the credentials of a seller that are due. If a former renewal is not finished yet, continues that one
   * instead (told.md §5.1).
   */
  readonly begin: (agentUrl: string) => Promise<void>;
  /** Continues a renewal that a process has left unfinished. */
  readonly goOn: (agentUrl: string) => Promise<void>;
}

/** The length of credentials in bytes: 43 characters. */
const CREDENTIAL_BYTES = 32;
/** The time until every process has read the new rows. Ms. */
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
        // The loop of moves is woken. It looks for former routes that are no longer used, so that the next renewal can
        // begin.
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
 * Returns the rows by which deliveries find their route. The new route also accepts the credentials of the former one.
 * All former routes also accept those of the new one.
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
