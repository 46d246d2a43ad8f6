// The key search for one sender if only those keys of its JWKS count that publishers pin too, as in edition 3.3
// (verification.md §5.5).
// Called by `sender-search.ts` for senders for which `narrows` is true.

import { sameMaterial } from '../auth/rfc9421/revoked-at.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import type { Candidate } from './key-resolver.ts';
import { type Copy, type FetchMoment, type Freshness, isWithin } from './document.ts';
import { allKeys, type KeySet } from './jwks.ts';
import { isPinned } from './pins.ts';
import type { PinState, PublisherPins } from './publisher-pins.ts';
import type { Search, SenderMatch, SenderSearch } from './key-search-contract.ts';
import type { SenderKeys } from './sender-keys.ts';

/**
 * True if publishers' pins restrict the sender's JWKS (a key must be in both), instead of replacing it
 * (verification.md §5.5).
 */
export function narrows({ edition, publishers }: SenderEntry): boolean {
  return edition.publisherPins === 'narrow' && publishers !== undefined;
}

interface NarrowedSearchParts {
  readonly keys: SenderKeys;
  readonly publishers: PublisherPins;
  readonly now: () => number;
  readonly cooldownMs: number;
  /** Searches the pins that the owner configured for a sender. Publishers' pins have no effect on these. */
  readonly matchOwnPins: (sender: SenderEntry, keyid: string) => Promise<SenderMatch>;
  readonly matchKeys: (sender: SenderEntry, sets: readonly KeySet[], keyid: string) => Promise<SenderMatch>;
  /** Merges search results, and removes the candidates in `tried`. */
  readonly without: (tried: readonly Candidate[], matches: readonly SenderMatch[]) => SenderMatch;
}

/**
 * Makes the search for a sender whose JWKS is narrowed by publishers' pins (`narrows`). A key is found if it is in the
 * JWKS and in the list of every publisher that pins keys for the sender.
 */
export function narrowedSearch({
  keys,
  publishers,
  now,
  cooldownMs,
  matchOwnPins,
  matchKeys,
  without,
}: NarrowedSearchParts): Pick<SenderSearch, 'cached' | 'refreshed' | 'refetched' | 'untried'> {
  const renewed = async (
    sender: SenderEntry,
    keyid: string,
    freshness: Pick<Freshness<KeySet>, 'hasWanted'> & Pick<Search, 'isFreshEnough'>,
    fetchBudget: Search['fetchBudget'],
    isAgain = false,
  ): Promise<SenderMatch> => {
    const result = await keys.renewed(sender, freshness, fetchBudget(sender.agentUrl));
    if (!result.ok) return { undecided: result.reason };
    const found = await matchKeys(sender, [result.copy.value], keyid);
    if (found.candidates === undefined) return found;
    const { candidates } = found;
    if (!isAgain) {
      const first = narrowed(found, await publishers.current(sender, fetchBudget));
      if (first.candidates !== undefined) return first;
    }
    const hasWanted = (set: KeySet): boolean =>
      !isAgain && candidates.every((one) => pinsIn(set, one) !== undefined);
    const { isFreshEnough } = freshness;
    return narrowed(found, await publishers.renewed(sender, { hasWanted, isFreshEnough }, fetchBudget));
  };

  return {
    cached: async (sender, keyid) => {
      if (isPinned(sender)) return matchOwnPins(sender, keyid);
      const published = await keys.cached(sender);
      if (published === undefined || !published.copy.value.jwks.has(keyid)) return {};
      const state = publishers.cached(sender);
      if (state.hasExpired || !published.fresh) return { expired: true };
      publishers.noteUse(sender);
      published.noteUse();
      const { candidates } = narrowed(await matchKeys(sender, [published.copy.value], keyid), state);
      return candidates ? { candidates } : {};
    },
    refreshed: async (sender, { keyid, fetchBudget }) => {
      const result = await keys.current(sender, fetchBudget(sender.agentUrl));
      if (!result.ok) return {};
      const found = await matchKeys(sender, [result.copy.value], keyid);
      const { candidates } = narrowed(found, await publishers.current(sender, fetchBudget));
      return candidates ? { candidates } : {};
    },
    refetched: async (sender, { keyid, isFreshEnough, fetchBudget }) => {
      if (isPinned(sender)) return matchOwnPins(sender, keyid);
      const hasWanted = ({ value }: Copy<KeySet>): boolean => value.jwks.has(keyid);
      return renewed(sender, keyid, { hasWanted, isFreshEnough }, fetchBudget);
    },
    untried: async (sender, { keyid, fetchBudget, ...search }, tried) => {
      if (isPinned(sender)) return without(tried, [await matchOwnPins(sender, keyid)]);
      const freshness = untriedFreshness(search, now(), cooldownMs);
      return without(tried, [await renewed(sender, keyid, freshness, fetchBudget, true)]);
    },
  };
}

/**
 * Returns the requirements on a copy for a search after all tried keys have failed. A copy suffices if it was fetched
 * after the delivery arrived or within the cooldown, whatever keys it has.
 */
export function untriedFreshness(
  search: Pick<Search, 'isFreshEnough'>,
  now: number,
  cooldownMs: number,
): { readonly hasWanted: () => boolean } & Pick<Search, 'isFreshEnough'> {
  const isRecent = (copy: FetchMoment): boolean =>
    copy.isRevalidated !== true && isWithin(now, copy.fetchedAt, cooldownMs);
  return {
    hasWanted: () => false,
    isFreshEnough: (copy: FetchMoment) => search.isFreshEnough(copy) || isRecent(copy),
  };
}

/** Returns the JWKs in a publisher's set with the same key material as the candidate. Undefined if there is none. */
function pinsIn(set: KeySet, { key }: Candidate): readonly Candidate['key']['jwk'][] | undefined {
  const same = allKeys(set).flatMap(([, jwk]) => (sameMaterial(jwk, key.jwk) ? [jwk] : []));
  return same.length > 0 ? same : undefined;
}

/**
 * Keeps the candidates that are pinned by every publisher that pins keys. If any is left, but a publisher's pins could
 * not be fetched, the result is undecided.
 */
export function narrowed(match: SenderMatch, { sets, undecided }: PinState): SenderMatch {
  const { candidates, ...rest } = match;
  if (candidates === undefined) return match;
  const left = candidates.flatMap((candidate) => {
    const pins = sets.map((set) => pinsIn(set, candidate));
    return pins.includes(undefined) ? [] : [{ ...candidate, pins: pins.flatMap((of) => of ?? []) }];
  });
  if (left.length > 0 && undecided !== undefined) return { undecided };
  return { ...rest, ...(left.length > 0 && { candidates: left }) };
}
