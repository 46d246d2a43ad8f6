import { canonicalJson } from '../codec/canonical-json.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { CryptoEngine, Jwk } from '../crypto/engine.ts';
import type { SenderKey } from './contract.ts';
import type { DocumentKind, Parsed } from './document.ts';

/** Makes or gives the engine that imports keys; asked only when a key is needed for the first time. */
export type EngineSource = CryptoEngine | (() => CryptoEngine | Promise<CryptoEngine>);

/** The keys of one document or of one sender's pins, by `kid`, public members only. */
export interface KeySet {
  readonly jwks: ReadonlyMap<string, Jwk>;
  /** Filled on first use: an import costs as much as a verification. Goes with the document it belongs to. */
  readonly imported: Map<string, Promise<SenderKey>>;
}

/** Members that carry secret material (RFC 7518 §6.2.2, §6.3.2, §6.4.1): they never get near a log. */
const PRIVATE_MEMBERS: ReadonlySet<string> = new Set(['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']);

/** More than any seller has; a set of ten thousand keys is an attack or a mistake. */
const MAX_KEYS = 1000;

/** A JSON Web Key Set (RFC 7517 §5), at most 64 KiB: verification.md, section 5. */
export const JWKS: DocumentKind<KeySet> = { name: 'JWKS', maxBytes: 65_536, parse: parseJwks };

function parseJwks(bytes: Uint8Array): Parsed<KeySet> {
  const json = parseStrictObject(bytes);
  if (!json.ok) return { ok: false, reason: json.detail };
  const { keys } = json.value;
  if (!Array.isArray(keys)) return { ok: false, reason: 'keys is not an array' };
  if (keys.length > MAX_KEYS) return { ok: false, reason: `more than ${MAX_KEYS} keys` };
  const jwks = new Map<string, Jwk>();
  let secret = false;
  for (const jwk of keys as unknown[]) {
    // RFC 7517 §5: entries that cannot be used are ignored; one without `kid` can never be asked for.
    if (!isJwk(jwk) || typeof jwk['kid'] !== 'string') continue;
    if (jwks.has(jwk['kid'])) return { ok: false, reason: 'two keys have one kid' };
    secret ||= Object.keys(jwk).some((name) => PRIVATE_MEMBERS.has(name));
    jwks.set(jwk['kid'], publicPart(jwk));
  }
  const value: KeySet = { jwks, imported: new Map() };
  return secret
    ? { ok: true, value, warning: 'the JWKS publishes secret key material' }
    : { ok: true, value };
}

export function isJwk(value: unknown): value is Jwk {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `jwk` without the members that must stay secret. */
export function publicPart(jwk: Jwk): Jwk {
  return Object.fromEntries(Object.entries(jwk).filter(([name]) => !PRIVATE_MEMBERS.has(name)));
}

/** The key under `kid`, imported at most once a set, or undefined where the set has none. */
export async function importedKey(
  set: KeySet,
  kid: string,
  engine: EngineSource,
): Promise<SenderKey | undefined> {
  const known = set.imported.get(kid);
  if (known !== undefined) return await known;
  const jwk = set.jwks.get(kid);
  if (jwk === undefined) return undefined;
  const importing = importKey(kid, jwk, engine);
  set.imported.set(kid, importing);
  try {
    return await importing;
  } catch (error) {
    // No engine was to be had: our fault, and the next delivery may find one.
    set.imported.delete(kid);
    throw error;
  }
}

async function importKey(kid: string, jwk: Jwk, source: EngineSource): Promise<SenderKey> {
  const engine = typeof source === 'function' ? await source() : source;
  return { kid, jwk, verifyKey: await engine.importKey(jwk) };
}

/** Whether two JWKs say the same, whatever the order of their members. */
export function sameJwk(a: Jwk, b: Jwk): boolean {
  return a === b || canonicalJson(a) === canonicalJson(b);
}
