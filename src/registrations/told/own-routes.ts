import type { RegistrationRow, RegistrationRows } from '../../stores/store.ts';
import type { Told } from '../../windows/told.ts';
import { storedObject } from '../operation-rows.ts';
import { ROUTE_KINDS, type RouteKind } from '../route-kind.ts';
import type { SealedPlace } from '../secrets.ts';
import { type RouteScheme, type Seller, sellerIn } from '../seller.ts';

/* A seller's routes by kind, and their renewal (told.md §5): what its own rows say of them. */

/** The token of a route, and its credentials as they are stored. */
export interface RouteSecrets {
  /** Of the token: it names the route. */
  readonly random?: string;
  readonly secretId?: string;
  readonly sealed?: string;
  /** When it was made, on the store's clock, Unix ms. Absent: an earlier version made it. */
  readonly madeAt?: number;
}

/** The route that is to take the place of another one. */
export interface NextRoute extends RouteSecrets {
  /** Sellers are told of it from then on; absent: not every row of it is known to be written. Unix ms. */
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
  /** Names of the routes whose place it has taken, the last one first. */
  readonly formers?: readonly string[];
  /** When a delivery came by another route under credentials of a former one. Unix ms. */
  readonly formerUsedAt?: number;
  /** When it took the place of a former one; absent: its own credentials were used since. Unix ms. */
  readonly unusedSince?: number;
  /** Of a token's row: it was retired then, and its credentials are gone. Of the seller's own: it is told nowhere since. Unix ms. */
  readonly retiredAt?: number;
  /** Of the seller's own: bases below which it is told no more. */
  readonly retired?: readonly string[];
  /** Of a token's row: credentials of the route that took its place, or whose place it took. They count there, too. */
  readonly also?: OtherCredentials;
}

/** Of a seller, by kind. */
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

/** Formers of one route that are kept; each is a row of its own, and older ones stay accepted. */
const MOST_FORMERS = 8;

/** The route with the next one in its place, once sellers may be told of that. */
export function renewed(own: OwnRoute, now: number): OwnRoute {
  const { next, retired: _ofIt, retiredAt: _of, formerUsedAt: _before, ...route } = own;
  if (next?.tellFrom === undefined || now < next.tellFrom) return own;
  const { tellFrom: _told, ...is } = next;
  const formers = [route.random ?? '', ...(route.formers ?? [])].slice(0, MOST_FORMERS);
  return { ...route, ...is, formers, unusedSince: now };
}

/** Whether a route with credentials has taken the place of another one, or is about to (told.md §5.3). */
export const hasFormers = (routes: OwnRoutes): boolean =>
  Object.values(routes).some(
    ({ scheme, next, formers = [] }) => scheme !== 'signature' && (next !== undefined || formers.length > 0),
  );

/** A delivery came by a route under the credentials of another one: of a former one, where there is any. */
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

/** A delivery came by a route under its own credentials: its seller has them. */
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
 * When credentials of a former route of a row may have been used by another one (told.md §3.5); undefined: not since it is a former one.
 * @param lastAt when the former one was left, or heard last. Unix ms.
 */
export const formerUsedAt = (own: OwnRoute, lastAt: number): number | undefined =>
  own.unusedSince === undefined ? own.formerUsedAt : Math.max(own.formerUsedAt ?? 0, own.unusedSince, lastAt);

/** The names of all routes of a row: the one that is told, the next one, and former ones. */
export const namesOf = ({ random, next, formers = [] }: OwnRoute): readonly (string | undefined)[] => [
  random,
  ...(next ? [next.random] : []),
  ...formers,
];

/** `renewAfterMs`, where nothing is said. */
export const RENEW_AFTER_MS: number = 30 * 86_400_000;

/** Whether the credentials of a route that sellers are told are so old, and are not being renewed. */
export const isOlderThan = (route: OwnRoute | undefined, ageMs: number, now: number): boolean =>
  route?.sealed !== undefined &&
  route.retiredAt === undefined &&
  !route.next &&
  now - (route.madeAt ?? 0) >= ageMs;

/** The name of the route of a kind that is told from now on, or soon. */
export const newestOf = (route: OwnRoute | undefined): string | undefined =>
  route?.next?.random ?? (route?.retiredAt === undefined ? route?.random : undefined);

/** Whether a renewal of it is under way of which no seller may be told yet; for how long, ms. */
export function untilTold({ next }: OwnRoute, now: number): number {
  if (!next) return 0;
  return next.tellFrom === undefined ? UNWRITTEN_MS : Math.max(0, next.tellFrom - now);
}

/** A renewal whose rows are not all written is gone on with meanwhile. Ms. */
const UNWRITTEN_MS = 10_000;

/** Of the rows that the seller has: its facts, as the owner gave them last. */
export function sellerOf(agentUrl: string, routes: OwnRoutes): Seller {
  const [known] = Object.values(routes);
  return known ? sellerIn(known) : { agentUrl };
}

/** Of which kind the route is that a media buy or a subscription was told. */
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

/** The row to which credentials of a route belong, for their encryption. */
export const placeOfRoute = ({ agentUrl, scheme }: Pick<OwnRoute, 'agentUrl' | 'scheme'>): SealedPlace => ({
  purpose: 'credentials',
  sender: agentUrl,
  id: scheme,
});
