import type { Hashes } from '../crypto/engine.ts';
import { ConfigError } from '../shared/errors.ts';
import { encodeBase64Url, utf8 } from '../codec/encoding.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { Sender } from '../config/sender-entry.ts';
import type { RegistrationRow, StoreRegistrations } from '../stores/store.ts';
import { type BaseUrls, below } from './base-urls.ts';
import type { LegacyAuthentication } from './request.ts';
import {
  hasTokenForm,
  isOlder,
  secretIdOf,
  makeRouteToken,
  type RandomBytes,
  readRouteToken,
  routeTokenOf,
  seal,
  type SealedPlace,
  type Secrets,
  unseal,
} from './secrets.ts';
import { AUTH, LEGACY, ROUTE_KINDS, type RouteKind } from './route-kind.ts';
import { rememberedRoutes, ROUTE_KEPT_MS } from './remembered-routes.ts';
import { requireSeller, type RouteScheme, type Seller, sellerIn } from './seller.ts';
import { allRows, type Damage, eachRow, soon, storedObject } from './operation-rows.ts';
import { SELLER_ROW_ID } from './watch-task.ts';

/*
 * The URLs that sellers send to. Each seller has one route a kind, in two rows: the seller's own row has the token, and a row
 * without a sender, found by the token's random part, has the seller. Rows of two senders are written in two steps: the second
 * row is made where it is missing, and then the first is read again, for the seller may have been deleted in between. URLs that
 * sellers have already are adopted: they have no token, and are kept in memory.
 */

/** Where a seller is to send. */
export interface Route {
  readonly url: string;
  /** The same at each base that is served. */
  readonly urls: readonly string[];
  readonly authentication?: LegacyAuthentication;
}

/** Routes of all sellers, in one store. */
export interface Routes {
  /** The seller's route, made if there is none; durable. */
  readonly routeOf: (seller: Seller, scheme?: RouteScheme) => Promise<Route>;
  /** Likewise its route for reports, which come by HMAC or signed. */
  readonly reportsRouteOf: (seller: Seller) => Promise<Route>;
  /** `ReceiverOptions.senders`. Rejects with a Fault while the store is unavailable. */
  readonly senders: (url: URL) => Sender[] | Promise<Sender[]>;
  /** Below which sellers are told their URLs from now on. */
  readonly base: string;
  /** A URL that a seller has already. @throws ConfigError unless it is below a `baseUrl`. */
  readonly adopt: (seller: Seller, url: string) => Promise<void>;
  /** Removes all URLs of the seller. */
  readonly forget: (agentUrl: string) => Promise<void>;
  /** How many routes need a secret that is not in `secrets`. */
  readonly unreadable: () => Promise<number>;
  /** Encrypts credentials under the newest secret; `needed`: URLs made by an older one. */
  readonly rewrap: () => Promise<Damage & { readonly rewrapped: number; readonly needed: number }>;
}

