import { fieldValue, type HeaderFields } from '../../delivery.ts';
import type { Cause, Change } from './case.ts';

/** Scheme, authority, path and query (with its `?`) of an absolute URL. */
export interface UrlParts {
  readonly scheme: string;
  readonly authority: string;
  readonly path: string;
  readonly query: string;
}

/** What the forms are made from. */
export interface UrlEvidence {
  /** As configured. */
  readonly parts: UrlParts;
  readonly headers: HeaderFields;
  /** Request target as captured. */
  readonly target: string;
  /** Authority of the captured URL, where it had one. */
  readonly captured: string | undefined;
}

/** One choice for a part of the URL: as configured (no change), or as the seller may have signed it. */
export interface Choice {
  readonly text: string;
  readonly change?: Change;
}

/** The text of a part, and in words where it comes from. */
type Candidate = readonly [text: string | undefined, origin?: string];

/** One way in which a part of the URL may have been signed. */
interface Form {
  readonly part: keyof UrlParts;
  readonly cause: Cause;
  readonly made: (evidence: UrlEvidence) => readonly Candidate[];
  /** What the sentence calls it, if not by its part. */
  readonly noun?: string;
}

const URL_PARTS = /^(https?):\/\/([^/?#]*)([^?#]*)(\?[^#]*)?/i;

/** Takes the text apart, as `URL` would repair what went wrong. */
export function partsOf(url: string): UrlParts | undefined {
  const match = URL_PARTS.exec(url);
  if (!match) return undefined;
  const [, scheme = '', authority = '', path = '', query = ''] = match;
  return { scheme: scheme.toLowerCase(), authority, path: path || '/', query };
}

const hostOf = (authority: string): string => authority.replace(/:\d*$/, '');
const proxyPasses = (name: string): string => `, which your proxy passes on in ${name}`;

function forwardedHosts({ headers }: UrlEvidence): Candidate[] {
  return ['x-forwarded-host', 'x-original-host', 'x-forwarded-server', 'forwarded'].map((name) => {
    const field = fieldValue(headers, name) ?? '';
    const value = name === 'forwarded' ? /host="?([^";,]*)/i.exec(field)?.[1] : field.split(',')[0]?.trim();
    return [value, proxyPasses(name)];
  });
}

/** Authorities that the capture shows, and the configured one with or without `www.`. */
function authorities({ parts: { authority }, headers, captured }: UrlEvidence): Candidate[] {
  const www = authority.startsWith('www.') ? authority.slice('www.'.length) : `www.${authority}`;
  return [[fieldValue(headers, 'host')], [captured], [www]];
}

/** Ports that proxies and development servers listen on. */
const COMMON_PORTS = ['', ':443', ':80', ':8443', ':8080', ':8000', ':5000', ':3000'];

function ports(evidence: UrlEvidence): Candidate[] {
  const { parts, headers } = evidence;
  const host = hostOf(parts.authority);
  const shown = authorities(evidence).filter(([text]) => text !== undefined && hostOf(text) === host);
  const forwarded = fieldValue(headers, 'x-forwarded-port');
  const all = forwarded === undefined ? COMMON_PORTS : [`:${forwarded}`, ...COMMON_PORTS];
  return [...shown, ...all.map((port): Candidate => [host + port])];
}

/** Headers in which proxies and platforms pass on the path as it was before they changed it. */
const ORIGINAL_PATH = [
  'x-original-url',
  'x-original-uri',
  'x-rewrite-url',
  'x-forwarded-uri',
  'x-envoy-original-path',
];

/** Prefixes that routers, gateways and stages usually cut off. */
const COMMON_PREFIXES =
  '/api /v1 /api/v1 /webhooks /webhook /hooks /app /prod /production /stage /staging /dev /default /latest /public /proto'.split(
    ' ',
  );

/** Segments that are cut off a path: each path is tried with each host and query. */
const MOST_CUTS = 32;

const pathOf = (target: string): string => target.replace(/^https?:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '');

/** Longer and shorter paths. */
function prefixed({ parts: { path }, headers, target }: UrlEvidence): Candidate[] {
  const originals = ORIGINAL_PATH.map((name): Candidate => {
    const value = fieldValue(headers, name);
    return [value === undefined ? value : pathOf(value), proxyPasses(name)];
  });
  const forwarded = fieldValue(headers, 'x-forwarded-prefix');
  const longer = [...(forwarded === undefined ? [] : [forwarded]), ...COMMON_PREFIXES].map(
    (prefix): Candidate => [
      prefix.replace(/\/$/, '') + path,
      `: a router or proxy of yours cuts ${prefix} off`,
    ],
  );
  const segments = path.split('/').slice(1);
  const cuts = Math.max(0, Math.min(segments.length - 1, MOST_CUTS));
  const shorter = Array.from({ length: cuts }, (_, i): Candidate => {
    const [cut, kept] = [segments.slice(0, i + 1), segments.slice(i + 1)];
    return [`/${kept.join('/')}`, `, without /${cut.join('/')}`];
  });
  return [...originals, [pathOf(target), ', as it was received'], ...longer, ...shorter];
}

/** Spellings of a path that differ in percent-encoding alone. */
function spellings({ parts: { path } }: UrlEvidence): Candidate[] {
  const made = [path.replace(/%2F/gi, '/'), path.replaceAll('+', '%20'), path.replaceAll('%20', '+')];
  try {
    const plain = decodeURI(path);
    made.push(encodeURI(plain), plain.split('/').map(encodeURIComponent).join('/'));
  } catch {
    // The percent-encoded bytes are not UTF-8: nothing to decode.
  }
  return made.map((text) => [text]);
}

type Rewrite = (query: string) => string;

