/*
 * The signature algorithms of the profile, and how each is named elsewhere. What is particular to one (its checks, its calls of an
 * engine, a known answer) is a `Record<SignatureAlgorithm, …>` in the file that it belongs to: the compiler names those.
 */

/** One of the two signature algorithms that webhooks may use, by its RFC 9421 name. `generateKey` takes one. */
export type SignatureAlgorithm = 'ed25519' | 'ecdsa-p256-sha256';

interface AlgorithmNames {
  /** Members of a JWK: key type and curve. */
  readonly kty: string;
  readonly crv: string;
  /** `alg` of a JWK and of a JWS; the first is what this library writes. */
  readonly algs: readonly [string, ...string[]];
}

export const ALGORITHMS: Readonly<Record<SignatureAlgorithm, AlgorithmNames>> = {
  // RFC 8037 §2 and §3.1, RFC 9864 §2.2
  ed25519: {
    kty: 'OKP',
    crv: 'Ed25519',
    algs: ['EdDSA', 'Ed25519'],
  },
  // RFC 7518 §3.4 and §6.2.1
  'ecdsa-p256-sha256': {
    kty: 'EC',
    crv: 'P-256',
    algs: ['ES256'],
  },
};

export const ALGORITHM_NAMES = Object.keys(ALGORITHMS) as readonly SignatureAlgorithm[];

/** The algorithm of a JWK by its key type and curve; undefined where it is none of the profile's. */
export const algorithmOfKey = (jwk: Readonly<Record<string, unknown>>): SignatureAlgorithm | undefined =>
  ALGORITHM_NAMES.find((name) => ALGORITHMS[name].kty === jwk['kty'] && ALGORITHMS[name].crv === jwk['crv']);
