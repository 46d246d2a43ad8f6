import type { RaiseAlarm } from '../alarms.ts';
import { revokedSince } from '../auth/rfc9421/revoked-at.ts';
import { putBounded } from '../bounded.ts';
import { isJsonObject, present } from '../codec/members.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { Jwk } from '../crypto/engine.ts';
import type { SenderEntry } from '../senders.ts';
import type { Copy, CopyResult, DocumentKind, Freshness, LifeRules, Parsed } from './document.ts';
import type { DocumentCache } from './document-cache.ts';
import { type DeliveryBudget, unlimitedBudget } from './safe-fetch.ts';
import {
  hasPrivateHalf,
  isJwk,
  type KeySet,
  MAX_KEYS,
  newKeySet,
  PRIVATE_HALF_PUBLISHED,
  publicPart,
  rejectsKeyUpdate,
  sameJwk,
} from './jwks.ts';
import { nearMisses, nearMissText } from './agent-location.ts';

/** Which keys the publishers of a sender pin (verification.md §5.5): the union of what each one says. */
export interface PinState {
  /** None, and nothing undecided: no publisher pins. */
  readonly sets: readonly KeySet[];
  /** Why other keys may be pinned than these; for the owner's log. */
  readonly undecided?: string;
}

interface CachedPins extends PinState {
  /** The sets from copies within their life. */
  readonly fresh: readonly KeySet[];
  /** Some copy is past its lifetime. */
  readonly hasExpired: boolean;
}

/** What is needed of a publisher's file that is fetched again beyond its own life. */
interface PinFreshness extends Omit<Freshness<unknown>, 'hasWanted'> {
  readonly hasWanted: (set: KeySet) => boolean;
}

