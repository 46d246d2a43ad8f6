// Searches a key id among the senders of a delivery, and decides the order of senders and the waiting time
// (verification.md §5.6, §5.7, §5.21).
// Called by the resolver; `sender-search.ts` searches for one sender.

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
  /** Returns the budget of the delivery that needs the key. */
  readonly budgetOf: (request: KeyRequest) => DeliveryBudget;
  /** Called with every result before it is returned, and may replace it. */
  readonly finish: (found: KeySearch, request: KeyRequest) => KeySearch;
  /** Unix ms. */
  readonly now: () => number;
}

/** Most senders remembered for `whose`. */
const MAX_KNOWN = 1_000;

/** Makes `find`, `findReplaced` and `whose` of the key resolver. */
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
    // If the clock was set back, an earlier fetch can have a time after the arrival. Such a time is also after the
    // present.
    const isAfterArrival = (fetchedAt: number): boolean =>
      fetchedAt > request.arrivedAt && fetchedAt <= started;
    return {
      keyid,
      isFreshEnough: (copy) =>
        copy.isRevalidated !== true && (copy.fetchNumber > fetchCount || isAfterArrival(copy.fetchedAt)),
      fetchBudget: budgetOf(request).fetchBudget,
    };
  };

  /** Asks senders within the delivery's budget, least recently fetched first. */
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
   * Finds senders that are known to have the key, and asks no others. Expired copies are refreshed first, because a
   * removed key must not go on verifying. If two senders publish one key, the age of their copies must not decide.
   * The order is that of the configuration: the first whose key verifies is the sender.
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
    // Some senders were not waited for. They are asked in `findReplaced` if no candidate turns out to be the
    // signer.
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
    // Every sender is asked, even those in `tried`: they may have another key under the `keyid` by now.
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
 * The fast path, without a promise. It returns a result if every sender's cached keys decide, and one has the key
 * or no document could have it. Otherwise undefined.
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
    // Usually only one sender has the key; its list is then returned without a copy.
    if (match.candidates !== undefined)
      candidates = candidates.length === 0 ? match.candidates : [...candidates, ...match.candidates];
  }
  return candidates.length > 0 || final ? candidates : undefined;
}

interface GatherLimits {
  /** Senders asked at a time. */
  readonly width: number;
  /** Time after which a sender without an answer is undecided. Ms. Without it there is no limit. */
  readonly deadlineMs?: number;
  /**
   * Time for which other senders are waited for after the first candidate was found. Ms. It keeps one slow seller
   * from delaying a delivery.
   */
  readonly graceMs: number;
}

/**
 * Asks every sender, `width` at a time; the result is in the order of `senders`. Never rejects.
 * @param order the same senders in the order in which they are asked.
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
 * Asks one sender. If that fails by a fault on our side (no engine, no suffix list), only this sender is undecided.
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
 * Orders senders by their last fetch, oldest first, because one delivery may not fetch the documents of all. In a
 * fixed order the last of many senders would never be asked, so its keys would never be found.
 */
interface FetchOrder {
  /** Returns `senders` with those never fetched first, then by the time of their last fetch. */
  sorted(senders: readonly SenderEntry[]): readonly SenderEntry[];
  /** Returns the same budget; when it first grants a fetch, the sender moves to the end of the order. */
  noting(sender: SenderEntry, fetchBudget: DeliveryBudget['fetchBudget']): DeliveryBudget['fetchBudget'];
}

/** Most senders noted: as many as the cache has documents. A forgotten one is asked first. */
const MAX_NOTED = 10_000;

function createFetchOrder(): FetchOrder {
  // Keyed by agent URL, from configuration alone: a `senders` function may return other objects each time.
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
