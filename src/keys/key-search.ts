// Searches a key id among the senders of a delivery, and decides the order of senders and the waiting time
// (verification.md §5.6, §5.7, §5.21).
// Called by the resolver; `sender-search.ts` searches the keys of one sender.

import { putBounded } from '../shared/bounded.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import type { Candidate, KeyRequest, KeyResolver, KeySearch } from './key-resolver.ts';
import type { DocumentCache } from './document-cache.ts';
import type { DeliveryBudget } from './safe-fetch.ts';
import type { Search, SenderMatch, SenderSearch } from './key-search-contract.ts';
import { isError } from '../shared/realms.ts';

interface KeySearchOptions {
  readonly cache: Pick<DocumentCache, 'fetchCount'>;
  readonly each: SenderSearch;
  readonly limits: GatherLimits;
  /** Returns the limits of fetches and waiting time for the delivery that needs the key. */
  readonly budgetOf: (request: KeyRequest) => DeliveryBudget;
  /** Called with every search result before it is returned; returns the result to use instead. */
  readonly finish: (found: KeySearch, request: KeyRequest) => KeySearch;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
}

/** The maximum number of senders remembered for `whose`. */
const MAX_KNOWN = 1_000;

/** Makes the functions `find`, `findReplaced` and `whose` of the key resolver. */
export function createKeySearch({
  cache,
  each,
  limits,
  budgetOf,
  finish,
  now,
}: KeySearchOptions): Pick<KeyResolver, 'find' | 'findReplaced' | 'whose'> {
  const known = new Map<string, SenderEntry>();
  const fetchOrder = createFetchOrder();

  const startSearch = (keyid: string, request: KeyRequest): Search => {
    const fetchCount = cache.fetchCount();
    const started = now();
    // If the clock was set back, a fetch before the arrival may have a later time than the arrival. Such a time is
    // also later than now, so it does not count.
    const isAfterArrival = (fetchedAt: number): boolean =>
      fetchedAt > request.arrivedAt && fetchedAt <= started;
    return {
      keyid,
      isFreshEnough: (copy) =>
        copy.isRevalidated !== true && (copy.fetchNumber > fetchCount || isAfterArrival(copy.fetchedAt)),
      fetchBudget: budgetOf(request).fetchBudget,
    };
  };

  /**
   * Calls `ask` for the senders, within the delivery's limits. It begins with those whose last fetch is the longest
   * ago.
   */
  const searchInOrder = async (
    search: Search,
    senders: readonly SenderEntry[],
    ask: (sender: SenderEntry, search: Search) => Promise<SenderMatch>,
  ): Promise<KeySearch> => {
    const askNoted = (sender: SenderEntry): Promise<SenderMatch> =>
      ask(sender, { ...search, fetchBudget: fetchOrder.noting(sender, search.fetchBudget) });
    return await gather(senders, askNoted, limits, fetchOrder.sorted(senders));
  };

  /**
   * Finds the key in cached copies. Expired copies with the key are refreshed first, because a removed key must not go
   * on verifying. This is done even if a fresh copy has the key too: if two senders publish it, the age of their
   * copies must not decide.
   * The candidates are in the order of configuration: the first whose key verifies is the sender.
   */
  const searchCached = async (search: Search, senders: readonly SenderEntry[]): Promise<KeySearch> => {
    const matches = new Map<SenderEntry, SenderMatch>();
    const expired: SenderEntry[] = [];
    const look = async (sender: SenderEntry): Promise<SenderMatch> => {
      const match = await each.cached(sender, search.keyid);
      if (match.expired === true) expired.push(sender);
      return match;
    };
    await Promise.all(senders.map(async (sender) => matches.set(sender, await attempt(sender, look))));
    const found = summary(senders, matches);
    if (expired.length === 0) return found;
    if (found.candidates.length === 0) return await searchInOrder(search, expired, each.refreshed);
    const refresh = (sender: SenderEntry): Promise<SenderMatch> => each.refreshed(sender, search);
    await Promise.all(expired.map(async (sender) => matches.set(sender, await attempt(sender, refresh))));
    return summary(senders, matches);
  };

  const find = async (keyid: string, request: KeyRequest): Promise<KeySearch> => {
    const search = startSearch(keyid, request);
    const cached = await searchCached(search, request.senders);
    const isFound = cached.candidates.length > 0;
    const found = isFound ? cached : await searchInOrder(search, request.senders, each.refetched);
    // If there is a candidate, `undecided` is left empty, although some senders may not have been waited for.
    // `findReplaced` searches the keys of these senders if no candidate verifies the signature.
    const { candidates } = found;
    return finish(candidates.length > 0 ? { candidates, undecided: [] } : found, request);
  };

  return {
    find: (keyid, request) => {
      const candidates = allCachedSync(each, keyid, request.senders);
      if (candidates !== undefined) return finish({ candidates, undecided: NO_REASONS }, request);
      for (const sender of request.senders) putBounded(known, sender.agentUrl, sender, MAX_KNOWN);
      return find(keyid, request);
    },
    // Every sender is searched, even those in `tried`, because they may have another key under `keyid` by now.
    findReplaced: async (keyid, request, tried) => {
      const search = startSearch(keyid, request);
      const ask = (sender: SenderEntry, own: Search): Promise<SenderMatch> =>
        each.untried(sender, own, tried);
      return finish(await searchInOrder(search, request.senders, ask), request);
    },
    whose: (keyid, senders = [...known.values()]) =>
      senders.find((sender) => each.hasCached(sender, keyid))?.agentUrl,
  };
}

