import { canonicalTargetUri } from '../auth/rfc9421/signature-base.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import type { AgentEntry, BrandJson } from './brand-json.ts';

/** Characters of URLs that are made canonical for one agent, and so many more for each: at most some 40 ms. */
const MAX_COMPARED = 524_288;
const EACH_COMPARED = 128;

/**
 * The entries of an agent (verification.md §5.2): those with its very `url`, or with one of the same canonical form, as
 * the sender's edition says. Undefined where too many might have it: whoever publishes 2 MiB of them is not to hold the
 * event loop for a second.
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
 * URLs that may have this canonical form: they have its host, in whatever case, and what is not encoded and has neither
 * dot segments nor a fragment ends as it does. Nearly all of a long list is passed over by that.
 */
function* spellings(wanted: string, listed: Iterable<string>): Iterable<string> {
  const begin = wanted.indexOf('//') + 2;
  const end = wanted.indexOf('/', begin);
  const [host, path] = [wanted.slice(begin, end), wanted.slice(end)];
  // A root may go without its slash.
  const tail = path === '/' || path.startsWith('/?') ? path.slice(1) : path;
  // Ports are compared as numbers.
  const name = host.replace(/:\d+$/, '');
  for (const url of listed) {
    const isPlain = !url.includes('%') && !url.includes('/.') && !url.includes('#');
    if (isPlain && !url.endsWith(tail)) continue;
    if (url.toLowerCase().includes(name)) yield url;
  }
}

/** Who compares makes no A-labels of what is published, and dots that are encoded have two readings. */
const isComparable = (url: string): boolean => /^[\x21-\x7e]*$/.test(url) && !/%2e/i.test(url);

function canonicalUrl(url: string): string | undefined {
  try {
    return canonicalTargetUri(url).targetUri;
  } catch {
    return undefined;
  }
}
