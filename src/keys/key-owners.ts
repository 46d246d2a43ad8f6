import type { RaiseAlarm } from '../alarms.ts';
import { quoted } from '../auth/rfc9421/refuse.ts';
import { putBounded } from '../bounded.ts';
import type { Jwk } from '../crypto/engine.ts';
import type { SenderEntry } from '../senders.ts';
import { settledWithin } from '../time-limits.ts';
import type { Candidate, KeyRequest, SenderKey } from './contract.ts';
import type { DocumentCache } from './document-cache.ts';
import { type Copy, within } from './document.ts';
import { type Allowance, freeLeave } from './fetch-budget.ts';
import type { KeySet } from './jwks.ts';
import { isPinned } from './pins.ts';
import type { PublisherPins } from './publisher-pins.ts';
import type { SenderKeys } from './sender-keys.ts';

export interface KeyOwnersContext extends Omit<OwnerSources, 'firstSeen'> {
  /** Of the delivery that waits. */
  readonly allowanceOf: (request: KeyRequest) => Allowance;
  /** Besides the ms for one fetch those until a sender that had no good answer is asked again. */
  readonly limits: OwnerSources['limits'] & { readonly cooldownMs: number };
  /** Unix ms. */
  readonly now: () => number;
  /** Whether one delivery may wait for what another began: see `CacheOptions.sharedFetches`. */
  readonly shared: boolean;
}

/** Whose a key is, where a URL has several senders (verification.md §2.36). */
export interface KeyOwners extends Pick<FirstSeen, 'landed'> {
  /** Whether all the others were asked. */
  isOwn(candidate: Candidate, senders: readonly SenderEntry[]): boolean;
  /** Why a signature of this key is not, or not yet, its sender's; undefined where it is. Never rejects. */
  firstUse(candidate: Candidate, request: KeyRequest): Promise<string | undefined>;
  /** Asks about those that publish a key which is known to be another candidate's, for the alarm; nobody waits. */
  noteShared(candidates: readonly Candidate[], request: KeyRequest): void;
}

/** What one other sender said of a key. */
interface Asked {
  word?: Word;
  /** When it said so, Unix ms. */
  at: number;
  asking?: Promise<void> | undefined;
}

interface Claim extends NewKey {
  /** By agent URL. */
  readonly others: Map<string, Asked>;
}

/** As many as documents are; what is forgotten is asked again. */
const MAX_CLAIMS = 10_000;

export function createKeyOwners(context: KeyOwnersContext): KeyOwners {
  const { cache } = context;
  const firstSeen = createFirstSeen(() => cache.order());
  const desk: Desk = { ...context, firstSeen };
  const claims = new Map<string, Claim>();
  const nameOf = ({ sender, key }: Candidate): string => `${sender.agentUrl} ${keyOf(key)}`;
  const claimOf = (candidate: Candidate): Claim => {
    const name = nameOf(candidate);
    const claim = { candidate, order: cache.order(), others: new Map<string, Asked>() };
    return claims.get(name) ?? putBounded(claims, name, claim, MAX_CLAIMS);
  };
  const isOwn: KeyOwners['isOwn'] = (candidate, senders) => {
    const said = claims.get(nameOf(candidate))?.others;
    return (
      said !== undefined && others(candidate, senders).every((it) => said.get(it.agentUrl)?.word === 'clear')
    );
  };
  const firstUse: KeyOwners['firstUse'] = async (candidate, request) => {
    const claim = claimOf(candidate);
    const asked = others(candidate, request.senders);
    const answered = Promise.all(asked.map(async (other) => ask(desk, claim, other)));
    await settledWithin(answered, context.allowanceOf(request).waitMs());
    return doubt(claim, asked);
  };
  return {
    landed: (copy, before) => firstSeen.landed(copy, before),
    isOwn,
    firstUse,
    noteShared: (candidates, request) => {
      const own = candidates.filter((candidate) => isOwn(candidate, request.senders));
      const keys = new Set(own.map(({ key }) => keyOf(key)));
      for (const candidate of candidates) {
        if (!own.includes(candidate) && keys.has(keyOf(candidate.key))) void firstUse(candidate, request);
      }
    },
  };
}

interface Desk extends KeyOwnersContext {
  readonly firstSeen: FirstSeen;
}

function keyOf({ kid, jwk }: SenderKey): string {
  return keyName(kid, jwk);
}

function others({ sender }: Candidate, senders: readonly SenderEntry[]): readonly SenderEntry[] {
  return senders.filter(({ agentUrl }) => agentUrl !== sender.agentUrl);
}

