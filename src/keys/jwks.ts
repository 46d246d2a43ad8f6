// Parses a JWKS into keys by `kid`, imports each once, and keeps a working key that a seller replaces by a broken
// one (verification.md §5.4).
// Called for JWKS documents, configured pins and publishers' pins.

import { canonicalJson } from '../codec/canonical-json.ts';
import { quoted } from '../codec/printable.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { CryptoEngine, Jwk } from '../crypto/engine.ts';
import { readPublicKey } from '../crypto/public-key.ts';
import { singleFlight } from '../shared/single-flight.ts';
import type { SenderKey } from './key-resolver.ts';
import type { Copy, DocumentKind, Parsed } from './document.ts';
import { hasPrivateHalf, isJwk, PRIVATE_HALF_PUBLISHED, publicPart } from './pinned-jwks.ts';

/**
 * The crypto engine that imports keys, or a function that returns the engine and is called when the first key is
 * needed.
 */
export type EngineSource = CryptoEngine | (() => CryptoEngine | Promise<CryptoEngine>);

/** The keys of one document or of one sender's pins, by `kid`, public members only. */
export interface KeySet {
  readonly jwks: ReadonlyMap<string, Jwk>;
  /**
   * Several different keys with the same `kid`, by `kid`. None of these keys is in `jwks`, because their `kid` does
   * not identify one of them.
   */
  readonly ambiguous: ReadonlyMap<string, readonly Jwk[]>;
  /**
   * Ids of the keys in `jwks` that were kept from an earlier document, each with the time (Unix ms) until which its
   * key is used.
   */
  readonly held: ReadonlyMap<string, number>;
  /**
   * Keys imported into the crypto engine, by `kid`. Each is imported at its first use, because an import costs as much
   * as a verification.
   */
  readonly imported: Map<string, SenderKey>;
  /** Running imports, by `kid`. */
  readonly importing: Map<string, Promise<SenderKey>>;
}

export function newKeySet(
  jwks: ReadonlyMap<string, Jwk>,
  ambiguous: KeySet['ambiguous'] = NONE,
  held: KeySet['held'] = NONE,
): KeySet {
  return { jwks, ambiguous, held, imported: new Map(), importing: new Map() };
}

const NONE: ReadonlyMap<string, never> = new Map<string, never>();

/** Returns all keys of a document, including those whose `kid` is ambiguous. */
export function allKeys({ jwks, ambiguous }: KeySet): readonly (readonly [kid: string, jwk: Jwk])[] {
  const more = [...ambiguous].flatMap(([kid, keys]) => keys.map((jwk) => [kid, jwk] as const));
  return [...jwks, ...more];
}

/** The maximum number of keys in a set. No genuine seller has more; ten thousand keys are an attack or a mistake. */
export const MAX_KEYS = 1000;

/** The document kind of a JSON Web Key Set (RFC 7517 §5), at most 64 KiB (verification.md §5.13). */
export const JWKS: DocumentKind<KeySet> = {
  name: 'JWKS',
  maxBytes: 65_536,
  parse: parseJwks,
  keeps: heldKeys,
};

function parseJwks(bytes: Uint8Array): Parsed<KeySet> {
  const json = parseStrictObject(bytes);
  if (!json.ok) return { ok: false, reason: json.detail };
  const { keys } = json.value;
  if (!Array.isArray(keys)) return { ok: false, reason: 'keys is not an array' };
  if (keys.length > MAX_KEYS) return { ok: false, reason: `more than ${MAX_KEYS} keys` };
  const found = noKeys();
  for (const jwk of keys as unknown[]) {
    // RFC 7517 §5: unusable entries are ignored. So is a key without `kid`, because no signature can name it.
    if (!isJwk(jwk)) continue;
    if (hasPrivateHalf(jwk)) return { ok: false, reason: PRIVATE_HALF_PUBLISHED };
    const { kid } = jwk;
    if (typeof kid === 'string') addKey(found, kid, jwk);
  }
  return keySetOf(found);
}

/**
 * The distinct keys that a document lists. Duplicates are found by a map with the content as key, so that a key listed
 * a thousand times does not cost a million comparisons.
 */
export interface FoundKeys {
  readonly byKid: Map<string, Map<string, Jwk>>;
  /** The number of characters of all distinct keys, as JSON. */
  characters: number;
}

export const noKeys = (): FoundKeys => ({ byKid: new Map(), characters: 0 });

/** Adds the public part of a key, unless the same key is already there. */
export function addKey(found: FoundKeys, kid: string, jwk: Jwk): void {
  const key = publicPart(jwk);
  const text = canonicalJson(key);
  const alike = found.byKid.get(kid) ?? new Map<string, Jwk>();
  if (alike.has(text)) return;
  found.byKid.set(kid, alike.set(text, key));
  found.characters += text.length;
}

/** The maximum number of key ids that a warning names. */
const MAX_NAMED = 4;