export interface RouteOptions {
  readonly registrations: StoreRegistrations;
  readonly baseUrls: BaseUrls;
  readonly allowLoopback: boolean;
  readonly secrets: Secrets;
  readonly hashes: Hashes;
  readonly randomBytes: RandomBytes;
  /** Ms, of a clock that is never set. */
  readonly now: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

/** The shortest time between two reads of adopted URLs for an unknown path. Ms. */
export const REFRESH_MS = 1000;

/** How often a delivery that waits for a running read checks whether it has ended. Ms. */
const LOOK_MS = 20;

/** Adopted URLs at most. */
const MOST = 10_000;

/** Bytes of legacy credentials: 43 characters. */
const CREDENTIAL_BYTES = 32;

/** The value of both rows of a route, and of the one row of an adopted URL. */
interface StoredRoute extends Seller {
  readonly scheme: RouteKind;
  /** Of the token. */
  readonly random?: string;
  readonly secretId?: string;
  readonly sealed?: string;
  /** Of an adopted URL. */
  readonly path?: string;
  /** The base URLs below which it was told, in the order in which that was. */
  readonly bases?: readonly string[];
}

const routeIn = ({ value }: Pick<RegistrationRow, 'value'>): StoredRoute =>
  storedObject(value) as unknown as StoredRoute;

/** Undefined for a damaged row. */
function readable({ value }: RegistrationRow): StoredRoute | undefined {
  const parsed = parseStrictObject(utf8(value));
  return parsed.ok ? (parsed.value as unknown as StoredRoute) : undefined;
}

function rowOf(sender: string, id: string, route: StoredRoute): RegistrationRow {
  const list = route.path === undefined ? null : ADOPTED;
  return { kind: 'route', sender, id, value: JSON.stringify(route), dueAt: null, list, expiresAt: null };
}

const ADOPTED = 'adopted';

const placeOf = ({ agentUrl, scheme }: StoredRoute): SealedPlace => ({
  purpose: 'credentials',
  sender: agentUrl,
  id: scheme,
});

/** Deletes a row by its expiry. */
const gone = (row: RegistrationRow): RegistrationRow => ({ ...row, dueAt: null, expiresAt: 1 });

/** The route, told below that base too. @param known as it was before */
const toldBelow = (route: StoredRoute, base: string, known?: StoredRoute): StoredRoute => ({
  ...route,
  bases: [...new Set([...(known?.bases ?? []), base])],
});

export function routesOf(options: RouteOptions): Routes {
  const { registrations, baseUrls, allowLoopback, secrets, hashes, randomBytes } = options;

  const [base] = baseUrls;
  const credentialsOf = async (route: StoredRoute): Promise<string | undefined> =>
    route.sealed === undefined ? undefined : unseal(secrets, placeOf(route), route.sealed);
  const senderOf = async (route: StoredRoute): Promise<Sender> => {
    const credentials = await credentialsOf(route);
    if (credentials === undefined || route.scheme === 'signature') return sellerIn(route);
    return { ...sellerIn(route), auth: AUTH[route.scheme](credentials) };
  };
  const known = rememberedRoutes(options.now);
  const adopted = adoptedUrls(options, senderOf);

  const routeOf = async (seller: Seller, scheme: RouteKind): Promise<Route> => {
    const { agentUrl } = seller;
    const token = makeRouteToken(secrets, hashes, randomBytes);
    const made: StoredRoute = { ...sellerIn(seller), scheme, random: token.id, secretId: token.secretId };
    // Before the step, which must be synchronous; unused if the seller has a route already.
    const sealed =
      scheme === 'signature'
        ? {}
        : {
            sealed: await seal(
              secrets,
              placeOf(made),
              encodeBase64Url(randomBytes(CREDENTIAL_BYTES)),
              randomBytes,
            ),
          };
    const route = await registrations.run(agentUrl, (rows): StoredRoute => {
      const found = rows.get('route', scheme);
      const known = found ? routeIn(found) : { ...made, ...sealed };
      const is = toldBelow({ ...known, ...sellerIn(seller) }, base, known);
      const row = rowOf(agentUrl, scheme, is);
      if (found?.value !== row.value) rows.save(row);
      return is;
    });
    const id = route.random ?? '';
    const isWritten = await registrations.run('', (rows) => {
      const row = rowOf('', id, route);
      if (rows.get('route', id)?.value === row.value) return false;
      rows.save(row);
      return true;
    });
    known.forget(id);
    // The seller was deleted between the two steps: this URL is removed, and a new one made.
    if (isWritten && !(await isOwn(agentUrl, scheme, id))) {
      await drop('', [id]);
      return routeOf(seller, scheme);
    }
    const of = routeTokenOf(secrets, hashes, { id, secretId: route.secretId ?? '' });
    if (!of) {
      throw new ConfigError(
        `secrets: the URL of ${agentUrl} was made by an unknown secret (${route.secretId}). Add it at the end of the list.`,
      );
    }
    const credentials = await credentialsOf(route);
    return {
      url: `${base}/${of.text}`,
      urls: baseUrls.map((url) => `${url}/${of.text}`),
      ...(scheme !== 'signature' &&
        credentials !== undefined && { authentication: { scheme: LEGACY[scheme], credentials } }),
    };
  };

  /** Whether the seller's own row has this token. */
  const isOwn = (agentUrl: string, scheme: RouteKind, id: string): Promise<boolean> =>
    registrations.run(agentUrl, (rows) => {
      const row = rows.get('route', scheme);
      return row !== undefined && routeIn(row).random === id;
    });

  /** Deletes the rows that `which` selects. @returns them. */
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
    return known.put(id, row ? [await senderOf(routeIn(row))] : []);
  };

