// Reads a seller's routes from the seller's rows: their kinds, names, former routes and renewals (told.md §5). A route
// is the secret last segment of webhook URLs, with its credentials.
import type { RegistrationRow, RegistrationRows } from '../../stores/store.ts';
import type { Told } from '../../windows/told.ts';
import { storedObject } from '../operation-rows.ts';
import { ROUTE_KINDS, type RouteKind } from '../route-kind.ts';
import type { SealedPlace } from '../secrets.ts';
import { type RouteScheme, type Seller, sellerIn } from '../seller.ts';

/** The token (secret URL segment) of a route, and its credentials in encrypted form. */
export interface RouteSecrets {
  /** The random part of the token. It is used as the name of the route. */
  readonly random?: string;
  readonly secretId?: string;
  readonly sealed?: string;
  /**
   * The time at which token and credentials were made, on the store's clock, Unix ms. Absent: an earlier version of
   * this package made them.
   */
  readonly madeAt?: number;
}

/** The route with new credentials that is to replace the current one (a renewal). */
export interface NextRoute extends RouteSecrets {
  /**
   * The time from which sellers are given this route instead of the current one, Unix ms. Absent: some of its rows may
   * not be stored yet.
   */
  readonly tellFrom?: number;
}

/** Credentials of another route that are accepted at this route too, and the name of that other route. */
export interface OtherCredentials {
  readonly route: string;
  /** The encrypted credentials. Absent: they were retired. */
  readonly sealed?: string;
}

/** The stored value of a route. Each route has two rows: the seller's own, and one that is found by the token. */
export interface OwnRoute extends Seller, RouteSecrets {
  readonly scheme: RouteKind;
  readonly next?: NextRoute;
  /** The names of the routes that this route has replaced, latest first. */
  readonly formers?: readonly string[];
  /** The latest time at which a delivery at another route may have used the credentials of a former route. Unix ms. */
  readonly formerUsedAt?: number;
  /**
   * The time at which this route replaced a former one. Absent once a delivery has used this route's own credentials.
   * Unix ms.
   */
  readonly unusedSince?: number;
  /**
   * The time of retirement, Unix ms. In the row found by the token: the credentials were deleted then. In the seller's
   * own row: sellers are given the route no longer.
   */
  readonly retiredAt?: number;
  /** Only in the seller's own row: the base URLs below which the seller is no longer given the route. */
  readonly retired?: readonly string[];
  /**
   * Only in the row found by the token: the credentials of the route that replaced this route, or that this route
   * replaced. Deliveries at this route may use those credentials too.
   */
  readonly also?: OtherCredentials;
}

/** The routes of a seller, by kind. */
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
 * The most names in `formers`. An older former route is not listed, but its own row stays, so deliveries to it are
 * still accepted.
 */
const MOST_FORMERS = 8;

/** Returns the route in force: the next one as soon as sellers may be given it, otherwise `own`. */
export function renewed(own: OwnRoute, now: number): OwnRoute {
  const { next, retired: _ofIt, retiredAt: _of, formerUsedAt: _before, ...route } = own;
  if (next?.tellFrom === undefined || now < next.tellFrom) return own;
  const { tellFrom: _told, ...is } = next;
  const formers = [route.random ?? '', ...(route.formers ?? [])].slice(0, MOST_FORMERS);
  return { ...route, ...is, formers, unusedSince: now };
}

/** True if a renewal of the seller's credentials is running, or a replaced route is not retired yet (told.md §5.3). */
export const hasFormers = (routes: OwnRoutes): boolean =>
  Object.values(routes).some(
    ({ scheme, next, formers = [] }) => scheme !== 'signature' && (next !== undefined || formers.length > 0),
  );

/**
 * Stores the time at which a delivery at `route` used the credentials of another route, if that other route may be a
 * former one.
 */
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

/** Stores that a delivery used the current route's own credentials, so the seller has adopted them. */
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
 * Returns the latest time at which a delivery at another route may have used a former route's credentials (told.md
 * §3.5). Undefined: none has, since the former route was replaced.
 * @param lastAt the time at which the former route's URL was last used, or at which its last media buy or subscription
 *   left it. Unix ms.
 */
export const formerUsedAt = (own: OwnRoute, lastAt: number): number | undefined =>
  own.unusedSince === undefined ? own.formerUsedAt : Math.max(own.formerUsedAt ?? 0, own.unusedSince, lastAt);

/** Returns the names of the current route, the next one, and the former ones. */
export const namesOf = ({ random, next, formers = [] }: OwnRoute): readonly (string | undefined)[] => [
  random,
  ...(next ? [next.random] : []),
  ...formers,
];

/** The default of the option `renewAfterMs`: 30 days. */
export const RENEW_AFTER_MS: number = 30 * 86_400_000;

/** True if a route in use has credentials that are at least `ageMs` old and are not being renewed. */
export const isOlderThan = (route: OwnRoute | undefined, ageMs: number, now: number): boolean =>
  route?.sealed !== undefined &&
  route.retiredAt === undefined &&
  !route.next &&
  now - (route.madeAt ?? 0) >= ageMs;

/**
 * Returns the name of the newest route: the one that a running renewal made, otherwise the current one. Undefined if
 * there is no route, or the current one is retired.
 */
export const newestOf = (route: OwnRoute | undefined): string | undefined =>
  route?.next?.random ?? (route?.retiredAt === undefined ? route?.random : undefined);

/** Returns the time until the seller may be given the new route of a running renewal; 0 if no renewal runs. Ms. */
export function untilTold({ next }: OwnRoute, now: number): number {
  if (!next) return 0;
  return next.tellFrom === undefined ? UNWRITTEN_MS : Math.max(0, next.tellFrom - now);
}

/** The assumed time until the process that runs a renewal has stored the renewal's rows. Ms. */
const UNWRITTEN_MS = 10_000;

/** Returns the seller's settings as the application last gave them, from the seller's routes. */
export function sellerOf(agentUrl: string, routes: OwnRoutes): Seller {
  const [known] = Object.values(routes);
  return known ? sellerIn(known) : { agentUrl };
}

/** Returns the kind of the route that a media buy or a subscription uses. */
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

/** Returns the scheme that a seller is asked to use on a route of a kind. */
export const schemeOf = (kind: RouteKind): RouteScheme => (kind === 'reports' ? 'HMAC-SHA256' : kind);

/**
 * Returns the context to which a route's credentials are bound by the encryption. In another context they cannot be
 * decrypted.
 */
export const placeOfRoute = ({ agentUrl, scheme }: Pick<OwnRoute, 'agentUrl' | 'scheme'>): SealedPlace => ({
  purpose: 'credentials',
  sender: agentUrl,
  id: scheme,
});
