// Lists the URLs that a seller may have signed instead of the configured one, by changing parts as proxies and
// frameworks do. `signature-search.ts` uses it.
import { fieldValue, type HeaderFields } from '../../shared/delivery.ts';
import type { Cause, Change } from './explain-case.ts';

/** The scheme, authority, path and query (with its `?`) of an absolute URL. */
export interface UrlParts {
  readonly scheme: string;
  readonly authority: string;
  readonly path: string;
  readonly query: string;
}

/** The facts from which possible URLs are made. */
export interface UrlEvidence {
  /** The parts of the configured URL. */
  readonly parts: UrlParts;
  readonly headers: HeaderFields;
  /** The request target as captured. */
  readonly target: string;
  /** The authority of the captured URL; undefined if the capture has no whole URL. */
  readonly captured: string | undefined;
}

/**
 * One possible text for a part of the URL: the configured one, for which `change` is absent, or one that the seller may
 * have signed.
 */
export interface Choice {
  readonly text: string;
  readonly change?: Change;
  /** True if the text is configured or appears in the request. False: it is a guess. */
  readonly isShown: boolean;
}

/** A text that a part of the URL may have had, with its origin in words. `shown`: the request contains it. */
type Candidate = readonly [
  cause: Cause,
  text: string | undefined,
  origin?: string,
  shown?: 'shown' | undefined,
];

const URL_PARTS = /^(https?):\/\/([^/?#]*)([^?#]*)(\?[^#]*)?/i;

/** Splits a URL as text, because the class `URL` would correct the mistake that is being searched for. */
export function partsOf(url: string): UrlParts | undefined {
  const match = URL_PARTS.exec(url);
  if (!match) return undefined;
  const [, scheme = '', authority = '', path = '', query = ''] = match;
  return { scheme: scheme.toLowerCase(), authority, path: path || '/', query };
}

const hostOf = (authority: string): string => authority.replace(/:\d*$/, '');

/**
 * Returns the candidate (a possible text for a part of the URL) for a text that a proxy passed on in the header `name`.
 */
const passedOn = (cause: Cause, name: string, text: string | undefined): Candidate => [
  cause,
  text,
  `, which your proxy passes on in ${name}`,
  'shown',
];

function forwardedHost(name: string, headers: HeaderFields): Candidate {
  const field = fieldValue(headers, name) ?? '';
  const value = name === 'forwarded' ? /host="?([^";,]*)/i.exec(field)?.[1] : field.split(',')[0]?.trim();
  return passedOn('forwarded-host', name, value);
}

const FORWARDED_HOST = ['x-forwarded-host', 'x-original-host', 'x-forwarded-server', 'forwarded'];

/** Ports on which proxies and development servers listen. */
const COMMON_PORTS = ['', ':443', ':80', ':8443', ':8080', ':8000', ':5000', ':3000'];

function authorities({ parts: { authority: own }, headers, captured }: UrlEvidence): Candidate[] {
  const host = hostOf(own);
  const shown = [fieldValue(headers, 'host'), captured];
  const ports = [`:${fieldValue(headers, 'x-forwarded-port') ?? ''}`, ...COMMON_PORTS];
  return [
    ...FORWARDED_HOST.map((name) => forwardedHost(name, headers)),
    ...shown.map((text = ''): Candidate => [hostOf(text) === host ? 'port' : 'host', text, '', 'shown']),
    ...ports.map((port): Candidate => ['port', host + port]),
    ['host', own.startsWith('www.') ? own.slice('www.'.length) : `www.${own}`],
  ];
}

/** Headers in which proxies and platforms pass on the original path. */
const ORIGINAL_PATH = [
  'x-original-url',
  'x-original-uri',
  'x-rewrite-url',
  'x-forwarded-uri',
  'x-envoy-original-path',
];

/** Path prefixes that routers, gateways and deployment stages usually remove. */
const COMMON_PREFIXES =
  '/api /v1 /api/v1 /webhooks /webhook /hooks /app /prod /production /stage /staging /dev /default /latest /public /proto'.split(
    ' ',
  );

/**
 * The largest number of lines of `X-Forwarded-Prefix` that are tried. Each proxy adds one, and each line multiplies the
 * combinations.
 */
const MOST_PREFIXES = 4;

/** The largest number of segments that are removed from the beginning of a path. */
const MOST_CUTS = 32;

const pathOf = (target: string): string => target.replace(/^https?:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '');

function paths({ parts: { path }, headers, target }: UrlEvidence): Candidate[] {
  const longer = (prefix: string, shown?: 'shown'): Candidate => [
    'path-prefix',
    prefix.replace(/\/$/, '') + path,
    `: a router or proxy of yours cuts ${prefix} off`,
    shown,
  ];
  const segments = path.split('/').slice(1);
  const shorter = segments.slice(1, 1 + MOST_CUTS).map((_, i): Candidate => {
    const [cut, kept] = [segments.slice(0, i + 1), segments.slice(i + 1)];
    return ['path-prefix', `/${kept.join('/')}`, `, without /${cut.join('/')}`];
  });
  return [
    ['trailing-slash', path.endsWith('/') ? path.slice(0, -1) || '/' : `${path}/`],
    ...ORIGINAL_PATH.map((name) => passedOn('path-prefix', name, pathOf(fieldValue(headers, name) ?? ''))),
    ['path-prefix', pathOf(target), ', as it was received', 'shown'],
    ...(headers.get('x-forwarded-prefix') ?? [])
      .slice(0, MOST_PREFIXES)
      .map((prefix) => longer(prefix, 'shown')),
    ...COMMON_PREFIXES.map((prefix) => longer(prefix)),
    ...shorter,
    ...SPELLINGS.map((spelt): Candidate => ['path-encoding', spelt(path)]),
  ];
}