/** Asks one of the others where that is due. Resolves when it has answered; at once where it had answered before. */
async function ask(desk: Desk, claim: Claim, other: SenderEntry): Promise<void> {
  const { now, limits, shared } = desk;
  const { agentUrl } = other;
  const asked: Asked = claim.others.get(agentUrl) ?? { at: 0 };
  claim.others.set(agentUrl, asked);
  const { word } = asked;
  if (word === 'clear' || (word !== undefined && within(now(), asked.at, limits.cooldownMs))) return;
  const asking = asked.asking ?? keepWord(desk, claim, other, asked);
  if (shared) asked.asking = asking;
  if (word === undefined) await asking;
}

async function keepWord(desk: Desk, claim: Claim, other: SenderEntry, asked: Asked): Promise<void> {
  const again = asked.word !== undefined;
  asked.word = await askOther(desk, claim, other, again);
  asked.at = desk.now();
  asked.asking = undefined;
}

/** For the owner's log. */
function doubt({ candidate, others: said }: Claim, asked: readonly SenderEntry[]): string | undefined {
  const names = (wanted: Word | undefined): string =>
    asked
      .map(({ agentUrl }) => agentUrl)
      .filter((agentUrl) => said.get(agentUrl)?.word === wanted)
      .join(', ');
  const what = `the key ${quoted(candidate.key.kid)} of ${candidate.sender.agentUrl}`;
  const [sharing, silent] = [names('shared'), names(undefined)];
  if (sharing !== '') return `${what} is published by ${sharing} too`;
  return silent === '' ? undefined : `${what} is new here, and has to be asked of ${silent} first`;
}

interface OwnerSources {
  readonly cache: Pick<DocumentCache, 'order'>;
  readonly keys: SenderKeys;
  readonly publishers: PublisherPins;
  readonly firstSeen: FirstSeen;
  readonly limits: { readonly deadlineMs: number };
  readonly raiseAlarm: RaiseAlarm;
}

/** `clear`: the key is not the other's. `shared`: both publish it, and who had it first is not known, or the other. */
type Word = 'clear' | 'shared' | 'unasked';

/** A key that a sender uses for the first time. */
interface NewKey {
  readonly candidate: Candidate;
  /** Fetches begun when that was noticed: counts where no JWKS of its sender's says since when it has the key. */
  readonly order: number;
}

/** What is known of another sender's keys; `reason`: why that is not recent enough to say that one is not among them. */
interface Published {
  readonly sets: readonly KeySet[];
  readonly reason?: string | undefined;
}

/**
 * Whether another sender at the URL has the key too, by documents fetched after it was first seen. Never rejects.
 * @param again it was asked before, and what it published then may have changed.
 */
async function askOther(
  sources: OwnerSources,
  made: NewKey,
  other: SenderEntry,
  again: boolean,
): Promise<Word> {
  const { kid, jwk } = made.candidate.key;
  const key = keyName(kid, jwk);
  // What is configured needs no document, and nothing that is published takes it away.
  if (isConfigured(other, key)) return shared(sources, made, other);
  if (isConfigured(made.candidate.sender, key)) return 'clear';
  if (isPinned(other) && other.publishers === undefined) return 'clear';
  const since = await seenAt(sources, made, key);
  const { sets, reason } = await published(sources, other, again ? sources.cache.order() : since);
  const holders = sets.filter((set) => {
    const theirs = set.jwks.get(kid);
    return theirs !== undefined && keyName(kid, theirs) === key;
  });
  if (holders.length > 0) {
    const isFirst = holders.every((set) => sources.firstSeen.lackedSince(set, key, since));
    return shared(sources, made, other, isFirst);
  }
  return reason === undefined ? 'clear' : unasked(sources, made, other, reason);
}

function isConfigured({ pins = [] }: SenderEntry, key: string): boolean {
  return pins.some((jwk) => keyName(String(jwk['kid']), jwk) === key);
}

async function seenAt(
  { keys, firstSeen }: OwnerSources,
  { candidate, order }: NewKey,
  key: string,
): Promise<number> {
  const held = await attempted(keys.held(candidate.sender));
  return (held && firstSeen.seen(held.copy, key)) ?? order;
}

/** A fault of ours is as good as no answer: it must not end what other senders wait for. */
async function attempted<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch {
    return undefined;
  }
}

async function published(sources: OwnerSources, other: SenderEntry, after: number): Promise<Published> {
  const recent = attempted(recentlyPublished(sources, other, after));
  const found = await settledWithin(recent, sources.limits.deadlineMs);
  if (found !== undefined && found.reason === undefined) return found;
  const held = await attempted(sources.keys.held(other));
  return {
    sets: [...sources.publishers.held(other).sets, ...(held ? [held.copy.value] : [])],
    reason: found?.reason ?? 'no answer in time',
  };
}

