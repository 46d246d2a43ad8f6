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
  /** The random part of the token. It is used as the name of the route. */
  readonly random?: string;
  readonly secretId?: string;
  readonly sealed?: string;
  /** The time at which it was made, on the store's clock, Unix ms. Absent: an earlier version made it. */
  readonly madeAt?: number;
}

/** The route that is to replace another one. */
export interface NextRoute extends RouteSecrets {
  /** The time from which sellers are given the route, Unix ms. Absent: some of its rows may not be written yet. */
  readonly tellFrom?: number;
}

/** Credentials of another route, which are accepted too, with that route's name. */
export interface OtherCredentials {
  readonly route: string;
  /** The encrypted credentials. Absent: they were retired. */
  readonly sealed?: string;
}

/** The value of a row of a seller's route. */
export interface OwnRoute extends Seller, RouteSecrets {
  readonly scheme: RouteKind;
  readonly next?: NextRoute;
  /** The names of the routes that it has replaced, latest first. */
  readonly formers?: readonly string[];
  /** The time at which a former route's credentials were last used at another route. Unix ms. */
  readonly formerUsedAt?: number;
  /** The time at which it replaced a former route. Absent: its own credentials were used since then. Unix ms. */
  readonly unusedSince?: number;
  /**
   * The time of retirement, Unix ms. In a token's row: the credentials are gone since then. In the seller's own row:
   * the route is no longer given out since then.
   */
  readonly retiredAt?: number;
  /** In the seller's own row: the base URLs below which the route is no longer given out. */
  readonly retired?: readonly string[];
  /**
   * In a token's row: credentials of the route that replaced this one, or that this one replaced. They are accepted
   * here too.
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
 * The most former routes that are listed for a route. Each has a row of its own; older ones that are not listed are
 * still accepted.
 */
const MOST_FORMERS = 8;

/** Returns the route, or its next one as soon as sellers may be given that. */
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

/** Notes that a delivery used the credentials of another route, possibly of a former one. */
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

/** Notes that a delivery used its route's own credentials, so the seller has received them. */
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
 * Returns the time at which credentials of a former route may last have been used at another route (told.md §3.5).
 * Undefined: they were not, since they were replaced.
 * @param lastAt the time at which the last media buy or subscription left the former route, or of its last use. Unix
 *   ms.
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

/** True if a route in use has credentials of at least that age, and they are not being renewed. */
export const isOlderThan = (route: OwnRoute | undefined, ageMs: number, now: number): boolean =>
  route?.sealed !== undefined &&
  route.retiredAt === undefined &&
  !route.next &&
  now - (route.madeAt ?? 0) >= ageMs;

/** Returns the name of the route of a kind that sellers are given now, or soon. */
export const newestOf = (route: OwnRoute | undefined): string | undefined =>
  route?.next?.random ?? (route?.retiredAt === undefined ? route?.random : undefined);

/** Returns the time until a seller may be given the routes of a running renewal; 0 if no renewal runs. Ms. */
export function untilTold({ next }: OwnRoute, now: number): number {
  if (!next) return 0;
  return next.tellFrom === undefined ? UNWRITTEN_MS : Math.max(0, next.tellFrom - now);
}

/** The assumed time until the process that runs a renewal has written its rows. Ms. */
const UNWRITTEN_MS = 10_000;

/** Returns the facts about a seller that the owner gave last, from the seller's rows. */
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

/** Returns the row to which the encrypted credentials of a route are bound. */
export const placeOfRoute = ({ agentUrl, scheme }: Pick<OwnRoute, 'agentUrl' | 'scheme'>): SealedPlace => ({
  purpose: 'credentials',
  sender: agentUrl,
  id: scheme,
});
