import { isPending } from '../eventual.ts';
import type { SenderEntry } from '../senders.ts';
import type { Candidate } from './contract.ts';
import { type Copy, type Wish, within } from './document.ts';
import type { Allowance } from './fetch-budget.ts';
import { type EngineSource, importedKey, type KeySet, sameJwk } from './jwks.ts';
import { isPinned, type Pins } from './pins.ts';
import type { PinState, PublisherPins } from './publisher-pins.ts';
import type { SenderKeys } from './sender-keys.ts';

/** What asking one sender gave; both where an old key is held and a newer one could not be had. */
export interface Reply {
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
   * (verification.md §2.26). The clock decides only where the order of fetches does not: two things of one millisecond
   * could be either way round, and a wrong "unknown" would end the event.
   */
  readonly decisive: (copy: Copy<unknown>) => boolean;
  /** Gives a sender, or a publisher's file, leave to fetch while there is some left. */
  readonly leave: Allowance['leave'];
}

/** One sender's part in a search: its own pins, those of its publishers, and its JWKS where nobody pins. */
export interface SenderSearch {
  /** Fetches what a first delivery would need. */
  warm(sender: SenderEntry): Promise<void>;
  /**
   * `held` for a sender whose own pins, or whose fresh JWKS where nobody pins, alone say it, without waiting; undefined
   * where `held` has to be asked. `final`: nobody but the owner's pins could have the key, and they lack it.
   */
  atHand(sender: SenderEntry, keyid: string): (Reply & { readonly final?: boolean }) | undefined;
  /** Whether a key of that id is among those held, pinned or in a fresh JWKS. */
  knows(sender: SenderEntry, keyid: string): boolean;
  /** From what is held. `overdue`: there is a key, from a copy past its life. */
  held(sender: SenderEntry, keyid: string): Promise<Reply & { readonly overdue?: boolean }>;
  /** Its keys under the `keyid` from copies within their life, or those held where they cannot be refreshed. */
  refreshed(sender: SenderEntry, search: Search): Promise<Reply>;
  /** Step 4 (verification.md §5.4), where nothing held has the key: documents are fetched again. */
  ask(sender: SenderEntry, search: Search): Promise<Reply>;
  /** After every key in `tried` failed: others under the same `keyid`, from documents that are recent enough to say. */
  askAgain(sender: SenderEntry, search: Search, tried: readonly Candidate[]): Promise<Reply>;
}

interface SenderSearchContext {
  readonly keys: SenderKeys;
  readonly pins: Pins;
  readonly publishers: PublisherPins;
  readonly use: KeyUse;
  readonly now: () => number;
  /** A document whose fetch began less than this many ms ago is as good as one fetched now. */
  readonly cooldownMs: number;
}

export function createSenderSearch(context: SenderSearchContext): SenderSearch {
  return {
    warm: async (sender) => {
      const publishers = await context.publishers.current(sender);
      if (!restricted(sender, publishers)) await context.keys.current(sender);
    },
    atHand: (sender, keyid) => atHand(context, sender, keyid),
    knows: ({ pins = [], ...sender }, keyid) =>
      pins.some(({ kid }) => kid === keyid) ||
      context.publishers.held(sender).sets.some(({ jwks }) => jwks.has(keyid)) ||
      context.keys.atHand(sender)?.copy.value.jwks.has(keyid) === true,
    held: (sender, keyid) => held(context, sender, keyid),
    refreshed: (sender, search) => refreshed(context, sender, search),
    ask: (sender, search) => ask(context, sender, search),
    askAgain: (sender, search, tried) => askAgain(context, sender, search, tried),
  };
}

const NOTHING: Reply = {};
const NOTHING_EVER = { final: true };

