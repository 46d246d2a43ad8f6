import { revokedSince } from '../auth/rfc9421/revoked-at.ts';
import { isJsonObject, type JsonObject, present } from '../codec/members.ts';
import { MAX_URL_BYTES, printableName } from '../codec/printable.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { Parsed } from './document.ts';
import { addKey, type KeySet, keySetOf, MAX_KEYS, noKeys } from './jwks.ts';
import { hasPrivateHalf, isJwk, PRIVATE_HALF_PUBLISHED } from './pinned-jwks.ts';

/** What a publisher's adagents.json says about keys (verification.md §5.5). */
export interface AdAgents {
  /**
   * By agent URL, byte for byte, only agents with `signing_keys[]`: the keys, or what is wrong with that list. One
   * agent's broken list is not a reason to distrust what the publisher says of another.
   */
  readonly pinned: ReadonlyMap<string, KeySet | string>;
  /** Where the list is instead, absolute: the file has `authoritative_location` only. */
  readonly next?: string;
  /** The agents that it lists, of a file that was pointed to: it says nothing of any other. */
  readonly mustList?: ReadonlySet<string>;
}

function pointerTo(location: unknown): Parsed<AdAgents> {
  return typeof location === 'string' && URL.canParse(location)
    ? { ok: true, value: { pinned: new Map(), next: new URL(location).href } }
    : { ok: false, reason: 'authoritative_location is not an absolute URL' };
}

/** Characters of an agent's entry that are kept: of its URL, and of its keys as JSON. */
const MAX_ENTRY = 16_384;

/** Reads an adagents.json. Never throws. @param mustList it was pointed to. */
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

/** Agents that a warning names. */
const MAX_WARNINGS = 4;

type AgentEntry = JsonObject & { readonly url: string };

function agentEntries(agents: readonly unknown[]): AgentEntry[] {
  return agents.filter(
    (entry): entry is AgentEntry =>
      isJsonObject(entry) && typeof entry['url'] === 'string' && entry['url'].length <= MAX_ENTRY,
  );
}

/** An agent may have several entries, each for some of the publisher's properties: their keys are one set. */
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
 * Read strictly: an entry passed over would be a key of the seller's that is refused. Only keys that differ under one
 * `kid` take no other along. Undefined: nothing is pinned.
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
