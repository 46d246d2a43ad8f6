import type { RaiseAlarm } from '../alarms.ts';
import { putBounded } from '../bounded.ts';
import { isJsonObject } from '../codec/members.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { Jwk } from '../crypto/engine.ts';
import type { SenderEntry } from '../senders.ts';
import type { DocumentCache } from './document-cache.ts';
import type { Answer, Copy, DocumentKind, LifeRules, Parsed, Wish } from './document.ts';
import { type Allowance, freeLeave } from './fetch-budget.ts';
import { hasPrivateHalf, isJwk, PRIVATE_HALF_PUBLISHED, publicPart } from './jwk.ts';
import { type KeySet, MAX_KEYS, sameJwk, spoiltKey } from './jwks.ts';
import { nearMisses, nearMissText } from './near-misses.ts';

/** Which keys the publishers of a sender pin (verification.md §5.5): the union of what each one says. */
export interface PinState {
  /** None, and nothing undecided: no publisher pins. */
  readonly sets: readonly KeySet[];
  /** Why other keys may be pinned than these; for the owner's log. */
  readonly undecided?: string;
}

interface HeldPins extends PinState {
  /** The sets from copies within their life. */
  readonly fresh: readonly KeySet[];
  /** Some copy is past its life. */
  readonly overdue: boolean;
}

/** What is needed of a publisher's file that is fetched again beyond its own life. */
interface PinWish extends Omit<Wish<unknown>, 'wanted'> {
  wanted(set: KeySet): boolean;
}

/** Gives each publisher's file leave to be fetched while there is some left. */
type EachLeave = Allowance['leave'];

export interface PublisherPins {
  /** What is held, without any fetch. */
  held(sender: SenderEntry): HeldPins;
  /** Says that the copies held were used: see `DocumentCache.used`. */
  used(sender: SenderEntry): void;
  /** From copies within their life; the ones held where they cannot be refreshed. */
  current(sender: SenderEntry, leave?: EachLeave): Promise<PinState>;
  /** From copies that fulfil the wish, fetched again if need be; undecided where one of them could not. */
  renewed(sender: SenderEntry, wish: PinWish, leave: EachLeave): Promise<PinState>;
}

interface PublisherPinsOptions {
  readonly cache: DocumentCache;
  readonly allowLoopback: boolean;
  readonly raiseAlarm: RaiseAlarm;
  /** Unix ms. */
  readonly now: () => number;
  /** Files fetched at a time for one sender. */
  readonly width: number;
}

const NOBODY: HeldPins = { sets: [], fresh: [], overdue: false };
/** Enough to see what is wrong. */
const MAX_REASONS = 4;

export function createPublisherPins(options: PublisherPinsOptions): PublisherPins {
  const { cache, allowLoopback, width } = options;
  const reading: Reading = { cache, listed: createPublisherListings(options) };
  const urlsOf = (sender: SenderEntry): readonly string[] => adagentsUrls(sender, allowLoopback);
  return {
    held: (sender) => (sender.publishers === undefined ? NOBODY : held(reading, sender, urlsOf(sender))),
    used: (sender) => {
      for (const url of urlsOf(sender)) cache.used(ADAGENTS, url, sender.agentUrl);
    },
    current: async (sender, leave = freeLeave) => {
      const ask = async (url: string): Promise<Listing> =>
        read(reading, sender, url, await cache.current(ADAGENTS, url, leave(sender.agentUrl)));
      return union(await pooled(urlsOf(sender), width, ask));
    },
    renewed: async (sender, wish, leave) => {
      const pinned = ({ value }: Copy<AdAgents>): KeySet | string | undefined =>
        value.pinned.get(sender.agentUrl);
      const documentWish: Wish<AdAgents> = {
        ...wish,
        wanted: (copy) => {
          const set = pinned(copy);
          return typeof set === 'object' && wish.wanted(set);
        },
      };
      const ask = async (url: string): Promise<Listing> => {
        const answer = await cache.renewed(ADAGENTS, url, documentWish, leave(sender.agentUrl));
        const listing = read(reading, sender, url, answer);
        return { ...(listing.broken !== undefined && { undecided: listing.broken }), ...listing };
      };
      return union(await pooled(urlsOf(sender), width, ask));
    },
  };
}

interface Reading {
  readonly cache: DocumentCache;
  readonly listed: (agentUrl: string, url: string, copy: Copy<AdAgents>) => Listing;
}

function held({ cache, listed }: Reading, sender: SenderEntry, urls: readonly string[]): HeldPins {
  const listings: Listing[] = [];
  const fresh: KeySet[] = [];
  let overdue = false;
  for (const url of urls) {
    const copy = cache.held(ADAGENTS, url);
    const listing = copy
      ? listed(sender.agentUrl, url, copy)
      : { undecided: `adagents.json at ${url}: not held` };
    listings.push(listing);
    if (copy && !cache.isFresh(copy)) overdue = true;
    else if (listing.set !== undefined) fresh.push(listing.set);
  }
  return { ...union(listings), fresh, overdue };
}

/** A file that cannot be had might pin: undecided, beside what an older copy says. */
function read(
  { cache, listed }: Reading,
  sender: SenderEntry,
  url: string,
  answer: Answer<AdAgents>,
): Listing {
  if (answer.ok) return listed(sender.agentUrl, url, answer.copy);
  const copy = cache.held(ADAGENTS, url);
  const before = copy && listed(sender.agentUrl, url, copy);
  return { ...before, undecided: `adagents.json at ${url}: ${answer.reason}` };
}

