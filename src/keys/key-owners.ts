// Finds the owner of a key if a URL has several senders, before the key is used for the first time
// (verification.md §2.36).
// Called by the resolver; the signature check asks `firstUse` after a key has verified.

import type { RaiseAlarm } from '../shared/alarms.ts';
import { materialOf } from '../auth/rfc9421/revoked-at.ts';
import { quoted } from '../codec/printable.ts';
import { putBounded } from '../shared/bounded.ts';
import type { Jwk } from '../crypto/engine.ts';
import { placeName, type SenderEntry } from '../config/sender-entry.ts';
import { singleFlight } from '../shared/single-flight.ts';
import { settledWithin } from '../shared/time-limits.ts';
import type { Candidate, KeyRequest, SenderKey } from './key-resolver.ts';
import type { DocumentCache } from './document-cache.ts';
import { type Copy, type FetchMoment, isWithin } from './document.ts';
import { type DeliveryBudget, unlimitedBudget } from './safe-fetch.ts';
import { allKeys, type KeySet } from './jwks.ts';
import { isPinned } from './pins.ts';
import type { KeyRecords } from './key-records.ts';
import type { PublisherPins } from './publisher-pins.ts';
import type { SenderKeys } from './sender-keys.ts';

export interface KeyOwnersContext {
  readonly cache: Pick<DocumentCache, 'fetchCount'>;
  readonly keys: SenderKeys;
  readonly publishers: PublisherPins;
  readonly raiseAlarm: RaiseAlarm;
  /** Records of published and verified keys. */
  readonly records: Pick<KeyRecords, 'of'>;
  /** The budget of the delivery that waits. */
  readonly budgetOf: (request: KeyRequest) => DeliveryBudget;
  readonly limits: {
    /** Time limit of one fetch. Ms. */
    readonly deadlineMs: number;
    /** Time until a sender without a good answer is asked again. Ms. */
    readonly cooldownMs: number;
  };
  /** Unix ms. */
  readonly now: () => number;
}

/** Ownership of keys at URLs with several senders (verification.md §2.36). */
export interface KeyOwners extends Pick<FirstSeen, 'onReplaced'> {
  /** True if all other senders were asked and none has the key. */
  isOwn(candidate: Candidate, senders: readonly SenderEntry[]): boolean;
  /**
   * The reason why a signature of this key is not, or not yet, its sender's; undefined if it is. Never
   * rejects.
   */
  firstUse(candidate: Candidate, request: KeyRequest): Promise<string | undefined>;
  /** Asks in the background about candidates whose key is known to be another candidate's, for the alarm. */
  noteShared(candidates: readonly Candidate[], request: KeyRequest): void;
}

/**
 * Result for one other sender. `clear`: it does not own the key. `shared`: both publish it, and the other had
 * it first or nobody knows who did. `unchecked`: it could not be asked, and its earlier keys lack this one.
 * `blocked`: it could never be asked.
 */
type Ownership = 'clear' | 'shared' | 'unchecked' | 'blocked';

/** Facts about a key that a sender uses for the first time. */
interface Claim extends NewKey {
  /** Results for the other senders, by `placeName`, with their time in Unix ms. */
  readonly others: Map<string, { readonly ownership: Ownership; readonly at: number }>;
  readonly running: Map<string, Promise<void>>;
}

interface KeyOwnersState extends KeyOwnersContext {
  readonly firstSeen: FirstSeen;
}

/**
 * Most claims remembered: as many as the cache has documents. After a forgotten one the others are asked
 * again.
 */
const MAX_CLAIMS = 10_000;