const NO_REASONS: readonly string[] = [];
const NO_CANDIDATES: readonly Candidate[] = [];

/**
 * Searches without a promise. Returns candidates if cached keys decide for every sender, and at least one sender has
 * the key. Returns an empty list if only configured pins could contain the key, and they do not. Otherwise returns
 * undefined.
 */
function allCachedSync(
  each: SenderSearch,
  keyid: string,
  senders: readonly SenderEntry[],
): readonly Candidate[] | undefined {
  let candidates = NO_CANDIDATES;
  let final = true;
  for (const sender of senders) {
    const match = each.cachedSync(sender, keyid);
    if (match === undefined) return undefined;
    final &&= match.final === true;
    // Usually only one sender has the key; the list of that sender's candidates is then used without copying it.
    if (match.candidates !== undefined)
      candidates = candidates.length === 0 ? match.candidates : [...candidates, ...match.candidates];
  }
  return candidates.length > 0 || final ? candidates : undefined;
}

interface GatherLimits {
  /** The maximum number of senders that are searched at the same time. */
  readonly width: number;
  /** The time in ms after which a sender without a result counts as undecided. Absent: no limit. */
  readonly deadlineMs?: number;
  /**
   * The time in ms for which other senders are waited for after the first candidate was found. The limit keeps one
   * slow seller from delaying a delivery.
   */
  readonly graceMs: number;
}

/**
 * Calls `ask` for every sender, `width` at a time. The result is in the order of `senders`. Never rejects.
 * @param order the same senders in the order in which they are searched.
 */
export async function gather(
  senders: readonly SenderEntry[],
  ask: (sender: SenderEntry) => Promise<SenderMatch>,
  limits: GatherLimits,
  order: readonly SenderEntry[] = senders,
): Promise<KeySearch> {
  const matches = new Map<SenderEntry, SenderMatch>();
  const queue = order.values();
  const timers: ReturnType<typeof setTimeout>[] = [];
  let over = false;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      over = true;
      resolve();
    };
    const work = async (): Promise<void> => {
      for (const sender of queue) {
        if (over) return;
        const match = await attempt(sender, ask);
        matches.set(sender, match);
        if (match.candidates !== undefined) timers.push(setTimeout(end, limits.graceMs));
      }
    };
    if (limits.deadlineMs !== undefined) timers.push(setTimeout(end, limits.deadlineMs));
    void Promise.all(Array.from({ length: Math.min(limits.width, senders.length) }, work)).then(end);
  });
  for (const timer of timers) clearTimeout(timer);
  return summary(senders, matches);
}

/**
 * Calls `ask` for one sender. If the call fails by a local fault (no crypto engine, no public suffix list), only this
 * sender is undecided.
 */
async function attempt(
  sender: SenderEntry,
  ask: (sender: SenderEntry) => Promise<SenderMatch>,
): Promise<SenderMatch> {
  try {
    return await ask(sender);
  } catch (error) {
    return { undecided: isError(error) ? error.message : 'failed' };
  }
}

function summary(senders: readonly SenderEntry[], matches: ReadonlyMap<SenderEntry, SenderMatch>): KeySearch {
  const candidates: Candidate[] = [];
  const undecided: string[] = [];
  for (const sender of senders) {
    const match = matches.get(sender) ?? { undecided: 'no answer in time' };
    candidates.push(...(match.candidates ?? []));
    if (match.undecided !== undefined) undecided.push(`${sender.agentUrl}: ${match.undecided}`);
  }
  return { candidates, undecided };
}

/**
 * Orders senders by their last fetch, oldest first, because one delivery may not fetch the documents of all senders.
 * In a fixed order the last of many senders would never be fetched, and its keys never found.
 */
interface FetchOrder {
  /** Returns `senders` with those never fetched first. The others follow by their last fetch, oldest first. */
  sorted(senders: readonly SenderEntry[]): readonly SenderEntry[];
  /** Wraps a budget so that each fetch that it grants moves the sender to the end of the order of `sorted`. */
  noting(sender: SenderEntry, fetchBudget: DeliveryBudget['fetchBudget']): DeliveryBudget['fetchBudget'];
}

/** The maximum number of senders whose last fetch is remembered. A forgotten sender comes first in the order. */
const MAX_NOTED = 10_000;

function createFetchOrder(): FetchOrder {
  // The map's key is the agent URL, not the object, because a `senders` function may return new objects each time.
  // Agent URLs come from configuration alone, so no stranger can add one.
  const positions = new Map<string, number>();
  let position = 0;
  const positionOf = ({ agentUrl }: SenderEntry): number => positions.get(agentUrl) ?? 0;
  return {
    sorted: (senders) => [...senders].sort((a, b) => positionOf(a) - positionOf(b)),
    noting: (sender, fetchBudget) => (seller) => {
      const budget = fetchBudget(seller);
      return {
        ...budget,
        mayFetch: () => {
          const granted = budget.mayFetch();
          if (granted) putBounded(positions, sender.agentUrl, (position += 1), MAX_NOTED);
          return granted;
        },
      };
    },
  };
}
