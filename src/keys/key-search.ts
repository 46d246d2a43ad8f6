import type { SenderEntry } from '../senders.ts';
import type { Candidate, KeyResolver, KeySearch } from './contract.ts';
import type { MayFetch } from './document.ts';
import type { DocumentCache } from './document-cache.ts';
import { attempt, gather, type GatherLimits, type Reply, summary } from './gather.ts';
import type { Search, SenderSearch } from './sender-search.ts';

export interface SearchContext {
  readonly cache: Pick<DocumentCache, 'order'>;
  readonly each: SenderSearch;
  readonly limits: GatherLimits & {
    /** Senders and publishers whose documents one delivery may have fetched. */
    readonly perDelivery: number;
  };
}

/** `find` and `findReplaced` of the key resolver. */
export function createKeySearch(context: SearchContext): Pick<KeyResolver, 'find' | 'findReplaced'> {
  // By the list of candidates that `find` gave: what one delivery may fetch is for both searches together.
  const budgets = new WeakMap<readonly Candidate[], Search['leave']>();
  const start = (
    keyid: string,
    arrivedAt: number,
    leave = fetchBudget(context.limits.perDelivery),
  ): Search => {
    const order = context.cache.order();
    return {
      keyid,
      decisive: (copy) => copy.unchanged !== true && (copy.order > order || copy.began > arrivedAt),
      leave,
    };
  };
  return {
    find: async (keyid, senders, arrivedAt) => {
      const search = start(keyid, arrivedAt);
      const found = await find(context, search, senders);
      budgets.set(found.candidates, search.leave);
      return found;
    },
    findReplaced: (keyid, senders, tried, arrivedAt) =>
      findReplaced(context, start(keyid, arrivedAt, budgets.get(tried)), senders, tried),
  };
}

function fetchBudget(documents: number): () => MayFetch {
  let left = documents;
  return () => {
    let granted = false;
    return () => {
      if (!granted && left > 0) {
        left -= 1;
        granted = true;
      }
      return granted;
    };
  };
}

async function find(
  context: SearchContext,
  search: Search,
  senders: readonly SenderEntry[],
): Promise<KeySearch> {
  const held = await searchHeld(context, search, senders);
  if (held.candidates.length > 0) return { candidates: held.candidates, undecided: [] };
  const found = await gather(senders, (sender) => context.each.ask(sender, search), context.limits);
  // Whoever was not waited for is asked in `findReplaced`, if the candidates turn out not to be the signer.
  return found.candidates.length > 0 ? { candidates: found.candidates, undecided: [] } : found;
}

/**
 * The senders that are known to have the key, without asking the others. Copies past their life are refreshed first: a
 * key that was taken out must not go on verifying, and where two senders publish one key, whose event it is must not
 * depend on whose copy is the fresher. In the order of the configuration, for the first that verifies is the sender.
 */
async function searchHeld(
  { each, limits }: SearchContext,
  search: Search,
  senders: readonly SenderEntry[],
): Promise<KeySearch> {
  const replies = new Map<SenderEntry, Reply>();
  const overdue: SenderEntry[] = [];
  const look = async (sender: SenderEntry): Promise<Reply> => {
    const reply = await each.held(sender, search.keyid);
    if (reply.overdue === true) overdue.push(sender);
    return reply;
  };
  await Promise.all(senders.map(async (sender) => replies.set(sender, await attempt(sender, look))));
  const known = summary(senders, replies);
  if (overdue.length === 0) return known;
  if (known.candidates.length === 0) {
    return await gather(overdue, (sender) => each.refreshed(sender, search), limits);
  }
  const refresh = (sender: SenderEntry): Promise<Reply> => each.refreshed(sender, search);
  await Promise.all(overdue.map(async (sender) => replies.set(sender, await attempt(sender, refresh))));
  return summary(senders, replies);
}

/** Asks every sender, those of `tried` included: what they have now under the `keyid` may be another key. */
async function findReplaced(
  { each, limits }: SearchContext,
  search: Search,
  senders: readonly SenderEntry[],
  tried: readonly Candidate[],
): Promise<KeySearch> {
  return await gather(senders, (sender) => each.askAgain(sender, search, tried), limits);
}
