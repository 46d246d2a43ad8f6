// The keys that publishers pin for a sender in their adagents.json. If an entry becomes invalid, the last valid one is
// used for a time (verification.md §5.5, §5.18, §5.28).
// Called by each sender's search and by `key-owners.ts`.

import type { RaiseAlarm } from '../shared/alarms.ts';
import { putBounded } from '../shared/bounded.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import { type AdAgents, parseAdAgents } from './adagents.ts';
import type { Copy, CopyResult, DocumentKind, Freshness } from './document.ts';
import type { LifeRules } from './lifetimes.ts';
import type { DocumentCache } from './document-cache.ts';
import { type DeliveryBudget, unlimitedBudget } from './safe-fetch.ts';
import { heldKeys, type KeySet } from './jwks.ts';
import { createMoveWatch, nearMisses, nearMissText } from './agent-location.ts';

/** The keys that all publishers of a sender pin for it together (verification.md §5.5). */
export interface PinState {
  /** One key set for each publisher that pins keys. If empty and nothing is `undecided`, no publisher pins. */
  readonly sets: readonly KeySet[];
  /** The reason, for the owner's log, why publishers may pin keys that are not in `sets`; absent if they do not. */
  readonly undecided?: string;
}

interface CachedPins extends PinState {
  /** The key sets from copies within their lifetime. */
  readonly fresh: readonly KeySet[];
  /** True if at least one copy of a publisher's file is past its lifetime. */
  readonly hasExpired: boolean;
}

/**
 * The requirements of a caller on a copy of a publisher's file. The copy contains a certain key, or is recent enough to
 * prove that the key does not exist.
 */
interface PinFreshness extends Omit<Freshness<unknown>, 'hasWanted'> {
  readonly hasWanted: (set: KeySet) => boolean;
}

export interface PublisherPins {
  /** Returns the pins in cached copies; fetches nothing. */
  cached(sender: SenderEntry): CachedPins;
  /** Notes that the cached pins of a sender were used, which may start a background refresh. */
  noteUse(sender: SenderEntry): void;
  /** Returns the pins in copies within their lifetime. A copy that cannot be refreshed is used as it is. */
  current(sender: SenderEntry, fetchBudget?: DeliveryBudget['fetchBudget']): Promise<PinState>;
  /** Returns the pins in copies that satisfy `freshness`, fetched again if needed. Undecided if a fetch failed. */
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
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  /** Called with the pinned keys of an agent in every new copy of a publisher's file. */
  readonly noteKeys?: (agentUrl: string, set: KeySet) => void;
  /** The maximum number of files that are fetched at the same time for one sender. */
  readonly width: number;
}

const NO_PINS: CachedPins = { sets: [], fresh: [], hasExpired: false };
/** The maximum number of reasons in a message, enough to see what is wrong. */
const MAX_REASONS = 4;

export function createPublisherPins(options: PublisherPinsOptions): PublisherPins {
  const { cache, allowLoopback, width } = options;
  const listingOf = createPublisherListings(options);
  const noteMoved = createMoveWatch(options.raiseAlarm, 'adagents.json', 'points to');
  const urlsOf = (sender: SenderEntry): readonly string[] => adagentsUrls(sender, allowLoopback);

  const cachedCopy = (url: string): CachedFile | undefined => {
    const first = cache.cached(ADAGENTS, url);
    const next = first?.value.next;
    const copy = next === undefined ? first : cache.cached(AUTHORITATIVE, next);
    return first && copy && { copy, fresh: cache.isFresh(first) && cache.isFresh(copy) };
  };

  /**
   * Returns the publisher's entry about an agent (the listing). A file that cannot be fetched might pin keys. The
   * result is then undecided, and has the pins of the cached copy, if there is one.
   */
  const listingFrom = (agentUrl: string, url: string, result: CopyResult<AdAgents>): Listing => {
    if (result.ok) return listingOf(agentUrl, url, result.copy);
    const copy = cachedCopy(url)?.copy;
    const before = copy && listingOf(agentUrl, url, copy);
    return { ...before, undecided: `adagents.json at ${url}: ${result.reason}` };
  };

  const cached = (sender: SenderEntry): CachedPins => {
    const listings: Listing[] = [];
    const fresh: KeySet[] = [];
    let hasExpired = false;
    for (const url of urlsOf(sender)) {
      const known = cachedCopy(url);
      const listing = known
        ? listingOf(sender.agentUrl, url, known.copy)
        : { undecided: `adagents.json at ${url}: not cached` };
      listings.push(listing);
      if (known?.fresh === false) hasExpired = true;
      else if (listing.set !== undefined) fresh.push(listing.set);
    }
    return { ...union(listings), fresh, hasExpired };
  };

  return {
    cached: (sender) => (sender.publishers === undefined ? NO_PINS : cached(sender)),
    noteUse: (sender) => {
      for (const url of urlsOf(sender)) {
        cache.noteUse(ADAGENTS, url, sender.agentUrl);
        const next = cache.cached(ADAGENTS, url)?.value.next;
        if (next !== undefined) cache.noteUse(AUTHORITATIVE, next, sender.agentUrl);
      }
    },
    current: async (sender, fetchBudget = unlimitedBudget) => {
      const { agentUrl } = sender;
      const ask = async (url: string): Promise<Listing> => {
        const budget = fetchBudget(agentUrl);
        const load: LoadAdAgents = (kind, at) => cache.current(kind, at, budget);
        const result = await followed(url, load, (next) => noteMoved(agentUrl, next, url));
        return listingFrom(agentUrl, url, result);
      };
      return union(await mapConcurrently(urlsOf(sender), width, ask));
    },
    renewed: async (sender, { hasWanted, ...freshness }, fetchBudget) => {
      const { agentUrl } = sender;
      const ofDocument: Freshness<AdAgents> = {
        ...freshness,
        hasWanted: ({ value }) => {
          // A file that only points to another one (`next`) contains no keys, so a missing key is no reason to fetch it
          // again.
          if (value.next !== undefined) return true;
          const set = value.pinned.get(agentUrl);
          return typeof set === 'object' && hasWanted(set);
        },
      };
      const ask = async (url: string): Promise<Listing> => {
        const budget = fetchBudget(agentUrl);
        const load: LoadAdAgents = (kind, at) => cache.renewed(kind, at, ofDocument, budget);
        const result = await followed(url, load, (next) => noteMoved(agentUrl, next, url));
        const listing = listingFrom(agentUrl, url, result);
        return { ...(listing.broken !== undefined && { undecided: listing.broken }), ...listing };
      };
      return union(await mapConcurrently(urlsOf(sender), width, ask));
    },
  };
}

