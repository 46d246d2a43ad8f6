import { utf8 } from '../../codec/encoding.ts';
import { parseStrictObject } from '../../codec/strict-json.ts';
import type { RegistrationRow, RegistrationRows } from '../../stores/store.ts';
import { ROUTE_KINDS, type RouteKind } from '../route-kind.ts';
import { GIVEN, givenIn, type GivenUrl } from './url-row.ts';

/* The rows of URLs, as routes make and delete them. */

interface GivenRoute {
  readonly random?: string;
  readonly scheme: RouteKind;
  readonly madeAt?: number;
}

/** The URL of a route below a base. */
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

/** The URL of a route that is gone; not of one that was made meanwhile. */
export function isNobodys(row: RegistrationRow, rows: RegistrationRows): boolean {
  if (row.list !== GIVEN) return false;
  const { route } = givenIn(row);
  return !ROUTE_KINDS.some((kind) => {
    const parsed = parseStrictObject(utf8(rows.get('route', kind)?.value ?? ''));
    return parsed.ok && parsed.value['random'] === route;
  });
}