function namedKids(kids: readonly string[]): string {
  const more = kids.length > MAX_NAMED ? ` and ${kids.length - MAX_NAMED} more` : '';
  return `${kids.slice(0, MAX_NAMED).map(quoted).join(', ')}${more}`;
}

/**
 * Makes a key set. If several keys share a `kid`, none of them is used; keys with another `kid` are not affected.
 */
export function keySetOf(found: FoundKeys): Parsed<KeySet> {
  const jwks = new Map<string, Jwk>();
  const ambiguous = new Map<string, readonly Jwk[]>();
  for (const [kid, alike] of found.byKid) {
    const keys = [...alike.values()];
    const [only, second] = keys;
    if (second !== undefined) ambiguous.set(kid, keys);
    else if (only !== undefined) jwks.set(kid, only);
  }
  const value = newKeySet(jwks, ambiguous);
  if (ambiguous.size === 0) return { ok: true, value };
  const warning = `different keys share the kid ${namedKids([...ambiguous.keys()])}. None of them is used: deliveries with it are answered 503. The other keys are used`;
  return { ok: true, value, warning };
}

/**
 * The maximum number of characters, as JSON, of the keys that a set keeps from earlier documents. It equals the largest
 * size of a JWKS.
 */
const MAX_HELD = 65_536;

/**
 * Adds to the new set those earlier keys that the new document broke. A key is broken if its `kid` now has a key that
 * cannot verify (another `kty`, a point off the curve), or several different keys. Without the earlier key, such a
 * mistake would lose the seller's events.
 *
 * An earlier key is used until the hard limit of the last copy that contained it. A key that was never usable is not
 * kept; check 8 (key policy) refuses it. A key that the seller removed is not kept either.
 * @param now Unix ms.
 * @returns undefined if no earlier key is kept.
 */
export function heldKeys(
  next: KeySet,
  { value: before, hardUntil }: Pick<Copy<KeySet>, 'value' | 'hardUntil'>,
  now: number,
): { readonly value: KeySet; readonly warning: string; readonly mixedUntil: number } | undefined {
  const held = new Map<string, number>();
  const [jwks, ambiguous] = [new Map(next.jwks), new Map(next.ambiguous)];
  let characters = 0;
  for (const [kid, jwk] of before.jwks) {
    const until = before.held.get(kid) ?? hardUntil;
    if (until <= now || !isSpoilt(next, kid, jwk)) continue;
    characters += canonicalJson(jwk).length;
    if (characters > MAX_HELD) break;
    const odd = allUnder(next, kid);
    held.set(kid, until);
    jwks.set(kid, jwk);
    // The other keys with this `kid` stay listed as ambiguous. So a delivery that one of them signed is answered 503,
    // and the seller may retry.
    ambiguous.set(kid, [jwk, ...odd]);
  }
  if (held.size === 0) return undefined;
  const warning = `the key under the kid ${namedKids([...held.keys()])} can no longer verify, or several different keys share the kid now: the earlier key is used until its hard limit`;
  return { value: newKeySet(jwks, ambiguous, held), warning, mixedUntil: Math.min(...held.values()) };
}

const allUnder = ({ jwks, ambiguous }: KeySet, kid: string): readonly Jwk[] => {
  const only = jwks.get(kid);
  return ambiguous.get(kid) ?? (only ? [only] : []);
};

function isSpoilt(next: KeySet, kid: string, before: Jwk): boolean {
  if (next.ambiguous.has(kid)) return typeof readPublicKey(before) !== 'string';
  const after = next.jwks.get(kid);
  if (after === undefined || sameJwk(before, after)) return false;
  // The new key is read first: it is usually valid, and reading a point of a curve costs a third of a millisecond.
  return typeof readPublicKey(after) === 'string' && typeof readPublicKey(before) !== 'string';
}

/**
 * Returns the imported key with this `kid`, or undefined if the set has none. A key is imported once per set; an
 * import that failed is tried again.
 */
export async function importedKey(
  set: KeySet,
  kid: string,
  engine: EngineSource,
): Promise<SenderKey | undefined> {
  const known = set.imported.get(kid);
  const jwk = set.jwks.get(kid);
  if (known !== undefined || jwk === undefined) return known;
  return await singleFlight(set.importing, kid, async () => {
    const key = await importKey(jwk, engine);
    set.imported.set(key.kid, key);
    return key;
  });
}

/** Imports a JWK. The key has the JWK's own `kid`: one from a delivery may be a slice of a header, which it would keep. */
async function importKey(jwk: Jwk, source: EngineSource): Promise<SenderKey> {
  const engine = typeof source === 'function' ? await source() : source;
  return { kid: jwk['kid'] as string, jwk, verifyKey: await engine.importKey(jwk) };
}

/** True if two JWKs are equal, whatever the order of their members. */
export function sameJwk(a: Jwk, b: Jwk): boolean {
  return a === b || canonicalJson(a) === canonicalJson(b);
}
