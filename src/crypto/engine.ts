/** The two algorithms of the profile, by their RFC 9421 names. */
export type SignatureAlgorithm = 'ed25519' | 'ecdsa-p256-sha256';

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
  /** Never throws. `signature` is 64 bytes: R‖S, or r‖s (never DER); anything else is false. */
  verify(key: VerifyKey, data: Uint8Array, signature: Uint8Array): boolean | Promise<boolean>;
}

/**
 * Where signatures are verified. `main`: in the thread that runs the receiver, at once. `pool`: on the threads of the
 * runtime's pool (Node and Bun; elsewhere as `main`). `auto`: there where more than one delivery is under way, as long as
 * the pool answers; with one processor as `main`.
 */
export type Verification = 'main' | 'pool' | 'auto';

/** The part of `sodium-native` (or of another binding of libsodium) that is used. */
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
