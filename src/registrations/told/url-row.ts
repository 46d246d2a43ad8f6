// Keeps the row of a URL that a seller was given, in addition to the row of its route (told.md §1.3, §4). A route may
// be given below several base URLs. Each of these URLs is used and retired separately. Routes, moves and subscriptions
// write the row.
import type { Hashes } from '../../crypto/engine.ts';
import type { RegistrationRow, RegistrationRows } from '../../stores/store.ts';
import type { OurUrl } from '../../windows/told.ts';
import { storedObject } from '../operation-rows.ts';
import type { RouteKind } from '../route-kind.ts';

/** A URL that a seller was given. Times are Unix ms on the store's clock. */
export interface GivenUrl extends OurUrl {
  readonly kind: RouteKind;
  /** True for a URL that the seller used before (`adopt`). Such a URL has no token. */
  readonly isAdopted?: true;
  readonly givenAt: number;
  /** The time at which its credentials were made; absent: it has none, or the time is unknown. */
  readonly madeAt?: number;
  /** The time of its last authentic delivery. */
  readonly heardAt?: number;
  /** The time at which a subscription last stopped using it. */
  readonly leftAt?: number;
  readonly retiredAt?: number;
  /** True while its retirement is incomplete. Until then it may still have credentials. */
  readonly isRetiring?: true;
  /** The time of the last alarm about a use of the URL after its retirement. */
  readonly usedAlarmAt?: number;
  /** The time of the last alarm that the seller shows another URL instead of it. */
  readonly driftAlarmAt?: number;
}

/** The `RegistrationRow.list` of these rows. */
export const GIVEN = 'url';

/** Returns the id of the row. It cannot collide: no kind of route begins with `url/`, and no token contains a `/`. */
const rowId = ({ base, route }: OurUrl, hashes: Pick<Hashes, 'sha256Hex'>): string =>
  `url/${hashes.sha256Hex(JSON.stringify([base, route]))}`;

export const givenIn = ({ value }: Pick<RegistrationRow, 'value'>): GivenUrl =>
  storedObject(value) as unknown as GivenUrl;

/** Returns the row of a URL; undefined if the seller was not given it. */
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

/** Returns the URL without its retirement. */
export const unretired = ({ retiredAt: _was, isRetiring: _is, ...given }: GivenUrl): GivenUrl => given;

/**
 * Stores a URL in the same atomic change that gives it to a seller. If a retired URL is adopted again, it is no longer
 * retired.
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
