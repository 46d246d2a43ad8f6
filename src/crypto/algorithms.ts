// The signature algorithms of the webhook profile, and their names in JWK and JWS (verification.md §2.4, §2.8).
// Used by checks, keys and signing. Each further property of an algorithm is a `Record<SignatureAlgorithm, …>` in its
// own file, so the compiler names every file that a new algorithm concerns.

/** One of the two signature algorithms that webhooks may use, by its RFC 9421 name. `generateKey` takes one. */
export type SignatureAlgorithm = 'ed25519' | 'ecdsa-p256-sha256';

interface AlgorithmNames {
  /** The JWK members for key type and curve. */
  readonly kty: string;
  readonly crv: string;
  /** The values that `alg` may have in a JWK and a JWS; this library writes the first. */
  readonly algs: readonly [string, ...string[]];
}

export const ALGORITHMS: Readonly<Record<SignatureAlgorithm, AlgorithmNames>> = {
  // These JWK members are defined in RFC 8037 §2 and §3.1, and RFC 9864 §2.2.
  ed25519: {
    kty: 'OKP',
    crv: 'Ed25519',
    algs: ['EdDSA', 'Ed25519'],
  },
  // These JWK members are defined in RFC 7518 §3.4 and §6.2.1.
  'ecdsa-p256-sha256': {
    kty: 'EC',
    crv: 'P-256',
    algs: ['ES256'],
  },
};

export const ALGORITHM_NAMES = Object.keys(ALGORITHMS) as readonly SignatureAlgorithm[];

/** Returns the algorithm of a JWK by its key type and curve. Undefined if the profile has no algorithm for them. */
export const algorithmOfKey = (jwk: Readonly<Record<string, unknown>>): SignatureAlgorithm | undefined =>
  ALGORITHM_NAMES.find((name) => ALGORITHMS[name].kty === jwk['kty'] && ALGORITHMS[name].crv === jwk['crv']);
