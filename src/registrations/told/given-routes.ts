// Makes the row of a URL from its route, and finds rows whose route is gone. The routes of registrations use it when
// they make or delete a route.
import { utf8 } from '../../codec/encoding.ts';
import { parseStrictObject } from '../../codec/strict-json.ts';
import type { RegistrationRow, RegistrationRows } from '../../stores/store.ts';
import { ROUTE_KINDS, type RouteKind } from '../route-kind.ts';
import { GIVEN, givenIn, type GivenUrl } from './url-row.ts';

interface GivenRoute {
  readonly random?: string;
  readonly scheme: RouteKind;
  readonly madeAt?: number;
}

/** Returns the row for a route's URL below a base URL. */
export const givenOf = (
  { random = '', scheme: kind, madeAt }: GivenRoute,
  base: string,
  now: number,
): GivenUrl => ({
  base,
  route: random,
  kind,
  givenAt: now,
  ...(madeAt !== undefined && kind !== 'signature' && { madeAt }),
});

/** True for the row of a URL whose route is gone. A URL that was made in the meantime still has its route. */
export function isNobodys(row: RegistrationRow, rows: RegistrationRows): boolean {
  if (row.list !== GIVEN) return false;
  const { route } = givenIn(row);
  return !ROUTE_KINDS.some((kind) => {
    const parsed = parseStrictObject(utf8(rows.get('route', kind)?.value ?? ''));
    return parsed.ok && parsed.value['random'] === route;
  });
}
