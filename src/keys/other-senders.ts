import type { RaiseAlarm } from '../alarms.ts';
import { quoted } from '../auth/rfc9421/refuse.ts';
import type { SenderEntry } from '../senders.ts';
import type { Candidate } from './contract.ts';
import { type Copy, freeLeave } from './document.ts';
import type { DocumentCache } from './document-cache.ts';
import { type FirstSeen, keyName } from './first-seen.ts';
import type { KeySet } from './jwks.ts';
import { isPinned } from './pins.ts';
import type { PublisherPins } from './publisher-pins.ts';
import type { SenderKeys } from './sender-keys.ts';
import { settledWithin } from './timeout.ts';

export interface OwnerSources {
  readonly cache: Pick<DocumentCache, 'order'>;
  readonly keys: SenderKeys;
  readonly publishers: PublisherPins;
  readonly firstSeen: FirstSeen;
  readonly limits: { readonly deadlineMs: number };
  readonly raiseAlarm: RaiseAlarm;
}

/** `clear`: the key is not the other's. `shared`: both publish it, and who had it first is not known, or the other. */
export type Word = 'clear' | 'shared' | 'unasked';

/** A key that a sender uses for the first time. */
export interface NewKey {
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
export async function askOther(
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
