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
  /** Of the delivery that asks. */
  readonly budgetOf: (request: KeyRequest) => DeliveryBudget;
  /** Sees every result before it is returned. */
  readonly finish: (found: KeySearch, request: KeyRequest) => KeySearch;
  /** Unix ms. */
  readonly now: () => number;
}

/** Senders remembered for `whose`. */
const MAX_KNOWN = 1_000;

/** `find`, `findReplaced` and `whose` of the key resolver. */
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
    // A clock that was set back puts earlier fetches after the arrival, and after the present too.
    const isAfterArrival = (fetchedAt: number): boolean =>
      fetchedAt > request.arrivedAt && fetchedAt <= started;
    return {
      keyid,
      isFreshEnough: (copy) =>
        copy.isRevalidated !== true && (copy.fetchNumber > fetchCount || isAfterArrival(copy.fetchedAt)),
      fetchBudget: budgetOf(request).fetchBudget,
    };
  };

  /** Asks as many as the delivery's budget allows, those first that were fetched for least recently. */
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
   * The senders that are known to have the key, without asking the others. Copies past their lifetime are refreshed
   * first: a key that was taken out must not go on verifying, and where two senders publish one key, whose event it is
   * must not depend on whose copy is the fresher. In the order of the configuration: the first that verifies is the sender.
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
    // Senders that were not waited for are asked in `findReplaced`, if no candidate turns out to be the signer.
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
    // Every sender is asked, those of `tried` too: what they have now under the `keyid` may be another key.
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
 * The fast path, without a promise: every sender's cached keys decide, and one has the key; or no document could have
 * it.
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
    // Usually one sender has the key: its list is used as it is.
    if (match.candidates !== undefined)
      candidates = candidates.length === 0 ? match.candidates : [...candidates, ...match.candidates];
  }
  return candidates.length > 0 || final ? candidates : undefined;
}

interface GatherLimits {
  /** Senders asked at a time. */
  readonly width: number;
  /** Ms after which senders that have not answered are undecided; none where absent. */
  readonly deadlineMs?: number;
  /** Ms for which other senders are waited for once there is a candidate: one slow seller must not hold up the rest. */
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

/** A fault of ours with one sender (no engine, no suffix list) leaves that sender undecided and no other. */
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
 * Which senders are asked first where one delivery may not have all documents fetched: those fetched for least recently.
 * In a fixed order, the last of more senders than that would never be asked, and their keys never be found.
 */
interface FetchOrder {
  /** `senders`, those that were never fetched for first, then by when they last were. */
  sorted(senders: readonly SenderEntry[]): readonly SenderEntry[];
  /** The same budget; the first fetch that it grants moves the sender to the end. */
  noting(sender: SenderEntry, fetchBudget: DeliveryBudget['fetchBudget']): DeliveryBudget['fetchBudget'];
}

/** As many as the cache has documents; a sender that is forgotten is asked first. */
const MAX_NOTED = 10_000;

function createFetchOrder(): FetchOrder {
  // By agent URL, from configuration alone: a `senders` function may give other objects each time.
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