function atHand(
  { pins, keys }: SenderSearchContext,
  sender: SenderEntry,
  keyid: string,
): ReturnType<SenderSearch['atHand']> {
  if (!isPinned(sender))
    return sender.publishers === undefined ? publishedAtHand(keys, sender, keyid) : undefined;
  const key = pins.imported(sender, keyid);
  if (key !== undefined) return { candidates: [{ sender, key }] };
  return sender.publishers === undefined && pins.lacks(sender, keyid) ? NOTHING_EVER : undefined;
}

function publishedAtHand(keys: SenderKeys, sender: SenderEntry, keyid: string): Reply | undefined {
  const published = keys.atHand(sender);
  if (published === undefined) return undefined;
  const { jwks, imported } = published.copy.value;
  if (!jwks.has(keyid)) return NOTHING;
  const key = imported.get(keyid);
  if (key === undefined || isPending(key)) return undefined;
  published.used();
  return { candidates: [{ sender, key }] };
}

async function held(
  context: SenderSearchContext,
  sender: SenderEntry,
  keyid: string,
): Promise<Reply & { readonly overdue?: boolean }> {
  const own = await ownPins(context.pins, sender, keyid);
  if (own.candidates !== undefined || own.undecided !== undefined) return own;
  const publishers = context.publishers.held(sender);
  const pinned = await pinsUnder(context.use, sender, publishers.fresh, keyid);
  if (pinned.candidates !== undefined) {
    context.publishers.used(sender);
    return pinned;
  }
  if (publishers.sets.some((set) => set.jwks.has(keyid))) return { overdue: true };
  if (restricted(sender, publishers)) return {};
  const published = await context.keys.held(sender);
  if (published === undefined || !published.copy.value.jwks.has(keyid)) return {};
  if (publishers.overdue || !published.fresh) return { overdue: true };
  context.publishers.used(sender);
  published.used();
  return await keysUnder(context.use, sender, [published.copy.value], keyid);
}

async function refreshed(context: SenderSearchContext, sender: SenderEntry, search: Search): Promise<Reply> {
  const publishers = await context.publishers.current(sender, search.leave);
  const pinned = await pinsUnder(context.use, sender, publishers.sets, search.keyid);
  if (pinned.candidates !== undefined) return pinned;
  if (restricted(sender, publishers)) return {};
  const answer = await context.keys.current(sender, search.leave(sender.agentUrl));
  return answer.ok ? await keysUnder(context.use, sender, [answer.copy.value], search.keyid) : {};
}

async function ask(context: SenderSearchContext, sender: SenderEntry, search: Search): Promise<Reply> {
  const { keyid, decisive, leave } = search;
  const own = await ownPins(context.pins, sender, keyid);
  if (own.candidates !== undefined || own.undecided !== undefined) return own;
  const wanted = (set: KeySet): boolean => set.jwks.has(keyid);
  const before = await context.publishers.current(sender, leave);
  const pinned = await pinsUnder(context.use, sender, before.sets, keyid);
  if (pinned.candidates !== undefined) return pinned;
  if (!restricted(sender, before)) {
    const wish: Wish<KeySet> = { wanted: ({ value }) => wanted(value), decisive };
    const answer = await context.keys.renewed(sender, wish, leave(sender.agentUrl));
    if (!answer.ok) return { undecided: answer.reason };
    const found = await keysUnder(context.use, sender, [answer.copy.value], keyid);
    if (found.candidates !== undefined) return found;
  }
  // A publisher may have pinned a key since its file was fetched: it too has to say that there is none.
  const after = await context.publishers.renewed(sender, { wanted, decisive }, leave);
  const late = await pinsUnder(context.use, sender, after.sets, keyid);
  return late.candidates !== undefined ? late : { ...doubts(after), ...late };
}

