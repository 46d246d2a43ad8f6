// Retires a URL: no seller is given it any more. Once all URLs of a route are retired, the route's credentials are
// deleted (told.md §4). `registrations.retire` and the retirement of former routes call it. It takes several atomic
// changes of the rows of two senders. If a process dies in between, the next `retire` of the URL finishes them.
import type { RegistrationRows, StoreRegistrations } from '../../stores/store.ts';
import type { OurUrl } from '../../windows/told.ts';
import { allRows, storedObject } from '../operation-rows.ts';
import { RegistrationError } from '../registrations-errors.ts';
import { ROUTE_KINDS, type RouteKind } from '../route-kind.ts';
import { namesOf, type OwnRoute, ownRouteIn } from './own-routes.ts';
import { quietOf } from './state.ts';
import { type Recorded, recordedOf, type RecordedContext } from './recorded.ts';
import type { RetireOptions, UrlName } from './state-types.ts';
import { GIVEN, givenAt, givenIn, saveGiven, unretired } from './url-row.ts';

export interface RetireContext extends RecordedContext {
  /** The base URL below which sellers are given URLs now; absent: none. */
  readonly base?: string | undefined;
  /** Removes the route with that token from the cache. */
  readonly forget: (route: string) => void;
}

/** Retires a URL. @throws RegistrationError */
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
  // A URL that was retired by `force` stays retired.
  if (!force && done !== 'before') await requireNobody(context, { agentUrl, base, route }, asOf);
  await finishRetiring(context, agentUrl, route, [base]);
  context.forget(route);
}

/** Does the remaining work for retired URLs of one route. */
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
    // A former route stays in the list until all parts of its retirement are done.
    if (areGone) for (const kind of ROUTE_KINDS) withoutFormer(rows, kind, route);
  });
}

/**
 * Checks that nothing uses the URL. If a call gave the seller the URL meanwhile, undoes the retirement. @throws
 * RegistrationError
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
 * Stops giving out the URL. Below the first base URL, the route itself is retired. Below another one, the route is no
 * longer given out there.
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
 * Deletes the credentials of a route if all its URLs are retired. Its token stays, so that signed deliveries are still
 * accepted.
 * @returns false if a URL of the route is not retired.
 */
async function dropCredentials(
  registrations: StoreRegistrations,
  agentUrl: string,
  route: string,
): Promise<boolean> {
  if (await isAlive(registrations, agentUrl, route)) return false;
  // Until here, the route could be given out again below another base URL, with its credentials. From this change on it
  // cannot.
  const heirs = await registrations.run(agentUrl, (rows, now) =>
    ROUTE_KINDS.flatMap((kind) => heirsOf(rows, kind, route, now)),
  );
  // True if a seller was given the route just before that change.
  if (await isAlive(registrations, agentUrl, route)) return false;
  await registrations.run('', (rows, now) => {
    const row = rows.get('route', route);
    const { sealed: _gone, also: _with, ...known } = row ? storedObject(row.value) : {};
    if (!row || known['retiredAt'] !== undefined) return;
    rows.save({ ...row, value: JSON.stringify({ ...known, retiredAt: now }) });
    // The routes that replaced it stop accepting its credentials (told.md §1.4), but keep a note that they were retired
    // (told.md §4.2).
    for (const heir of heirs.flatMap((id) => rows.get('route', id) ?? [])) {
      const is = ownRouteIn(heir);
      if (is.also?.route === route) rows.save({ ...heir, value: JSON.stringify({ ...is, also: { route } }) });
    }
  });
  return true;
}

/** True if a URL of the route is not retired. */
async function isAlive(registrations: StoreRegistrations, agentUrl: string, route: string): Promise<boolean> {
  for await (const row of allRows(registrations, { kind: 'route', list: GIVEN, sender: agentUrl })) {
    const given = givenIn(row);
    if (given.route === route && given.retiredAt === undefined) return true;
  }
  return false;
}

/**
 * Returns the other routes in the seller's row, which may accept this route's credentials. If this route is the current
 * one, the seller's own row is deleted. But if there are other routes, the row is kept, without credentials, and is
 * never given out.
 */
function heirsOf(rows: RegistrationRows, kind: RouteKind, route: string, now: number): readonly string[] {
  const row = rows.get('route', kind);
  if (!row) return [];
  const { sealed: _gone, ...own } = ownRouteIn(row);
  const names = namesOf(own).filter((name) => name !== undefined);
  if (!names.includes(route)) return [];
  const others = names.filter((name) => name !== route);
  if (own.random === route) {
    const value = JSON.stringify({ ...own, retiredAt: own.retiredAt ?? now } satisfies OwnRoute);
    rows.save(others.length > 0 ? { ...row, value } : { ...row, dueAt: null, expiresAt: 1 });
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

/** The most names in the message. */
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