type Spelling = (text: string) => string;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Changes of percent-encoding that libraries and proxies make. */
const SPELLINGS: readonly Spelling[] = [
  (text) => text.replaceAll('+', '%20'),
  (text) => text.replaceAll('%20', '+'),
  (text) => text.replace(/%[0-9a-f]{2}/gi, (triplet) => triplet.toLowerCase()),
  (text) => text.replace(/%[0-9a-f]{2}/gi, (triplet) => triplet.toUpperCase()),
  (text) => text.replace(/%(?:2[124789ACF]|3[AB]|40|7E)/gi, decoded),
];

/** Further changes of a query: parsed and written again, or sorted. */
const QUERY_SPELLINGS: readonly Spelling[] = [
  ...SPELLINGS,
  (query) => new URLSearchParams(query).toString(),
  (query) => query.replace(/[^&=]+/g, (text) => encodeURIComponent(decoded(text))),
  (query) => query.split('&').toSorted().join('&'),
];

const queryOf = (target: string): string => /\?[^#]*/.exec(target)?.[0] ?? '';

function queries({ parts: { query }, target }: UrlEvidence): Candidate[] {
  const received = queryOf(target);
  const spelt = (text: string): Candidate[] =>
    text === '' ? [] : QUERY_SPELLINGS.map((spelling) => ['query-encoding', `?${spelling(text.slice(1))}`]);
  return [
    ...spelt(query),
    ['query-dropped', received, '', 'shown'],
    ['query-dropped', '', '', 'shown'],
    ...spelt(received),
    ['query-encoding', '?'],
  ];
}

const CANDIDATES: Readonly<Record<keyof UrlParts, (evidence: UrlEvidence) => readonly Candidate[]>> = {
  scheme: ({ parts: { scheme } }) => [['scheme', scheme === 'https' ? 'http' : 'https', '', 'shown']],
  authority: authorities,
  path: paths,
  query: queries,
};

const queryText = (query: string): string =>
  query === ''
    ? 'no query'
    : query === '?'
      ? 'an empty query (a ? and nothing after it)'
      : `the query ${query}`;

function sentence(
  part: keyof UrlParts,
  [cause, , origin = '']: Candidate,
  text: string,
  own: string,
): string {
  if (part === 'scheme') return `The seller signed an ${text} URL, and the configured one says ${own}.`;
  if (part === 'query')
    return `The seller signed ${queryText(text)}; the configured URL has ${queryText(own)}.`;
  const noun = part === 'path' ? 'the path' : cause === 'port' ? 'the port of' : 'the host';
  return `The seller signed ${noun} ${text}${origin}; the configured URL has ${own}.`;
}

/** True if the text can be this part of a URL. */
function isPossible(part: keyof UrlParts, text: string | undefined): text is string {
  if (part === 'path') return text?.startsWith('/') === true;
  return text !== undefined && (part === 'query' || text !== '');
}

/**
 * Returns the possible texts of a part of the URL: first the configured one, then those that the seller may have
 * signed. If two choices have the same text, the first one is used.
 */
export function urlForms(part: keyof UrlParts, evidence: UrlEvidence): readonly Choice[] {
  const own = evidence.parts[part];
  const choices = new Map<string, Choice>([[own, { text: own, isShown: true }]]);
  for (const candidate of CANDIDATES[part](evidence)) {
    const [cause, text, , shown] = candidate;
    if (!isPossible(part, text)) continue;
    const change = { cause, says: sentence(part, candidate, text, own) };
    const known = choices.get(text) ?? { text, change, isShown: false };
    choices.set(text, { ...known, isShown: known.isShown || shown !== undefined });
  }
  return [...choices.values()];
}

/** Returns all combinations of one choice for each part. */
const combined = (parts: readonly (readonly Choice[])[]): readonly (readonly Choice[])[] =>
  parts.reduce<readonly (readonly Choice[])[]>(
    (heads, choices) => heads.flatMap((head) => choices.map((choice) => [...head, choice])),
    [[]],
  );

/**
 * Returns the combinations of scheme, authority, path and query to try. First, only one part differs from the
 * configured URL. Then several parts differ, but only by texts that the request shows.
 */
export function urlChoices(evidence: UrlEvidence): readonly (readonly Choice[])[] {
  const parts = (['scheme', 'authority', 'path', 'query'] as const).map((part) => urlForms(part, evidence));
  const single = parts.flatMap((choices, at) =>
    combined(parts.map((own, i) => (i === at ? choices.slice(1) : own.slice(0, 1)))),
  );
  return [...single, ...combined(parts.map((choices) => choices.filter(({ isShown }) => isShown)))];
}
