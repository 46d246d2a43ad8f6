// Finds the entries of an agent in brand.json, by exact or canonical URL (verification.md §5.2).
// Called by `agent-location.ts` for each copy of a brand.json.

import { canonicalTargetUri } from '../auth/rfc9421/signature-base.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import type { AgentEntry, BrandJson } from './brand-json.ts';

/**
 * Most characters of URLs canonicalised in the search for one agent, which takes about 40 ms at most. Each URL
 * costs `EACH_COMPARED` characters in addition to its length.
 */
const MAX_COMPARED = 524_288;
const EACH_COMPARED = 128;

/**
 * Returns the entries of an agent (verification.md §5.2): those whose `url` equals it exactly or, as the sender's
 * edition demands, in canonical form. Returns undefined if too many URLs would have to be compared. A publisher's 2
 * MiB of such URLs must not block the event loop for a second.
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
 * Yields the listed URLs that may have the wanted canonical form, so that nearly all of a long list is skipped.
 * Such a URL contains the wanted host, in upper or lower case. If it has no encoding, dot segments or fragment, it
 * must also end like the wanted URL.
 */
function* spellings(wanted: string, listed: Iterable<string>): Iterable<string> {
  const begin = wanted.indexOf('//') + 2;
  const end = wanted.indexOf('/', begin);
  const [host, path] = [wanted.slice(begin, end), wanted.slice(end)];
  // A root may be written without its slash.
  const tail = path === '/' || path.startsWith('/?') ? path.slice(1) : path;
  // Ports are compared as numbers.
  const name = host.replace(/:\d+$/, '');
  for (const url of listed) {
    const isPlain = !url.includes('%') && !url.includes('/.') && !url.includes('#');
    if (isPlain && !url.endsWith(tail)) continue;
    if (url.toLowerCase().includes(name)) yield url;
  }
}

/**
 * True if the URL can be compared in canonical form. Published URLs with non-ASCII characters are not converted to
 * A-labels, and encoded dots can be read in two ways.
 */
const isComparable = (url: string): boolean => /^[\x21-\x7e]*$/.test(url) && !/%2e/i.test(url);

function canonicalUrl(url: string): string | undefined {
  try {
    return canonicalTargetUri(url).targetUri;
  } catch {
    return undefined;
  }
}
