// Defines the kinds of routes that a seller may have: one for each scheme, and one for reports.
import type { Sender } from '../config/sender-entry.ts';
import type { LegacyAuthentication } from './request.ts';
import { type RouteScheme, SCHEMES } from './seller.ts';

/** The kind of a route, which is also the id of its row. A `reports` route accepts HMAC as well as signatures. */
export type RouteKind = RouteScheme | 'reports';

export const ROUTE_KINDS: readonly RouteKind[] = [...SCHEMES, 'reports'];

/** The kinds that have credentials. */
type LegacyKind = Exclude<RouteKind, 'signature'>;

/** The legacy scheme that a seller is asked to use, for each kind of route. */
export const LEGACY: Readonly<Record<LegacyKind, LegacyAuthentication['scheme']>> = {
  'HMAC-SHA256': 'HMAC-SHA256',
  Bearer: 'Bearer',
  reports: 'HMAC-SHA256',
};

/** Makes the `auth` of a sender whose route has credentials. While credentials are renewed, two are accepted. */
export const AUTH: Readonly<
  Record<LegacyKind, (credentials: string, also: string | undefined) => NonNullable<Sender['auth']>>
> = {
  'HMAC-SHA256': (secret, also) => ({
    hmac: { secret, ...(also !== undefined && { previousSecret: also }) },
  }),
  Bearer: (token, also) => ({ bearer: { token, ...(also !== undefined && { previousToken: also }) } }),
  reports: (secret, also) => ({ reports: { secret, ...(also !== undefined && { previousSecret: also }) } }),
};
