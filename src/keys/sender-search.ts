import type { SenderEntry } from '../senders.ts';
import type { LoadBrandJson, Location, Locator } from './agent-location.ts';
import type { BrandJson } from './brand-json.ts';
import type { Candidate } from './contract.ts';
import { type DeliveryBudget, type FetchBudget, unlimitedBudget } from './safe-fetch.ts';
import { type Copy, type CopyResult, type DocumentKind, type Freshness, isWithin } from './document.ts';
import type { DocumentCache } from './document-cache.ts';
import { type EngineSource, importedKey, type KeySet, sameJwk } from './jwks.ts';
import type { PinPurposes } from './pin-purpose.ts';
import { isPinned, type Pins } from './pins.ts';
import type { PinState, PublisherPins } from './publisher-pins.ts';

/** The way from a sender to its key set: brand.json, `jwks_uri`, JWKS (verification.md §5.1 to §5.4). */
export interface SenderKeys {
  /** `cached` without a promise, where every copy is fresh and was used before; undefined where `cached` has to be asked. */
  cachedSync(sender: SenderEntry): CachedKeys | undefined;
  /** From cached copies; nothing is fetched. */
  cached(sender: SenderEntry): Promise<CachedKeys | undefined>;
  /** The set within its lifetime, or the cached one where it cannot be refreshed. */
  current(sender: SenderEntry, budget?: FetchBudget): Promise<CopyResult<KeySet>>;
  /** A set as fresh as asked for, fetched again if need be. brand.json is refreshed only by its own lifetime. */
  renewed(
    sender: SenderEntry,
    freshness: Freshness<KeySet>,
    budget: FetchBudget,
  ): Promise<CopyResult<KeySet>>;
}

interface CachedKeys {
  readonly copy: Copy<KeySet>;
  /** Every document on the way is within its lifetime. */
  readonly fresh: boolean;
  /** See `DocumentCache.noteUse`. */
  noteUse(): void;
}

/** The documents on the way. */
interface ChainKinds {
  readonly brandJson: DocumentKind<BrandJson>;
  readonly jwks: DocumentKind<KeySet>;
}

export function createSenderKeys(
  cache: DocumentCache,
  { brandJson, jwks }: ChainKinds,
  { locate, cachedUri }: Locator,
  /** Told of every copy of a sender's keys. */
  noteKeys: (agentUrl: string, set: KeySet) => void = () => undefined,
): SenderKeys {
  /** Where brand.json says nothing usable about this agent, it is fetched again under the cooldown. */
  const find = async (sender: SenderEntry, budget: FetchBudget): Promise<Location> => {
    const fetchCount = cache.fetchCount();
    const location = await locate(sender, (url) => cache.current(brandJson, url, budget));
    if (location.ok || !location.renewable) return location;
    const freshness: Freshness<BrandJson> = {
      hasWanted: () => false,
      isFreshEnough: (copy) => copy.fetchNumber > fetchCount,
    };
    const newer: LoadBrandJson = async (url) => {
      const result = await cache.renewed(brandJson, url, freshness, budget);
      return result.ok ? result : await cache.current(brandJson, url, budget);
    };
    return await locate(sender, newer);
  };

  const freshCopy = <T>(kind: DocumentKind<T>, url: string): Copy<T> | undefined => {
    const copy = cache.cached(kind, url);
    return copy !== undefined && cache.isFresh(copy) ? copy : undefined;
  };

  const noted = ({ agentUrl }: SenderEntry, result: CopyResult<KeySet>): CopyResult<KeySet> => {
    if (result.ok) noteKeys(agentUrl, result.copy.value);
    return result;
  };

  const noteUse = (brandUrls: readonly string[], jwksUri: string, { agentUrl }: SenderEntry): void => {
    for (const url of brandUrls) cache.noteUse(brandJson, url, agentUrl);
    cache.noteUse(jwks, jwksUri, agentUrl);
  };

  return {
    cachedSync: (sender) => {
      const urls: string[] = [];
      const jwksUri = cachedUri(sender, (url) => {
        urls.push(url);
        return freshCopy(brandJson, url)?.value;
      });
      if (jwksUri === undefined) return undefined;
      const copy = freshCopy(jwks, jwksUri);
      if (copy) noteKeys(sender.agentUrl, copy.value);
      return copy && { copy, fresh: true, noteUse: () => noteUse(urls, jwksUri, sender) };
    },
    cached: async (sender) => {
      let fresh = true;
      const urls: string[] = [];
      const location = await locate(sender, (url) => {
        urls.push(url);
        const copy = cache.cached(brandJson, url);
        if (copy === undefined) return { ok: false, reason: 'not cached' };
        fresh &&= cache.isFresh(copy);
        return { ok: true, copy };
      });
      if (!location.ok) return undefined;
      const { jwksUri } = location;
      const copy = cache.cached(jwks, jwksUri);
      if (copy === undefined) return undefined;
      fresh &&= cache.isFresh(copy);
      return { copy, fresh, noteUse: () => noteUse(urls, jwksUri, sender) };
    },
    current: async (sender, budget = unlimitedBudget(sender.agentUrl)) => {
      const location = await find(sender, budget);
      return location.ok ? noted(sender, await cache.current(jwks, location.jwksUri, budget)) : location;
    },
    renewed: async (sender, freshness, budget) => {
      const location = await find(sender, budget);
      return location.ok
        ? noted(sender, await cache.renewed(jwks, location.jwksUri, freshness, budget))
        : location;
    },
  };
}

