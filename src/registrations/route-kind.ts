// Defines the kinds of routes (URLs for one seller) that a seller may have: one for each authentication scheme, and one
// for reports.
import type { Sender } from '../config/sender-entry.ts';
import type { LegacyAuthentication } from './request.ts';
import { type RouteScheme, SCHEMES } from './seller.ts';

/**
 * The kind of a route (a URL for one seller), which is also the id of its row. A `reports` route accepts HMAC as well
 * as signatures.
 */
export type RouteKind = RouteScheme | 'reports';

export const ROUTE_KINDS: readonly RouteKind[] = [...SCHEMES, 'reports'];

/** The kinds of routes that have credentials. */
type LegacyKind = Exclude<RouteKind, 'signature'>;

/** For each kind of route with credentials, the authentication scheme that the seller is asked to use. */
export const LEGACY: Readonly<Record<LegacyKind, LegacyAuthentication['scheme']>> = {
  'HMAC-SHA256': 'HMAC-SHA256',
  Bearer: 'Bearer',
  reports: 'HMAC-SHA256',
};

/**
 * For each kind of route with credentials: makes the `auth` of the route's sender. While credentials are renewed, the
 * old and the new ones are both accepted; one of them is `also`.
 */
export const AUTH: Readonly<
  Record<LegacyKind, (credentials: string, also: string | undefined) => NonNullable<Sender['auth']>>
> = {
  'HMAC-SHA256': (secret, also) => ({
    hmac: { secret, ...(also !== undefined && { previousSecret: also }) },
  }),
  Bearer: (token, also) => ({ bearer: { token, ...(also !== undefined && { previousToken: also }) } }),
  reports: (secret, also) => ({ reports: { secret, ...(also !== undefined && { previousSecret: also }) } }),
};
