// The search for a key of one sender: in its own pins, in publishers' pins and in its JWKS (verification.md §5.4,
// §5.5).
// Called by `key-search.ts`; `narrowed-search.ts` replaces it for senders of edition 3.3 with publishers.

import type { RaiseAlarm } from '../shared/alarms.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import type { Candidate } from './key-resolver.ts';
import type { Freshness } from './document.ts';
import { type EngineSource, importedKey, type KeySet, sameJwk } from './jwks.ts';
import { narrowedSearch, narrows, untriedFreshness } from './narrowed-search.ts';
import { createPinWatch } from './pin-watch.ts';
import type { PinPurposes } from './pin-purpose.ts';
import { isPinned, type Pins } from './pins.ts';
import type { PinState, PublisherPins } from './publisher-pins.ts';
import type { Search, SenderMatch, SenderSearch } from './key-search-contract.ts';
import type { SenderKeys } from './sender-keys.ts';

interface SenderSearchOptions {
  readonly keys: SenderKeys;
  readonly pins: Pins;
  readonly publishers: PublisherPins;
  readonly purposes: PinPurposes;
  readonly engine: EngineSource;
  readonly now: () => number;
  /** The time in ms after the start of a fetch within which its document is not fetched again for a missing key. */
  readonly cooldownMs: number;
  readonly raiseAlarm: RaiseAlarm;
  /** Returns the sender once for each URL at which its keys are searched. */
  readonly placesOf?: (sender: SenderEntry) => readonly SenderEntry[];
}

const NO_MATCH: SenderMatch = {};
const FINAL_NO_MATCH = { final: true };

export function createSenderSearch(options: SenderSearchOptions): SenderSearch {
  const { keys, pins, publishers, purposes, engine, now, cooldownMs } = options;
  const notePinned = createPinWatch(options);

  /**
   * Searches the owner's pins. If the list of pins is invalid, the result is undecided, because the mistake is the
   * owner's, not the seller's.
   */
  const matchOwnPins = async (sender: SenderEntry, keyid: string): Promise<SenderMatch> => {
    if (!isPinned(sender)) return {};
    const key = await pins.key(sender, keyid);
    if (typeof key === 'string') return { undecided: key };
    return key === undefined ? {} : { candidates: [{ sender, key }] };
  };

  /** Searches all key sets for keys with this `keyid`. A key that is in several sets is returned once. */
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

  /**
   * Searches publishers' pins. A pin that cannot be imported never leads to a 4xx answer, because it is the
   * publisher's mistake, not the seller's.
   */
  const matchPublisherPins = async (
    sender: SenderEntry,
    sets: readonly KeySet[],
    keyid: string,
  ): Promise<SenderMatch> => {
    const { candidates = [], undecided } = await matchKeys(sender, sets, keyid);
    const usable = candidates.filter(({ key }) => typeof key.verifyKey !== 'string');
    notePinned(usable);
    const reason = candidates.map(({ key }) => key.verifyKey).find((key) => typeof key === 'string');
    return {
      ...(usable.length > 0 && { candidates: usable }),
      ...(undecided !== undefined && { undecided: `a publisher pins several: ${undecided}` }),
      ...(reason !== undefined && { undecided: `a publisher pins a key that cannot be used: ${reason}` }),
    };
  };

  /** Gives each pinned key without a purpose (what it may sign) the purpose that the same key has in the JWKS. */
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

  /**
   * Gives pinned keys their purposes as `withPurposes` does, but from the cached JWKS. `expired` is set if the JWKS
   * has to be fetched.
   */
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

  const narrowed = narrowedSearch({ ...options, matchOwnPins, matchKeys, without });

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
      if (narrows(sender)) return narrowed.cached(sender, keyid);
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

    refreshed: async (sender, search) => {
      if (narrows(sender)) return narrowed.refreshed(sender, search);
      const { keyid, fetchBudget } = search;
      const state = await publishers.current(sender, fetchBudget);
      const pinned = await matchPublisherPins(sender, state.sets, keyid);
      if (pinned.candidates !== undefined) return withPurposes(sender, pinned, fetchBudget);
      if (isPinnedOnly(sender, state)) return {};
      const result = await keys.current(sender, fetchBudget(sender.agentUrl));
      return result.ok ? await matchKeys(sender, [result.copy.value], keyid) : {};
    },

    refetched: async (sender, asked) => {
      if (narrows(sender)) return narrowed.refetched(sender, asked);
      const { keyid, isFreshEnough, fetchBudget } = asked;
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
      // A publisher may have pinned the key since its file was fetched. So only a newer copy of the file proves that
      // there is no such key.
      const after = await publishers.renewed(sender, { hasWanted: hasKey, isFreshEnough }, fetchBudget);
      const found = await matchPublisherPins(sender, after.sets, keyid);
      const late = await withPurposes(sender, found, fetchBudget);
      return late.candidates !== undefined ? late : { ...published, ...undecidedOf(after), ...late };
    },

    untried: async (sender, asked, tried) => {
      if (narrows(sender)) return narrowed.untried(sender, asked, tried);
      const { keyid, fetchBudget, ...search } = asked;
      const freshness = untriedFreshness(search, now(), cooldownMs);
      const own = await matchOwnPins(sender, keyid);
      const state = await publishers.renewed(sender, freshness, fetchBudget);
      const found = await matchPublisherPins(sender, state.sets, keyid);
      const pinned = await withPurposes(sender, found, fetchBudget);
      if (isPinnedOnly(sender, state)) return without(tried, [undecidedOf(state), own, pinned]);
      const result = await keys.renewed(sender, freshness, fetchBudget(sender.agentUrl));
      if (result.ok) return without(tried, [await matchKeys(sender, [result.copy.value], keyid)]);
      // The cached JWKS may have a key that was not tried, because another sender's candidate came first. This key is
      // used, although the refresh failed.
      const known = await keys.cached(sender);
      const match = known ? await matchKeys(sender, [known.copy.value], keyid) : {};
      return without(tried, [match, { undecided: result.reason }]);
    },
  };
}

/**
 * True if the owner or a publisher pins keys for the sender, or a publisher's file is unknown. Then the JWKS is not
 * used (verification.md §5.5). Publishers do not count if `narrows` is true for the sender.
 */
function isPinnedOnly(sender: SenderEntry, { sets, undecided }: PinState): boolean {
  return isPinned(sender) || (!narrows(sender) && (sets.length > 0 || undecided !== undefined));
}

function undecidedOf({ undecided }: PinState): SenderMatch {
  return undecided === undefined ? {} : { undecided };
}

/** Merges search results, and removes the candidates that were tried and failed. */
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
