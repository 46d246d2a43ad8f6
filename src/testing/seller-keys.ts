// Makes and rotates the keys of the fake seller, and signs its revocation lists. The fake seller calls it; dev and
// the command line take the short names of keys from here.
import { encodeBase64Url } from '../codec/encoding.ts';
import { oneOf, onlyKnown } from '../config/validate.ts';
import { ALGORITHM_NAMES, ALGORITHMS, type SignatureAlgorithm } from '../crypto/algorithms.ts';
import type { Jwk } from '../crypto/engine.ts';
import { algorithmOf, signBytes } from '../sender/keys.ts';
import { generateKey, type KeyPair } from '../sender/sign.ts';

/** The names of the two signing keys that a fake seller publishes, one for each algorithm: Ed25519 and ECDSA P-256. */
export type SellerKeyName = 'ed25519' | 'p256';

/**
 * Options of `seller.rotate`, which replaces a signing key of a fake seller: the new key id, and if the old key
 * stays published.
 */
export interface RotateOptions {
  /** If true, the old key stays published beside the new one, until the next rotation without `overlap`. */
  readonly overlap?: boolean;
  /**
   * The key id of the new key. If it is the old key's id, new key material is published under the same id. Default: a
   * new id.
   */
  readonly kid?: string;
}

export interface SellerKeys {
  /** The current key pairs, without old keys that a rotation left published. */
  readonly keys: Readonly<Record<SellerKeyName, KeyPair>>;
  /** Makes a new key pair, and signs with it from now on. The old key is withdrawn, unless `overlap` is set. */
  readonly rotate: (name: SellerKeyName, options?: RotateOptions) => Promise<KeyPair>;
}

/** The short name of the key of each algorithm, for the fake seller, the probe and the command line. */
export const KEY_NAMES: Readonly<Record<SignatureAlgorithm, SellerKeyName>> = {
  ed25519: 'ed25519',
  'ecdsa-p256-sha256': 'p256',
};

/** Returns the algorithm of the key with this short name. */
export const algorithmNamed = (name: SellerKeyName): SignatureAlgorithm =>
  ALGORITHM_NAMES.find((alg) => KEY_NAMES[alg] === name) as SignatureAlgorithm;

const ROTATE_NAMES: Readonly<Record<keyof RotateOptions, true>> = { overlap: true, kid: true };

/** Requires a name of one of the two keys. @throws ConfigError for any other name */
export function requireKeyName(name: SellerKeyName): void {
  oneOf('key', name, Object.values(KEY_NAMES));
}

/** Makes both keys of a seller. @param publish is called with the JWKS immediately, and after every change. */
export async function sellerKeys(
  protocol: string | undefined,
  publish: (keySet: { readonly keys: readonly Jwk[] }) => void,
): Promise<SellerKeys> {
  const make = (name: SellerKeyName, kid?: string): Promise<KeyPair> =>
    generateKey(algorithmNamed(name), 'webhook-signing', {
      ...(protocol !== undefined && { protocol }),
      ...(kid !== undefined && { kid }),
    });
  const keys = { ed25519: await make('ed25519'), p256: await make('p256') };
  const older: Record<SellerKeyName, readonly Jwk[]> = { ed25519: [], p256: [] };
  const publishAll = (): void =>
    publish({ keys: [keys.ed25519.publicJwk, keys.p256.publicJwk, ...older.ed25519, ...older.p256] });
  publishAll();
  const rotate: SellerKeys['rotate'] = async (name, options = {}) => {
    onlyKnown('rotate', options, ROTATE_NAMES);
    const { overlap = false, kid } = options;
    requireKeyName(name);
    const pair = await make(name, kid);
    older[name] = overlap ? [keys[name].publicJwk, ...older[name]] : [];
    keys[name] = pair;
    publishAll();
    return pair;
  };
  return { keys, rotate };
}

/**
 * Options of `seller.revoke`, which makes a fake seller publish a revocation list. The list is plain JSON or a signed
 * JWS, at one of two paths, valid for `lifeMs`. The options also choose the key that signs a JWS, and members of the
 * list to replace.
 */
export interface RevokeOptions {
  /** The form of the list: plain JSON, or one of the forms of a JWS. Default: `plain`. */
  readonly form?: 'plain' | 'flattened' | 'compact' | 'general';
  /**
   * If true, publishes the list at `/.well-known/governance-revocations.json`, which covers all keys of the operator,
   * instead of at `revocationsUrl`. Default: false.
   */
  readonly governance?: boolean;
  /** The key that signs a JWS: a published key, or any private JWK. Default: `ed25519`. */
  readonly key?: SellerKeyName | Jwk;
  /** The time from `updated`, the moment of each fetch, to `next_update`, ms. Default: 300 000. */
  readonly lifeMs?: number;
  /** Members to replace in the list. */
  readonly members?: Readonly<Record<string, unknown>>;
}

export const REVOKE_NAMES: Readonly<Record<keyof RevokeOptions, true>> = {
  form: true,
  governance: true,
  key: true,
  lifeMs: true,
  members: true,
};

export interface Publisher {
  readonly origin: string;
  readonly keys: SellerKeys['keys'];
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
}

/**
 * Makes the revocation list that is served at one fetch, dated at the time of the fetch. Returns an object, or the
 * bytes of a compact JWS.
 */
export async function revocationList(
  { origin, keys, now }: Publisher,
  kids: readonly string[],
  options: RevokeOptions,
): Promise<unknown> {
  const { form = 'plain', key = 'ed25519', lifeMs = 300_000, members } = options;
  const list = {
    version: 1,
    issuer: origin,
    updated: new Date(now()).toISOString(),
    next_update: new Date(now() + lifeMs).toISOString(),
    revoked_kids: kids,
    revoked_jtis: [],
    ...members,
  };
  if (form === 'plain') return list;
  const jwk = typeof key === 'string' ? keys[key].privateJwk : key;
  const header = { alg: ALGORITHMS[algorithmOf(jwk)].algs[0], kid: String(jwk['kid']) };
  const [head = '', payload = ''] = [header, list].map((part) =>
    encodeBase64Url(encode(JSON.stringify(part))),
  );
  // A JWS signs the encoded header and payload, joined by a point (RFC 7515 §5.1).
  const signature = encodeBase64Url(await signBytes(jwk, encode(`${head}.${payload}`)));
  if (form === 'general') return { payload, signatures: [{ protected: head, signature }] };
  if (form === 'flattened') return { protected: head, payload, signature };
  return encode(`${head}.${payload}.${signature}`);
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
