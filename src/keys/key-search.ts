import { putBounded } from '../bounded.ts';
import type { SenderEntry } from '../senders.ts';
import type { Candidate, KeyRequest, KeyResolver, KeySearch } from './contract.ts';
import type { DocumentCache } from './document-cache.ts';
import type { Allowance } from './fetch-budget.ts';
import type { Reply, Search, SenderSearch } from './sender-search.ts';

interface SearchContext {
  readonly cache: Pick<DocumentCache, 'order'>;
  readonly each: SenderSearch;
  readonly limits: GatherLimits;
  /** Of the delivery that asks. */
  readonly allowanceOf: (request: KeyRequest) => Allowance;
  /** Unix ms. */
  readonly now: () => number;
}

interface FairContext extends SearchContext {
  readonly turns: Turns;
}

/** Senders remembered for `whose`. */
const MAX_KNOWN = 1_000;

/** `find`, `findReplaced` and `whose` of the key resolver. */
export function createKeySearch(
  options: SearchContext,
): Pick<KeyResolver, 'find' | 'findReplaced' | 'whose'> {
  const known = new Map<string, SenderEntry>();
  const context: FairContext = { ...options, turns: createTurns() };
  const start = (keyid: string, request: KeyRequest): Search => {
    const order = context.cache.order();
    const started = context.now();
    // A clock that was set back puts earlier fetches after the arrival, and after the present too.
    const sinceArrival = (began: number): boolean => began > request.arrivedAt && began <= started;
    return {
      keyid,
      decisive: (copy) => copy.indirect !== true && (copy.order > order || sinceArrival(copy.began)),
      leave: context.allowanceOf(request).leave,
    };
  };
  return {
    find: (keyid, request) => {
      const atHand = allAtHand(context.each, keyid, request.senders);
      if (atHand !== undefined) return { candidates: atHand, undecided: NOBODY };
      for (const sender of request.senders) putBounded(known, sender.agentUrl, sender, MAX_KNOWN);
      return find(context, start(keyid, request), request.senders);
    },
    findReplaced: (keyid, request, tried) =>
      findReplaced(context, start(keyid, request), request.senders, tried),
    whose: (keyid, senders = [...known.values()]) =>
      senders.find((sender) => context.each.knows(sender, keyid))?.agentUrl,
  };
}

const NOBODY: readonly string[] = [];
const NONE: readonly Candidate[] = [];

/**
 * The usual case without a promise: every sender's keys say at once whether this one is theirs, and one has it; or no
 * document could make it theirs.
 */
function allAtHand(
  each: SenderSearch,
  keyid: string,
  senders: readonly SenderEntry[],
): readonly Candidate[] | undefined {
  let candidates: readonly Candidate[] = NONE;
  let final = true;
  for (const sender of senders) {
    const reply = each.atHand(sender, keyid);
    if (reply === undefined) return undefined;
    const { candidates: more = NONE } = reply;
    final &&= reply.final === true;
    // One sender's, as a rule: then its list as it is.
    candidates = candidates.length === 0 ? more : [...candidates, ...more];
  }
  return candidates.length > 0 || final ? candidates : undefined;
}

/** Asks them as far as the delivery's fetches reach, those first whose turn is due. */
async function fairly(
  { turns, limits }: FairContext,
  search: Search,
  senders: readonly SenderEntry[],
  ask: (sender: SenderEntry, search: Search) => Promise<Reply>,
): Promise<KeySearch> {
  const askInTurn = (sender: SenderEntry): Promise<Reply> =>
    ask(sender, { ...search, leave: turns.noting(sender, search.leave) });
  return await gather(senders, askInTurn, limits, turns.order(senders));
}

async function find(
  context: FairContext,
  search: Search,
  senders: readonly SenderEntry[],
): Promise<KeySearch> {
  const held = await searchHeld(context, search, senders);
  if (held.candidates.length > 0) return { candidates: held.candidates, undecided: [] };
  const found = await fairly(context, search, senders, (sender, own) => context.each.ask(sender, own));
  // Whoever was not waited for is asked in `findReplaced`, if the candidates turn out not to be the signer.
  return found.candidates.length > 0 ? { candidates: found.candidates, undecided: [] } : found;
}

