import { ALGORITHM_NAMES, ALGORITHMS, type SignatureAlgorithm } from './algorithms.ts';

interface KnownAnswer {
  readonly point: { readonly x: string; readonly y?: string };
  readonly message: string;
  /** Standard base64. */
  readonly signature: string;
}

const KNOWN_ANSWERS: Readonly<Record<SignatureAlgorithm, KnownAnswer>> = {
  // RFC 8032 §7.1, TEST 2
  ed25519: {
    point: { x: 'PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw' },
    message: 'r',
    signature: 'kqAJqfDUyrhyDoILX2QlQKKye1QWUD+Ps3YiI+vbadoIWsHkPhWZbkWPNhPQ8R2MOHsurrQwKu6wDSkWErsMAA==',
  },
  // RFC 6979 §A.2.5, SHA-256, "sample"
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
 * Whether the runtime really has both algorithms: a name in a namespace does not say so (FIPS builds, WebCrypto
 * before Ed25519), and an engine that lacks one would refuse honest sellers. One right answer, one wrong, for each.
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

/** A JSON Web Key as found in a JWKS: any member may be anything. */
export type Jwk = Readonly<Record<string, unknown>>;

/** A public key that passed every check of verification.md §3.8, imported once. */
export interface VerifyKey {
  readonly alg: SignatureAlgorithm;
  /** What the engine made of it: a KeyObject, a CryptoKey, a point. */
  readonly handle: unknown;
}

/** One of three ways to the same verdict on every input (verification.md §3.5). */
export interface CryptoEngine {
  readonly name: 'native' | 'webcrypto' | 'noble';
  /**
   * Imports the public part of an Ed25519 (`OKP`) or P-256 (`EC`) JWK. Refuses small-order, non-canonical and
   * off-curve points. Private members are ignored. Never throws: a string says what is wrong.
   */
  importKey(jwk: Jwk): Promise<VerifyKey | string>;
  /**
   * `signature` is 64 bytes: R‖S, or r‖s (never DER); anything else is false. What it throws, or rejects with, is a fault
   * of the machine and says nothing of the signature; nothing that a sender can send makes it throw.
   */
  verify(key: VerifyKey, data: Uint8Array, signature: Uint8Array): boolean | Promise<boolean>;
}

/**
 * Where signatures are verified. `main`: in the thread that runs the receiver, at once. `pool`: on the threads of the
 * runtime's pool (Node and Bun; elsewhere as `main`). `auto`: there where more than one delivery is under way, as long as
 * the pool answers; with one processor as `main`.
 */
export type Verification = 'main' | 'pool' | 'auto';

/** The part of `sodium-native` that is used. */
export interface Sodium {
  /** Whether the 64 bytes sign `message` under the 32 bytes of the key (RFC 8032 §5.1.7). */
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
}

/** SHA-256 of what comes in pieces. */
export interface Sha256Stream {
  /** @returns itself. */
  update(data: Uint8Array): Sha256Stream;
  /** Once. Lower case. */
  hex(): string;
}

/** SHA-256 and HMAC-SHA256, synchronous on every runtime. */
export interface Hashes {
  /** 32 bytes. */
  sha256(data: Uint8Array): Uint8Array;
  /** Lower case. Of a string: of its UTF-8. */
  sha256Hex(data: Uint8Array | string): string;
  /** Of data that comes in chunks. */
  sha256Stream(): Sha256Stream;
  /** 32 bytes, of the parts one behind the other. */
  hmacSha256(key: Uint8Array, ...data: readonly Uint8Array[]): Uint8Array;
}
