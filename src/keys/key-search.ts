import type { SenderEntry } from '../senders.ts';
import type { Candidate, KeyResolver, KeySearch, SenderKey } from './contract.ts';
import type { Copy, MayFetch, Wish } from './document.ts';
import type { DocumentCache } from './document-cache.ts';
import { within } from './freshness.ts';
import { attempt, gather, type GatherLimits, type Reply, summary } from './gather.ts';
import { type EngineSource, importedKey, type KeySet, sameJwk } from './jwks.ts';
import { isPinned, type PinnedSender, type Pins } from './pins.ts';
import type { SenderKeys } from './sender-keys.ts';

export interface SearchContext {
  readonly cache: DocumentCache;
  readonly keys: SenderKeys;
  readonly pins: Pins;
  readonly engine: EngineSource;
  readonly now: () => number;
  readonly limits: GatherLimits & {
    /** A set whose fetch began less than this many ms ago is as good as one fetched now. */
    readonly cooldownMs: number;
    /** Senders whose documents one delivery may have fetched. */
    readonly perDelivery: number;
  };
}

/** One delivery's search. */
interface Search {
  readonly keyid: string;
  readonly senders: readonly SenderEntry[];
  /**
   * Whether the set was fetched after the delivery arrived, which alone makes a missing key unknown (verification.md,
   * section 2 "Faults on our side are never 4xx"). The clock decides only where the order of fetches does not: two
   * things of one millisecond could be either way round, and a wrong "unknown" would end the event.
   */
  readonly decisive: (copy: Copy<KeySet>) => boolean;
  /** Gives each sender leave to fetch while there is some left. */
  readonly leave: () => MayFetch;
}

/** `find` and `findReplaced` of the key resolver. */
export function createKeySearch(context: SearchContext): Pick<KeyResolver, 'find' | 'findReplaced'> {
  // By the list of candidates that `find` gave: what one delivery may fetch is for both searches together.
  const budgets = new WeakMap<readonly Candidate[], Search['leave']>();
  const start = (
    keyid: string,
    senders: readonly SenderEntry[],
    arrivedAt: number,
    leave = fetchBudget(context.limits.perDelivery),
  ): Search => {
    const order = context.cache.order();
    const decisive: Search['decisive'] = (copy) => copy.order > order || copy.began > arrivedAt;
    return { keyid, senders, decisive, leave };
  };
  return {
    find: async (keyid, senders, arrivedAt) => {
      const search = start(keyid, senders, arrivedAt);
      const found = await find(context, search);
      budgets.set(found.candidates, search.leave);
      return found;
    },
    findReplaced: (keyid, senders, tried, arrivedAt) =>
      findReplaced(context, start(keyid, senders, arrivedAt, budgets.get(tried)), tried),
  };
}

function fetchBudget(senders: number): () => MayFetch {
  let left = senders;
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

async function find(context: SearchContext, search: Search): Promise<KeySearch> {
  const held = await searchHeld(context, search);
  if (held.candidates.length > 0) return { candidates: held.candidates, undecided: [] };
  const found = await gather(search.senders, (sender) => ask(context, search, sender), context.limits);
  // Whoever was not waited for is asked in `findReplaced`, if the candidates turn out not to be the signer.
  return found.candidates.length > 0 ? { candidates: found.candidates, undecided: [] } : found;
}

/**
 * The senders that are known to have the key, without asking the others. Where all of them are known only from copies
 * past their life, those copies are refreshed first: a key that was taken out must not go on verifying.
 */
async function searchHeld(context: SearchContext, search: Search): Promise<KeySearch> {
  const { keyid, senders } = search;
  const replies = new Map<SenderEntry, Reply>();
  const overdue: SenderEntry[] = [];
  const look = async (sender: SenderEntry): Promise<Reply> => {
    if (isPinned(sender)) return await askPins(context, sender, keyid);
    const held = await context.keys.held(sender);
    if (held === undefined || !held.copy.value.jwks.has(keyid)) return {};
    if (!held.fresh) overdue.push(sender);
    return held.fresh ? await replyWith(context, sender, held.copy.value, keyid) : {};
  };
  await Promise.all(senders.map(async (sender) => replies.set(sender, await attempt(sender, look))));
  const known = summary(senders, replies);
  if (known.candidates.length > 0 || overdue.length === 0) return known;
  const refresh = async (sender: SenderEntry): Promise<Reply> => {
    const answer = await context.keys.current(sender, search.leave());
    return answer.ok ? await replyWith(context, sender, answer.copy.value, keyid) : {};
  };
  return await gather(overdue, refresh, context.limits);
}

/** Step 4 of verification.md, section 5, for one sender whose held set lacks the key. */
async function ask(context: SearchContext, search: Search, sender: SenderEntry): Promise<Reply> {
  const { keyid, decisive } = search;
  if (isPinned(sender)) return await askPins(context, sender, keyid);
  const wish: Wish<KeySet> = { wanted: (copy) => copy.value.jwks.has(keyid), decisive };
  const answer = await context.keys.renewed(sender, wish, search.leave());
  return answer.ok
    ? await replyWith(context, sender, answer.copy.value, keyid)
    : { undecided: answer.reason };
}

async function findReplaced(
  context: SearchContext,
  search: Search,
  tried: readonly Candidate[],
): Promise<KeySearch> {
  const now = context.now();
  const { cooldownMs } = context.limits;
  const wish: Wish<KeySet> = {
    wanted: () => false,
    decisive: (copy) => search.decisive(copy) || within(now, copy.began, cooldownMs),
  };
  const askAgain = async (sender: SenderEntry): Promise<Reply> => {
    if (isPinned(sender)) return untried(await askPins(context, sender, search.keyid), tried);
    const answer = await context.keys.renewed(sender, wish, search.leave());
    if (answer.ok) {
      return untried(await replyWith(context, sender, answer.copy.value, search.keyid), tried);
    }
    // A key that is held and was not tried, because another sender's came first, is better than none.
    const held = await context.keys.held(sender);
    const reply = held ? await replyWith(context, sender, held.copy.value, search.keyid) : {};
    return { ...untried(reply, tried), undecided: answer.reason };
  };
  return await gather(search.senders, askAgain, context.limits);
}

/** A pin is the whole set: what is not pinned is unknown at once (verification.md, section 5, step 5). */
async function askPins(context: SearchContext, sender: PinnedSender, keyid: string): Promise<Reply> {
  const key = await context.pins.key(sender, keyid);
  return typeof key === 'string' ? { undecided: key } : reply(sender, key);
}

async function replyWith(
  context: SearchContext,
  sender: SenderEntry,
  set: KeySet,
  keyid: string,
): Promise<Reply> {
  return reply(sender, await importedKey(set, keyid, context.engine));
}

function reply(sender: SenderEntry, key: SenderKey | undefined): Reply {
  return key === undefined ? {} : { candidate: { sender, key } };
}

function untried(found: Reply, tried: readonly Candidate[]): Reply {
  const { candidate, ...rest } = found;
  if (candidate === undefined) return found;
  const known = tried.some(
    ({ sender, key }) => sender.agentUrl === candidate.sender.agentUrl && sameJwk(key.jwk, candidate.key.jwk),
  );
  return known ? rest : found;
}
