// Makes the URLs (routes) that sellers send to, and finds the sender of a delivery by its URL (told.md §1.2).
// Registrations make routes here. The receiver uses `senders` as its option of that name.
//
// A seller has one route for each kind of authentication, stored in two rows. The first row belongs to the seller and
// contains the random part of the URL's token. The second row has no sender: its id is that random part, and it names
// the seller. The store cannot write rows of two senders in one transaction. So the second row is written afterwards,
// if it is missing. Then the first row is read again, because the seller may have been deleted in between.
//
// Adopted URLs are URLs that a seller used before. They have no token, and are found by their path, in a cache.
import type { Hashes } from '../crypto/engine.ts';
import { putBounded } from '../shared/bounded.ts';
import { ConfigError } from '../shared/errors.ts';
import { encodeBase64Url, utf8 } from '../codec/encoding.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { Sender } from '../config/sender-entry.ts';
import type { RegistrationRow, StoreRegistrations } from '../stores/store.ts';
import { adoptedUrls } from './adopted-urls.ts';
import { type BaseUrls, below } from './base-urls.ts';
import type { LegacyAuthentication } from './request.ts';
import {
  hasTokenForm,
  makeRouteToken,
  type RandomBytes,
  readRouteToken,
  routeTokenOf,
  seal,
  type Secrets,
  unseal,
} from './secrets.ts';
import { AUTH, LEGACY, ROUTE_KINDS, type RouteKind } from './route-kind.ts';
import { rememberedRoutes } from './remembered-routes.ts';
import { requireSeller, type RouteScheme, type Seller, sellerIn } from './seller.ts';
import { allRows, type Damage, deleteRows, soon, storedObject } from './operation-rows.ts';
import { rewrapRoutes, unreadableRoutes } from './route-rewrap.ts';
import { ourUrlIn } from './told/our-url.ts';
import { givenOf, isNobodys } from './told/given-routes.ts';
import { namesOf, type OwnRoute, placeOfRoute, renewed } from './told/own-routes.ts';
import { givenAt, keepGiven } from './told/url-row.ts';
import { SELLER_ROW_ID } from './watch-task.ts';
import type { OurUrl } from '../windows/told.ts';

/** A URL that was made for one seller, with its credentials. */
export interface Route extends OurUrl {
  readonly url: string;
  /** The URLs of the same route below each base URL that is served. */
  readonly urls: readonly string[];
  readonly authentication?: LegacyAuthentication;
}

/** The routes (URLs for one seller each) of all sellers, in one store. */
export interface Routes {
  /**
   * Returns the seller's route for a scheme. If there is none, makes a new route and stores it.
   * @param base one of the base URLs; absent: the first.
   */
  readonly routeOf: (seller: Seller, scheme?: RouteScheme, base?: string) => Promise<Route>;
  /** Returns the seller's route for reports, where reports are accepted with HMAC or with a signature. */
  readonly reportsRouteOf: (seller: Seller, base?: string) => Promise<Route>;
  /**
   * Returns the route of a URL, with its credentials. Undefined if there is no route, or if its credentials were
   * retired.
   * @param agentUrl a seller: the route of another seller is not returned. Absent: any seller's.
   */
  readonly routeAt: (url: OurUrl, agentUrl?: string) => Promise<Route | undefined>;
  /** Splits a URL that this library serves into base URL and route; undefined for any other URL. */
  readonly ours: (url: string) => OurUrl | undefined;
  /** Splits a delivery's URL into base URL and route. Undefined if the URL has no token and was not adopted. */
  readonly given: (url: string) => OurUrl | undefined;
  /** True if credentials at the URL of a delivery were retired, as far as this process's cache knows. */
  readonly isRetired: (url: string) => boolean;
  /** Drops a changed route from this process's cache, so that it is read again. */
  readonly reread: (id: string) => void;
  /** Returns a URL's sender, as `ReceiverOptions.senders` must. Rejects with a Fault if the store is unavailable. */
  readonly senders: (url: URL) => Sender[] | Promise<Sender[]>;
  /** The base URL below which sellers are given new URLs. */
  readonly base: string;
  /**
   * Accepts deliveries at a URL that a seller already uses.
   * @throws ConfigError if the URL is not below a `baseUrl`, or has the form of the URLs made here.
   */
  readonly adopt: (seller: Seller, url: string) => Promise<void>;
  /** Deletes all routes and adopted URLs of the seller. */
  readonly forget: (agentUrl: string) => Promise<void>;
  /** Returns the number of routes that need a secret which is not in `secrets`. */
  readonly unreadable: () => Promise<number>;
  /** Encrypts credentials under the newest secret. `needed`: the number of URLs with a token of an older secret. */
  readonly rewrap: () => Promise<Damage & { readonly rewrapped: number; readonly needed: number }>;
}

