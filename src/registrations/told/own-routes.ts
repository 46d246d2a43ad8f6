// Reads a seller's routes from its own rows: their kinds, names, former routes and renewals (told.md §5). Routes,
// moves, renewals and the state of URLs use it.
import type { RegistrationRow, RegistrationRows } from '../../stores/store.ts';
import type { Told } from '../../windows/told.ts';
import { storedObject } from '../operation-rows.ts';
import { ROUTE_KINDS, type RouteKind } from '../route-kind.ts';
import type { SealedPlace } from '../secrets.ts';
import { type RouteScheme, type Seller, sellerIn } from '../seller.ts';

/** The token of a route, and its credentials as they are stored. */
export interface RouteSecrets {
  /** The random part of the token, which names the route. */
  readonly random?: string;
  readonly secretId?: string;
  readonly sealed?: string;
  /** The time at which it was made, on the store's clock, Unix ms. Absent: an earlier version made it. */
  readonly madeAt?: number;
}

/** The route that is to replace another one. */
export interface NextRoute extends RouteSecrets {
  /** The time from which sellers are given it. Absent: some of its rows may not be written yet. Unix ms. */
  readonly tellFrom?: number;
}

/** Credentials of another route, by its name. */
export interface OtherCredentials {
  readonly route: string;
  /** Absent: they were retired. */
  readonly sealed?: string;
}

/** The value of the row of a seller's route. */
export interface OwnRoute extends Seller, RouteSecrets {
  readonly scheme: RouteKind;
  readonly next?: NextRoute;
  /** The names of the routes that it has replaced, the latest first. */
  readonly formers?: readonly string[];
  /** The time at which a former route's credentials were used at another route. Unix ms. */
  readonly formerUsedAt?: number;
  /** The time at which it replaced a former one. Absent: its own credentials were used since. Unix ms. */
  readonly unusedSince?: number;
  /**
   * The time of retirement, Unix ms. In a token's row: its credentials are gone since. In the seller's own row: nobody
   * is given it since.
   */
  readonly retiredAt?: number;
  /** In the seller's own row: the bases below which it is no longer given. */
  readonly retired?: readonly string[];
  /** In a token's row: credentials of the route that replaced it, or that it replaced. They are accepted there too. */
  readonly also?: OtherCredentials;
}

/** The routes of a seller by kind. */
export type OwnRoutes = Partial<Readonly<Record<RouteKind, OwnRoute>>>;

export const ownRouteIn = ({ value }: Pick<RegistrationRow, 'value'>): OwnRoute =>
  storedObject(value) as unknown as OwnRoute;

export function ownRoutesIn(rows: Pick<RegistrationRows, 'get'>): OwnRoutes {
  const found = ROUTE_KINDS.flatMap((kind) => {
    const row = rows.get('route', kind);
    return row ? [[kind, ownRouteIn(row)] as const] : [];
  });
  return Object.fromEntries(found);
}

/**
 * The largest number of former routes that are kept for a route. Each is a row of its own; older ones are still
 * accepted.
 */
const MOST_FORMERS = 8;

/** The route, replaced by its next one as soon as sellers may be given that. */
export function renewed(own: OwnRoute, now: number): OwnRoute {
  const { next, retired: _ofIt, retiredAt: _of, formerUsedAt: _before, ...route } = own;
  if (next?.tellFrom === undefined || now < next.tellFrom) return own;
  const { tellFrom: _told, ...is } = next;
  const formers = [route.random ?? '', ...(route.formers ?? [])].slice(0, MOST_FORMERS);
  return { ...route, ...is, formers, unusedSince: now };
}

/** True if a route with credentials has replaced another, or is about to (told.md §5.3). */
export const hasFormers = (routes: OwnRoutes): boolean =>
  Object.values(routes).some(
    ({ scheme, next, formers = [] }) => scheme !== 'signature' && (next !== undefined || formers.length > 0),
  );