export interface PublisherPins {
  /** From cached copies; nothing is fetched. */
  cached(sender: SenderEntry): CachedPins;
  /** See `DocumentCache.noteUse`. */
  noteUse(sender: SenderEntry): void;
  /** From copies within their lifetime, or the cached ones where those cannot be refreshed. */
  current(sender: SenderEntry, fetchBudget?: DeliveryBudget['fetchBudget']): Promise<PinState>;
  /** From copies as fresh as asked for, fetched again if need be; undecided where one of them could not. */
  renewed(
    sender: SenderEntry,
    freshness: PinFreshness,
    fetchBudget: DeliveryBudget['fetchBudget'],
  ): Promise<PinState>;
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

const NO_PINS: CachedPins = { sets: [], fresh: [], hasExpired: false };
/** Enough to see what is wrong. */
const MAX_REASONS = 4;

export function createPublisherPins(options: PublisherPinsOptions): PublisherPins {
  const { cache, allowLoopback, width } = options;
  const listingOf = createPublisherListings(options);
  const urlsOf = (sender: SenderEntry): readonly string[] => adagentsUrls(sender, allowLoopback);

  /** A file that cannot be had might pin: undecided, beside what an older copy says. */
  const listingFrom = (agentUrl: string, url: string, result: CopyResult<AdAgents>): Listing => {
    if (result.ok) return listingOf(agentUrl, url, result.copy);
    const copy = cache.cached(ADAGENTS, url);
    const before = copy && listingOf(agentUrl, url, copy);
    return { ...before, undecided: `adagents.json at ${url}: ${result.reason}` };
  };

  const cached = (sender: SenderEntry): CachedPins => {
    const listings: Listing[] = [];
    const fresh: KeySet[] = [];
    let hasExpired = false;
    for (const url of urlsOf(sender)) {
      const copy = cache.cached(ADAGENTS, url);
      const listing = copy
        ? listingOf(sender.agentUrl, url, copy)
        : { undecided: `adagents.json at ${url}: not cached` };
      listings.push(listing);
      if (copy && !cache.isFresh(copy)) hasExpired = true;
      else if (listing.set !== undefined) fresh.push(listing.set);
    }
    return { ...union(listings), fresh, hasExpired };
  };

  return {
    cached: (sender) => (sender.publishers === undefined ? NO_PINS : cached(sender)),
    noteUse: (sender) => {
      for (const url of urlsOf(sender)) cache.noteUse(ADAGENTS, url, sender.agentUrl);
    },
    current: async (sender, fetchBudget = unlimitedBudget) => {
      const { agentUrl } = sender;
      const ask = async (url: string): Promise<Listing> =>
        listingFrom(agentUrl, url, await cache.current(ADAGENTS, url, fetchBudget(agentUrl)));
      return union(await mapConcurrently(urlsOf(sender), width, ask));
    },
    renewed: async (sender, { hasWanted, ...freshness }, fetchBudget) => {
      const { agentUrl } = sender;
      const ofDocument: Freshness<AdAgents> = {
        ...freshness,
        hasWanted: ({ value }) => {
          const set = value.pinned.get(agentUrl);
          return typeof set === 'object' && hasWanted(set);
        },
      };
      const ask = async (url: string): Promise<Listing> => {
        const result = await cache.renewed(ADAGENTS, url, ofDocument, fetchBudget(agentUrl));
        const listing = listingFrom(agentUrl, url, result);
        return { ...(listing.broken !== undefined && { undecided: listing.broken }), ...listing };
      };
      return union(await mapConcurrently(urlsOf(sender), width, ask));
    },
  };
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
  /** Why the newest copy does not count: the rest is an older one's, and cannot show that a key is missing. */
  readonly broken?: string;
}

interface PublisherListingsOptions {
  readonly raiseAlarm: RaiseAlarm;
  /** Unix ms. */
  readonly now: () => number;
}

/** The last valid listing of an agent by a publisher. */
interface ValidListing {
  copy: Copy<AdAgents>;
  readonly set: KeySet | undefined;
}

/** As many as the cache has documents. */
const MAX_VALID_LISTINGS = 10_000;

/**
 * Reads an agent's entry in a publisher's file. Where that entry is invalid the publisher's last valid one stays in force
 * until its own hard limit, as a whole document would, and an alarm is raised once a copy.
 */
export function createPublisherListings(
  options: PublisherListingsOptions,
): (agentUrl: string, url: string, copy: Copy<AdAgents>) => Listing {
  const { raiseAlarm, now } = options;
  const lastValid = new Map<string, ValidListing>();
  const reportInvalid = createInvalidListingAlarm(raiseAlarm);
  const take = (agentUrl: string, url: string, copy: Copy<AdAgents>, set: KeySet | undefined): Listing => {
    const key = listingKey(agentUrl, url);
    const isFirstPin = set !== undefined && lastValid.get(key)?.set === undefined;
    putBounded(lastValid, key, { copy, set }, MAX_VALID_LISTINGS);
    if (isFirstPin) reportFirstPin(raiseAlarm, agentUrl, url);
    if (set === undefined) warnOfNearMisses(raiseAlarm, agentUrl, url, copy.value);
    return listingWith(set);
  };
  return (agentUrl, url, copy) => {
    const known = lastValid.get(listingKey(agentUrl, url));
    if (known !== undefined && known.copy.value === copy.value) {
      known.copy = copy;
      return listingWith(known.set);
    }
    const inForce = known !== undefined && now() < known.copy.hardUntil ? known : undefined;
    const set = copy.value.pinned.get(agentUrl);
    const reason = invalidReason(set, inForce);
    if (reason === undefined) return take(agentUrl, url, copy, typeof set === 'object' ? set : undefined);
    reportInvalid(agentUrl, url, copy.value, reason);
    const broken = `adagents.json at ${url}: ${reason}`;
    return inForce === undefined ? { undecided: broken } : { ...listingWith(inForce.set), broken };
  };
}

function listingKey(agentUrl: string, url: string): string {
  return `${agentUrl} ${url}`;
}

function listingWith(set: KeySet | undefined): Listing {
  return set ? { set } : {};
}

function invalidReason(
  set: KeySet | string | undefined,
  inForce: ValidListing | undefined,
): string | undefined {
  if (typeof set === 'string') return set;
  return set && inForce?.set && rejectsKeyUpdate(set, inForce.set);
}

/** From here on the publisher decides whose signature counts, and not the seller (verification.md §5.28). */
function reportFirstPin(raiseAlarm: RaiseAlarm, agentUrl: string, url: string): void {
  raiseAlarm({
    code: 'publisher_pins',
    message: `adagents.json at ${url} pins keys for ${agentUrl}: only pinned keys verify now, and its JWKS is not consulted. Anybody who can write that file can sign as this seller, and end its events by a key that is not its own.`,
    sender: agentUrl,
    url,
  });
}

/** Reports what is wrong with an agent's entry, once a copy. */
function createInvalidListingAlarm(
  raiseAlarm: RaiseAlarm,
): (agentUrl: string, url: string, value: AdAgents, reason: string) => void {
  const reported = new WeakMap<AdAgents, Set<string>>();
  return (agentUrl, url, value, reason) => {
    const agents = reported.get(value) ?? new Set<string>();
    reported.set(value, agents);
    if (agents.has(agentUrl)) return;
    agents.add(agentUrl);
    const message = `adagents.json at ${url}: what it pins for ${agentUrl} cannot be used: ${reason}. What it pinned before stays in force until its hard limit.`;
    raiseAlarm({ code: 'key_document_invalid', message, sender: agentUrl, url, document: ADAGENTS.name });
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
   * agent's broken list is not a reason to distrust what the publisher says of another.
   */
  readonly pinned: ReadonlyMap<string, KeySet | string>;
}

const HOUR_MS = 3_600_000;

/** An hour where the publisher says nothing, and at most: for that long a pin that was taken out still verifies. */
const LIFE: LifeRules = { minMs: 60_000, maxMs: HOUR_MS, defaultMs: HOUR_MS };

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
  const pinned = new Map<string, KeySet | string>();
  for (const [agentUrl, lists] of keyListsByAgent(agents as unknown[])) {
    const set = pinnedSet(lists);
    if (set !== undefined) pinned.set(agentUrl, set);
  }
  return { ok: true, value: { pinned } };
}

/** An agent may have several entries, each for some of the publisher's properties: their keys are one set. */
function keyListsByAgent(agents: readonly unknown[]): Map<string, unknown[]> {
  const lists = new Map<string, unknown[]>();
  for (const entry of agents) {
    if (!isJsonObject(entry) || typeof entry['url'] !== 'string') continue;
    const keys = present(entry, 'signing_keys');
    if (keys === undefined) continue;
    const known = lists.get(entry['url']);
    if (known) known.push(keys);
    else lists.set(entry['url'], [keys]);
  }
  return lists;
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
    if (revokedSince(jwk) === Number.NEGATIVE_INFINITY)
      return 'signing_keys has a revoked_at that is no timestamp';
    const known = jwks.get(kid);
    const key = publicPart(jwk);
    if (known !== undefined && !sameJwk(known, key)) return 'two keys have one kid';
    jwks.set(kid, key);
  }
  return newKeySet(jwks);
}

/** What `ask` gives for each item, in their order, `width` at a time. Rejects with the first rejection. */
export async function mapConcurrently<T, R>(
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