export interface RouteOptions {
  readonly registrations: StoreRegistrations;
  readonly baseUrls: BaseUrls;
  readonly allowLoopback: boolean;
  readonly secrets: Secrets;
  readonly hashes: Hashes;
  readonly randomBytes: RandomBytes;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

/** The largest number of adopted URLs, and of URLs in the cache `given`. */
const MOST = 10_000;

/** The length of an HMAC secret or bearer token in bytes. As base64url they are 43 characters. */
const CREDENTIAL_BYTES = 32;

/** The JSON value of both rows of a route, and of the single row of an adopted URL. */
interface StoredRoute extends OwnRoute {
  /** The path and query of an adopted URL. */
  readonly path?: string;
}

const routeIn = ({ value }: Pick<RegistrationRow, 'value'>): StoredRoute =>
  storedObject(value) as unknown as StoredRoute;

/** Parses the value of a row; undefined if the row is damaged. */
function readable({ value }: Pick<RegistrationRow, 'value'>): StoredRoute | undefined {
  const parsed = parseStrictObject(utf8(value));
  return parsed.ok ? (parsed.value as unknown as StoredRoute) : undefined;
}

function rowOf(sender: string, id: string, route: StoredRoute): RegistrationRow {
  const list = route.path === undefined ? null : ADOPTED;
  return { kind: 'route', sender, id, value: JSON.stringify(route), dueAt: null, list, expiresAt: null };
}

const ADOPTED = 'adopted';

const isTold = ({ retired = [], retiredAt }: StoredRoute, base: string): boolean =>
  retiredAt === undefined && !retired.includes(base);

/** Returns the names (random parts of the tokens) of the routes that a new route replaces. */
const formersOf = (own: StoredRoute | undefined): Pick<StoredRoute, 'formers'> =>
  own ? { formers: namesOf(own).filter((name) => name !== undefined) } : {};

/**
 * Returns the value of the row that is found by a URL's token. The members that only the seller's own row has are left
 * out. `also` (other accepted credentials), which only the token's row has, is kept.
 */
function tokenRoute(
  { next: _next, formers: _formers, formerUsedAt: _used, unusedSince: _since, ...route }: StoredRoute,
  known: StoredRoute | undefined,
): StoredRoute {
  return known?.also === undefined ? route : { ...route, also: known.also };
}

/** True if credentials of the route were retired: its own, or others that it accepted too (`also`). */
const hasRetired = ({ scheme, retiredAt, also }: StoredRoute): boolean =>
  (retiredAt !== undefined && scheme !== 'signature') || (also !== undefined && also.sealed === undefined);

/** Returns the row with an expiry in the past: saving it deletes the row. */
const gone = (row: RegistrationRow): RegistrationRow => ({ ...row, dueAt: null, expiresAt: 1 });

export function routesOf(options: RouteOptions): Routes {
  const { registrations, baseUrls, allowLoopback, secrets, hashes, randomBytes } = options;
  const [firstBase] = baseUrls;

  const unsealed = async (route: StoredRoute, sealed: string | undefined): Promise<string | undefined> =>
    sealed === undefined ? undefined : unseal(secrets, placeOfRoute(route), sealed);
  const credentialsOf = (route: StoredRoute): Promise<string | undefined> => unsealed(route, route.sealed);
  const senderOf = async (route: StoredRoute): Promise<Sender> => {
    const credentials = await credentialsOf(route);
    if (credentials === undefined || route.scheme === 'signature') return sellerIn(route);
    return {
      ...sellerIn(route),
      auth: AUTH[route.scheme](credentials, await unsealed(route, route.also?.sealed)),
    };
  };
  const known = rememberedRoutes(options.now);
  const adopted = adoptedUrls({
    ...options,
    load: async () => {
      const found = new Map<string, Sender[]>();
      for (const row of await adoptedRows(registrations)) {
        const route = routeIn(row);
        const path = route.path ?? '';
        found.set(path, [...(found.get(path) ?? []), await senderOf(route)]);
      }
      return found;
    },
  });
  /** A cache of URLs that the store records as given to a seller (told/url-row.ts): they need no further row. */
  const given = new Map<string, true>();
  const tokenIn = ({ pathname }: URL): ReturnType<typeof readRouteToken> =>
    readRouteToken(secrets, hashes, pathname.slice(pathname.lastIndexOf('/') + 1));
  const ours = (url: string): OurUrl | undefined => ourUrlIn(baseUrls, options, url);
  const keyOf = ({ agentUrl, random }: StoredRoute, base: string): string =>
    JSON.stringify([agentUrl, base, random]);

  const routeOf = async (seller: Seller, scheme: RouteKind, base: string): Promise<Route> => {
    const { agentUrl } = seller;
    const token = makeRouteToken(secrets, hashes, randomBytes);
    const made: StoredRoute = { ...sellerIn(seller), scheme, random: token.id, secretId: token.secretId };
    // The store's transaction below is synchronous, so the credentials are encrypted before it. They stay unused if the
    // seller has a route already.
    const sealed =
      scheme === 'signature'
        ? {}
        : {
            sealed: await seal(
              secrets,
              placeOfRoute(made),
              encodeBase64Url(randomBytes(CREDENTIAL_BYTES)),
              randomBytes,
            ),
          };
    const route = await registrations.run(agentUrl, (rows, now): StoredRoute => {
      const found = rows.get('route', scheme);
      const own = found && renewed(routeIn(found), now);
      const is = {
        ...(own && isTold(own, base) ? own : { ...made, ...sealed, madeAt: now, ...formersOf(own) }),
        ...sellerIn(seller),
      };
      const row = rowOf(agentUrl, scheme, is);
      if (found?.value !== row.value) rows.save(row);
      if (!given.has(keyOf(is, base))) keepGiven(rows, agentUrl, givenOf(is, base, now), hashes);
      return is;
    });
    putBounded(given, keyOf(route, base), true, MOST);
    const id = route.random ?? '';
    const is = await registrations.run('', (rows): 'retired' | 'written' | 'known' => {
      const found = rows.get('route', id);
      const known = found && readable(found);
      // The route was retired since the transaction above, so its credentials are not restored.
      if (known?.retiredAt !== undefined) return 'retired';
      const row = rowOf('', id, tokenRoute(route, known));
      if (found?.value === row.value) return 'known';
      rows.save(row);
      return 'written';
    });
    known.forget(id);
    const standing = is === 'written' ? await standingOf(agentUrl, scheme, { base, route: id }) : is;
    if (standing === 'known') return routeIs(route, base);
    // The seller was deleted since the first transaction (`gone`), so this URL's row is deleted too. Or the URL was
    // retired, and the row of its token stays. In both cases a new URL is made.
    if (standing === 'gone') await drop('', [id]);
    else {
      await drop(agentUrl, [scheme], (row) => {
        const own = readable(row);
        return own?.random === id && isTold(own, base);
      });
    }
    return routeOf(seller, scheme, base);
  };

  /** Returns a stored route's URL and credentials. @throws ConfigError if the secret that made its token is missing. */
  const routeIs = async (route: StoredRoute, base: string): Promise<Route> => {
    const { agentUrl, scheme, random: id = '', secretId = '' } = route;
    const of = routeTokenOf(secrets, hashes, { id, secretId });
    if (!of) {
      throw new ConfigError(
        `secrets: the URL of ${agentUrl} was made by an unknown secret (${secretId}). Add it at the end of the list.`,
      );
    }
    const credentials = await credentialsOf(route);
    return {
      base,
      route: id,
      url: `${base}/${of.text}`,
      urls: baseUrls.map((url) => `${url}/${of.text}`),
      ...(scheme !== 'signature' &&
        credentials !== undefined && { authentication: { scheme: LEGACY[scheme], credentials } }),
    };
  };

  /**
   * Tells the state of a seller's URL. `known`: valid, because the seller's own row names it. `retired`: it must not be
   * given to the seller any more. `gone`: it was deleted with its seller.
   */
  const standingOf = (
    agentUrl: string,
    kind: RouteKind,
    url: OurUrl,
  ): Promise<'known' | 'retired' | 'gone'> =>
    registrations.run(agentUrl, (rows) => {
      const row = rows.get('route', kind);
      const own = row && routeIn(row);
      if (own?.random === url.route && !isTold(own, url.base)) return 'retired';
      if (own && namesOf(own).includes(url.route)) return 'known';
      return givenAt(rows, url, hashes)?.retiredAt === undefined ? 'gone' : 'retired';
    });

  /** Deletes the rows with these ids for which `which` returns true. @returns the deleted rows. */
  const drop = (
    sender: string,
    ids: readonly string[],
    which: (row: RegistrationRow) => boolean = () => true,
  ): Promise<readonly RegistrationRow[]> =>
    registrations.run(sender, (rows) => {
      const found = ids.flatMap((id) => rows.get('route', id) ?? []).filter(which);
      for (const row of found) rows.save(gone(row));
      return found;
    });

  const lookUp = async (id: string): Promise<Sender[]> => {
    const row = await soon(registrations.run('', (rows) => rows.get('route', id)));
    const route = row && routeIn(row);
    return known.put(id, route ? [await senderOf(route)] : [], route !== undefined && hasRetired(route));
  };

  return {
    base: firstBase,
    routeOf: async (seller, scheme = 'signature', base = firstBase) => {
      requireSeller(seller, scheme, allowLoopback);
      return routeOf(seller, scheme, base);
    },
    reportsRouteOf: async (seller, base = firstBase) => {
      requireSeller(seller, 'signature', allowLoopback);
      return routeOf(seller, 'reports', base);
    },
    routeAt: async ({ base, route: id }, agentUrl) => {
      const row = await registrations.run('', (rows) => rows.get('route', id));
      const route = row && readable(row);
      if (route?.random === undefined || (agentUrl ?? route.agentUrl) !== route.agentUrl) return undefined;
      // If the credentials were retired, `routeIs` would return the route like one for signed webhooks.
      if (route.scheme !== 'signature' && route.sealed === undefined) return undefined;
      return routeIs(route, base);
    },
    ours,
    given: (url) => {
      const { pathname, search } = new URL(url);
      return hasTokenForm(pathname) || adopted.has(pathname + search) ? ours(url) : undefined;
    },
    isRetired: (url) => {
      const token = tokenIn(new URL(url));
      return token !== undefined && known.isRetired(token.id);
    },
    reread: known.forget,
    senders: (url) => {
      const token = tokenIn(url);
      if (token) return known.get(token.id) ?? lookUp(token.id);
      // The path looks like a token, but the token is forged or its secret was removed: the store need not be read.
      return hasTokenForm(url.pathname) ? [] : adopted.at(url.pathname + url.search);
    },
    adopt: async (seller, url) => {
      requireSeller(seller, 'signature', allowLoopback);
      const { pathname, search } = below(baseUrls, url);
      if (hasTokenForm(pathname)) {
        throw new ConfigError(
          `adopt: ${JSON.stringify(url)} has the form of the URLs that this package makes, and would be mistaken for one. Have the seller send to a URL of its own: reportingWebhook makes it.`,
        );
      }
      const path = pathname + search;
      if ((await adoptedRows(registrations)).length >= MOST) {
        throw new ConfigError(
          `adopt: ${MOST} URLs are adopted already, which is the limit. Have sellers send to URLs of their own, or forget some.`,
        );
      }
      const route: StoredRoute = { ...sellerIn(seller), scheme: 'signature', path };
      await registrations.run('', (rows, now) => {
        const id = `${path} ${seller.agentUrl}`;
        const { madeAt = now } = readable(rows.get('route', id) ?? { value: '' }) ?? {};
        rows.save(rowOf('', id, { ...route, madeAt }));
      });
      const given = ours(url);
      if (given) {
        await registrations.run(seller.agentUrl, (rows, now) =>
          keepGiven(
            rows,
            seller.agentUrl,
            { ...given, kind: 'signature', isAdopted: true, givenAt: now },
            hashes,
          ),
        );
      }
      await adopted.refresh();
    },
    forget: async (agentUrl) => {
      // The seller's own rows are deleted first, so that a concurrent `routeOf` notices the deletion. Then all rows
      // that name the seller are deleted, including those of an interrupted `routeOf`.
      const ids = (await drop(agentUrl, [...ROUTE_KINDS, SELLER_ROW_ID])).flatMap(
        (row) => readable(row)?.random ?? [],
      );
      for await (const row of allRows(registrations, OF_NO_SENDER)) {
        if (readable(row)?.agentUrl === agentUrl) ids.push(row.id);
      }
      await drop('', ids);
      // These rows of the seller were written during the deletion. The rows of their tokens have just been deleted.
      await drop(agentUrl, ROUTE_KINDS, (row) => ids.includes(readable(row)?.random ?? ''));
      await deleteRows(registrations, 'route', agentUrl, isNobodys);
      for (const id of ids) known.forget(id);
      await adopted.refresh();
    },
    unreadable: () => unreadableRoutes(options),
    rewrap: () => rewrapRoutes({ ...options, reread: known.forget }),
  };
}

/** Selects the rows with an empty `sender`: one for each token in a URL, and one for each adopted URL. */
const OF_NO_SENDER = { kind: 'route', sender: '' } as const;

async function adoptedRows(registrations: StoreRegistrations): Promise<readonly RegistrationRow[]> {
  const rows: RegistrationRow[] = [];
  for await (const row of allRows(registrations, { ...OF_NO_SENDER, list: ADOPTED })) rows.push(row);
  return rows;
}
