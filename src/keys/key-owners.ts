// If several senders share a webhook URL, decides which of them owns a key before the key is used for the first time
// (verification.md §2.36).
// Called by the resolver; the signature check calls `firstUse` after a signature has verified with the key.

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
  /** The stored records of keys that senders published or used. */
  readonly records: Pick<KeyRecords, 'of'>;
  /** Returns the limits of fetches and waiting time for the delivery that needs the key. */
  readonly budgetOf: (request: KeyRequest) => DeliveryBudget;
  readonly limits: {
    /** Time limit of one fetch, in ms. */
    readonly deadlineMs: number;
    /** The time in ms until another sender's keys are fetched again after an inconclusive result. */
    readonly cooldownMs: number;
  };
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
}

/** Finds the owner of a key among several senders of one URL (verification.md §2.36). */
export interface KeyOwners extends Pick<FirstSeen, 'onReplaced'> {
  /** True if the keys of all other senders at the URL were checked and the key belongs to none of them. */
  isOwn(candidate: Candidate, senders: readonly SenderEntry[]): boolean;
  /**
   * Returns the reason why the key is not (or not yet) known to be its sender's; undefined if it is. Never rejects.
   */
  firstUse(candidate: Candidate, request: KeyRequest): Promise<string | undefined>;
  /**
   * If two candidates have one key and it belongs to one of their senders, checks the other sender in the background.
   * This raises the alarm `key_shared`.
   */
  noteShared(candidates: readonly Candidate[], request: KeyRequest): void;
}

/**
 * The result of checking if another sender owns a key. `clear`: the other sender does not. `shared`: the other sender
 * has the key too, and had it first or the order is unknown. `unchecked`: its keys could not be fetched, but by the
 * records the key is not its own. `blocked`: its keys could never be fetched, and no record helps.
 */
type Ownership = 'clear' | 'shared' | 'unchecked' | 'blocked';

/** The checks of the other senders for a key that a sender uses for the first time. */
interface Claim extends NewKey {
  /** The result for each other sender, by `placeName`, with its time in Unix ms. */
  readonly others: Map<string, { readonly ownership: Ownership; readonly at: number }>;
  readonly running: Map<string, Promise<void>>;
}

interface KeyOwnersState extends KeyOwnersContext {
  readonly firstSeen: FirstSeen;
}

/** The maximum number of new keys whose checks are remembered; forgotten checks are made again. */
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
 * Checks if another sender has the key, unless a recent result is known. Waits only for the first result about that
 * sender; a repeated check serves the next delivery.
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

/** Returns the reason, for the owner's log, why the key is not known to be the sender's own. Undefined if it is. */
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
  /**
   * The number of fetches begun when the key was first used. It stands for the time of first sight if no cached JWKS
   * shows an earlier one.
   */
  readonly fetchCount: number;
}

/** The known keys of another sender. `reason` is set if the sets are too old to prove that the sender lacks a key. */
interface KnownKeys {
  readonly sets: readonly KeySet[];
  readonly reason?: string | undefined;
}

/**
 * Checks if another sender at the URL has the key too, in documents fetched after the key was first seen. Never
 * rejects.
 * @param again true if this other sender was checked before; its published keys may have changed since.
 */
async function askOther(
  state: KeyOwnersState,
  newKey: NewKey,
  other: SenderEntry,
  again: boolean,
): Promise<Ownership> {
  const { kid, jwk } = newKey.candidate.key;
  const key = keyName(kid, jwk);
  // If configuration pins the key for the other sender, the key belongs to the other sender, and nothing is fetched.
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

/** True if a signature with this key was accepted from the candidate's sender, but never from the other sender. */
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

/** Uses records of the other sender's published or used keys, however old: its documents cannot be fetched. */
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

/** Returns undefined if the work fails: a local fault must not abort the check of other senders. */
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

/**
 * Fetches the other sender's keys again, outside the delivery's budget. The number of such fetches is bounded: one
 * serves all keys that were first seen before it.
 */
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

/** Raises the alarm that the other sender's keys could not be checked. `then` ends its text: reason and consequence. */
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
 * Remembers when each key of a JWKS was first seen. If two senders publish a key, only this shows which sender had it
 * first (verification.md §2.36).
 * A time is the number of fetches begun, not a clock time: a fetch proves something about a moment only if it began
 * later.
 */
interface FirstSeen {
  /** Notes the keys of a new copy of a JWKS. A key that `before` had keeps the time of its first sight. */
  onReplaced(copy: Copy<KeySet>, before: Copy<KeySet> | undefined): void;
  /** Returns the number of fetches begun when this set's key was first seen; undefined if the set lacks the key. */
  seen(copy: Copy<KeySet>, key: string): number | undefined;
  /** True if a fetch with a number above `since` returned this JWKS without the key. */
  lackedSince(set: KeySet, key: string, since: number): boolean;
}

interface KeyHistory {
  readonly seen: number;
  /** The number of the last fetch that returned the JWKS without the key. -1 (`NEVER`) if every copy had the key. */
  readonly lacked: number;
}

interface SetHistory {
  readonly keys: ReadonlyMap<string, KeyHistory>;
  /**
   * The number of the last fetch in which the server itself, not a cache, sent the whole document. -1 if there was
   * none.
   */
  readonly direct: number;
}

const NEVER = -1;

/** Identifies a key by its `kid` and the members that verify signatures, in canonical form. */
function keyName(kid: string, jwk: Jwk): string {
  return JSON.stringify([materialOf(jwk), kid]);
}

/**
 * Creates the memory of when keys were first seen.
 * @param fetchCount returns the number of fetches begun so far.
 */
function createFirstSeen(fetchCount: () => number): FirstSeen {
  // The map's key is the parsed set, not its URL, so the history is dropped together with the cached document.
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