/** What one sender has under a key id; both members where an old key is cached and a newer one could not be had. */
export interface SenderMatch {
  /** Several where publishers pin several keys under one `kid`. Absent or at least one. */
  readonly candidates?: readonly Candidate[];
  /** Why this sender's keys do not decide; for the owner's log. */
  readonly undecided?: string;
}

/** One delivery's search. */
export interface Search {
  readonly keyid: string;
  /**
   * Whether a document was fetched after the delivery arrived, which alone makes a missing key unknown
   * (verification.md §2.26). The clock decides only where fetch numbers do not: two events of one millisecond have no
   * order, and a wrong "unknown" would end the event.
   */
  readonly isFreshEnough: (copy: Copy<unknown>) => boolean;
  /** Of one sender, or of one publisher's file. */
  readonly fetchBudget: DeliveryBudget['fetchBudget'];
}

/** One sender's part in a search: its own pins, those of its publishers, and its JWKS where nobody pins. */
export interface SenderSearch {
  /** Fetches what a first delivery would need. */
  warm(sender: SenderEntry): Promise<void>;
  /**
   * `cached` without a promise, where the sender's own pins decide, or its fresh JWKS where nobody pins; undefined where
   * `cached` has to be asked. `final`: only the owner's pins could have the key, and they lack it.
   */
  cachedSync(sender: SenderEntry, keyid: string): (SenderMatch & { readonly final?: boolean }) | undefined;
  /** Whether a key of that id is pinned, or in a fresh JWKS. */
  hasCached(sender: SenderEntry, keyid: string): boolean;
  /** From cached copies. `expired`: there is a key, in a copy past its lifetime. */
  cached(sender: SenderEntry, keyid: string): Promise<SenderMatch & { readonly expired?: boolean }>;
  /** From copies within their lifetime, or the cached ones where those cannot be refreshed. */
  readonly refreshed: (sender: SenderEntry, search: Search) => Promise<SenderMatch>;
  /** Step 4 (verification.md §5.4), where no cached copy has the key: documents are fetched again. */
  readonly refetched: (sender: SenderEntry, search: Search) => Promise<SenderMatch>;
  /** After every key in `tried` failed: others under the same `keyid`, from documents that are recent enough to say. */
  untried(sender: SenderEntry, search: Search, tried: readonly Candidate[]): Promise<SenderMatch>;
}

interface SenderSearchOptions {
  readonly keys: SenderKeys;
  readonly pins: Pins;
  readonly publishers: PublisherPins;
  readonly purposes: PinPurposes;
  readonly engine: EngineSource;
  readonly now: () => number;
  /** A document whose fetch began less than this many ms ago is as good as one fetched now. */
  readonly cooldownMs: number;
}

const NO_MATCH: SenderMatch = {};
const FINAL_NO_MATCH = { final: true };

