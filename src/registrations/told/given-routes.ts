// Builds the stored record of a webhook URL from its route (the URL's last segment), and recognises URL rows whose
// route was deleted. Used when a seller's routes are created or deleted.
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

/** Returns the record of the URL that a route has below the base URL `base`. */
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

/**
 * True if the row is of a URL whose route was deleted. If the route was created again meanwhile, the result is false.
 */
export function isNobodys(row: RegistrationRow, rows: RegistrationRows): boolean {
  if (row.list !== GIVEN) return false;
  const { route } = givenIn(row);
  return !ROUTE_KINDS.some((kind) => {
    const parsed = parseStrictObject(utf8(rows.get('route', kind)?.value ?? ''));
    return parsed.ok && parsed.value['random'] === route;
  });
}
