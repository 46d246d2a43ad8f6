import { canonicalJson } from '../codec/canonical-json.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { CryptoEngine, Jwk } from '../crypto/engine.ts';
import { readPublicKey } from '../crypto/public-key.ts';
import { singleFlight } from '../single-flight.ts';
import type { SenderKey } from './contract.ts';
import type { DocumentKind, Parsed } from './document.ts';
import { hasPrivateHalf, isJwk, PRIVATE_HALF_PUBLISHED, publicPart } from './jwk.ts';

/** Makes or gives the engine that imports keys; asked only when a key is needed for the first time. */
export type EngineSource = CryptoEngine | (() => CryptoEngine | Promise<CryptoEngine>);

/** The keys of one document or of one sender's pins, by `kid`, public members only. */
export interface KeySet {
  readonly jwks: ReadonlyMap<string, Jwk>;
  /** Filled on first use: an import costs as much as a verification. Goes with the document it belongs to. */
  readonly imported: Map<string, SenderKey>;
  /** Imports that are under way. */
  readonly importing: Map<string, Promise<SenderKey>>;
}

export function newKeySet(jwks: ReadonlyMap<string, Jwk>): KeySet {
  return { jwks, imported: new Map(), importing: new Map() };
}

/** More than any seller has; a set of ten thousand keys is an attack or a mistake. */
export const MAX_KEYS = 1000;

/** A JSON Web Key Set (RFC 7517 §5), at most 64 KiB: verification.md §5.13. */
export const JWKS: DocumentKind<KeySet> = {
  name: 'JWKS',
  maxBytes: 65_536,
  parse: parseJwks,
  rejectsUpdate: rejectsKeyUpdate,
};

function parseJwks(bytes: Uint8Array): Parsed<KeySet> {
  const json = parseStrictObject(bytes);
  if (!json.ok) return { ok: false, reason: json.detail };
  const { keys } = json.value;
  if (!Array.isArray(keys)) return { ok: false, reason: 'keys is not an array' };
  if (keys.length > MAX_KEYS) return { ok: false, reason: `more than ${MAX_KEYS} keys` };
  const jwks = new Map<string, Jwk>();
  for (const jwk of keys as unknown[]) {
    // RFC 7517 §5: entries that cannot be used are ignored; one without `kid` can never be asked for.
    if (!isJwk(jwk)) continue;
    if (hasPrivateHalf(jwk)) return { ok: false, reason: PRIVATE_HALF_PUBLISHED };
    if (typeof jwk['kid'] !== 'string') continue;
    if (jwks.has(jwk['kid'])) return { ok: false, reason: 'two keys have one kid' };
    jwks.set(jwk['kid'], publicPart(jwk));
  }
  return { ok: true, value: newKeySet(jwks) };
}

/**
 * Says so where a `kid` whose key could verify now has one that cannot (another `kty`, a point off the curve): a mistake of
 * the seller's that would end its events. A key that was no use from the start is for check 8, and one that was taken
 * out is the seller's decision.
 */
export function rejectsKeyUpdate(next: KeySet, inForce: KeySet): string | undefined {
  for (const [kid, before] of inForce.jwks) {
    const after = next.jwks.get(kid);
    if (after === undefined || sameJwk(before, after)) continue;
    // The new one first: it is sound as a rule, and to read a point costs a third of a millisecond.
    const invalidReason = readPublicKey(after);
    if (typeof invalidReason !== 'string' || typeof readPublicKey(before) === 'string') continue;
    return `a key that could verify was replaced by one that cannot: ${invalidReason}`;
  }
  return undefined;
}

/** The key under `kid`, or undefined where the set has none. Imported once a set; an import that failed is tried again. */
export async function importedKey(
  set: KeySet,
  kid: string,
  engine: EngineSource,
): Promise<SenderKey | undefined> {
  const known = set.imported.get(kid);
  const jwk = set.jwks.get(kid);
  if (known !== undefined || jwk === undefined) return known;
  return await singleFlight(set.importing, kid, async () => {
    const key = await importKey(kid, jwk, engine);
    set.imported.set(kid, key);
    return key;
  });
}

async function importKey(kid: string, jwk: Jwk, source: EngineSource): Promise<SenderKey> {
  const engine = typeof source === 'function' ? await source() : source;
  return { kid, jwk, verifyKey: await engine.importKey(jwk) };
}

/** Whether two JWKs say the same, whatever the order of their members. */
export function sameJwk(a: Jwk, b: Jwk): boolean {
  return a === b || canonicalJson(a) === canonicalJson(b);
}
