// Steps 1 to 3 of key discovery: from a sender, through brand.json, to the URL of its JWKS (verification.md §5.1 to
// §5.3, §5.20).
// Called by `sender-keys.ts`. The command `keys check` shows the near misses: listed URLs that almost equal the
// agent's.

import type { Alarm, RaiseAlarm } from '../shared/alarms.ts';
import { putBounded } from '../shared/bounded.ts';
import { MAX_URL_BYTES, printableName, quoted } from '../codec/printable.ts';
import { placeName, type SenderEntry } from '../config/sender-entry.ts';
import { entriesOf } from './agent-entry.ts';
import { type BrandJson, brandJsonKind } from './brand-json.ts';
import type { CopyResult, DocumentKind, FetchMoment } from './document.ts';
import { type BrandFiles, mayList, nextChange, registrableBrandJsonUrl } from './operators.ts';

/** The maximum number of near misses (listed URLs that almost equal the agent's URL) in a message. */
const MAX_SHOWN = 4;
/** The maximum number of listed URLs that the search for near misses compares, which takes about 20 ms. */
const MAX_LOOKED_AT = 20_000;

/** A listed URL that differs from the agent's URL only by a usual mistake, so it was probably meant for this agent. */
interface NearMiss {
  /** The URL as listed, made safe for a log. */
  readonly url: string;
  /** The names of the URL parts that differ, e.g. `trailing slash`. */
  readonly differsIn: readonly string[];
}

interface UrlParts {
  readonly scheme: string;
  readonly host: string;
  readonly port: string;
  readonly path: string;
  readonly query: string;
  readonly fragment: string;
}

