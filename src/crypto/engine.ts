// The interface of crypto engines and hashes, and the self-test that an engine must pass (verification.md
// §3.5, §3.10).
// Implemented by `native.ts`, `noble.ts`, `sodium.ts` and WebCrypto in `index.ts`; used by all that verifies.

import { ALGORITHM_NAMES, ALGORITHMS, type SignatureAlgorithm } from './algorithms.ts';

interface KnownAnswer {
  readonly point: { readonly x: string; readonly y?: string };
  readonly message: string;
  /** The signature in standard base64. */
  readonly signature: string;
}

const KNOWN_ANSWERS: Readonly<Record<SignatureAlgorithm, KnownAnswer>> = {
  // The test vector of RFC 8032 §7.1, TEST 2.
  ed25519: {
    point: { x: 'PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw' },
    message: 'r',
    signature: 'kqAJqfDUyrhyDoILX2QlQKKye1QWUD+Ps3YiI+vbadoIWsHkPhWZbkWPNhPQ8R2MOHsurrQwKu6wDSkWErsMAA==',
  },
  // The test vector of RFC 6979 §A.2.5, SHA-256, message "sample".
  'ecdsa-p256-sha256': {
    point: {
      x: 'YP7UuiVanTHJYet0xjVtaMBJuJI7Yfps5mliLmDyn7Y',
      y: 'eQP-EAi4vJmkGunpVii8ZPLxsgwtfp9Rd6PClNRGIpk',
    },
    message: 'sample',
    signature: '79SLKqy2qP0RQN2c1F6B1p0sh3tWqvmRw00OqE6vNxb3yxyULWV8QdQ2x6G24p9l8+kA27mv9AZNxKsvhDrNqA==',
  },
};

/**
 * Tests with known answers that an engine really supports both algorithms: each must accept a right signature and
 * reject a wrong one. An engine may know an algorithm's name without supporting it (FIPS builds, WebCrypto before
 * Ed25519). Such an engine would refuse honest sellers.
 */
export async function engineWorks(engine: CryptoEngine): Promise<boolean> {
  try {
    for (const alg of ALGORITHM_NAMES) if (!(await answers(engine, alg))) return false;
    return true;
  } catch {
    return false;
  }
}

async function answers(engine: CryptoEngine, alg: SignatureAlgorithm): Promise<boolean> {
  const { point, message, signature } = KNOWN_ANSWERS[alg];
  const { kty, crv } = ALGORITHMS[alg];
  const key = await engine.importKey({ kty, crv, ...point });
  if (typeof key === 'string') return false;
  const bytes = Uint8Array.from(atob(signature), (char) => char.charCodeAt(0));
  const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
  if (!(await engine.verify(key, encode(message), bytes))) return false;
  return !(await engine.verify(key, encode(`${message}!`), bytes));
}

/** A JSON Web Key as found in a JWKS. Nothing in it is validated: any member may have any value. */
export type Jwk = Readonly<Record<string, unknown>>;

/** A public key that `importKey` of a `CryptoEngine` has imported; `verify` takes it. */
export interface VerifyKey {
  readonly alg: SignatureAlgorithm;
  /** The engine's own form of the key: a KeyObject, a CryptoKey or a point. */
  readonly handle: unknown;
}

/**
 * Imports public keys and verifies signatures with one crypto implementation: Node's, WebCrypto, or JavaScript.
 * `createEngine` makes an engine. All engines give the same verdict on every input. If a key is unusable, `importKey`
 * resolves with a text that says why.
 */
export interface CryptoEngine {
  readonly name: 'native' | 'webcrypto' | 'noble';
  /**
   * Imports the public part of an Ed25519 (`OKP`) or P-256 (`EC`) JWK. Rejects small-order, non-canonical and
   * off-curve points, and ignores private members. Never throws: a string says what is wrong with the key.
   */
  importKey(jwk: Jwk): Promise<VerifyKey | string>;
  /**
   * Verifies a signature of 64 bytes: R‖S for Ed25519, r‖s for P-256 (never DER). Returns false for any other length.
   * A throw or a rejection means that the machine failed and the signature is undecided; no input of a sender causes
   * one.
   */
  verify(key: VerifyKey, data: Uint8Array, signature: Uint8Array): boolean | Promise<boolean>;
}

/**
 * The thread on which signatures are verified: the option `verification` of `createReceiver`.
 *
 * - `main`: the thread that runs the receiver, without a queue.
 * - `pool`: the threads of the runtime's pool (Node and Bun; on other runtimes the same as `main`).
 * - `auto`: the pool if several deliveries are under way and the pool answers, otherwise `main`; with one processor
 * always `main`.
 */
export type Verification = 'main' | 'pool' | 'auto';

/** The part of `sodium-native` that the receiver uses. */
export interface Sodium {
  /** Returns true if the 64 bytes are a signature of `message` by the 32-byte Ed25519 public key (RFC 8032 §5.1.7). */
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
}

/** A running SHA-256 over data that comes in chunks, made by `Hashes.sha256Stream`. */
export interface Sha256Stream {
  /**
   * Adds data to the hash.
   * @returns the same object.
   */
  update(data: Uint8Array): Sha256Stream;
  /** Returns the hash in lower-case hex. Call it once. */
  hex(): string;
}

/**
 * Computes SHA-256 and HMAC-SHA256 synchronously: an option of `verifySignature`, for which the runtime's own
 * implementation is the default.
 */
export interface Hashes {
  /** Returns the SHA-256 of the data, 32 bytes. */
  sha256(data: Uint8Array): Uint8Array;
  /** Returns the SHA-256 in lower-case hex. A string is hashed as UTF-8. */
  sha256Hex(data: Uint8Array | string): string;
  /** Begins a SHA-256 of data that comes in chunks. */
  sha256Stream(): Sha256Stream;
  /** Returns the HMAC-SHA256 of the concatenated parts, 32 bytes. */
  hmacSha256(key: Uint8Array, ...data: readonly Uint8Array[]): Uint8Array;
}
