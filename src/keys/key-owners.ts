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
  /** What was ever published, and verified. */
  readonly records: Pick<KeyRecords, 'of'>;
  /** Of the delivery that waits. */
  readonly budgetOf: (request: KeyRequest) => DeliveryBudget;
  readonly limits: {
    /** Ms for one fetch. */
    readonly deadlineMs: number;
    /** Ms until a sender that had no good answer is asked again. */
    readonly cooldownMs: number;
  };
  /** Unix ms. */
  readonly now: () => number;
}

/** Whose a key is, where a URL has several senders (verification.md §2.36). */
export interface KeyOwners extends Pick<FirstSeen, 'onReplaced'> {
  /** Whether all the others were asked, and none has the key. */
  isOwn(candidate: Candidate, senders: readonly SenderEntry[]): boolean;
  /** Why a signature of this key is not, or not yet, its sender's; undefined where it is. Never rejects. */
  firstUse(candidate: Candidate, request: KeyRequest): Promise<string | undefined>;
  /** Asks in the background about candidates whose key is known to be another candidate's, for the alarm. */
  noteShared(candidates: readonly Candidate[], request: KeyRequest): void;
}

/**
 * `clear`: the key is not the other's. `shared`: both publish it, and who had it first is not known, or the other.
 * `unchecked`: the other could not be asked, and what it once published lacks the key. `blocked`: it never could be asked.
 */
type Ownership = 'clear' | 'shared' | 'unchecked' | 'blocked';

/** What is known of a key that a sender uses for the first time. */
interface Claim extends NewKey {
  /** What each of the other senders was found to have, by `placeName`, and when; Unix ms. */
  readonly others: Map<string, { readonly ownership: Ownership; readonly at: number }>;
  readonly running: Map<string, Promise<void>>;
}

interface KeyOwnersState extends KeyOwnersContext {
  readonly firstSeen: FirstSeen;
}

/** As many as the cache has documents; after a claim that is forgotten the others are asked again. */
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

/** Asks one of the others where that is due. Waits only for its first answer: a later one is for the next delivery. */
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

/** For the owner's log. */
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
  /** Fetches begun when that was noticed: used where no JWKS of its sender shows since when it has the key. */
  readonly fetchCount: number;
}

/** What is known of another sender's keys; `reason`: why that is not recent enough to say that one is not among them. */
interface KnownKeys {
  readonly sets: readonly KeySet[];
  readonly reason?: string | undefined;
}

/**
 * Whether another sender at the URL has the key too, by documents fetched after it was first seen. Never rejects.
 * @param again it was asked before, and what it published then may have changed.
 */
async function askOther(
  state: KeyOwnersState,
  newKey: NewKey,
  other: SenderEntry,
  again: boolean,
): Promise<Ownership> {
  const { kid, jwk } = newKey.candidate.key;
  const key = keyName(kid, jwk);
  // What is configured needs no document, and nothing that is published takes it away.
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

/** Whether a signature of this key was taken as this sender's before, and none as the other's. */
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

/** Where the other cannot be asked: what it published, and what verified, however long ago, says whose the key is. */
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

/** A fault on our side counts as no answer: it must not end what other senders wait for. */
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

/** Bounded by what it is asked for: once for all keys that came with one fetch. */
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

/** Raises the alarm of a sender that could not be asked whether a key is its own. `then` says why, and what follows. */
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
 * When the keys of each JWKS were first seen here, which alone says whose a key is that two publish (verification.md
 * §2.36). In fetches that were begun: a fetch is later than an answer only where it was begun after the answer was there.
 */
interface FirstSeen {
  /** A copy takes the place of another. */
  onReplaced(copy: Copy<KeySet>, before: Copy<KeySet> | undefined): void;
  /** How many fetches had been begun when the key was first seen in this set; undefined where the set has none such. */
  seen(copy: Copy<KeySet>, key: string): number | undefined;
  /** Whether a fetch begun after `since` others brought a set of this place without the key. */
  lackedSince(set: KeySet, key: string, since: number): boolean;
}

interface KeyHistory {
  readonly seen: number;
  /** The fetch of the last copy without it; none where it was there from the first. */
  readonly lacked: number;
}

interface SetHistory {
  readonly keys: ReadonlyMap<string, KeyHistory>;
  /** The last fetch that the server itself answered with the document. */
  readonly direct: number;
}

const NEVER = -1;

/** What one signature verifies under, in canonical form. */
function keyName(kid: string, jwk: Jwk): string {
  return JSON.stringify([materialOf(jwk), kid]);
}

/** @param fetchCount see `DocumentCache.fetchCount`. */
function createFirstSeen(fetchCount: () => number): FirstSeen {
  // By the set and not by its URL: the history goes with the document.
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
