import type { RaiseAlarm } from '../alarms.ts';
import { putBounded } from '../bounded.ts';
import { ADAGENTS, type AdAgents } from './adagents.ts';
import type { Copy } from './document.ts';
import { type KeySet, spoiltKey } from './jwks.ts';
import { nearMisses, nearMissText } from './near-misses.ts';

/** What one publisher's file says of one agent's keys. */
export interface Listing {
  /** The keys that are pinned; none where the file has no `signing_keys` for the agent. */
  readonly set?: KeySet;
  /** Why there may be others, or why this is not known. */
  readonly undecided?: string;
  /** Why the newest copy does not count: what is said here is an older one's, and cannot settle what is not there. */
  readonly broken?: string;
}

export interface PublisherListingsOptions {
  readonly raiseAlarm: RaiseAlarm;
  /** Unix ms. */
  readonly now: () => number;
}

/** The last sound word of a publisher about an agent. */
interface Word {
  copy: Copy<AdAgents>;
  readonly set: KeySet | undefined;
}

/** As many as documents are. */
const MAX_WORDS = 10_000;

/**
 * Reads an agent's entry out of a publisher's file. Where that entry is broken the publisher's last sound word about the
 * agent stays in force until its own hard limit, as a whole document's would, and an alarm is raised once a copy.
 */
export function createPublisherListings(
  options: PublisherListingsOptions,
): (agentUrl: string, url: string, copy: Copy<AdAgents>) => Listing {
  const words = new Map<string, Word>();
  const complain = createComplaints(options.raiseAlarm);

  return (agentUrl, url, copy) => {
    const key = `${agentUrl} ${url}`;
    const word = words.get(key);
    if (word !== undefined && word.copy.value === copy.value) {
      word.copy = copy;
      return word.set ? { set: word.set } : {};
    }
    const inForce = word !== undefined && options.now() < word.copy.hardUntil ? word : undefined;
    const set = copy.value.pinned.get(agentUrl);
    const flaw = typeof set === 'string' ? set : set && inForce?.set && spoiltKey(set, inForce.set);
    if (flaw !== undefined) {
      complain(agentUrl, url, copy.value, flaw);
      const reason = `adagents.json at ${url}: ${flaw}`;
      if (inForce === undefined) return { undecided: reason };
      return { ...(inForce.set && { set: inForce.set }), broken: reason };
    }
    const sound = typeof set === 'object' ? set : undefined;
    putBounded(words, key, { copy, set: sound }, MAX_WORDS);
    if (sound !== undefined && word?.set === undefined) noteFirstPin(options.raiseAlarm, agentUrl, url);
    if (sound === undefined) warnOfNearMisses(options.raiseAlarm, agentUrl, url, copy.value);
    return sound ? { set: sound } : {};
  };
}

/** From here on the publisher decides whose signature counts, and not the seller (verification.md §5.28). */
function noteFirstPin(raiseAlarm: RaiseAlarm, agentUrl: string, url: string): void {
  raiseAlarm({
    code: 'publisher_pins',
    message: `adagents.json at ${url} pins keys for ${agentUrl}: only pinned keys verify now, and its JWKS is not consulted. Whoever writes that file can sign as this seller, and end its events by a key that is not its own.`,
    sender: agentUrl,
    url,
  });
}

/** Says what is wrong with an agent's entry, once a copy. */
function createComplaints(
  raiseAlarm: RaiseAlarm,
): (agentUrl: string, url: string, value: AdAgents, flaw: string) => void {
  const reported = new WeakMap<AdAgents, Set<string>>();
  return (agentUrl, url, value, flaw) => {
    const told = reported.get(value) ?? new Set<string>();
    reported.set(value, told);
    if (told.has(agentUrl)) return;
    told.add(agentUrl);
    const message = `adagents.json at ${url}: what it pins for ${agentUrl} cannot be used: ${flaw}. What it pinned before stays in force until its hard limit.`;
    raiseAlarm({
      code: 'key_document_invalid',
      message,
      sender: agentUrl,
      url,
      document: ADAGENTS.name,
    });
  };
}

/** Keys pinned for a URL that only looks like the agent's pin nothing: the owner should know. */
function warnOfNearMisses(raiseAlarm: RaiseAlarm, agentUrl: string, url: string, { pinned }: AdAgents): void {
  const misses = nearMisses(agentUrl, pinned.keys());
  if (misses.length === 0) return;
  raiseAlarm({
    code: 'agent_not_listed',
    message: `${agentUrl}: adagents.json at ${url} pins no keys for this url; it does for ${nearMissText(misses)}.`,
    sender: agentUrl,
    url,
    nearMisses: misses.map((miss) => miss.url),
  });
}
