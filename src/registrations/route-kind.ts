import type { Sender } from '../config/sender-entry.ts';
import type { LegacyAuthentication } from './request.ts';
import { type RouteScheme, SCHEMES } from './seller.ts';

/** Kinds of routes, which are ids of rows too: one a scheme, and one where HMAC counts beside signatures, for reports. */
export type RouteKind = RouteScheme | 'reports';

export const ROUTE_KINDS: readonly RouteKind[] = [...SCHEMES, 'reports'];

/** Kinds that have credentials. */
type LegacyKind = Exclude<RouteKind, 'signature'>;

/** The scheme that a seller is asked for. */
export const LEGACY: Readonly<Record<LegacyKind, LegacyAuthentication['scheme']>> = {
  'HMAC-SHA256': 'HMAC-SHA256',
  Bearer: 'Bearer',
  reports: 'HMAC-SHA256',
};

/** How the seller is registered as a sender on such a route, under one of two credentials. */
export const AUTH: Readonly<
  Record<LegacyKind, (credentials: string, also: string | undefined) => NonNullable<Sender['auth']>>
> = {
  'HMAC-SHA256': (secret, also) => ({
    hmac: { secret, ...(also !== undefined && { previousSecret: also }) },
  }),
  Bearer: (token, also) => ({ bearer: { token, ...(also !== undefined && { previousToken: also }) } }),
  reports: (secret, also) => ({ reports: { secret, ...(also !== undefined && { previousSecret: also }) } }),
};
