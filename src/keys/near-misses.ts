import { printableName } from '../codec/printable.ts';

/** Enough to see the mistake. */
const MAX_SHOWN = 4;

/** A listed URL that was probably meant. */
interface NearMiss {
  /** As listed, in pieces that a log can take. */
  readonly url: string;
  /** In what it differs, e.g. `trailing slash`. */
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

/** RFC 3986, appendix B, with the port set apart: the text as it is, for what a parser repairs is what went wrong. */
const URL_PARTS = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*?)(:\d*)?(\/[^?#]*)?(\?[^#]*)?(#.*)?$/i;

/** Not by a pattern: `/\/+$/` takes quadratic time, and the text is a counterparty's. */
function withoutSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

const sameCase = (a: string, b: string): boolean => a === b || a.toLowerCase() !== b.toLowerCase();

/** What people usually get wrong, and how it shows. */
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
 * URLs of a document that differ from the configured one by what people usually get wrong: a trailing slash, the scheme,
 * upper case, the port, the query. The match itself is byte for byte (verification.md §5.2).
 */
export function nearMisses(agentUrl: string, listed: Iterable<string>): NearMiss[] {
  const wanted = normalized(agentUrl);
  const misses: NearMiss[] = [];
  for (const url of listed) {
    if (misses.length === MAX_SHOWN) break;
    if (normalized(url) === wanted)
      misses.push({ url: loggable(url), differsIn: differences(agentUrl, url) });
  }
  return misses;
}

/** For a message: each URL with what it differs in. */
export function nearMissText(misses: readonly NearMiss[]): string {
  return misses.map(({ url, differsIn }) => `${url} (differs in ${differsIn.join(', ')})`).join(', ');
}

/** Host and path without what is easily got wrong. */
function normalized(url: string): string {
  if (!URL.canParse(url)) return url.trim().toLowerCase();
  const { hostname, pathname } = new URL(url);
  return `${hostname.replace(/\.$/, '')}${withoutSlashes(pathname)}`.toLowerCase();
}

function differences(wanted: string, listed: string): string[] {
  const [a, b] = [partsOf(wanted), partsOf(listed)];
  const found = a && b ? DIFFERENCES.filter(([, differs]) => differs(a, b)).map(([name]) => name) : [];
  // White space, percent-encoding, dot segments, a root dot: visible once the two are laid side by side.
  return found.length > 0 ? found : ['spelling'];
}

function partsOf(url: string): UrlParts | undefined {
  const match = URL_PARTS.exec(url);
  if (match === null) return undefined;
  const [, scheme = '', host = '', port = '', path = '', query = '', fragment = ''] = match;
  return { scheme, host, port, path, query, fragment };
}

/** The whole where a log can take it: it is as long as the configured one, give or take a query. */
function loggable(url: string): string {
  return url.length <= 256 && printable(url) ? url : JSON.stringify(printableName(url));
}

function printable(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}
