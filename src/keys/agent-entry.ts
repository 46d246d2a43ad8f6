// Finds the entries of an agent in brand.json, by exact or canonical URL (verification.md §5.2).
// Called by `agent-location.ts` for each copy of a brand.json.

import { canonicalTargetUri } from '../auth/rfc9421/signature-base.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import type { AgentEntry, BrandJson } from './brand-json.ts';

/**
 * The maximum number of characters of URLs that are canonicalised in the search for one agent, which limits the search
 * to about 40 ms. Each URL counts `EACH_COMPARED` characters more than its length.
 */
const MAX_COMPARED = 524_288;
const EACH_COMPARED = 128;

/**
 * Returns the entries of an agent (verification.md §5.2). Their `url` equals the agent URL exactly or, if the sender's
 * protocol edition demands it, in canonical form.
 * `entries` is undefined if too many URLs would have to be compared: 2 MiB of such URLs would block the event loop for
 * a second.
 */
export function entriesOf(
  { agentUrl, edition }: SenderEntry,
  { agents }: BrandJson,
): { readonly entries: readonly AgentEntry[] | undefined; readonly isExact: boolean } {
  const exact = agents.get(agentUrl) ?? [];
  if (edition.agentMatch === 'exact' || (edition.agentMatch === 'exact-first' && exact.length > 0)) {
    return { entries: exact, isExact: true };
  }
  const wanted = canonicalUrl(agentUrl);
  const entries: AgentEntry[] = [...exact];
  let compared = 0;
  for (const url of wanted === undefined ? [] : spellings(wanted, agents.keys())) {
    if (url === agentUrl) continue;
    compared += url.length + EACH_COMPARED;
    if (compared > MAX_COMPARED) return { entries: undefined, isExact: false };
    if (isComparable(url) && canonicalUrl(url) === wanted) entries.push(...(agents.get(url) ?? []));
  }
  return { entries, isExact: false };
}

/**
 * Yields only the listed URLs that may have the canonical form `wanted`, so that few URLs of a long list are
 * canonicalised. Such a URL contains the host of `wanted`, in upper or lower case. A URL without percent-encoding, dot
 * segments and fragment must also end like `wanted`.
 */
function* spellings(wanted: string, listed: Iterable<string>): Iterable<string> {
  const begin = wanted.indexOf('//') + 2;
  const end = wanted.indexOf('/', begin);
  const [host, path] = [wanted.slice(begin, end), wanted.slice(end)];
  // A URL may leave out the slash of an empty path (`https://host`), so that slash is not required at the end.
  const tail = path === '/' || path.startsWith('/?') ? path.slice(1) : path;
  // The port is not compared as text, because `:443` and `:0443` are the same port.
  const name = host.replace(/:\d+$/, '');
  for (const url of listed) {
    const isPlain = !url.includes('%') && !url.includes('/.') && !url.includes('#');
    if (isPlain && !url.endsWith(tail)) continue;
    if (url.toLowerCase().includes(name)) yield url;
  }
}

/**
 * False for a URL that has no safe canonical form. Non-ASCII characters are not converted to A-labels here, and an
 * encoded dot (`%2e`) can be read in two ways.
 */
const isComparable = (url: string): boolean => /^[\x21-\x7e]*$/.test(url) && !/%2e/i.test(url);

function canonicalUrl(url: string): string | undefined {
  try {
    return canonicalTargetUri(url).targetUri;
  } catch {
    return undefined;
  }
}