  return {
    base,
    routeOf: async (seller, scheme = 'signature') => {
      requireSeller(seller, scheme, allowLoopback);
      return routeOf(seller, scheme);
    },
    reportsRouteOf: async (seller) => {
      requireSeller(seller, 'signature', allowLoopback);
      return routeOf(seller, 'reports');
    },
    senders: (url) => {
      const token = readRouteToken(secrets, hashes, url.pathname.slice(url.pathname.lastIndexOf('/') + 1));
      if (token) return known.get(token.id) ?? lookUp(token.id);
      // Forged, or of a secret that was removed: the store is not read.
      return hasTokenForm(url.pathname) ? [] : adopted.at(url.pathname + url.search);
    },
    adopt: async (seller, url) => {
      requireSeller(seller, 'signature', allowLoopback);
      const { above, pathname, search } = below(baseUrls, url);
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
      const id = `${path} ${seller.agentUrl}`;
      await registrations.run('', (rows) => {
        const found = rows.get('route', id);
        const route: StoredRoute = { ...sellerIn(seller), scheme: 'signature', path };
        rows.save(rowOf('', id, toldBelow(route, above, found && routeIn(found))));
      });
      await adopted.refresh();
    },
    forget: async (agentUrl) => {
      // The seller's own rows first: a concurrent routeOf sees that they are gone. Then all rows that lead to the seller, also
      // those of an interrupted call.
      const ids = (await drop(agentUrl, [...ROUTE_KINDS, SELLER_ROW_ID])).flatMap(
        (row) => readable(row)?.random ?? [],
      );
      for await (const row of allRows(registrations, OF_NO_SENDER)) {
        if (readable(row)?.agentUrl === agentUrl) ids.push(row.id);
      }
      await drop('', ids);
      // Rows that were made in between, and whose URL has just been removed.
      await drop(agentUrl, ROUTE_KINDS, (row) => ids.includes(readable(row)?.random ?? ''));
      for (const id of ids) known.forget(id);
      await adopted.refresh();
    },
    unreadable: async () => {
      let count = 0;
      for await (const row of allRows(registrations, OF_NO_SENDER)) {
        const { secretId, sealed } = routeIn(row);
        const needed = [secretId, sealed === undefined ? undefined : secretIdOf(sealed)];
        if (needed.some((id) => id !== undefined && !secrets.named(id))) count += 1;
      }
      return count;
    },
    rewrap: async () => {
      let rewrapped = 0;
      let needed = 0;
      const damage = await eachRow(registrations, OF_NO_SENDER, async ({ id, value }) => {
        const route = routeIn({ value });
        const { agentUrl, scheme, secretId } = route;
        if (secretId !== undefined && secretId !== secrets.newest.id) needed += 1;
        const credentials = isOlder(secrets, route.sealed) ? await credentialsOf(route) : undefined;
        if (credentials === undefined) return;
        const sealed = await seal(secrets, placeOf(route), credentials, randomBytes);
        // The same text in both rows of the route. A row that was written meanwhile stays as it is.
        for (const [sender, place] of [
          [agentUrl, scheme],
          ['', id],
        ] as const) {
          await registrations.run(sender, (rows) => {
            const row = rows.get('route', place);
            if (row && routeIn(row).sealed === route.sealed) {
              rows.save(rowOf(sender, place, { ...routeIn(row), sealed }));
            }
          });
        }
        known.forget(id);
        rewrapped += 1;
      });
      return { rewrapped, needed, ...damage };
    },
  };
}

/** Routes by their tokens, and adopted URLs. */
const OF_NO_SENDER = { kind: 'route', sender: '' } as const;

async function adoptedRows(registrations: StoreRegistrations): Promise<readonly RegistrationRow[]> {
  const rows: RegistrationRow[] = [];
  for await (const row of allRows(registrations, { ...OF_NO_SENDER, list: ADOPTED })) rows.push(row);
  return rows;
}

/** Adopted URLs, by path and query. */
function adoptedUrls(
  { registrations, now, sleep }: RouteOptions,
  senderOf: (route: StoredRoute) => Promise<Sender>,
): {
  readonly at: (path: string) => Sender[] | Promise<Sender[]>;
  readonly refresh: () => Promise<void>;
} {
  let byPath: ReadonlyMap<string, Sender[]> = new Map();
  /** When the read of `byPath` began, and when the last read began. */
  let readAt = -Infinity;
  let startedAt = -Infinity;
  /** How many reads have begun; and the number of the newest that has ended, with its error. */
  let begun = 0;
  let ended: { readonly nth: number; readonly error?: unknown } = { nth: 0 };
  const refresh = async (): Promise<void> => {
    const at = (startedAt = now());
    const nth = (begun += 1);
    try {
      const found = new Map<string, Sender[]>();
      for (const row of await adoptedRows(registrations)) {
        const route = routeIn(row);
        const path = route.path ?? '';
        found.set(path, [...(found.get(path) ?? []), await senderOf(route)]);
      }
      // Of two concurrent reads the one that began later counts.
      if (at >= readAt) [byPath, readAt] = [found, at];
      if (nth > ended.nth) ended = { nth };
    } catch (error) {
      if (nth > ended.nth) ended = { nth, error };
      throw error;
    }
  };
  /**
   * Waits for a read that begins from now on, so that URLs adopted before the delivery are found. It polls instead of sharing a
   * promise with another delivery: on some platforms that never resolves (`requestsMayShare`).
   */
  const nextRefresh = async (): Promise<void> => {
    const since = begun;
    let waitMs = startedAt + REFRESH_MS - now();
    do {
      await sleep(Math.max(0, waitMs));
      waitMs = startedAt + REFRESH_MS - now();
      if (ended.nth > since) break;
      if (waitMs <= 0) await refresh();
      // A read that began after this delivery is running.
      else if (begun > since) waitMs = Math.min(waitMs, LOOK_MS);
    } while (ended.nth <= since);
    if ('error' in ended) throw ended.error;
  };
  return {
    at: (path) => {
      const found = now() - readAt < ROUTE_KEPT_MS ? byPath.get(path) : undefined;
      return found ?? soon(nextRefresh()).then(() => byPath.get(path) ?? []);
    },
    refresh,
  };
}
