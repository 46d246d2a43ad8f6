// Generates signing keys and signs bytes with WebCrypto, as a seller does (verification.md §2.4, §2.8).
// Called by `sign.ts`, and by the fake sellers of `proto-webhooks/testing`.

import { encodeBase64Url } from '../codec/encoding.ts';
import {
  ALGORITHM_NAMES,
  algorithmOfKey,
  ALGORITHMS,
  type SignatureAlgorithm,
} from '../crypto/algorithms.ts';
import type { Jwk } from '../crypto/engine.ts';
import { oneOf, onlyKnown, text } from '../config/validate.ts';
import { createHashes } from '../crypto/hashes.ts';
import { ConfigError } from '../shared/errors.ts';
import { protocolsFor } from '../shared/wire-names.ts';

/** A private signing key and its public part, as JWKs with the same `kid`. `generateKey` makes them. */
export interface KeyPair {
  /** The private key for `signDelivery`. It stays with the seller. */
  readonly privateJwk: Jwk;
  /** The public key, to be published in `keys[]` of the seller's JWKS. */
  readonly publicJwk: Jwk;
}

/** Options of `generateKey`: the key id, and the protocol name that the key is for. */
export interface GenerateKeyOptions {
  /** The key id. Default: the RFC 7638 thumbprint. */
  readonly kid?: string;
  /**
   * The one protocol name whose purpose member the key gets. Default: both known names; the key may then sign under
   * each.
   */
  readonly protocol?: string | undefined;
}

type SigningKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

/** The names of one of the profile's algorithms in WebCrypto. */
interface Suite {
  readonly key: { readonly name: string; readonly namedCurve?: string };
  readonly sign: { readonly name: string; readonly hash?: string };
}

const SUITES: Readonly<Record<SignatureAlgorithm, Suite>> = {
  ed25519: {
    key: { name: 'Ed25519' },
    sign: { name: 'Ed25519' },
  },
  'ecdsa-p256-sha256': {
    key: { name: 'ECDSA', namedCurve: 'P-256' },
    // WebCrypto's ECDSA signatures are r‖s, as the profile requires.
    sign: { name: 'ECDSA', hash: 'SHA-256' },
  },
};

const GENERATE_NAMES: Readonly<Record<keyof GenerateKeyOptions, true>> = { kid: true, protocol: true };

/**
 * Returns the algorithm with which a private JWK signs, by its curve.
 * @throws ConfigError for any other key than Ed25519 and P-256.
 */
export function algorithmOf(key: Jwk): SignatureAlgorithm {
  const found = algorithmOfKey(key);
  if (found) return found;
  throw new ConfigError(
    'key: must be a private JWK of Ed25519 (kty OKP) or P-256 (kty EC), e.g. the privateJwk of generateKey().',
  );
}

/**
 * Signs bytes with a private JWK. Returns 64 bytes: R‖S for Ed25519, r‖s for P-256.
 * @throws ConfigError if the key is neither Ed25519 nor P-256, or has no private part.
 */
export async function signBytes(privateJwk: Jwk, data: Uint8Array): Promise<Uint8Array> {
  const suite = SUITES[algorithmOf(privateJwk)];
  const { kty, crv, x, y, d } = privateJwk as Record<string, string | undefined>;
  // Only the members of the key itself are imported, because WebCrypto might refuse the `key_ops` and `alg` of a
  // published JWK.
  const members = Object.entries({ kty, crv, x, y, d }).filter(([, value]) => value !== undefined);
  let key: SigningKey;
  try {
    key = await crypto.subtle.importKey('jwk', Object.fromEntries(members), suite.key, false, ['sign']);
  } catch (cause) {
    throw new ConfigError('key: the JWK has no usable private part (d).', { cause });
  }
  return new Uint8Array(await crypto.subtle.sign(suite.sign, key, new Uint8Array(data)));
}

/**
 * Returns the thumbprint of a key by RFC 7638 §3.2 and RFC 8037 §2: SHA-256 in base64url.
 * @param members the members of the key itself, in the order of their names.
 */
function thumbprint(members: Jwk): string {
  const text = JSON.stringify(members);
  return encodeBase64Url(createHashes().sha256(new TextEncoder().encode(text)));
}

/**
 * Generates a signing key pair as a seller publishes it in its JWKS: with `use`, `key_ops`, and the purpose for
 * which the key signs.
 * @param purpose the value of the member `<protocol>_use`.
 * @throws ConfigError (rejects) for an invalid argument or an unknown option.
 * @example
 * ```ts
 * import { generateKey } from 'proto-webhooks/sender';
 *
 * const { privateJwk, publicJwk } = await generateKey('ed25519');
 * console.log(JSON.stringify({ keys: [publicJwk] })); // publish this as the JWKS
 * console.log(privateJwk['kid']); // keep the private key secret
 * ```
 */
export async function generateKey(
  alg: SignatureAlgorithm,
  purpose = 'webhook-signing',
  options: GenerateKeyOptions = {},
): Promise<KeyPair> {
  oneOf('generateKey: alg', alg, ALGORITHM_NAMES);
  text('generateKey: purpose', purpose);
  onlyKnown('generateKey', options, GENERATE_NAMES);
  const { kty, crv, algs } = ALGORITHMS[alg];
  const pair = await crypto.subtle.generateKey(SUITES[alg].key, true, ['sign', 'verify']);
  const signingKey: SigningKey = 'privateKey' in pair ? pair.privateKey : pair;
  const { x, y, d } = await crypto.subtle.exportKey('jwk', signingKey);
  const point = { x, ...(y !== undefined && { y }) };
  const kid = options.kid ?? thumbprint({ crv, kty, ...point });
  const named = { kty, crv, alg: algs[0], ...point, kid, use: 'sig' };
  const purposes = Object.fromEntries(
    protocolsFor(options.protocol).map(({ purposeMember }) => [purposeMember, purpose]),
  );
  return {
    privateJwk: { ...named, key_ops: ['sign'], ...purposes, d },
    publicJwk: { ...named, key_ops: ['verify'], ...purposes },
  };
}