/**
 * The senders that are known to have the key, without asking the others. Copies past their life are refreshed first: a
 * key that was taken out must not go on verifying, and where two senders publish one key, whose event it is must not
 * depend on whose copy is the fresher. In the order of the configuration, for the first that verifies is the sender.
 */
async function searchHeld(
  context: FairContext,
  search: Search,
  senders: readonly SenderEntry[],
): Promise<KeySearch> {
  const { each } = context;
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
    return await fairly(context, search, overdue, (sender, own) => each.refreshed(sender, own));
  }
  const refresh = (sender: SenderEntry): Promise<Reply> => each.refreshed(sender, search);
  await Promise.all(overdue.map(async (sender) => replies.set(sender, await attempt(sender, refresh))));
  return summary(senders, replies);
}

/** Asks every sender, those of `tried` included: what they have now under the `keyid` may be another key. */
async function findReplaced(
  context: FairContext,
  search: Search,
  senders: readonly SenderEntry[],
  tried: readonly Candidate[],
): Promise<KeySearch> {
  return await fairly(context, search, senders, (sender, own) => context.each.askAgain(sender, own, tried));
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
 * Asks every sender, `width` at a time; answers in the order of `senders`. Never rejects.
 * @param turns the same senders in the order in which they are asked.
 */
export async function gather(
  senders: readonly SenderEntry[],
  ask: (sender: SenderEntry) => Promise<Reply>,
  limits: GatherLimits,
  turns: readonly SenderEntry[] = senders,
): Promise<KeySearch> {
  const replies = new Map<SenderEntry, Reply>();
  const queue = turns.values();
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
        const reply = await attempt(sender, ask);
        replies.set(sender, reply);
        if (reply.candidates !== undefined) timers.push(setTimeout(end, limits.graceMs));
      }
    };
    if (limits.deadlineMs !== undefined) timers.push(setTimeout(end, limits.deadlineMs));
    void Promise.all(Array.from({ length: Math.min(limits.width, senders.length) }, work)).then(end);
  });
  for (const timer of timers) clearTimeout(timer);
  return summary(senders, replies);
}

/** A fault of ours with one sender (no engine, no suffix list) leaves that sender undecided and no other. */
async function attempt(sender: SenderEntry, ask: (sender: SenderEntry) => Promise<Reply>): Promise<Reply> {
  try {
    return await ask(sender);
  } catch (error) {
    return { undecided: error instanceof Error ? error.message : 'failed' };
  }
}

function summary(senders: readonly SenderEntry[], replies: ReadonlyMap<SenderEntry, Reply>): KeySearch {
  const candidates: Candidate[] = [];
  const undecided: string[] = [];
  for (const sender of senders) {
    const reply = replies.get(sender) ?? { undecided: 'no answer in time' };
    candidates.push(...(reply.candidates ?? []));
    if (reply.undecided !== undefined) undecided.push(`${sender.agentUrl}: ${reply.undecided}`);
  }
  return { candidates, undecided };
}

/**
 * Who is asked first where one delivery may not have everybody's documents fetched: whoever was fetched for longest ago.
 * In one order for ever, the last of more senders than that would never be asked, and a key of theirs never be found.
 */
interface Turns {
  /** `senders`, those that were never fetched first, then by when they last were. */
  order(senders: readonly SenderEntry[]): readonly SenderEntry[];
  /** Leave to fetch that counts as the sender's turn once it is used. */
  noting(sender: SenderEntry, leave: Allowance['leave']): Allowance['leave'];
}

/** As many as documents are; one that is forgotten is asked first. */
const MAX_NOTED = 10_000;

function createTurns(): Turns {
  // By agent URL, from configuration alone: a `senders` function may give other objects each time.
  const turns = new Map<string, number>();
  let turn = 0;
  const note = ({ agentUrl }: SenderEntry): void => {
    turn += 1;
    putBounded(turns, agentUrl, turn, MAX_NOTED);
  };
  const last = ({ agentUrl }: SenderEntry): number => turns.get(agentUrl) ?? 0;
  return {
    order: (senders) => [...senders].sort((a, b) => last(a) - last(b)),
    noting: (sender, leave) => (seller) => {
      const given = leave(seller);
      return {
        ...given,
        mayFetch: () => {
          const granted = given.mayFetch();
          if (granted) note(sender);
          return granted;
        },
      };
    },
  };
}