/** The cached file with a publisher's keys: the one at the publisher's URL, or the one to which it points. */
interface CachedFile {
  readonly copy: Copy<AdAgents>;
  /** True if this file, and the file that points to it (if any), are within their lifetimes. */
  readonly fresh: boolean;
}

type LoadAdAgents = (kind: DocumentKind<AdAgents>, url: string) => Promise<CopyResult<AdAgents>>;

/**
 * Loads the publisher's file or, if that file points to another one, the other one.
 * @param onNext called with the URL of the other file.
 */
export async function followed(
  url: string,
  load: LoadAdAgents,
  onNext?: (next: string) => void,
): Promise<CopyResult<AdAgents>> {
  const first = await load(ADAGENTS, url);
  const next = first.ok ? first.copy.value.next : undefined;
  if (next === undefined) return first;
  onNext?.(next);
  return await load(AUTHORITATIVE, next);
}

/**
 * Returns the URLs at which publishers pin the sender's keys.
 * @param allowLoopback for development: the URLs are http if the agent's URL is.
 */
export function adagentsUrls(
  { agentUrl, publishers }: SenderEntry,
  allowLoopback: boolean,
): readonly string[] {
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

/** One publisher's entry about one agent's keys. */
export interface Listing {
  /** The pinned keys; absent if the file has no `signing_keys` for the agent. */
  readonly set?: KeySet;
  /** The reason why the publisher may pin keys that are not in `set`. */
  readonly undecided?: string;
  /**
   * The reason why the newest copy is rejected. `set` then comes from an older copy, which cannot prove that a key is
   * absent.
   */
  readonly broken?: string;
}

interface PublisherListingsOptions extends Pick<PublisherPinsOptions, 'noteKeys'> {
  readonly raiseAlarm: RaiseAlarm;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
}

/** The last valid entry of a publisher about an agent. */
interface ValidListing {
  /** The time (Unix ms) until which this entry is used while newer copies are invalid. */
  hardUntil: number;
  readonly set: KeySet | undefined;
}

/** The maximum number of valid entries that are remembered. */
const MAX_VALID_LISTINGS = 10_000;

/**
 * Returns a function that reads an agent's entry in a publisher's file. If the entry is invalid, the publisher's last
 * valid entry is used until its hard limit, and an alarm is raised once per copy.
 */
export function createPublisherListings(
  options: PublisherListingsOptions,
): (agentUrl: string, url: string, copy: Copy<AdAgents>) => Listing {
  const { raiseAlarm, now, noteKeys } = options;
  const lastValid = new Map<string, ValidListing>();
  // A WeakMap, because a file also has the keys of other agents: only the document cache may keep it in memory.
  const takenFrom = new WeakMap<AdAgents, Map<string, ValidListing>>();
  const reportInvalid = createInvalidListingAlarm(raiseAlarm);
  const take = (agentUrl: string, url: string, copy: Copy<AdAgents>, set: KeySet | undefined): Listing => {
    const key = listingKey(agentUrl, url);
    const isFirstPin = set !== undefined && lastValid.get(key)?.set === undefined;
    const listing = putBounded(lastValid, key, { hardUntil: copy.hardUntil, set }, MAX_VALID_LISTINGS);
    const ofFile = takenFrom.get(copy.value) ?? new Map<string, ValidListing>();
    takenFrom.set(copy.value, ofFile.set(key, listing));
    if (set) noteKeys?.(agentUrl, set);
    if (isFirstPin) reportFirstPin(raiseAlarm, agentUrl, url);
    if (set === undefined) warnOfNearMisses(raiseAlarm, agentUrl, url, copy.value);
    return listingWith(set);
  };
  return (agentUrl, url, copy) => {
    const key = listingKey(agentUrl, url);
    const known = lastValid.get(key);
    if (known !== undefined && isCurrent(known, takenFrom.get(copy.value)?.get(key), now())) {
      known.hardUntil = copy.hardUntil;
      return listingWith(known.set);
    }
    const inForce = known !== undefined && now() < known.hardUntil ? known : undefined;
    const set = copy.value.pinned.get(agentUrl);
    const reason = notListedReason(copy.value, agentUrl) ?? flawIn(set);
    if (reason === undefined) {
      const mixed = mixedWith(set, inForce, now());
      if (mixed) reportInvalid(agentUrl, url, copy.value, mixed.warning);
      return take(agentUrl, url, copy, mixed?.value ?? setIn(set));
    }
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

/** Returns the reason to reject a file to which another one points: it lacks the agent. Otherwise undefined. */
export function notListedReason({ mustList }: AdAgents, agentUrl: string): string | undefined {
  return mustList?.has(agentUrl) === false
    ? 'its authoritative_location leads to a file that does not list the agent'
    : undefined;
}

type Listed = KeySet | string | undefined;

const flawIn = (listed: Listed): string | undefined => (typeof listed === 'string' ? listed : undefined);
const setIn = (listed: Listed): KeySet | undefined => (typeof listed === 'object' ? listed : undefined);

function mixedWith(
  listed: Listed,
  inForce: ValidListing | undefined,
  now: number,
): ReturnType<typeof heldKeys> {
  const [next, before] = [setIn(listed), inForce?.set];
  return next && before && inForce && heldKeys(next, { value: before, hardUntil: inForce.hardUntil }, now);
}

/**
 * True if the entry was read from this file before, and none of the keys kept from earlier files has expired. A 304
 * does not change the file.
 */
const isCurrent = (known: ValidListing, ofFile: ValidListing | undefined, now: number): boolean =>
  known === ofFile && [...(known.set?.held.values() ?? [])].every((until) => now < until);

/**
 * Raises an alarm when a publisher begins to pin keys for the agent, or begins again. From then on the seller alone no
 * longer decides which signatures are accepted (verification.md §5.28).
 */
function reportFirstPin(raiseAlarm: RaiseAlarm, agentUrl: string, url: string): void {
  raiseAlarm({
    code: 'publisher_pins',
    message: `adagents.json at ${url} pins keys for ${agentUrl}: only pinned keys verify now, and in edition 3.3 only if its JWKS has them too. Anybody who can write that file can end this seller's events by a key that is not its own, and in earlier editions sign as this seller.`,
    sender: agentUrl,
    url,
  });
}

/** Creates a function that reports what is wrong with an agent's entry, once per copy of the file. */
function createInvalidListingAlarm(
  raiseAlarm: RaiseAlarm,
): (agentUrl: string, url: string, value: AdAgents, reason: string) => void {
  const reported = new WeakMap<AdAgents, Set<string>>();
  return (agentUrl, url, value, reason) => {
    const agents = reported.get(value) ?? new Set<string>();
    reported.set(value, agents);
    if (agents.has(agentUrl)) return;
    agents.add(agentUrl);
    const message = `adagents.json at ${url}: what it pins for ${agentUrl} cannot be used: ${reason}. Its earlier pins stay in force until their hard limit.`;
    raiseAlarm({ code: 'key_document_invalid', message, sender: agentUrl, url, document: ADAGENTS.name });
  };
}

/** Warns the owner about keys that are pinned for a URL similar to the agent's; they are not used. */
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

const HOUR_MS = 3_600_000;

/** The lifetime is one hour by default and at most, because a removed pin still verifies for that long. */
const LIFE: LifeRules = { minMs: 60_000, maxMs: HOUR_MS, defaultMs: HOUR_MS };

/** If refreshes fail, a copy is used for four lifetimes, as a revocation list is. */
const HARD_LIMIT_MS = 4 * HOUR_MS;

/** The document kind of a publisher's adagents.json, at most 1 MiB (verification.md §5.13). */
export const ADAGENTS: DocumentKind<AdAgents> = {
  name: 'adagents.json',
  maxBytes: 1_048_576,
  hardLimitMs: HARD_LIMIT_MS,
  life: LIFE,
  redirects: true,
  parse: (bytes) => parseAdAgents(bytes),
};

/** The document kind of the file to which a publisher's adagents.json points. */
export const AUTHORITATIVE: DocumentKind<AdAgents> = {
  name: 'authoritative adagents.json',
  maxBytes: ADAGENTS.maxBytes,
  hardLimitMs: HARD_LIMIT_MS,
  life: LIFE,
  parse: (bytes) => {
    const parsed = parseAdAgents(bytes, true);
    if (!parsed.ok || parsed.value.next === undefined) return parsed;
    return { ok: false, reason: 'it points elsewhere again; only one such step is allowed' };
  },
};

/**
 * Calls `ask` for all items, at most `width` at a time, and returns the results in the order of the items. Rejects
 * with the first rejection.
 */
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