/** @param allowLoopback development: publishers of an agent that is reached over http are asked over http. */
function adagentsUrls({ agentUrl, publishers }: SenderEntry, allowLoopback: boolean): readonly string[] {
  if (publishers === undefined) return [];
  const scheme = allowLoopback && agentUrl.startsWith('http:') ? 'http' : 'https';
  return publishers.map((domain) => `${scheme}://${domain}/.well-known/adagents.json`);
}

function union(listings: readonly Listing[]): PinState {
  const sets: KeySet[] = [];
  const reasons: string[] = [];
  for (const { set, undecided } of listings) {
    if (set !== undefined) sets.push(set);
    if (undecided !== undefined && reasons.length < MAX_REASONS) reasons.push(undecided);
  }
  return { sets, ...(reasons.length > 0 && { undecided: reasons.join('; ') }) };
}

/** What one publisher's file says of one agent's keys. */
export interface Listing {
  /** The keys that are pinned; none where the file has no `signing_keys` for the agent. */
  readonly set?: KeySet;
  /** Why there may be others, or why this is not known. */
  readonly undecided?: string;
  /** Why the newest copy does not count: what is said here is an older one's, and cannot settle what is not there. */
  readonly broken?: string;
}

interface PublisherListingsOptions {
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

/** What a publisher's adagents.json says about keys (verification.md §5.5). */
export interface AdAgents {
  /**
   * By agent URL, byte for byte, only agents with `signing_keys[]`: the keys, or what is wrong with that list. One
   * agent's broken list is no reason to distrust what the publisher says of another.
   */
  readonly pinned: ReadonlyMap<string, KeySet | string>;
}

const HOUR_MS = 3_600_000;

/** An hour where the publisher says nothing, and at most: for that long a pin that was taken out still verifies. */
const LIFE: LifeRules = { minMs: 60_000, maxMs: HOUR_MS, silentMs: HOUR_MS };

/** The grace that a revocation list has too: four of its lives. */
const HARD_LIMIT_MS = 4 * HOUR_MS;

/** At most 1 MiB: verification.md §5.13. */
export const ADAGENTS: DocumentKind<AdAgents> = {
  name: 'adagents.json',
  maxBytes: 1_048_576,
  hardLimitMs: HARD_LIMIT_MS,
  life: LIFE,
  parse: parseAdAgents,
};

function parseAdAgents(bytes: Uint8Array): Parsed<AdAgents> {
  const json = parseStrictObject(bytes);
  if (!json.ok) return { ok: false, reason: json.detail };
  const { authorized_agents: agents, authoritative_location: location } = json.value;
  if (agents === undefined) {
    // Not followed (no redirects but for brand.json's), and not ignored either: what it points to may pin.
    return location === undefined
      ? { ok: true, value: { pinned: new Map() } }
      : { ok: false, reason: 'it only points elsewhere, which is not followed' };
  }
  if (!Array.isArray(agents)) return { ok: false, reason: 'authorized_agents is not an array' };
  const lists = new Map<string, unknown[]>();
  for (const entry of agents as unknown[]) {
    if (!isJsonObject(entry) || typeof entry['url'] !== 'string') continue;
    const keys = entry['signing_keys'];
    if (keys === undefined || keys === null) continue;
    // Several entries for one agent, each for some of the publisher's properties: one set.
    const known = lists.get(entry['url']);
    if (known) known.push(keys);
    else lists.set(entry['url'], [keys]);
  }
  const pinned = new Map<string, KeySet | string>();
  for (const [agentUrl, given] of lists) {
    const set = pinnedSet(given);
    if (set !== undefined) pinned.set(agentUrl, set);
  }
  return { ok: true, value: { pinned } };
}

/** Read strictly: an entry passed over would be a key of the seller's that is refused. Undefined: nothing is pinned. */
function pinnedSet(lists: readonly unknown[]): KeySet | string | undefined {
  if (!lists.every((list) => Array.isArray(list))) return 'signing_keys is not an array';
  const keys = lists.flat();
  if (keys.length === 0) return undefined;
  if (keys.length > MAX_KEYS) return `signing_keys has more than ${MAX_KEYS} keys`;
  const jwks = new Map<string, Jwk>();
  for (const jwk of keys) {
    if (!isJwk(jwk)) return 'signing_keys has an entry that is not a JWK';
    if (hasPrivateHalf(jwk)) return PRIVATE_HALF_PUBLISHED;
    const { kid } = jwk;
    if (typeof kid !== 'string' || kid === '') return 'signing_keys has a key without a kid';
    const known = jwks.get(kid);
    const key = publicPart(jwk);
    if (known !== undefined && !sameJwk(known, key)) return 'two keys have one kid';
    jwks.set(kid, key);
  }
  return { jwks, imported: new Map() };
}

/** What `ask` gives for each item, in their order, `width` at a time. Rejects with the first rejection. */
export async function pooled<T, R>(
  items: readonly T[],
  width: number,
  ask: (item: T) => Promise<R>,
): Promise<R[]> {
  const results = new Map<number, R>();
  const queue = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of queue) results.set(index, await ask(item));
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, work));
  return [...results].sort(([a], [b]) => a - b).map(([, result]) => result);
}