export function createSenderSearch(options: SenderSearchOptions): SenderSearch {
  const { keys, pins, publishers, purposes, engine, now, cooldownMs } = options;

  /** A list of pins that is invalid is a mistake of the owner: undecided. */
  const matchOwnPins = async (sender: SenderEntry, keyid: string): Promise<SenderMatch> => {
    if (!isPinned(sender)) return {};
    const key = await pins.key(sender, keyid);
    if (typeof key === 'string') return { undecided: key };
    return key === undefined ? {} : { candidates: [{ sender, key }] };
  };

  /** The keys under one `keyid` in all sets; one key that several sets have counts once. */
  const matchKeys = async (
    sender: SenderEntry,
    sets: readonly KeySet[],
    keyid: string,
  ): Promise<SenderMatch> => {
    const candidates: Candidate[] = [];
    let undecided: string | undefined;
    for (const set of sets) {
      if (set.ambiguous.has(keyid)) undecided = 'keys that differ share the kid';
      const key = await importedKey(set, keyid, engine);
      if (key === undefined || candidates.some((other) => sameJwk(other.key.jwk, key.jwk))) continue;
      candidates.push({ sender, key });
    }
    return {
      ...(candidates.length > 0 && { candidates }),
      ...(undecided !== undefined && { undecided }),
    };
  };

  /** A pin that cannot be imported is the publisher's mistake, for which the seller must not be answered 4xx. */
  const matchPublisherPins = async (
    sender: SenderEntry,
    sets: readonly KeySet[],
    keyid: string,
  ): Promise<SenderMatch> => {
    const { candidates = [], undecided } = await matchKeys(sender, sets, keyid);
    const usable = candidates.filter(({ key }) => typeof key.verifyKey !== 'string');
    const reason = candidates.map(({ key }) => key.verifyKey).find((key) => typeof key === 'string');
    return {
      ...(usable.length > 0 && { candidates: usable }),
      ...(undecided !== undefined && { undecided: `a publisher pins several: ${undecided}` }),
      ...(reason !== undefined && { undecided: `a publisher pins a key that cannot be used: ${reason}` }),
    };
  };

  /** Pins that state no purpose have it by the JWKS, which is asked for nothing else. */
  const withPurposes = async (
    sender: SenderEntry,
    { candidates, ...match }: SenderMatch,
    fetchBudget: Search['fetchBudget'],
  ): Promise<SenderMatch> => {
    if (!candidates?.some(purposes.lacks)) return { ...match, ...(candidates && { candidates }) };
    const result = await keys.current(sender, fetchBudget(sender.agentUrl));
    const published = result.ok ? result.copy.value : undefined;
    return { ...match, candidates: purposes.given(candidates, published) };
  };

  /** The same from the cached JWKS; `expired` where it has to be fetched. */
  const cachedPurposes = async (
    sender: SenderEntry,
    match: SenderMatch,
    candidates: readonly Candidate[],
  ): Promise<SenderMatch & { readonly expired?: boolean }> => {
    if (!candidates.some(purposes.lacks)) return match;
    const published = await keys.cached(sender);
    if (published?.fresh !== true) return { expired: true };
    published.noteUse();
    return { ...match, candidates: purposes.given(candidates, published.copy.value) };
  };

  const publishedSync = (sender: SenderEntry, keyid: string): SenderMatch | undefined => {
    const published = keys.cachedSync(sender);
    if (published === undefined) return undefined;
    const { jwks, imported } = published.copy.value;
    if (!jwks.has(keyid)) return NO_MATCH;
    const key = imported.get(keyid);
    if (key === undefined) return undefined;
    published.noteUse();
    return { candidates: [{ sender, key }] };
  };

  return {
    warm: async (sender) => {
      if (!isPinnedOnly(sender, await publishers.current(sender))) await keys.current(sender);
    },

    cachedSync: (sender, keyid) => {
      const hasPublishers = sender.publishers !== undefined;
      if (!isPinned(sender)) return hasPublishers ? undefined : publishedSync(sender, keyid);
      const key = pins.imported(sender, keyid);
      if (key !== undefined) return { candidates: [{ sender, key }] };
      return !hasPublishers && pins.lacks(sender, keyid) ? FINAL_NO_MATCH : undefined;
    },

    hasCached: ({ pins: own = [], ...sender }, keyid) =>
      own.some(({ kid }) => kid === keyid) ||
      publishers.cached(sender).sets.some(({ jwks }) => jwks.has(keyid)) ||
      keys.cachedSync(sender)?.copy.value.jwks.has(keyid) === true,

    cached: async (sender, keyid) => {
      const own = await matchOwnPins(sender, keyid);
      if (own.candidates !== undefined || own.undecided !== undefined) return own;
      const state = publishers.cached(sender);
      const pinned = await matchPublisherPins(sender, state.fresh, keyid);
      if (pinned.candidates !== undefined) {
        publishers.noteUse(sender);
        return cachedPurposes(sender, pinned, pinned.candidates);
      }
      if (state.sets.some(({ jwks }) => jwks.has(keyid))) return { expired: true };
      if (isPinnedOnly(sender, state)) return {};
      const published = await keys.cached(sender);
      if (published === undefined || !published.copy.value.jwks.has(keyid)) return {};
      if (state.hasExpired || !published.fresh) return { expired: true };
      publishers.noteUse(sender);
      published.noteUse();
      return await matchKeys(sender, [published.copy.value], keyid);
    },

    refreshed: async (sender, { keyid, fetchBudget }) => {
      const state = await publishers.current(sender, fetchBudget);
      const pinned = await matchPublisherPins(sender, state.sets, keyid);
      if (pinned.candidates !== undefined) return withPurposes(sender, pinned, fetchBudget);
      if (isPinnedOnly(sender, state)) return {};
      const result = await keys.current(sender, fetchBudget(sender.agentUrl));
      return result.ok ? await matchKeys(sender, [result.copy.value], keyid) : {};
    },

    refetched: async (sender, { keyid, isFreshEnough, fetchBudget }) => {
      const own = await matchOwnPins(sender, keyid);
      if (own.candidates !== undefined || own.undecided !== undefined) return own;
      const hasKey = (set: KeySet): boolean => set.jwks.has(keyid);
      const before = await publishers.current(sender, fetchBudget);
      const pinned = await matchPublisherPins(sender, before.sets, keyid);
      if (pinned.candidates !== undefined) return withPurposes(sender, pinned, fetchBudget);
      let published: SenderMatch = {};
      if (!isPinnedOnly(sender, before)) {
        const freshness: Freshness<KeySet> = { hasWanted: ({ value }) => hasKey(value), isFreshEnough };
        const result = await keys.renewed(sender, freshness, fetchBudget(sender.agentUrl));
        if (!result.ok) return { undecided: result.reason };
        published = await matchKeys(sender, [result.copy.value], keyid);
        if (published.candidates !== undefined) return published;
      }
      // A publisher may have pinned a key since its file was fetched: it too has to say that there is none.
      const after = await publishers.renewed(sender, { hasWanted: hasKey, isFreshEnough }, fetchBudget);
      const found = await matchPublisherPins(sender, after.sets, keyid);
      const late = await withPurposes(sender, found, fetchBudget);
      return late.candidates !== undefined ? late : { ...published, ...undecidedOf(after), ...late };
    },

    untried: async (sender, { keyid, fetchBudget, ...search }, tried) => {
      const startedAt = now();
      const isRecent = (copy: Copy<unknown>): boolean =>
        copy.isRevalidated !== true && isWithin(startedAt, copy.fetchedAt, cooldownMs);
      const freshness = {
        hasWanted: () => false,
        isFreshEnough: (copy: Copy<unknown>) => search.isFreshEnough(copy) || isRecent(copy),
      };
      const own = await matchOwnPins(sender, keyid);
      const state = await publishers.renewed(sender, freshness, fetchBudget);
      const found = await matchPublisherPins(sender, state.sets, keyid);
      const pinned = await withPurposes(sender, found, fetchBudget);
      if (isPinnedOnly(sender, state)) return without(tried, [undecidedOf(state), own, pinned]);
      const result = await keys.renewed(sender, freshness, fetchBudget(sender.agentUrl));
      if (result.ok) return without(tried, [await matchKeys(sender, [result.copy.value], keyid)]);
      // A cached key that was not tried, because another sender's came first, is better than none.
      const known = await keys.cached(sender);
      const match = known ? await matchKeys(sender, [known.copy.value], keyid) : {};
      return without(tried, [match, { undecided: result.reason }]);
    },
  };
}

/** Somebody pins, or may: then the JWKS is not consulted (verification.md §5.5). */
function isPinnedOnly(sender: SenderEntry, { sets, undecided }: PinState): boolean {
  return isPinned(sender) || sets.length > 0 || undecided !== undefined;
}

function undecidedOf({ undecided }: PinState): SenderMatch {
  return undecided === undefined ? {} : { undecided };
}

/** The matches as one, less the candidates that were tried in vain. */
function without(tried: readonly Candidate[], matches: readonly SenderMatch[]): SenderMatch {
  const candidates: Candidate[] = [];
  for (const candidate of matches.flatMap((match) => match.candidates ?? [])) {
    const isSame = ({ sender, key }: Candidate): boolean =>
      sender.agentUrl === candidate.sender.agentUrl && sameJwk(key.jwk, candidate.key.jwk);
    if (!tried.some(isSame) && !candidates.some(isSame)) candidates.push(candidate);
  }
  const undecided = matches.find((match) => match.undecided !== undefined)?.undecided;
  return {
    ...(candidates.length > 0 && { candidates }),
    ...(undecided !== undefined && { undecided }),
  };
}