async function askAgain(
  context: SenderSearchContext,
  sender: SenderEntry,
  search: Search,
  tried: readonly Candidate[],
): Promise<Reply> {
  const { keyid, leave } = search;
  const now = context.now();
  const decisive = (copy: Copy<unknown>): boolean =>
    search.decisive(copy) || (copy.indirect !== true && within(now, copy.began, context.cooldownMs));
  const own = await ownPins(context.pins, sender, keyid);
  const publishers = await context.publishers.renewed(sender, { wanted: () => false, decisive }, leave);
  const pinned = await pinsUnder(context.use, sender, publishers.sets, keyid);
  if (restricted(sender, publishers)) return untried([doubts(publishers), own, pinned], tried);
  const answer = await context.keys.renewed(
    sender,
    { wanted: () => false, decisive },
    leave(sender.agentUrl),
  );
  if (answer.ok) return untried([await keysUnder(context.use, sender, [answer.copy.value], keyid)], tried);
  // A key that is held and was not tried, because another sender's came first, is better than none.
  const known = await context.keys.held(sender);
  const reply = known ? await keysUnder(context.use, sender, [known.copy.value], keyid) : {};
  return untried([reply, { undecided: answer.reason }], tried);
}

/** Somebody pins, or may: then the JWKS is not consulted (verification.md §5.5). */
function restricted(sender: SenderEntry, { sets, undecided }: PinState): boolean {
  return isPinned(sender) || sets.length > 0 || undecided !== undefined;
}

function doubts({ undecided }: PinState): Reply {
  return undecided === undefined ? {} : { undecided };
}

/** How keys are imported. */
interface KeyUse {
  readonly engine: EngineSource;
  /** See `importedKey`. */
  readonly shared: boolean;
}

/** From the configured pins. A list that is none is our owner's slip: undecided. */
async function ownPins(pins: Pins, sender: SenderEntry, keyid: string): Promise<Reply> {
  if (!isPinned(sender)) return {};
  const key = await pins.key(sender, keyid);
  if (typeof key === 'string') return { undecided: key };
  return key === undefined ? {} : { candidates: [{ sender, key }] };
}

/** The keys under one `keyid` in all sets; one key that several sets have counts once. */
async function keysUnder(
  { engine, shared }: KeyUse,
  sender: SenderEntry,
  sets: readonly KeySet[],
  keyid: string,
): Promise<Reply> {
  const candidates: Candidate[] = [];
  for (const set of sets) {
    const key = await importedKey(set, keyid, engine, shared);
    if (key === undefined || candidates.some((other) => sameJwk(other.key.jwk, key.jwk))) continue;
    candidates.push({ sender, key });
  }
  return candidates.length === 0 ? {} : { candidates };
}

/** A pin that cannot be imported is the publisher's slip: nothing that the seller could be answered 4xx for. */
async function pinsUnder(
  use: KeyUse,
  sender: SenderEntry,
  sets: readonly KeySet[],
  keyid: string,
): Promise<Reply> {
  const { candidates = [] } = await keysUnder(use, sender, sets, keyid);
  const usable = candidates.filter(({ key }) => typeof key.verifyKey !== 'string');
  const flaw = candidates.map(({ key }) => key.verifyKey).find((key) => typeof key === 'string');
  return {
    ...(usable.length > 0 && { candidates: usable }),
    ...(flaw !== undefined && { undecided: `a publisher pins a key that cannot be used: ${flaw}` }),
  };
}

/** The replies as one, less what was tried in vain. */
function untried(replies: readonly Reply[], tried: readonly Candidate[]): Reply {
  const candidates: Candidate[] = [];
  const found = replies.flatMap((reply) => reply.candidates ?? []);
  for (const candidate of found) {
    const same = ({ sender, key }: Candidate): boolean =>
      sender.agentUrl === candidate.sender.agentUrl && sameJwk(key.jwk, candidate.key.jwk);
    if (!tried.some(same) && !candidates.some(same)) candidates.push(candidate);
  }
  const undecided = replies.find((reply) => reply.undecided !== undefined)?.undecided;
  return {
    ...(candidates.length > 0 && { candidates }),
    ...(undecided !== undefined && { undecided }),
  };
}
