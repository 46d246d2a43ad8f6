// Retires a webhook URL: no seller is given it any more. Once all URLs of a route are retired, the route's credentials
// are deleted (told.md §4). The work takes several transactions. If a process dies in between, the next `retire` of the
// URL completes the work.
import type { RegistrationRows, StoreRegistrations } from '../../stores/store.ts';
import type { OurUrl } from '../../windows/told.ts';
import { allRows, storedObject } from '../operation-rows.ts';
import { RegistrationError } from '../registrations-errors.ts';
import { ROUTE_KINDS, type RouteKind } from '../route-kind.ts';
import { sellerIn } from '../seller.ts';
import { namesOf, type OwnRoute, ownRouteIn } from './own-routes.ts';
import { quietOf } from './state.ts';
import { type Recorded, recordedOf, type RecordedContext } from './recorded.ts';
import type { RetireOptions, UrlName } from './state-types.ts';
import { GIVEN, givenAt, givenIn, saveGiven, unretired } from './url-row.ts';

export interface RetireContext extends RecordedContext {
  /** The base URL below which sellers are given URLs now; absent: none. */
  readonly base?: string | undefined;
  /** Removes a route, by its name, from the cache of this process. */
  readonly forget: (route: string) => void;
}

/**
 * Retires a URL.
 * @throws RegistrationError `request_invalid` if the seller was not given the URL; `url_in_use` if the URL is still
 *   needed and `force` is false.
 */
export async function retire(
  context: RetireContext,
  { agentUrl, base, route }: UrlName,
  { force = false }: RetireOptions,
): Promise<void> {
  const { registrations, hashes } = context;
  const url = { base, route };
  const asOf = await registrations.run('', (_rows, now) => now);
  const seller = await recordedOf(context, agentUrl, asOf);
  const done = await registrations.run(agentUrl, (rows, now): RegistrationError | 'before' | undefined => {
    const given = givenAt(rows, url, hashes);
    if (!given) return unknown(base, route);
    if (given.retiredAt !== undefined) return 'before';
    const on = seller.of(url);
    const quiet = quietOf(given, on, seller);
    if (!force && now < quiet) return inUse(base, on, quiet);
    saveGiven(rows, agentUrl, { ...given, retiredAt: now, isRetiring: true }, hashes);
    noMoreTold(rows, url, now, context.base);
    return undefined;
  });
  if (done instanceof RegistrationError) throw done;
  // Without `force` the URL must still be unused, because a call may have given it out meanwhile. A retirement by
  // `force` is never undone.
  if (!force && done !== 'before') await requireNobody(context, { agentUrl, base, route }, asOf);
  await finishRetiring(context, agentUrl, route, [base]);
  context.forget(route);
}

/**
 * Completes the retirement of URLs of one route: deletes the credentials if all URLs of the route are retired, and
 * clears `isRetiring`.
 */
export async function finishRetiring(
  { registrations, hashes }: RecordedContext,
  agentUrl: string,
  route: string,
  bases: readonly string[],
): Promise<void> {
  const areGone = await dropCredentials(registrations, agentUrl, route);
  await registrations.run(agentUrl, (rows) => {
    for (const base of bases) {
      const { isRetiring, ...given } = givenAt(rows, { base, route }, hashes) ?? {};
      if (isRetiring && 'base' in given) saveGiven(rows, agentUrl, given, hashes);
    }
    // The route stays in `formers` until its credentials are deleted, so that an interrupted retirement is found again.
    if (areGone) for (const kind of ROUTE_KINDS) withoutFormer(rows, kind, route);
  });
}

/**
 * Checks again that nothing uses the URL. If a call gave it to the seller meanwhile, undoes the retirement.
 * @throws RegistrationError `url_in_use`
 */
async function requireNobody(
  context: RetireContext,
  { agentUrl, ...url }: UrlName,
  now: number,
): Promise<void> {
  const { registrations, hashes } = context;
  const on = (await recordedOf(context, agentUrl, now)).of(url);
  if (on.operations.count + on.mediaBuys.count + on.subscriptions.count === 0) return;
  await registrations.run(agentUrl, (rows) => {
    const given = givenAt(rows, url, hashes);
    if (given) saveGiven(rows, agentUrl, unretired(given), hashes);
  });
  throw inUse(url.base, on, Infinity);
}

/**
 * Marks the route so that the seller is no longer given the URL. Below the current base URL, the whole route is
 * retired. Below another base URL, only that base is excluded.
 */
function noMoreTold(rows: RegistrationRows, url: OurUrl, now: number, base?: string): void {
  for (const kind of ROUTE_KINDS) {
    const row = rows.get('route', kind);
    if (!row) continue;
    const own = ownRouteIn(row);
    if (own.random !== url.route) continue;
    const is: OwnRoute =
      url.base === base
        ? { ...own, retiredAt: now }
        : { ...own, retired: [...(own.retired ?? []), url.base] };
    rows.save({ ...row, value: JSON.stringify(is) });
  }
}

