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

/*
 * The renewal of a seller's credentials (told.md §5): a new route beside the former one, whose rows are all durable for a while before
 * the seller is told of it. Rows of two senders are written in two steps; a process that dies between leaves a renewal that has no
 * `tellFrom`, with which any other goes on.
 */

export interface RenewalsContext {
  readonly registrations: StoreRegistrations;
  readonly secrets: Secrets;
  readonly hashes: Hashes;
  readonly randomBytes: RandomBytes;
  /** A route of this process's cache has changed. */
  readonly reread: (id: string) => void;
  /** The age at which credentials are due. Ms. */
  readonly renewAfterMs: number;
}

export interface Renewals {
  /** Whether the credentials of a route are to be renewed. */
  readonly isDue: (route: OwnRoute | undefined, now: number) => boolean;
  /** Renews what is due of a seller, unless a renewal of it is not over (told.md §5.1): it goes on with that. */
  readonly begin: (agentUrl: string) => Promise<void>;
  /** Goes on with a renewal that a process has left. */
  readonly goOn: (agentUrl: string) => Promise<void>;
}

/** Bytes of credentials: 43 characters. */
const CREDENTIAL_BYTES = 32;
/** Until every process has seen the rows. Ms. */
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
        // Those that are quiet by now are in the way no more once they are looked at.
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

/** The rows by which deliveries find their route: the new one, and all former ones, each with the credentials of the other. */
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