/** Changes each name and value by itself. */
const eachPart =
  (change: Rewrite): Rewrite =>
  (query) =>
    query
      .split('&')
      .map((pair) => pair.split('=').map(change).join('='))
      .join('&');

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const percent: Rewrite = (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`;

/** What libraries and proxies make of a query. */
const REWRITES: readonly Rewrite[] = [
  (query) => new URLSearchParams(query).toString(),
  eachPart(decoded),
  eachPart((text) => encodeURIComponent(decoded(text))),
  eachPart((text) => encodeURIComponent(decoded(text.replaceAll('+', ' ')))),
  // As RFC 3986 has it: what `encodeURIComponent` leaves alone is escaped too.
  eachPart((text) => encodeURIComponent(decoded(text)).replace(/[!'()*]/g, percent)),
  (query) => query.replaceAll('+', '%20'),
  (query) => query.replaceAll('%20', '+'),
  (query) => query.replaceAll("'", '%27'),
  (query) => query.replaceAll('%27', "'"),
  (query) => query.replace(/%[0-9a-f]{2}/gi, (triplet) => triplet.toUpperCase()),
  (query) => query.replace(/%[0-9a-f]{2}/gi, (triplet) => triplet.toLowerCase()),
  (query) => query.replace(/%(2C|3A|2F|40|3B|24|21|2A|28|29|7E)/gi, decoded),
  (query) => query.replace(/[,:/@;$!*()~]/g, percent),
  (query) => query.replaceAll('&amp;', '&'),
  (query) => query.split('&').toSorted().join('&'),
  (query) => query.split('&').toReversed().join('&'),
  (query) => query.replace(/=(?=&|$)/g, ''),
];

const rewritten = (query: string): Candidate[] =>
  query === '' ? [] : REWRITES.map((rewrite): Candidate => [`?${rewrite(query)}`]);

const queryOf = (target: string): string => /\?([^#]*)/.exec(target)?.[1] ?? '';

/** Every way in which the signed URL may differ from the configured one. Of two that give one text the first counts. */
const FORMS: readonly Form[] = [
  {
    part: 'scheme',
    cause: 'scheme',
    made: ({ parts }) => [[parts.scheme === 'https' ? 'http' : 'https']],
  },
  { part: 'authority', cause: 'forwarded-host', made: forwardedHosts },
  { part: 'authority', cause: 'port', noun: 'the port of', made: ports },
  { part: 'authority', cause: 'host', made: authorities },
  {
    part: 'path',
    cause: 'trailing-slash',
    made: ({ parts: { path } }) => [[path.endsWith('/') ? path.slice(0, -1) || '/' : `${path}/`]],
  },
  { part: 'path', cause: 'path-prefix', made: prefixed },
  { part: 'path', cause: 'path-encoding', made: spellings },
  { part: 'query', cause: 'query-encoding', made: ({ parts }) => rewritten(parts.query.slice(1)) },
  {
    part: 'query',
    cause: 'query-dropped',
    made: ({ target }) => [[queryOf(target) === '' ? '' : `?${queryOf(target)}`]],
  },
  { part: 'query', cause: 'query-encoding', made: ({ target }) => rewritten(queryOf(target)) },
  { part: 'query', cause: 'query-dropped', made: () => [['']] },
  { part: 'query', cause: 'query-encoding', made: () => [['?']] },
];

const NOUNS = { authority: 'the host', path: 'the path' } as const;

const queryText = (query: string): string =>
  query === ''
    ? 'no query'
    : query === '?'
      ? 'an empty query (a ? and nothing after it)'
      : `the query ${query}`;

function sentence({ part, noun }: Form, signed: string, origin: string, own: string): string {
  if (part === 'scheme') return `The seller signed an ${signed} URL, and the configured one says ${own}.`;
  if (part === 'query')
    return `The seller signed ${queryText(signed)}; the configured URL has ${queryText(own)}.`;
  return `The seller signed ${noun ?? NOUNS[part]} ${signed}${origin}; the configured URL has ${own}.`;
}

/** Whether a part can have this text. */
function isPossible(part: keyof UrlParts, text: string | undefined): text is string {
  if (part === 'path') return text?.startsWith('/') === true;
  return text !== undefined && (part === 'query' || text !== '');
}

/** A part of the URL as configured, then as the seller may have signed it. */
export function urlForms(part: keyof UrlParts, evidence: UrlEvidence): readonly Choice[] {
  const own = evidence.parts[part];
  const choices = new Map<string, Choice>([[own, { text: own }]]);
  for (const form of FORMS.filter((one) => one.part === part)) {
    for (const [text, origin = ''] of form.made(evidence)) {
      if (!isPossible(part, text) || choices.has(text)) continue;
      choices.set(text, { text, change: { cause: form.cause, says: sentence(form, text, origin, own) } });
    }
  }
  return [...choices.values()];
}

/** Choices of scheme, authority, path and query, fewest changes first, at most so many at once. */
export function* urlChoices(evidence: UrlEvidence, mostChanges: number): Generator<readonly Choice[]> {
  const parts = (['scheme', 'authority', 'path', 'query'] as const).map((part) => urlForms(part, evidence));
  for (let changes = 0; changes <= mostChanges; changes++) yield* withChanges(parts, changes);
}

function* withChanges(parts: readonly (readonly Choice[])[], changes: number): Generator<readonly Choice[]> {
  const [first, ...rest] = parts;
  if (!first) {
    if (changes === 0) yield [];
    return;
  }
  for (const choice of first) {
    const left = choice.change ? changes - 1 : changes;
    if (left < 0 || left > rest.length) continue;
    for (const tail of withChanges(rest, left)) yield [choice, ...tail];
  }
}
