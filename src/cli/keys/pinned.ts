// Reads the keys that publishers pin for an agent: the only keys of the agent that they declare valid. Finds the keys
// that a receiver then uses (verification.md §5.5). `chain.ts` calls it.
import { revokedSince, sameMaterial } from '../../auth/rfc9421/revoked-at.ts';
import { canonicalJson } from '../../codec/canonical-json.ts';
import { quoted } from '../../codec/printable.ts';
import type { Jwk } from '../../crypto/engine.ts';
import type { Candidate } from '../../keys/key-resolver.ts';
import { allKeys, type KeySet } from '../../keys/jwks.ts';
import { narrowed } from '../../keys/narrowed-search.ts';
import { createPinPurposes } from '../../keys/pin-purpose.ts';
import { adagentsUrls, followed, notListedReason } from '../../keys/publisher-pins.ts';
import type { Protocols } from '../../shared/wire-names.ts';
import type { SenderEntry } from '../../config/sender-entry.ts';
import type { Documents } from './documents.ts';

/** Fetches the file of each publisher, and returns the keys that it pins for the agent. Adds faults to `faults`. */
export async function publisherSets(
  documents: Documents,
  sender: SenderEntry,
  allowLoopback: boolean,
  faults: string[],
): Promise<readonly KeySet[]> {
  const sets: KeySet[] = [];
  for (const url of adagentsUrls(sender, allowLoopback)) {
    const answer = await followed(url, (kind, at) => documents.load(kind, at));
    if (!answer.ok) {
      faults.push(
        `adagents.json at ${url}: ${answer.reason}. It might pin keys, so deliveries are answered 503.`,
      );
      continue;
    }
    const set = answer.copy.value.pinned.get(sender.agentUrl);
    const unlisted = notListedReason(answer.copy.value, sender.agentUrl);
    if (unlisted !== undefined)
      faults.push(`adagents.json at ${url}: ${unlisted}. Deliveries are answered 503.`);
    if (typeof set === 'string') faults.push(`adagents.json at ${url}: what it pins cannot be used: ${set}.`);
    // Different keys with the same kid count as pinned too, although a receiver can use none of them.
    if (typeof set === 'object') sets.push(set);
  }
  return sets;
}

/** The keys that a receiver uses, with notes about them for the user. */
export interface CountedKeys {
  readonly jwks: readonly Jwk[];
  readonly source: 'JWKS' | 'adagents.json';
  readonly notes: readonly string[];
}

interface Counting {
  readonly sender: SenderEntry;
  readonly protocols: Protocols;
  /** The agent's JWKS; undefined if it cannot be fetched. */
  readonly published: KeySet | undefined;
  readonly sets: readonly KeySet[];
}

/** Returns the keys that a receiver uses, with or without pins (verification.md §5.5). */
export function countedKeys(counting: Counting): CountedKeys {
  const { sender, published, sets } = counting;
  if (sets.length === 0) return { jwks: [...(published?.jwks.values() ?? [])], source: 'JWKS', notes: [] };
  return sender.edition.publisherPins === 'narrow' ? narrowedKeys(counting) : pinnedKeys(counting);
}

const candidatesOf = (sender: SenderEntry, jwks: Iterable<Jwk>): readonly Candidate[] =>
  Array.from(jwks, (jwk) => ({ sender, key: { kid: String(jwk['kid']), jwk, verifyKey: 'not imported' } }));

function narrowedKeys({ sender, published, sets }: Counting): CountedKeys {
  const all = candidatesOf(sender, published?.jwks.values() ?? []);
  const left = narrowed({ candidates: all }, { sets }).candidates ?? [];
  const kids = new Set(left.map(({ key }) => key.kid));
  const notes = all.flatMap(({ key: { kid } }) =>
    kids.has(kid)
      ? []
      : [`The key ${quoted(kid)} of the JWKS is not used: a publisher that pins keys does not pin it.`],
  );
  const jwks = left.map(({ key: { jwk }, pins = [] }) => {
    return revokedFirst(jwk, pins);
  });
  return { jwks, source: 'JWKS', notes };
}

/**
 * Returns the key with the earliest `revoked_at` that any publisher states for it, because one revocation is enough
 * (verification.md §2.9).
 */
function revokedFirst(jwk: Jwk, others: readonly Jwk[]): Jwk {
  let first: Jwk = jwk;
  for (const other of others)
    if ((revokedSince(other) ?? Infinity) < (revokedSince(first) ?? Infinity)) first = other;
  return first === jwk ? jwk : { ...jwk, revoked_at: first['revoked_at'] };
}

/**
 * Returns the keys that publishers pin, each once. Several publishers may pin the same key, and several keys may have
 * the same kid.
 */
function pinnedOnce(sets: readonly KeySet[]): readonly Jwk[] {
  const all = sets.flatMap(({ jwks }) => [...jwks.values()]);
  const judged = all.map((jwk) => {
    const same = all.filter((one) => one['kid'] === jwk['kid'] && sameMaterial(one, jwk));
    return revokedFirst(jwk, same);
  });
  return [...new Map(judged.map((jwk) => [canonicalJson(jwk), jwk])).values()];
}

function pinnedKeys({ sender, protocols, published, sets }: Counting): CountedKeys {
  const notes: string[] = [];
  const purposes = createPinPurposes({ protocols, raiseAlarm: ({ message }) => notes.push(message) });
  const jwks: Jwk[] = [];
  for (const candidate of candidatesOf(sender, pinnedOnce(sets))) {
    const { kid, jwk } = candidate.key;
    const { length } = notes;
    for (const { key } of purposes.given([candidate], published)) jwks.push(key.jwk);
    if (purposes.lacks(candidate) && length === notes.length)
      notes.push(
        `The key ${quoted(kid)} is pinned without a purpose: it has that of the same key in the JWKS.`,
      );
    if (published && !allKeys(published).some(([, own]) => sameMaterial(own, jwk)))
      notes.push(
        `The key ${quoted(kid)} is pinned, and the JWKS does not have it: the pin decides. Edition 3.3 refuses it.`,
      );
  }
  return { jwks, source: 'adagents.json', notes };
}
