import { printableName } from '../codec/printable.ts';

/** Enough to see the mistake. */
const MAX_SHOWN = 4;

/**
 * Agent URLs of a brand.json that differ from the configured one by what people usually get wrong: a trailing slash, the
 * scheme, upper case, a default port. The match itself is byte for byte (verification.md, section 5, step 2).
 */
export function nearMisses(agentUrl: string, listed: Iterable<string>): string[] {
  const wanted = blurred(agentUrl);
  const misses: string[] = [];
  for (const url of listed) {
    if (misses.length === MAX_SHOWN) break;
    if (blurred(url) === wanted) misses.push(shown(url));
  }
  return misses;
}

function blurred(url: string): string {
  if (!URL.canParse(url)) return url.trim().toLowerCase();
  const { hostname, port, pathname, search } = new URL(url);
  // A default port of the other scheme survives the parser: http://a:443 for https://a.
  const authority = port === '' || port === '443' || port === '80' ? hostname : `${hostname}:${port}`;
  return `${authority}${withoutFinalSlashes(pathname)}${search}`.toLowerCase();
}

/** By index: a regular expression for the end takes quadratic time on slashes inside, and a brand.json may have many. */
function withoutFinalSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

/** The URL as listed, in pieces that a log can take: the whole is as long as the configured one, give or take a slash. */
function shown(url: string): string {
  return url.length <= 256 && printable(url) ? url : JSON.stringify(printableName(url));
}

function printable(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}
