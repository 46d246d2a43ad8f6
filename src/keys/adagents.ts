import { revokedSince } from '../auth/rfc9421/revoked-at.ts';
import { isJsonObject, present } from '../codec/members.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { Jwk } from '../crypto/engine.ts';
import type { Parsed } from './document.ts';
import {
  hasPrivateHalf,
  isJwk,
  type KeySet,
  MAX_KEYS,
  newKeySet,
  PRIVATE_HALF_PUBLISHED,
  publicPart,
  sameJwk,
} from './jwks.ts';

/** What a publisher's adagents.json says about keys (verification.md §5.5). */
export interface AdAgents {
  /**
   * By agent URL, byte for byte, only agents with `signing_keys[]`: the keys, or what is wrong with that list. One
   * agent's broken list is not a reason to distrust what the publisher says of another.
   */
  readonly pinned: ReadonlyMap<string, KeySet | string>;
  /** Where the list is instead, absolute: the file has `authoritative_location` only. */
  readonly next?: string;
  /** The agents that it lists. */
  readonly listed?: ReadonlySet<string>;
  /** The same, of a file that was pointed to: it says nothing of any other. */
  readonly mustList?: ReadonlySet<string>;
}

function pointerTo(location: unknown): Parsed<AdAgents> {
  return typeof location === 'string' && URL.canParse(location)
    ? { ok: true, value: { pinned: new Map(), next: new URL(location).href } }
    : { ok: false, reason: 'authoritative_location is not an absolute URL' };
}

/** Reads an adagents.json. Never throws. */
export function parseAdAgents(bytes: Uint8Array): Parsed<AdAgents> {
  const json = parseStrictObject(bytes);
  if (!json.ok) return { ok: false, reason: json.detail };
  const { authorized_agents: agents, authoritative_location: location } = json.value;
  if (agents === undefined) {
    return location === undefined ? { ok: true, value: { pinned: new Map() } } : pointerTo(location);
  }
  if (!Array.isArray(agents)) return { ok: false, reason: 'authorized_agents is not an array' };
  const pinned = new Map<string, KeySet | string>();
  for (const [agentUrl, lists] of keyListsByAgent(agents as unknown[])) {
    const set = pinnedSet(lists);
    if (set !== undefined) pinned.set(agentUrl, set);
  }
  return { ok: true, value: { pinned, listed: listedAgents(agents as unknown[]) } };
}

function listedAgents(agents: readonly unknown[]): Set<string> {
  const urls = agents.map((entry) => (isJsonObject(entry) ? entry['url'] : undefined));
  return new Set(urls.filter((url) => typeof url === 'string'));
}

/** An agent may have several entries, each for some of the publisher's properties: their keys are one set. */
function keyListsByAgent(agents: readonly unknown[]): Map<string, unknown[]> {
  const lists = new Map<string, unknown[]>();
  for (const entry of agents) {
    if (!isJsonObject(entry) || typeof entry['url'] !== 'string') continue;
    const keys = present(entry, 'signing_keys');
    if (keys === undefined) continue;
    const known = lists.get(entry['url']);
    if (known) known.push(keys);
    else lists.set(entry['url'], [keys]);
  }
  return lists;
}

/** Read strictly: an entry passed over would be a key of the seller's that is refused. Undefined: nothing is pinned. */
function pinnedSet(lists: readonly unknown[]): KeySet | string | undefined {
  if (!lists.every((list) => Array.isArray(list))) return 'signing_keys is not an array';
  const keys = lists.flat();
  if (keys.length === 0) return undefined;
  if (keys.length > MAX_KEYS) return `signing_keys has more than ${MAX_KEYS} keys`;
  const jwks = new Map<string, Jwk>();
  for (const jwk of keys) {
    if (!isJwk(jwk)) return 'signing_keys has an entry that is not a JWK';
    if (hasPrivateHalf(jwk)) return PRIVATE_HALF_PUBLISHED;
    const { kid } = jwk;
    if (typeof kid !== 'string' || kid === '') return 'signing_keys has a key without a kid';
    if (revokedSince(jwk) === Number.NEGATIVE_INFINITY)
      return 'signing_keys has a revoked_at that is no timestamp';
    const known = jwks.get(kid);
    const key = publicPart(jwk);
    if (known !== undefined && !sameJwk(known, key)) return 'two keys have one kid';
    jwks.set(kid, key);
  }
  return newKeySet(jwks);
}
