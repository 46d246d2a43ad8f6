// Steps 1 to 3: from a sender to the URL of its JWKS, through brand.json (verification.md §5.1 to §5.3,
// §5.20).
// Called by `sender-keys.ts`; `keys check` of the command line shows its near misses.

import type { Alarm, RaiseAlarm } from '../shared/alarms.ts';
import { putBounded } from '../shared/bounded.ts';
import { MAX_URL_BYTES, printableName, quoted } from '../codec/printable.ts';
import { placeName, type SenderEntry } from '../config/sender-entry.ts';
import { entriesOf } from './agent-entry.ts';
import { type BrandJson, brandJsonKind } from './brand-json.ts';
import type { CopyResult, DocumentKind, FetchMoment } from './document.ts';
import { type BrandFiles, mayList, nextChange, registrableBrandJsonUrl } from './operators.ts';

/** Most near misses in a message: enough to see the mistake. */
const MAX_SHOWN = 4;
/** Most listed URLs that are compared in the search for near misses: some 20 ms. */
const MAX_LOOKED_AT = 20_000;

/** A listed URL that was probably meant. */
interface NearMiss {
  /** The URL as listed, made safe for a log. */
  readonly url: string;
  /** Parts that differ, e.g. `trailing slash`. */
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

/**
 * Matches RFC 3986, appendix B, with the port apart, on the text as written: a parser would repair the very
 * mistake.
 */
const URL_PARTS = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*?)(:\d*)?(\/[^?#]*)?(\?[^#]*)?(#.*)?$/i;

/** Removes trailing slashes in a loop: `/\/+$/` takes quadratic time, and the text is a counterparty's. */
function withoutSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

const sameCase = (a: string, b: string): boolean => a === b || a.toLowerCase() !== b.toLowerCase();

/** Usual mistakes in URLs, and how to recognise each. */
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
 * URLs of a document that differ from the configured one by a usual mistake: a trailing slash, the scheme,
 * upper case, the port, the query. Matching itself follows verification.md §5.2.
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

/** Text for a message: each URL with the parts in which it differs. */
export function nearMissText(misses: readonly NearMiss[]): string {
  return misses.map(({ url, differsIn }) => `${url} (differs in ${differsIn.join(', ')})`).join(', ');
}

/** Host and path without the parts that are easily mistaken. */
function normalized(url: string): string {
  if (!URL.canParse(url)) return url.trim().toLowerCase();
  const { hostname, pathname } = new URL(url);
  return `${hostname.replace(/\.$/, '')}${withoutSlashes(pathname)}`.toLowerCase();
}

function differences(wanted: string, listed: string): string[] {
  const [a, b] = [partsOf(wanted), partsOf(listed)];
  const found = a && b ? DIFFERENCES.filter(([, differs]) => differs(a, b)).map(([name]) => name) : [];
  // White space, percent-encoding, dot segments or a root dot: visible if the two are compared side by side.
  return found.length > 0 ? found : ['spelling'];
}

function partsOf(url: string): UrlParts | undefined {
  const match = URL_PARTS.exec(url);
  if (match === null) return undefined;
  const [, scheme = '', host = '', port = '', path = '', query = '', fragment = ''] = match;
  return { scheme, host, port, path, query, fragment };
}

/** The whole URL if a log can take it: it is as long as the configured one, give or take a query. */
function loggable(url: string): string {
  return url.length <= 256 && printable(url) ? url : JSON.stringify(printableName(url));
}

function printable(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

/** Loads the brand.json at a URL, from the network or from the cache alone, as the caller chooses. */
export type LoadBrandJson = (
  kind: DocumentKind<BrandJson>,
  url: string,
) => CopyResult<BrandJson> | Promise<CopyResult<BrandJson>>;

type Locate = (sender: SenderEntry, load: LoadBrandJson) => Promise<Location>;

/** Two ways to a sender's JWKS: with and without waiting. */
export interface Locator {
  readonly locate: Locate;
  /**
   * The `jwks_uri` that `locate` found in copies that it has judged before, without waiting. Undefined if
   * `locate` has to be asked.
   * @param cached returns the cached brand.json at a URL.
   */
  readonly cachedUri: (
    sender: SenderEntry,
    cached: (url: string) => BrandJson | undefined,
  ) => string | undefined;
  /** Returns the URL at which the search for the sender's brand.json began last, or will begin. */
  readonly startOf: (sender: SenderEntry) => string | undefined;
}

/** The host's file that was answered with 404: the registrable domain's replaces it. */
interface AbsentFile {
  readonly url: string;
  readonly absence: FetchMoment;
}

/** The file where a search begins, and its URL. */
interface Begun {
  readonly first: CopyResult<BrandJson>;
  readonly start: string;
  /** The reason why no file could be fetched, if two were asked for. */
  readonly trouble?: string;
  readonly insteadOf?: AbsentFile;
}

interface LocateOptions {
  readonly allowLoopback: boolean;
  readonly raiseAlarm: RaiseAlarm;
  /** Unix ms; operators are authorized for a limited time. */
  readonly now: () => number;
}

/** Most senders whose first `jwks_uri` is remembered: as many as documents. */
const MAX_LEARNED = 10_000;

/** Makes `locate` alone; see `createLocator`. */
export function createLocate(options: LocateOptions): Locate {
  return createLocator(options).locate;
}

/**
 * Performs steps 1 to 3 (verification.md §5.1 to §5.3). A brand.json that points elsewhere is followed once.
 * Then comes the entry with the agent URL, then its `jwks_uri`. Each copy is judged once, and its alarms are
 * raised once.
 */
export function createLocator(options: LocateOptions): Locator {
  const judgements = createLocationCache(options);
  const named = brandJsonKind(options.allowLoopback);
  const wellKnown: typeof named = { ...named, elsewhere: registrableBrandJsonUrl };
  const starts = new WeakMap<SenderEntry, string>();
  const found = new WeakMap<SenderEntry, string>();
  const noteMoved = createMoveWatch(options.raiseAlarm, 'jwks_uri', 'is');
  const notePointer = createMoveWatch(options.raiseAlarm, 'brand.json', 'points to');
  // Each place of a seller's keys has a JWKS of its own.
  const declaredAt = ({ declared }: SenderEntry, start: string): string | undefined => declared && start;
  const noteMovedAt = (sender: SenderEntry, start: string, jwksUri: string): void =>
    noteMoved(sender.agentUrl, jwksUri, declaredAt(sender, start));
  /** Loads the first file: that of the agent's host, or of its registrable domain. */
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

/**
 * Step 1: the URL at the operator domain, which is the host of the agent URL, unless configuration names
 * another place.
 */
export function brandJsonUrl(sender: SenderEntry, allowLoopback: boolean): string | undefined {
  if (sender.brandJsonUrl !== undefined) return sender.brandJsonUrl;
  if (!URL.canParse(sender.agentUrl)) return undefined;
  const { protocol, host } = new URL(sender.agentUrl);
  const scheme = allowLoopback && protocol === 'http:' ? 'http:' : 'https:';
  return `${scheme}//${host}/.well-known/brand.json`;
}

/**
 * Reports a URL other than the one first learned, once for each new value.
 * @param what the document or member that has the URL. If a sender has several, the function's `of` says
 * which one.
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

/** The location of a sender's JWKS. `renewable`: brand.json could be read, and a newer copy may differ. */
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
  /** Unix ms at which an operator's authorization begins or ends. */
  readonly until: number;
}

/** Locations that brand.json gives for a sender's JWKS, judged once per copy. */
interface LocationCache {
  /** The location that was found for exactly these copies before. @param start URL where the search began. */
  cached(
    sender: SenderEntry,
    files: Pick<BrandFiles, 'configured' | 'listing'>,
    start: string,
  ): Location | undefined;
  /** As `cached`, or a new judgement, whose alarm is raised. */
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
      const known = before(sender, files, start);
      if (known !== undefined) return known;
      const { location, alarm } = await findLocation(sender, files, now());
      // Another delivery may have judged the files meanwhile. The result is kept, not its promise: if
      // requests own their I/O, none may wait for another's.
      if (alarm !== undefined && before(sender, files, start) === undefined) raiseAlarm(alarm);
      const locations = judged.get(files.listing) ?? new Map<string, CachedLocation>();
      const until = nextChange(files, now());
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

/** Explains that the JWKS is at another host than the seller declares. */
function foreignOrigin({ declared }: SenderEntry, jwksUri: string): string | undefined {
  const { keyOrigin } = declared ?? {};
  const isForeign = keyOrigin !== undefined && new URL(jwksUri).host !== hostAndPort(keyOrigin);
  return isForeign ? `than the seller declares in key_origins (${quoted(keyOrigin)})` : undefined;
}

const hostAndPort = (origin: string): string | undefined =>
  URL.canParse(origin) ? new URL(origin).host : undefined;

/** Step 3: the entry's `jwks_uri`, or the well-known path at the origin of the agent URL. */
function absoluteJwksUri(jwksUri: unknown, agentUrl: string): string | undefined {
  if (jwksUri !== undefined) {
    return typeof jwksUri === 'string' && URL.canParse(jwksUri) ? new URL(jwksUri).href : undefined;
  }
  return URL.canParse(agentUrl) ? new URL('/.well-known/jwks.json', agentUrl).href : undefined;
}
