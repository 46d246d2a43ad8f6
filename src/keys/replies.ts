import type { SenderEntry } from '../senders.ts';
import type { Candidate } from './contract.ts';
import type { Reply } from './gather.ts';
import { type EngineSource, importedKey, type KeySet, sameJwk } from './jwks.ts';
import { isPinned, type Pins } from './pins.ts';

/** How keys are imported. */
export interface KeyUse {
  readonly engine: EngineSource;
  /** See `importedKey`. */
  readonly shared: boolean;
}

/** From the configured pins. A list that is none is our owner's slip: undecided. */
export async function ownPins(pins: Pins, sender: SenderEntry, keyid: string): Promise<Reply> {
  if (!isPinned(sender)) return {};
  const key = await pins.key(sender, keyid);
  if (typeof key === 'string') return { undecided: key };
  return key === undefined ? {} : { candidates: [{ sender, key }] };
}

/** The keys under one `keyid` in all sets; one key that several sets have counts once. */
export async function keysUnder(
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
export async function pinsUnder(
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
export function untried(replies: readonly Reply[], tried: readonly Candidate[]): Reply {
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
