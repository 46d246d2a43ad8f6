// Defines the kinds of routes that a seller may have: one for each scheme, and one for reports.
import type { Sender } from '../config/sender-entry.ts';
import type { LegacyAuthentication } from './request.ts';
import { type RouteScheme, SCHEMES } from './seller.ts';

/** A kind of routes, which is also the id of its row. `reports` accepts HMAC beside signatures. */
export type RouteKind = RouteScheme | 'reports';

export const ROUTE_KINDS: readonly RouteKind[] = [...SCHEMES, 'reports'];

/** The kinds that have credentials. */
type LegacyKind = Exclude<RouteKind, 'signature'>;

/** The legacy scheme that a seller is asked for, by kind. */
export const LEGACY: Readonly<Record<LegacyKind, LegacyAuthentication['scheme']>> = {
  'HMAC-SHA256': 'HMAC-SHA256',
  Bearer: 'Bearer',
  reports: 'HMAC-SHA256',
};

/** The `auth` of a sender on such a route. Two credentials count while they are being renewed. */
export const AUTH: Readonly<
  Record<LegacyKind, (credentials: string, also: string | undefined) => NonNullable<Sender['auth']>>
> = {
  'HMAC-SHA256': (secret, also) => ({
    hmac: { secret, ...(also !== undefined && { previousSecret: also }) },
  }),
  Bearer: (token, also) => ({ bearer: { token, ...(also !== undefined && { previousToken: also }) } }),
  reports: (secret, also) => ({ reports: { secret, ...(also !== undefined && { previousSecret: also }) } }),
};