/** Bounded by what it is asked for: once for all keys that came with one fetch. */
async function recentlyPublished(
  { keys, publishers }: OwnerSources,
  other: SenderEntry,
  after: number,
): Promise<Published> {
  const leave = freeLeave(other.agentUrl);
  const wish = {
    wanted: () => false,
    decisive: (copy: Copy<unknown>) => copy.indirect !== true && copy.order > after,
    evenIfCooling: true,
  };
  const pinned = await publishers.renewed(other, wish, () => leave);
  if (pinned.sets.length > 0) return { sets: pinned.sets, reason: pinned.undecided };
  const answer = await keys.renewed(other, wish, leave);
  return answer.ok
    ? { sets: [answer.copy.value], reason: pinned.undecided }
    : { sets: [], reason: answer.reason };
}

function shared(
  { raiseAlarm }: OwnerSources,
  { candidate: { sender, key } }: NewKey,
  { agentUrl }: SenderEntry,
  isFirst = false,
): Word {
  const whose = isFirst
    ? `${sender.agentUrl} had it first and keeps its events`
    : `nothing shows that ${sender.agentUrl} had it first, so that no event is taken for its own`;
  raiseAlarm({
    code: 'key_shared',
    sender: sender.agentUrl,
    other: agentUrl,
    keyid: key.kid,
    message: `${sender.agentUrl} and ${agentUrl} publish one key under the keyid ${quoted(key.kid)}: ${whose}. One of them may have copied it. Give each seller a webhook URL of its own.`,
  });
  return isFirst ? 'clear' : 'shared';
}

function unasked(
  { raiseAlarm }: OwnerSources,
  { candidate: { sender, key } }: NewKey,
  { agentUrl }: SenderEntry,
  reason: string,
): Word {
  raiseAlarm({
    code: 'key_owner_unchecked',
    sender: sender.agentUrl,
    other: agentUrl,
    keyid: key.kid,
    message: `${sender.agentUrl} uses the keyid ${quoted(key.kid)} for the first time, and ${agentUrl} could not be asked whether it is its own (${reason}). It is taken for the first one's, as what is held says, and asked again.`,
  });
  return 'unasked';
}

/**
 * When the keys of each JWKS were first seen here, which alone says whose a key is that two publish (verification.md
 * §2.36). In fetches that were begun: a fetch is later than an answer only where it was begun after the answer was there.
 */
interface FirstSeen {
  /** A copy takes the place of another. */
  landed(copy: Copy<KeySet>, before: Copy<KeySet> | undefined): void;
  /** How many fetches had been begun when the key was first seen in this set; undefined where the set has none such. */
  seen(copy: Copy<KeySet>, key: string): number | undefined;
  /** Whether a fetch begun after `since` others brought a set of this place without the key. */
  lackedSince(set: KeySet, key: string, since: number): boolean;
}

interface KeyPast {
  readonly seen: number;
  /** The fetch of the last copy without it; none where it was there from the first. */
  readonly lacked: number;
}

interface Past {
  readonly keys: ReadonlyMap<string, KeyPast>;
  /** The last fetch that the server itself answered with the document. */
  readonly direct: number;
}

const NEVER = -1;

/** What one signature verifies under: the `kid`, and the members of the JWK that an engine reads, in canonical form. */
function keyName(kid: string, { kty, crv, x, y }: Jwk): string {
  return JSON.stringify([kty, crv, x, kty === 'EC' ? y : '', kid]);
}

/** @param order see `DocumentCache.order`. */
function createFirstSeen(order: () => number): FirstSeen {
  // By the set and not by its URL: it goes with the document.
  const pasts = new WeakMap<KeySet, Past>();
  const note = (copy: Copy<KeySet>, before: Past | undefined): Past => {
    const lacked = before?.direct ?? NEVER;
    const keys = new Map<string, KeyPast>();
    for (const [kid, jwk] of copy.value.jwks) {
      const key = keyName(kid, jwk);
      keys.set(key, before?.keys.get(key) ?? { seen: order(), lacked });
    }
    const past = { keys, direct: copy.indirect === true ? lacked : copy.order };
    pasts.set(copy.value, past);
    return past;
  };
  return {
    landed: (copy, before) => void note(copy, before && (pasts.get(before.value) ?? note(before, undefined))),
    seen: (copy, key) => (pasts.get(copy.value) ?? note(copy, undefined)).keys.get(key)?.seen,
    lackedSince: (set, key, since) => (pasts.get(set)?.keys.get(key)?.lacked ?? NEVER) > since,
  };
}
