// Defines the stored row of a webhook URL that a seller was given; the URL's route has a row of its own (told.md §1.3,
// §4). A route may be given below several base URLs. Each of these URLs is used and retired separately.
import type { Hashes } from '../../crypto/engine.ts';
import type { RegistrationRow, RegistrationRows } from '../../stores/store.ts';
import type { OurUrl } from '../../windows/told.ts';
import { storedObject } from '../operation-rows.ts';
import type { RouteKind } from '../route-kind.ts';

/** A URL that a seller was given. Times are Unix ms on the store's clock. */
export interface GivenUrl extends OurUrl {
  readonly kind: RouteKind;
  /**
   * True for a URL that the application adopted (`adopt`), because the seller used it already. Such a URL has no token.
   */
  readonly isAdopted?: true;
  readonly givenAt: number;
  /** The time at which the URL's credentials were made; absent: the URL has none, or the time is unknown. */
  readonly madeAt?: number;
  /** The time of the last authentic delivery at the URL. */
  readonly heardAt?: number;
  /** The time at which a subscription last stopped using the URL. */
  readonly leftAt?: number;
  readonly retiredAt?: number;
  /** True while the retirement is incomplete. Until then the URL may still have credentials. */
  readonly isRetiring?: true;
  /** The time of the last alarm about a use of the URL after its retirement. */
  readonly usedAlarmAt?: number;
  /** The time of the last alarm that the seller shows another URL instead of this one. */
  readonly driftAlarmAt?: number;
}

/** The value of `RegistrationRow.list` in the row of a given URL. */
export const GIVEN = 'url';

/**
 * Returns the id of a URL's row. It cannot collide with a route's id: no kind of route begins with `url/`, and no token
 * contains a `/`.
 */
const rowId = ({ base, route }: OurUrl, hashes: Pick<Hashes, 'sha256Hex'>): string =>
  `url/${hashes.sha256Hex(JSON.stringify([base, route]))}`;

export const givenIn = ({ value }: Pick<RegistrationRow, 'value'>): GivenUrl =>
  storedObject(value) as unknown as GivenUrl;

/** Returns the stored record of a URL; undefined if the seller was not given the URL. */
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

export const unretired = ({ retiredAt: _was, isRetiring: _is, ...given }: GivenUrl): GivenUrl => given;

/**
 * Stores a URL in the same transaction that gives it to a seller. If a retired URL is given again, its retirement ends.
 */
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