/**
 * Deletes the credentials of a route if all its URLs are retired. The row found by the token stays, so that signed
 * deliveries are still accepted.
 * @returns false if a URL of the route is not retired.
 */
async function dropCredentials(
  registrations: StoreRegistrations,
  agentUrl: string,
  route: string,
): Promise<boolean> {
  if (await isAlive(registrations, agentUrl, route)) return false;
  // After this transaction no call can give out the route. Before it, a call could still give out the route below
  // another base URL.
  const heirs = await registrations.run(agentUrl, (rows, now) =>
    ROUTE_KINDS.flatMap((kind) => heirsOf(rows, kind, route, now)),
  );
  // A call may have given out the route just before the transaction above, so the URLs are checked once more.
  if (await isAlive(registrations, agentUrl, route)) return false;
  await registrations.run('', (rows, now) => {
    const row = rows.get('route', route);
    const { sealed: _gone, also: _with, ...known } = row ? storedObject(row.value) : {};
    if (!row || known['retiredAt'] !== undefined) return;
    rows.save({ ...row, value: JSON.stringify({ ...known, retiredAt: now }) });
    // Other routes that accepted these credentials stop accepting them (told.md §1.4). They keep the name of the
    // retired route for the alarm about a later use (told.md §4.2).
    for (const heir of heirs.flatMap((id) => rows.get('route', id) ?? [])) {
      const is = ownRouteIn(heir);
      if (is.also?.route === route) rows.save({ ...heir, value: JSON.stringify({ ...is, also: { route } }) });
    }
  });
  return true;
}

/** True if at least one URL of the route is not retired. */
async function isAlive(registrations: StoreRegistrations, agentUrl: string, route: string): Promise<boolean> {
  for await (const row of allRows(registrations, { kind: 'route', list: GIVEN, sender: agentUrl })) {
    const given = givenIn(row);
    if (given.route === route && given.retiredAt === undefined) return true;
  }
  return false;
}

/**
 * Returns the names of the seller's other routes of this kind, which may accept the credentials of `route`. If `route`
 * is the current route, its credentials are deleted from the seller's row, and it is never given out again. Without
 * other routes, only the seller's settings stay in the row: the next route is made with them.
 */
function heirsOf(rows: RegistrationRows, kind: RouteKind, route: string, now: number): readonly string[] {
  const row = rows.get('route', kind);
  if (!row) return [];
  const { sealed: _gone, ...own } = ownRouteIn(row);
  const names = namesOf(own).filter((name) => name !== undefined);
  if (!names.includes(route)) return [];
  const others = names.filter((name) => name !== route);
  if (own.random === route) {
    const is = others.length > 0 ? own : { ...sellerIn(own), scheme: own.scheme };
    const value = JSON.stringify({ ...is, retiredAt: own.retiredAt ?? now } satisfies OwnRoute);
    rows.save({ ...row, value });
  }
  return others;
}

function withoutFormer(rows: RegistrationRows, kind: RouteKind, route: string): void {
  const row = rows.get('route', kind);
  const own = row && ownRouteIn(row);
  if (!row || own?.formers?.includes(route) !== true) return;
  const formers = own.formers.filter((name) => name !== route);
  rows.save({ ...row, value: JSON.stringify({ ...own, formers }) });
}

const unknown = (base: string, route: string): RegistrationError =>
  new RegistrationError(
    'request_invalid',
    `url: the seller was not given the URL ${JSON.stringify(`${base}/…`)} by the route ${JSON.stringify(route)}. Give agentUrl, base and route as registrations.state() lists them.`,
  );

/** The most ids that the error message lists. */
const SHOWN = 5;

function inUse(base: string, on: Recorded, quiet: number): RegistrationError {
  const who = (
    [
      ['calls', on.operations],
      ['media buys', on.mediaBuys],
      ['subscriptions', on.subscriptions],
    ] as const
  )
    .filter(([, { count }]) => count > 0)
    .map(
      ([what, { count, first }]) =>
        `${count} ${what} (${first.slice(0, SHOWN).join(', ')}${count > SHOWN ? ', …' : ''})`,
    );
  const why =
    who.length > 0
      ? `${who.join(', ')} are on it`
      : `it was used so lately that the seller may send to it again: it is quiet at ${new Date(quiet).toISOString()} if nothing more comes`;
  return new RegistrationError(
    'url_in_use',
    `url: ${base}/… is not quiet: ${why}. Move them first, or wait; { force: true } retires it all the same.`,
  );
}