/** Splits a URL by RFC 3986, appendix B, and the port too. A URL parser would correct the mistakes to be found. */
const URL_PARTS = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*?)(:\d*)?(\/[^?#]*)?(\?[^#]*)?(#.*)?$/i;

/** Removes trailing slashes in a loop, because `/\/+$/` would take quadratic time on a counterparty's text. */
function withoutSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

const sameCase = (a: string, b: string): boolean => a === b || a.toLowerCase() !== b.toLowerCase();

/** Usual mistakes in URLs: the name of each, and a test that is true if two URLs differ by it. */
const DIFFERENCES: readonly (readonly [string, (a: UrlParts, b: UrlParts) => boolean])[] = [
  ['scheme', (a, b) => a.scheme.toLowerCase() !== b.scheme.toLowerCase()],
  ['port', (a, b) => a.port !== b.port],
  ['trailing slash', (a, b) => a.path !== b.path && withoutSlashes(a.path) === withoutSlashes(b.path)],
  ['query', (a, b) => a.query !== b.query],
  ['fragment', (a, b) => a.fragment !== b.fragment],
  [
    'case',
    (a, b) =>
      !sameCase(a.scheme, b.scheme) ||
      !sameCase(a.host, b.host) ||
      !sameCase(withoutSlashes(a.path), withoutSlashes(b.path)),
  ],
];

/**
 * Returns the listed URLs that differ from the configured one only by a usual mistake: trailing slash, scheme, upper
 * case, port, query or fragment. The result is only for messages: such URLs do not match (verification.md §5.2).
 */
export function nearMisses(agentUrl: string, listed: Iterable<string>): NearMiss[] {
  const wanted = normalized(agentUrl);
  const misses: NearMiss[] = [];
  let lookedAt = 0;
  for (const url of listed) {
    lookedAt += 1;
    if (misses.length === MAX_SHOWN || lookedAt > MAX_LOOKED_AT) break;
    if (normalized(url) === wanted)
      misses.push({ url: loggable(url), differsIn: differences(agentUrl, url) });
  }
  return misses;
}

/** Returns text for a message: each near miss with the URL parts in which it differs. */
export function nearMissText(misses: readonly NearMiss[]): string {
  return misses.map(({ url, differsIn }) => `${url} (differs in ${differsIn.join(', ')})`).join(', ');
}

/** Returns host and path without the usual mistakes: in lower case, without root dot and trailing slashes. */
function normalized(url: string): string {
  if (!URL.canParse(url)) return url.trim().toLowerCase();
  const { hostname, pathname } = new URL(url);
  return `${hostname.replace(/\.$/, '')}${withoutSlashes(pathname)}`.toLowerCase();
}

function differences(wanted: string, listed: string): string[] {
  const [a, b] = [partsOf(wanted), partsOf(listed)];
  const found = a && b ? DIFFERENCES.filter(([, differs]) => differs(a, b)).map(([name]) => name) : [];
  // If no usual mistake fits, the URLs differ in white space, percent-encoding, dot segments or a root dot. A reader of
  // both can see that.
  return found.length > 0 ? found : ['spelling'];
}

function partsOf(url: string): UrlParts | undefined {
  const match = URL_PARTS.exec(url);
  if (match === null) return undefined;
  const [, scheme = '', host = '', port = '', path = '', query = '', fragment = ''] = match;
  return { scheme, host, port, path, query, fragment };
}

/** Returns the URL as it can be logged: unchanged if short and printable, otherwise shortened and quoted. */
function loggable(url: string): string {
  return url.length <= 256 && printable(url) ? url : JSON.stringify(printableName(url));
}

function printable(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

/** Loads the brand.json at a URL. Callers pass a function that may fetch, or one that only reads the cache. */
export type LoadBrandJson = (
  kind: DocumentKind<BrandJson>,
  url: string,
) => CopyResult<BrandJson> | Promise<CopyResult<BrandJson>>;

type Locate = (sender: SenderEntry, load: LoadBrandJson) => Promise<Location>;

/** Finds the URL of a sender's JWKS: `locate` may wait for fetches, `cachedUri` never waits. */
export interface Locator {
  readonly locate: Locate;
  /**
   * Returns, without waiting, the `jwks_uri` that `locate` found before. Undefined if there is none, or if `cached`
   * lacks one of the brand.json copies that led to it; then call `locate`.
   * @param cached returns the cached brand.json at a URL.
   */
  readonly cachedUri: (
    sender: SenderEntry,
    cached: (url: string) => BrandJson | undefined,
  ) => string | undefined;
  /** Returns the URL where the last search for the sender's brand.json began; before the first, where it will begin. */
  readonly startOf: (sender: SenderEntry) => string | undefined;
}

/** The URL of the host's brand.json, and the fetch that got a 404; the registrable domain's file is used instead. */
interface AbsentFile {
  readonly url: string;
  readonly absence: FetchMoment;
}

/** The first brand.json of a search, and the URL at which it was loaded. */
interface Begun {
  readonly first: CopyResult<BrandJson>;
  readonly start: string;
  /** The reason why neither the host's nor the registrable domain's brand.json could be loaded; absent if one could. */
  readonly trouble?: string;
  readonly insteadOf?: AbsentFile;
}

interface LocateOptions {
  readonly allowLoopback: boolean;
  readonly raiseAlarm: RaiseAlarm;
  /** Returns the current time, Unix ms. Operators are authorized for a limited time, so a location depends on it. */
  readonly now: () => number;
}

/** The maximum number of first URLs of senders that are remembered, to be compared with later URLs. */
const MAX_LEARNED = 10_000;

/** Returns only the `locate` function of `createLocator`. */
export function createLocate(options: LocateOptions): Locate {
  return createLocator(options).locate;
}

/**
 * Performs steps 1 to 3 of key discovery (verification.md §5.1 to §5.3). It loads brand.json, follows its pointer at
 * most once, finds the entry with the agent URL, and takes its `jwks_uri`. Each fetched copy is evaluated once, so it
 * raises its alarms once.
 */
export function createLocator(options: LocateOptions): Locator {
  const judgements = createLocationCache(options);
  const named = brandJsonKind(options.allowLoopback);
  const wellKnown: typeof named = { ...named, elsewhere: registrableBrandJsonUrl };
  const starts = new WeakMap<SenderEntry, string>();
  const found = new WeakMap<SenderEntry, string>();
  const noteMoved = createMoveWatch(options.raiseAlarm, 'jwks_uri', 'is');
  const notePointer = createMoveWatch(options.raiseAlarm, 'brand.json', 'points to');
  // A seller may declare a second URL for its brand.json. Each file may name its own JWKS, so a changed `jwks_uri` is
  // looked for in each file separately.
  const declaredAt = ({ declared }: SenderEntry, start: string): string | undefined => declared && start;
  const noteMovedAt = (sender: SenderEntry, start: string, jwksUri: string): void =>
    noteMoved(sender.agentUrl, jwksUri, declaredAt(sender, start));
  /** Loads the first brand.json: from the agent's host or, if that answers 404, from the registrable domain. */
  const begun = async (sender: SenderEntry, own: string, load: LoadBrandJson): Promise<Begun> => {
    const asksOn = sender.brandJsonUrl === undefined && sender.edition.asksRegistrableDomain;
    const first = await load(asksOn ? wellKnown : named, own);
    if (first.ok || first.elsewhere === undefined) return { first, start: own };
    const { url, absence } = first.elsewhere;
    const second = await load(named, url);
    const trouble = second.ok ? {} : { trouble: `${second.reason} (${own} is absent)` };
    return { first: second, start: url, insteadOf: { url: own, absence }, ...trouble };
  };
  const locate: Locate = async (sender, load) => {
    const own = starts.get(sender) ?? brandJsonUrl(sender, options.allowLoopback);
    if (own === undefined) return { ok: false, renewable: false, reason: 'the agent URL is not a URL' };
    starts.set(sender, own);
    const { first, start, trouble, insteadOf } = await begun(sender, own, load);
    if (!first.ok) return missing(start, trouble ?? first.reason);
    found.set(sender, start);
    const configured = first.copy.value;
    if (configured.next !== undefined)
      notePointer(sender.agentUrl, configured.next, declaredAt(sender, start));
    const at = configured.next ?? start;
    const answer = configured.next === undefined ? first : await load(named, at);
    if (!answer.ok) return missing(at, answer.reason);
    const location = await judgements.find(sender, { configured, listing: answer.copy.value, at }, start);
    if (location.ok) noteMovedAt(sender, start, location.jwksUri);
    return location.ok && insteadOf ? { ...location, insteadOf } : location;
  };
  const cachedUri: Locator['cachedUri'] = (sender, cached) => {
    const start = starts.get(sender);
    const configured = start === undefined ? undefined : cached(start);
    if (start === undefined || configured === undefined) return undefined;
    const listing = configured.next === undefined ? configured : cached(configured.next);
    const location = listing && judgements.cached(sender, { configured, listing }, start);
    if (location?.ok !== true) return undefined;
    noteMovedAt(sender, start, location.jwksUri);
    return location.jwksUri;
  };
  const startOf: Locator['startOf'] = (sender) =>
    found.get(sender) ?? brandJsonUrl(sender, options.allowLoopback);
  return { locate, cachedUri, startOf };
}

function missing(at: string, reason: string): Location {
  return { ok: false, renewable: false, reason: `brand.json at ${at}: ${reason}` };
}

/** Returns the URL of a sender's brand.json: as configured, otherwise at the host of the agent URL. */
export function brandJsonUrl(sender: SenderEntry, allowLoopback: boolean): string | undefined {
  if (sender.brandJsonUrl !== undefined) return sender.brandJsonUrl;
  if (!URL.canParse(sender.agentUrl)) return undefined;
  const { protocol, host } = new URL(sender.agentUrl);
  const scheme = allowLoopback && protocol === 'http:' ? 'http:' : 'https:';
  return `${scheme}//${host}/.well-known/brand.json`;
}

/**
 * Returns a function to be called with each current URL of a sender's document. It raises an alarm when the URL changes
 * to one that differs from the first. The function's argument `of` tells several such URLs of one sender apart.
 * @param what the subject of the alarm's text, before `verb`: e.g. `brand.json` `points to` the URL.
 */
export function createMoveWatch(
  raiseAlarm: RaiseAlarm,
  what: 'jwks_uri' | 'brand.json' | 'adagents.json',
  verb: 'is' | 'points to' | 'is declared at',
): (agentUrl: string, url: string, of?: string) => void {
  const learned = new Map<string, { readonly first: string; last: string }>();
  const member = what === 'jwks_uri' ? 'jwksUri' : 'url';
  return (agentUrl, url, of) => {
    const key = of === undefined ? agentUrl : `${agentUrl} ${of}`;
    const known = learned.get(key);
    if (known === undefined) {
      putBounded(learned, key, { first: url, last: url }, MAX_LEARNED);
      return;
    }
    if (known.last === url) return;
    known.last = url;
    if (known.first === url) return;
    const [now, first] = [url, known.first].map((one) => printableName(one, MAX_URL_BYTES));
    const at = of === undefined ? '' : ` at ${of}`;
    const message = `${agentUrl}: its ${what}${at} ${verb} ${now}; first learned was ${first}.`;
    raiseAlarm({ code: 'jwks_uri_moved', message, sender: agentUrl, first: known.first, [member]: url });
  };
}

/**
 * The location of a sender's JWKS. `renewable` is true if brand.json was readable but gave no usable JWKS; then a
 * newer copy of the file may give one.
 */
export type Location =
  | { readonly ok: true; readonly jwksUri: string; readonly insteadOf?: AbsentFile }
  | { readonly ok: false; readonly renewable: boolean; readonly reason: string };

interface LocationFinding {
  readonly location: Location;
  readonly alarm?: Alarm;
}

interface CachedLocation {
  readonly configured: BrandJson;
  readonly location: Location;
  /** The time (Unix ms) until which the location is valid: the next begin or end of an operator's authorization. */
  readonly until: number;
}

/** Remembers the JWKS location that each brand.json copy gave for a sender, so each copy is evaluated once. */
interface LocationCache {
  /** Returns the location found before in exactly these copies. @param start URL where the search began. */
  cached(
    sender: SenderEntry,
    files: Pick<BrandFiles, 'configured' | 'listing'>,
    start: string,
  ): Location | undefined;
  /** Returns the cached location. If there is none, evaluates the files, caches the location and raises its alarm. */
  find(sender: SenderEntry, files: BrandFiles, start: string): Promise<Location>;
}

function createLocationCache({ raiseAlarm, now }: LocateOptions): LocationCache {
  const judged = new WeakMap<BrandJson, Map<string, CachedLocation>>();
  const keyOf = (sender: SenderEntry, start: string): string =>
    `${sender.edition.agentMatch} ${placeName(sender)} ${sender.declared?.keyOrigin ?? ''} ${start}`;
  const before: LocationCache['cached'] = (sender, { configured, listing }, start) => {
    const known = judged.get(listing)?.get(keyOf(sender, start));
    return known?.configured === configured && now() < known.until ? known.location : undefined;
  };
  return {
    cached: before,
    find: async (sender, files, start) => {
      const [known, at] = [before(sender, files, start), now()];
      if (known !== undefined) return known;
      const { location, alarm } = await findLocation(sender, files, at);
      // Meanwhile another delivery may have evaluated the same files and raised the alarm. The cache holds results,
      // not promises, because on some runtimes a request must not wait for another request's I/O.
      if (alarm !== undefined && before(sender, files, start) === undefined) raiseAlarm(alarm);
      const locations = judged.get(files.listing) ?? new Map<string, CachedLocation>();
      const until = nextChange(files, at);
      locations.set(keyOf(sender, start), { configured: files.configured, location, until });
      judged.set(files.listing, locations);
      return location;
    },
  };
}

async function findLocation(sender: SenderEntry, files: BrandFiles, now: number): Promise<LocationFinding> {
  const { agentUrl } = sender;
  const { listing: brand, at } = files;
  const refuse = (code: Alarm['code'], reason: string, details?: object): LocationFinding => ({
    location: { ok: false, renewable: true, reason },
    alarm: { code, message: `${agentUrl}: ${reason}.`, sender: agentUrl, url: at, ...details },
  });
  if (brand.next !== undefined) {
    return refuse(
      'agent_not_listed',
      `brand.json at ${at} points elsewhere again; only one such step is allowed`,
    );
  }
  const { entries, isExact } = entriesOf(sender, brand);
  if (entries === undefined) {
    return refuse(
      'agent_not_listed',
      `brand.json at ${at} has too many urls that may be spellings of this one`,
    );
  }
  if (entries.length === 0) {
    const misses = nearMisses(agentUrl, brand.agents.keys());
    const hint = misses.length === 0 ? '' : `; it does list ${nearMissText(misses)}`;
    return refuse('agent_not_listed', `brand.json at ${at} has no agent with this url${hint}`, {
      nearMisses: misses.map(({ url }) => url),
    });
  }
  if (!(await mayList(sender, files, now))) {
    return refuse(
      'agent_not_listed',
      `brand.json at ${at} does not list this domain in authorized_operators`,
    );
  }
  const uris = new Set(entries.map((entry) => absoluteJwksUri(entry.jwksUri, agentUrl)));
  const [jwksUri] = uris;
  const types = new Set(isExact ? [] : entries.map(({ type }) => type));
  if (uris.size > 1 || types.size > 1)
    return refuse('agent_not_listed', `brand.json at ${at} has several entries that differ`);
  if (jwksUri === undefined) {
    return refuse('key_document_invalid', `brand.json at ${at} has a jwks_uri that is not an absolute URL`);
  }
  const foreign = foreignOrigin(sender, jwksUri);
  if (foreign !== undefined)
    return refuse('agent_not_listed', `brand.json at ${at} has a jwks_uri at another host ${foreign}`);
  return { location: { ok: true, jwksUri } };
}

/** Returns text for the alarm if the JWKS is at another host than the seller declares; otherwise undefined. */
function foreignOrigin({ declared }: SenderEntry, jwksUri: string): string | undefined {
  const { keyOrigin } = declared ?? {};
  const isForeign = keyOrigin !== undefined && new URL(jwksUri).host !== hostAndPort(keyOrigin);
  return isForeign ? `than the seller declares in key_origins (${quoted(keyOrigin)})` : undefined;
}

const hostAndPort = (origin: string): string | undefined =>
  URL.canParse(origin) ? new URL(origin).host : undefined;

/**
 * Returns the JWKS URL of an agent's entry. If the entry has no `jwks_uri`, returns the well-known path at the origin
 * of the agent URL. Undefined if `jwks_uri` is not an absolute URL.
 */
function absoluteJwksUri(jwksUri: unknown, agentUrl: string): string | undefined {
  if (jwksUri !== undefined) {
    return typeof jwksUri === 'string' && URL.canParse(jwksUri) ? new URL(jwksUri).href : undefined;
  }
  return URL.canParse(agentUrl) ? new URL('/.well-known/jwks.json', agentUrl).href : undefined;
}
