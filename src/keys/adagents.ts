import { isJsonObject } from '../codec/members.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { Jwk } from '../crypto/engine.ts';
import type { DocumentKind, LifeRules, Parsed } from './document.ts';
import { hasPrivateHalf, isJwk, PRIVATE_HALF_PUBLISHED, publicPart } from './jwk.ts';
import { type KeySet, MAX_KEYS, sameJwk } from './jwks.ts';

/** What a publisher's adagents.json says about keys (verification.md §5.5). */
export interface AdAgents {
  /**
   * By agent URL, byte for byte, only agents with `signing_keys[]`: the keys, or what is wrong with that list. One
   * agent's broken list is no reason to distrust what the publisher says of another.
   */
  readonly pinned: ReadonlyMap<string, KeySet | string>;
}

const HOUR_MS = 3_600_000;

/** An hour where the publisher says nothing, and at most: for that long a pin that was taken out still verifies. */
const LIFE: LifeRules = { minMs: 60_000, maxMs: HOUR_MS, silentMs: HOUR_MS };

/** The grace that a revocation list has too: four of its lives. */
const HARD_LIMIT_MS = 4 * HOUR_MS;

/** At most 1 MiB: verification.md §5.13. */
export const ADAGENTS: DocumentKind<AdAgents> = {
  name: 'adagents.json',
  maxBytes: 1_048_576,
  hardLimitMs: HARD_LIMIT_MS,
  life: LIFE,
  parse: parseAdAgents,
};

function parseAdAgents(bytes: Uint8Array): Parsed<AdAgents> {
  const json = parseStrictObject(bytes);
  if (!json.ok) return { ok: false, reason: json.detail };
  const { authorized_agents: agents, authoritative_location: location } = json.value;
  if (agents === undefined) {
    // Not followed (no redirects but for brand.json's), and not ignored either: what it points to may pin.
    return location === undefined
      ? { ok: true, value: { pinned: new Map() } }
      : { ok: false, reason: 'it only points elsewhere, which is not followed' };
  }
  if (!Array.isArray(agents)) return { ok: false, reason: 'authorized_agents is not an array' };
  const lists = new Map<string, unknown[]>();
  for (const entry of agents as unknown[]) {
    if (!isJsonObject(entry) || typeof entry['url'] !== 'string') continue;
    const keys = entry['signing_keys'];
    if (keys === undefined || keys === null) continue;
    // Several entries for one agent, each for some of the publisher's properties: one set.
    const known = lists.get(entry['url']);
    if (known) known.push(keys);
    else lists.set(entry['url'], [keys]);
  }
  const pinned = new Map<string, KeySet | string>();
  for (const [agentUrl, given] of lists) {
    const set = pinnedSet(given);
    if (set !== undefined) pinned.set(agentUrl, set);
  }
  return { ok: true, value: { pinned } };
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
    const known = jwks.get(kid);
    const key = publicPart(jwk);
    if (known !== undefined && !sameJwk(known, key)) return 'two keys have one kid';
    jwks.set(kid, key);
  }
  return { jwks, imported: new Map() };
}