export function createKeyOwners(context: KeyOwnersContext): KeyOwners {
  const { cache } = context;
  const firstSeen = createFirstSeen(() => cache.fetchCount());
  const state: KeyOwnersState = { ...context, firstSeen };
  const claims = new Map<string, Claim>();
  const claimName = ({ sender, key }: Candidate): string => `${sender.agentUrl} ${keyOf(key)}`;
  const claimOf = (candidate: Candidate): Claim => {
    const name = claimName(candidate);
    const claim = { candidate, fetchCount: cache.fetchCount(), others: new Map(), running: new Map() };
    return claims.get(name) ?? putBounded(claims, name, claim, MAX_CLAIMS);
  };
  const isOwn: KeyOwners['isOwn'] = (candidate, senders) => {
    const known = claims.get(claimName(candidate))?.others;
    return (
      known !== undefined &&
      othersThan(candidate, senders).every((other) => known.get(placeName(other))?.ownership === 'clear')
    );
  };
  const firstUse: KeyOwners['firstUse'] = async (candidate, request) => {
    const claim = claimOf(candidate);
    const others = othersThan(candidate, request.senders);
    const asked = Promise.all(others.map(async (other) => ask(state, claim, other)));
    await settledWithin(asked, context.budgetOf(request).waitMs());
    return notOwnReason(claim, others);
  };
  return {
    onReplaced: (copy, before) => firstSeen.onReplaced(copy, before),
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

function keyOf({ kid, jwk }: SenderKey): string {
  return keyName(kid, jwk);
}

function othersThan({ sender }: Candidate, senders: readonly SenderEntry[]): readonly SenderEntry[] {
  return senders.filter(({ agentUrl }) => agentUrl !== sender.agentUrl);
}

/**
 * Asks one other sender if that is due. Waits only for its first answer: a later one serves the next
 * delivery.
 */
async function ask(state: KeyOwnersState, claim: Claim, other: SenderEntry): Promise<void> {
  const { now, limits } = state;
  const name = placeName(other);
  const known = claim.others.get(name);
  if (known?.ownership === 'clear') return;
  if (known !== undefined && isWithin(now(), known.at, limits.cooldownMs)) return;
  const asking = singleFlight(claim.running, name, async () => {
    const ownership = await askOther(state, claim, other, known !== undefined);
    claim.others.set(name, { ownership, at: now() });
  });
  if (known === undefined) await asking;
}

/** The reason for the owner's log. */
function notOwnReason(claim: Claim, others: readonly SenderEntry[]): string | undefined {
  const { sender, key } = claim.candidate;
  const having = (ownership: Ownership | undefined): string =>
    others
      .filter((other) => claim.others.get(placeName(other))?.ownership === ownership)
      .map(({ agentUrl }) => agentUrl)
      .join(', ');
  const what = `the key ${quoted(key.kid)} of ${sender.agentUrl}`;
  const [sharing, silent, blocking] = [having('shared'), having(undefined), having('blocked')];
  if (sharing !== '') return `${what} is published by ${sharing} too`;
  if (blocking !== '') return `${what} is new here, and the keys of ${blocking} could never be fetched`;
  return silent === '' ? undefined : `${what} is new here, and ${silent} has to be asked first`;
}

/** A key that a sender uses for the first time. */
interface NewKey {
  readonly candidate: Candidate;
  /** Number of fetches begun at that time: used if no JWKS of its sender shows since when it has the key. */
  readonly fetchCount: number;
}

/** Known keys of another sender; `reason` says why they are too old to prove that one is missing. */
interface KnownKeys {
  readonly sets: readonly KeySet[];
  readonly reason?: string | undefined;
}

/**
 * Finds out if another sender at the URL has the key too, by documents fetched after it was first seen. Never
 * rejects.
 * @param again it was asked before, and its published keys may have changed since.
 */
async function askOther(
  state: KeyOwnersState,
  newKey: NewKey,
  other: SenderEntry,
  again: boolean,
): Promise<Ownership> {
  const { kid, jwk } = newKey.candidate.key;
  const key = keyName(kid, jwk);
  // A configured key needs no document, and no published key takes it away.
  if (isConfigured(other, key)) return reportShared(state, newKey, other);
  if (isConfigured(newKey.candidate.sender, key)) return 'clear';
  if (isPinned(other) && other.publishers === undefined) return 'clear';
  const since = await seenAt(state, newKey, key);
  const { sets, reason } = await currentKeys(state, other, again ? state.cache.fetchCount() : since);
  const holders = sets.filter((set) => {
    return allKeys(set).some(([theirs, own]) => theirs === kid && keyName(theirs, own) === key);
  });
  if (holders.length > 0) {
    const lacked = holders.every((set) => state.firstSeen.lackedSince(set, key, since));
    return reportShared(state, newKey, other, lacked || (await hadItFirst(state, newKey, other)));
  }
  return reason === undefined ? 'clear' : await byRecords(state, newKey, other, reason);
}

/** True if a signature of this key was accepted as this sender's before, and none as the other's. */
async function hadItFirst(
  { records }: KeyOwnersState,
  { candidate }: NewKey,
  other: SenderEntry,
): Promise<boolean> {
  const { kid, jwk } = candidate.key;
  const [own, theirs] = [
    await orUndefined(records.of(candidate.sender.agentUrl)),
    await orUndefined(records.of(other.agentUrl)),
  ];
  return own?.wasOwn(kid, jwk) === true && theirs?.wasOwn(kid, jwk) === false;
}

/** Uses records if the other sender cannot be asked: its published and verified keys, however old. */
async function byRecords(
  state: KeyOwnersState,
  newKey: NewKey,
  other: SenderEntry,
  reason: string,
): Promise<Ownership> {
  const { sender, key } = newKey.candidate;
  const theirs = await orUndefined(state.records.of(other.agentUrl));
  if (theirs?.hasPublished(key.kid, key.jwk) === true || theirs?.wasOwn(key.kid, key.jwk) === true) {
    return reportShared(state, newKey, other, await hadItFirst(state, newKey, other));
  }
  if (theirs?.isKnown === true) return reportUnchecked(state, newKey, other, reason);
  const own = await orUndefined(state.records.of(sender.agentUrl));
  if (own?.hasVerified(key.kid, key.jwk) === true) return reportUnchecked(state, newKey, other, reason);
  return reportBlocked(state, newKey, other, reason);
}

function isConfigured({ pins = [] }: SenderEntry, key: string): boolean {
  return pins.some((jwk) => keyName(String(jwk['kid']), jwk) === key);
}

async function seenAt(
  { keys, firstSeen }: KeyOwnersState,
  { candidate, fetchCount }: NewKey,
  key: string,
): Promise<number> {
  const known = await orUndefined(keys.cached(candidate.sender));
  return (known && firstSeen.seen(known.copy, key)) ?? fetchCount;
}

/** Treats a fault on our side as no answer: it must not end what other senders wait for. */
async function orUndefined<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch {
    return undefined;
  }
}

async function currentKeys(state: KeyOwnersState, other: SenderEntry, after: number): Promise<KnownKeys> {
  const recent = orUndefined(refetchedKeys(state, other, after));
  const found = await settledWithin(recent, state.limits.deadlineMs);
  if (found !== undefined && found.reason === undefined) return found;
  const known = await orUndefined(state.keys.cached(other));
  return {
    sets: [...state.publishers.cached(other).sets, ...(known ? [known.copy.value] : [])],
    reason: found?.reason ?? 'no answer in time',
  };
}

/** Bounded by its purpose: it runs once for all keys that came with one fetch. */
async function refetchedKeys(
  { keys, publishers }: KeyOwnersState,
  other: SenderEntry,
  after: number,
): Promise<KnownKeys> {
  const budget = unlimitedBudget(other.agentUrl);
  const freshness = {
    hasWanted: () => false,
    isFreshEnough: (copy: FetchMoment) => copy.isRevalidated !== true && copy.fetchNumber > after,
    ignoresCooldown: true,
  };
  const pinned = await publishers.renewed(other, freshness, () => budget);
  if (pinned.sets.length > 0) return { sets: pinned.sets, reason: pinned.undecided };
  const answer = await keys.renewed(other, freshness, budget);
  return answer.ok
    ? { sets: [answer.copy.value], reason: pinned.undecided }
    : { sets: [], reason: answer.reason };
}

function reportShared(
  { raiseAlarm }: KeyOwnersState,
  { candidate: { sender, key } }: NewKey,
  { agentUrl }: SenderEntry,
  isFirst = false,
): Ownership {
  const whose = isFirst
    ? `${sender.agentUrl} had it first and keeps its events`
    : `nothing shows that ${sender.agentUrl} had it first, so its deliveries with this key are not accepted`;
  raiseAlarm({
    code: 'key_shared',
    sender: sender.agentUrl,
    other: agentUrl,
    keyid: key.kid,
    message: `${sender.agentUrl} and ${agentUrl} publish one key under the keyid ${quoted(key.kid)}: ${whose}. One of them may have copied it. Give each seller a webhook URL of its own.`,
  });
  return isFirst ? 'clear' : 'shared';
}

/**
 * Raises the alarm about a sender that could not be asked if a key is its own. `then` gives the reason and
 * the consequence.
 */
function reportUnasked(
  { raiseAlarm }: KeyOwnersState,
  { candidate: { sender, key } }: NewKey,
  { agentUrl }: SenderEntry,
  then: string,
): void {
  raiseAlarm({
    code: 'key_owner_unchecked',
    sender: sender.agentUrl,
    other: agentUrl,
    keyid: key.kid,
    message: `${sender.agentUrl} uses the keyid ${quoted(key.kid)} for the first time, and ${agentUrl} could not be asked whether it is its own ${then}`,
  });
}

function reportUnchecked(state: KeyOwnersState, of: NewKey, other: SenderEntry, reason: string): Ownership {
  const then = `(${reason}). By the keys held here it belongs to the first one, whose deliveries are accepted; the other one is asked again.`;
  reportUnasked(state, of, other, then);
  return 'unchecked';
}

function reportBlocked(state: KeyOwnersState, of: NewKey, other: SenderEntry, reason: string): Ownership {
  const mend = `repair the documents of ${other.agentUrl}, remove it from this URL, or pin its keys.`;
  const then = `(${reason}): its keys could never be fetched. Deliveries with this key are answered 503 until they are: ${mend}`;
  reportUnasked(state, of, other, then);
  return 'blocked';
}

/**
 * First sightings of the keys of each JWKS, which alone tell who owns a key that two publish (verification.md
 * §2.36). Counted in fetches begun: a fetch is later than an answer only if it began after that answer.
 */
interface FirstSeen {
  /** Called when a copy replaces another. */
  onReplaced(copy: Copy<KeySet>, before: Copy<KeySet> | undefined): void;
  /** Number of fetches begun when the key was first seen in this set; undefined if the set lacks it. */
  seen(copy: Copy<KeySet>, key: string): number | undefined;
  /** True if a fetch that began after `since` others returned a set of this place without the key. */
  lackedSince(set: KeySet, key: string, since: number): boolean;
}

interface KeyHistory {
  readonly seen: number;
  /** Number of the fetch of the last copy without it; none if the key was there from the start. */
  readonly lacked: number;
}

interface SetHistory {
  readonly keys: ReadonlyMap<string, KeyHistory>;
  /** Number of the last fetch that the server itself answered with the document. */
  readonly direct: number;
}

const NEVER = -1;

/** Name of the material that a signature verifies under, with its kid, in canonical form. */
function keyName(kid: string, jwk: Jwk): string {
  return JSON.stringify([materialOf(jwk), kid]);
}

/** @param fetchCount see `DocumentCache.fetchCount`. */
function createFirstSeen(fetchCount: () => number): FirstSeen {
  // Keyed by the set, not by its URL: the history is dropped with the document.
  const histories = new WeakMap<KeySet, SetHistory>();
  const note = (copy: Copy<KeySet>, before: SetHistory | undefined): SetHistory => {
    const lacked = before?.direct ?? NEVER;
    const keys = new Map<string, KeyHistory>();
    for (const [kid, jwk] of allKeys(copy.value)) {
      const key = keyName(kid, jwk);
      keys.set(key, before?.keys.get(key) ?? { seen: fetchCount(), lacked });
    }
    const history = { keys, direct: copy.isRevalidated === true ? lacked : copy.fetchNumber };
    histories.set(copy.value, history);
    return history;
  };
  return {
    onReplaced: (copy, before) =>
      void note(copy, before && (histories.get(before.value) ?? note(before, undefined))),
    seen: (copy, key) => (histories.get(copy.value) ?? note(copy, undefined)).keys.get(key)?.seen,
    lackedSince: (set, key, since) => (histories.get(set)?.keys.get(key)?.lacked ?? NEVER) > since,
  };
}