/** Notes that a delivery used the credentials of another route, which may be a former one. */
export function noteOther(
  rows: Pick<RegistrationRows, 'get' | 'save'>,
  { kind, route }: { readonly kind: RouteKind; readonly route: string },
  now: number,
): void {
  const row = rows.get('route', kind);
  if (!row) return;
  const own = ownRouteIn(row);
  const isOfIt = namesOf(own).includes(route) && own.formers?.some((name) => name !== route);
  if (isOfIt) rows.save({ ...row, value: JSON.stringify({ ...own, formerUsedAt: now } satisfies OwnRoute) });
}

/** Notes that a delivery used its route's own credentials: so its seller has them. */
export function noteOwn(
  rows: Pick<RegistrationRows, 'get' | 'save'>,
  { kind, route }: { readonly kind: RouteKind; readonly route: string },
): void {
  const row = rows.get('route', kind);
  if (!row) return;
  const { unusedSince, ...own } = ownRouteIn(row);
  if (unusedSince !== undefined && own.random === route) rows.save({ ...row, value: JSON.stringify(own) });
}

/**
 * The time at which credentials of a former route may have been used at another route (told.md §3.5). Undefined: not
 * since they were replaced.
 * @param lastAt the time at which the former route was left, or last used. Unix ms.
 */
export const formerUsedAt = (own: OwnRoute, lastAt: number): number | undefined =>
  own.unusedSince === undefined ? own.formerUsedAt : Math.max(own.formerUsedAt ?? 0, own.unusedSince, lastAt);

/** The names of all routes of a row: the current one, the next one, and former ones. */
export const namesOf = ({ random, next, formers = [] }: OwnRoute): readonly (string | undefined)[] => [
  random,
  ...(next ? [next.random] : []),
  ...formers,
];

/** The default of `renewAfterMs`. */
export const RENEW_AFTER_MS: number = 30 * 86_400_000;

/** True if the credentials of a route in use have that age, and are not being renewed. */
export const isOlderThan = (route: OwnRoute | undefined, ageMs: number, now: number): boolean =>
  route?.sealed !== undefined &&
  route.retiredAt === undefined &&
  !route.next &&
  now - (route.madeAt ?? 0) >= ageMs;

/** The name of the route of a kind that sellers are given from now on, or soon. */
export const newestOf = (route: OwnRoute | undefined): string | undefined =>
  route?.next?.random ?? (route?.retiredAt === undefined ? route?.random : undefined);

/** The time until a seller may be given the routes of a running renewal; 0 if none runs. Ms. */
export function untilTold({ next }: OwnRoute, now: number): number {
  if (!next) return 0;
  return next.tellFrom === undefined ? UNWRITTEN_MS : Math.max(0, next.tellFrom - now);
}

/** The assumed time until another process has written the rows of a renewal. Ms. */
const UNWRITTEN_MS = 10_000;

/** The facts about a seller that its rows have, as the owner gave them last. */
export function sellerOf(agentUrl: string, routes: OwnRoutes): Seller {
  const [known] = Object.values(routes);
  return known ? sellerIn(known) : { agentUrl };
}

/** The kind of the route that a media buy or a subscription uses. */
export function kindOf(
  { channel, scheme, route }: Pick<Told, 'scheme' | 'route'> & { readonly channel?: string },
  routes: OwnRoutes,
): RouteKind {
  const named = Object.values(routes).find(
    ({ random, next, formers = [] }) => random === route || next?.random === route || formers.includes(route),
  );
  if (named) return named.scheme;
  return channel === 'reports' && scheme === 'HMAC-SHA256' && routes.reports ? 'reports' : scheme;
}

/** The scheme that a seller is asked for on a route of a kind. */
export const schemeOf = (kind: RouteKind): RouteScheme => (kind === 'reports' ? 'HMAC-SHA256' : kind);

/** The row to which the credentials of a route belong, for their encryption. */
export const placeOfRoute = ({ agentUrl, scheme }: Pick<OwnRoute, 'agentUrl' | 'scheme'>): SealedPlace => ({
  purpose: 'credentials',
  sender: agentUrl,
  id: scheme,
});
