import type { Hashes } from '../../crypto/engine.ts';
import type { RegistrationRow, RegistrationRows } from '../../stores/store.ts';
import type { OurUrl } from '../../windows/told.ts';
import { storedObject } from '../operation-rows.ts';
import type { RouteKind } from '../route-kind.ts';

/*
 * The row of a URL that a seller was given, beside the row of its route: one route may be told below several bases, and each of these
 * URLs is heard, and retired, by itself (told.md §1.3, §4).
 */

/** A URL that a seller was given. Times are Unix ms on the store's clock. */
export interface GivenUrl extends OurUrl {
  readonly kind: RouteKind;
  /** A route that the seller had already (`adopt`): it has no token. */
  readonly isAdopted?: true;
  readonly givenAt: number;
  /** When its credentials were made; absent: it has none, or nobody knows. */
  readonly madeAt?: number;
  /** An authentic delivery came by it then. */
  readonly heardAt?: number;
  /** A subscription left it then. */
  readonly leftAt?: number;
  readonly retiredAt?: number;
  /** Its retirement has not come to its end: it may have credentials. */
  readonly isRetiring?: true;
  /** The last alarm that it is used though it is retired. */
  readonly usedAlarmAt?: number;
  /** The last alarm that its seller shows another one in its place. */
  readonly driftAlarmAt?: number;
}

/** On which `RegistrationRow.list` they are. */
export const GIVEN = 'url';

/** No kind of route is named so, and no token has a `/`. */
const rowId = ({ base, route }: OurUrl, hashes: Pick<Hashes, 'sha256Hex'>): string =>
  `url/${hashes.sha256Hex(JSON.stringify([base, route]))}`;

export const givenIn = ({ value }: Pick<RegistrationRow, 'value'>): GivenUrl =>
  storedObject(value) as unknown as GivenUrl;

/** Undefined for a URL that the seller was not given. */
export function givenAt(
  rows: Pick<RegistrationRows, 'get'>,
  url: OurUrl,
  hashes: Pick<Hashes, 'sha256Hex'>,
): GivenUrl | undefined {
  const row = rows.get('route', rowId(url, hashes));
  return row && givenIn(row);
}

export function saveGiven(
  rows: Pick<RegistrationRows, 'save'>,
  sender: string,
  given: GivenUrl,
  hashes: Pick<Hashes, 'sha256Hex'>,
): void {
  rows.save({
    kind: 'route',
    sender,
    id: rowId(given, hashes),
    value: JSON.stringify(given),
    dueAt: null,
    list: GIVEN,
    expiresAt: null,
  });
}

/** One that is alive again. */
export const unretired = ({ retiredAt: _was, isRetiring: _is, ...given }: GivenUrl): GivenUrl => given;

/** In the step that gives a seller a URL: known from then on. One that was retired, and is adopted again, is alive again. */
export function keepGiven(
  rows: Pick<RegistrationRows, 'get' | 'save'>,
  sender: string,
  given: GivenUrl,
  hashes: Pick<Hashes, 'sha256Hex'>,
): void {
  const known = givenAt(rows, given, hashes);
  if (known && known.retiredAt === undefined) return;
  const { usedAlarmAt: _for, ...is } = unretired(known ?? given);
  saveGiven(rows, sender, is, hashes);
}
