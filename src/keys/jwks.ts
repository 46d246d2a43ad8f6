import { canonicalJson } from '../codec/canonical-json.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { CryptoEngine, Jwk } from '../crypto/engine.ts';
import { readPublicKey } from '../crypto/public-key.ts';
import { ConfigError } from '../errors.ts';
import type { Sender } from '../senders.ts';
import { singleFlight } from '../single-flight.ts';
import type { SenderKey } from './contract.ts';
import type { DocumentKind, Parsed } from './document.ts';

/** Members of the private half of a key pair (RFC 7518 §6.2.2, §6.3.2). */
const PRIVATE_HALF: readonly string[] = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth'];

/** `k` too (RFC 7518 §6.4.1): none of them gets near a log. */
const SECRET_MEMBERS: ReadonlySet<string> = new Set([...PRIVATE_HALF, 'k']);

/** Anybody who read it can sign with it, so nothing in such a document may be believed. */
export const PRIVATE_HALF_PUBLISHED = 'a key is published with its private half';

export function hasPrivateHalf(jwk: Jwk): boolean {
  return PRIVATE_HALF.some((name) => jwk[name] !== undefined && jwk[name] !== null);
}

export function isJwk(value: unknown): value is Jwk {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `jwk` without the members that must stay secret. */
export function publicPart(jwk: Jwk): Jwk {
  return Object.fromEntries(Object.entries(jwk).filter(([name]) => !SECRET_MEMBERS.has(name)));
}

/**
 * Checks what can be seen of a sender's pins without importing them: each is an object with a `kid` of its own, and
 * there is at least one.
 * @throws ConfigError naming the sender and the `kid`.
 */
export function checkPins(sender: Pick<Sender, 'agentUrl' | 'pins'>): void {
  if (sender.pins !== undefined) pinnedJwks(sender.agentUrl, sender.pins);
}

/** Pins by `kid`, public members only. @throws ConfigError where the list is none. */
export function pinnedJwks(agentUrl: string, pins: readonly unknown[]): ReadonlyMap<string, Jwk> {
  const where = `pins of ${agentUrl}`;
  if (!Array.isArray(pins)) throw new ConfigError(`${where}: not an array. Pass an array of JWKs.`);
  if (pins.length === 0) {
    throw new ConfigError(
      `${where}: empty, so nothing would ever verify. Leave pins out to use the seller's JWKS.`,
    );
  }
  const jwks = new Map<string, Jwk>();
  for (const [index, jwk] of pins.entries()) {
    if (!isJwk(jwk)) throw new ConfigError(`${where}: entry ${index} is not a JWK. Pass JWK objects.`);
    const { kid } = jwk;
    if (typeof kid !== 'string' || kid === '') {
      throw new ConfigError(`${where}: entry ${index} has no kid. Add the kid under which the seller signs.`);
    }
    if (jwks.has(kid)) {
      throw new ConfigError(
        `${where}: the kid ${JSON.stringify(kid)} occurs twice. Keep one key for each kid.`,
      );
    }
    jwks.set(kid, publicPart(jwk));
  }
  return jwks;
}

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
