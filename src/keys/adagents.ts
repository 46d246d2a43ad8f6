// Reads a publisher's adagents.json into the keys that it pins for agents (verification.md §5.5).
// Called by `publisher-pins.ts` for a publisher's own file, and for a file to which that one points.

import { revokedSince } from '../auth/rfc9421/revoked-at.ts';
import { isJsonObject, type JsonObject, present } from '../codec/members.ts';
import { MAX_URL_BYTES, printableName } from '../codec/printable.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { Parsed } from './document.ts';
import { addKey, type KeySet, keySetOf, MAX_KEYS, noKeys } from './jwks.ts';
import { hasPrivateHalf, isJwk, PRIVATE_HALF_PUBLISHED } from './pinned-jwks.ts';

/** The part of a publisher's adagents.json about keys (verification.md §5.5). */
export interface AdAgents {
  /**
   * Pinned keys by agent URL (compared byte for byte), for agents with `signing_keys[]`. A string instead of keys
   * says why that agent's list is invalid. One invalid list does not invalidate the other agents' entries.
   */
  readonly pinned: ReadonlyMap<string, KeySet | string>;
  /** The absolute URL of the file that holds the list, if this file only points there by `authoritative_location`. */
  readonly next?: string;
  /**
   * The URLs of all agents in this file. Set only if another file pointed to this file. For an agent that is not among
   * them, this file is then rejected.
   */
  readonly mustList?: ReadonlySet<string>;
}

function pointerTo(location: unknown): Parsed<AdAgents> {
  return typeof location === 'string' && URL.canParse(location)
    ? { ok: true, value: { pinned: new Map(), next: new URL(location).href } }
    : { ok: false, reason: 'authoritative_location is not an absolute URL' };
}

/**
 * The maximum number of characters of an agent URL, and of one agent's keys as JSON. An entry with a longer URL is
 * ignored; a longer key list is invalid.
 */
const MAX_ENTRY = 16_384;

/**
 * Parses an adagents.json. Never throws.
 * @param mustList true if another file pointed to this one.
 */
export function parseAdAgents(bytes: Uint8Array, mustList = false): Parsed<AdAgents> {
  const json = parseStrictObject(bytes);
  if (!json.ok) return { ok: false, reason: json.detail };
  const { authorized_agents: agents, authoritative_location: location } = json.value;
  if (agents === undefined && location !== undefined) return pointerTo(location);
  if (agents !== undefined && !Array.isArray(agents))
    return { ok: false, reason: 'authorized_agents is not an array' };
  return { ok: true, ...pinsOf(agentEntries((agents as unknown[] | undefined) ?? []), mustList) };
}

function pinsOf(
  entries: readonly AgentEntry[],
  mustList: boolean,
): { readonly value: AdAgents; readonly warning?: string } {
  const pinned = new Map<string, KeySet | string>();
  const warnings: string[] = [];
  for (const [agentUrl, lists] of keyListsByAgent(entries)) {
    const set = pinnedSet(lists);
    if (set === undefined) continue;
    pinned.set(agentUrl, set.ok ? set.value : set.reason);
    if (set.ok && set.warning !== undefined && warnings.length < MAX_WARNINGS)
      warnings.push(`for ${printableName(agentUrl, MAX_URL_BYTES)}, ${set.warning}`);
  }
  const listed = mustList && { mustList: new Set(entries.map(({ url }) => url)) };
  const warning = warnings.length > 0 && { warning: warnings.join('; ') };
  return { value: { pinned, ...listed }, ...warning };
}

/** The maximum number of agents that one warning names. */
const MAX_WARNINGS = 4;

type AgentEntry = JsonObject & { readonly url: string };

function agentEntries(agents: readonly unknown[]): AgentEntry[] {
  return agents.filter(
    (entry): entry is AgentEntry =>
      isJsonObject(entry) && typeof entry['url'] === 'string' && entry['url'].length <= MAX_ENTRY,
  );
}

/**
 * Collects the key lists of each agent. An agent may have several entries, each for some of the publisher's
 * properties; the keys of all these entries form one set.
 */
function keyListsByAgent(agents: readonly AgentEntry[]): Map<string, unknown[]> {
  const lists = new Map<string, unknown[]>();
  for (const entry of agents) {
    const keys = present(entry, 'signing_keys');
    if (keys === undefined) continue;
    const known = lists.get(entry.url);
    if (known) known.push(keys);
    else lists.set(entry.url, [keys]);
  }
  return lists;
}

/**
 * Parses an agent's key lists strictly: one invalid entry rejects the whole list. If only the invalid entry were
 * skipped, the seller's genuine key might be missing and its deliveries refused.
 * The exception is a `kid` with several different keys: only that `kid` is dropped. Returns undefined if the lists
 * have no key.
 */
function pinnedSet(lists: readonly unknown[]): Parsed<KeySet> | undefined {
  const broken = (reason: string): Parsed<KeySet> => ({ ok: false, reason });
  if (!lists.every((list) => Array.isArray(list))) return broken('signing_keys is not an array');
  const keys: readonly unknown[] = lists.flat();
  if (keys.length === 0) return undefined;
  if (keys.length > MAX_KEYS) return broken(`signing_keys has more than ${MAX_KEYS} keys`);
  const found = noKeys();
  for (const jwk of keys) {
    if (!isJwk(jwk)) return broken('signing_keys has an entry that is not a JWK');
    if (hasPrivateHalf(jwk)) return broken(PRIVATE_HALF_PUBLISHED);
    const { kid } = jwk;
    if (typeof kid !== 'string' || kid === '') return broken('signing_keys has a key without a kid');
    if (revokedSince(jwk) === Number.NEGATIVE_INFINITY)
      return broken('signing_keys has a revoked_at that is not a timestamp');
    addKey(found, kid, jwk);
    if (found.characters > MAX_ENTRY) return broken('signing_keys has more than 16 KiB of keys');
  }
  return keySetOf(found);
}
