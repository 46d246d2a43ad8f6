// Checks keys and signatures before any engine gets them, so that all engines give one verdict (verification.md §3.4
// to §3.8).
// Called by every engine through `withPrechecks`, and by the folder `keys` when a JWK is read.

import { ALGORITHM_NAMES, algorithmOfKey, ALGORITHMS, type SignatureAlgorithm } from './algorithms.ts';
import type { CryptoEngine, Jwk, VerifyKey } from './engine.ts';

/** The order p = 2^255 − 19 of Ed25519's field (RFC 8032 §5.1). */
const FIELD_25519: bigint = 2n ** 255n - 19n;
/** The constant d = −121665/121666 mod p of Ed25519's curve (RFC 8032 §5.1). */
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;

/** The order L of Ed25519's group (RFC 8032 §5.1), as little-endian bytes, like S in a signature. */
const L: readonly number[] = [
  0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/** The y coordinate of two of the four points of order 8 on Ed25519's curve; the other two points have −y. */
const Y8 = 0x5fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n;

/**
 * The y coordinates of the eight points whose order divides 8: 1, −1, 0, and two for order 8. There are only five,
 * because points with x and −x share y.
 */
const SMALL_ORDER_Y: readonly bigint[] = [1n, FIELD_25519 - 1n, 0n, Y8, FIELD_25519 - Y8];

const SMALL_ORDER: readonly (readonly number[])[] = SMALL_ORDER_Y.map((y) =>
  Array.from({ length: 32 }, (_, i) => Number((y >> BigInt(8 * i)) & 0xffn)),
);

/**
 * True if the point's y coordinate is below p. Only 2^255 − 19 … 2^255 − 1 are too large, and these values share all
 * bytes but the lowest.
 */
function isCanonical(point: Uint8Array, at: number): boolean {
  if (((point[at + 31] ?? 0) & 0x7f) !== 0x7f || (point[at] ?? 0) < 0xed) return true;
  for (let i = 1; i < 31; i += 1) if (point[at + i] !== 0xff) return true;
  return false;
}

/**
 * True for a point of small order, whatever its sign bit is. `x = 0` with the sign bit set is no valid encoding, so it
 * is refused here too.
 */
function isSmallOrder(point: Uint8Array, at: number): boolean {
  return SMALL_ORDER.some((small) => {
    for (let i = 0; i < 31; i += 1) if (point[at + i] !== small[i]) return false;
    return ((point[at + 31] ?? 0) & 0x7f) === small[31];
  });
}

/**
 * True if the signature's scalar S is below L. Otherwise the same signature could be written a second way (RFC 8032
 * §5.1.7).
 */
function isReducedScalar(signature: Uint8Array, at: number): boolean {
  for (let i = 31; i >= 0; i -= 1) {
    const difference = (signature[at + i] ?? 0) - (L[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = base;
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % FIELD_25519;
    square = (square * square) % FIELD_25519;
  }
  return result;
}

/**
 * True if x² = (y² − 1)/(dy² + 1) has a root, that is if the point is on the curve (RFC 8032 §5.1.3). Euler's
 * criterion is applied to the product u·v, which is a square if the quotient u/v is.
 */
function isOnCurve(point: Uint8Array): boolean {
  let y = 0n;
  for (let i = 31; i >= 0; i -= 1) y = (y << 8n) | BigInt((point[i] ?? 0) & (i === 31 ? 0x7f : 0xff));
  const y2 = (y * y) % FIELD_25519;
  const uv = ((y2 + FIELD_25519 - 1n) * (D * y2 + 1n)) % FIELD_25519;
  return power(uv, (FIELD_25519 - 1n) / 2n) !== FIELD_25519 - 1n;
}

/**
 * Returns the reason why an Ed25519 public key is unusable; undefined if it is usable. Engines differ here: some
 * accept the identity as a key, under which one signature fits every message (verification.md §3.8). A point of mixed
 * order is usable, because the cofactorless equation decides each of its signatures.
 * @param point 32 bytes.
 */
export function ed25519InvalidReason(point: Uint8Array): string | undefined {
  if (!isCanonical(point, 0)) return 'the Ed25519 public key is not canonically encoded';
  if (isSmallOrder(point, 0)) return 'the Ed25519 public key is a point of small order';
  return isOnCurve(point) ? undefined : 'the Ed25519 public key is not a point of the curve';
}

/**
 * True if the signature's point R is canonical and not of small order, and S < L (verification.md §3.6). Checked
 * before an engine gets the signature.
 */
export function ed25519SignatureFits(signature: Uint8Array): boolean {
  return (
    signature.length === 64 &&
    isCanonical(signature, 0) &&
    !isSmallOrder(signature, 0) &&
    isReducedScalar(signature, 32)
  );
}

/** The field's order p, the coefficient b and the group's order n of P-256 (SP 800-186 §3.2.1.3). */
const FIELD_P256 = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn;
const B = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn;
const N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

const N_BYTES: readonly number[] = Array.from({ length: 32 }, (_, i) =>
  Number((N >> BigInt(8 * (31 - i))) & 0xffn),
);

function coordinate(point: Uint8Array, at: number): bigint {
  let value = 0n;
  for (let i = at; i < at + 32; i += 1) value = (value << 8n) | BigInt(point[i] ?? 0);
  return value;
}

/** True if the big-endian value of the 32 bytes at `at` is between 1 and n − 1; n is the order of P-256's group. */
function isScalar(signature: Uint8Array, at: number): boolean {
  let some = 0;
  for (let i = 0; i < 32; i += 1) some |= signature[at + i] ?? 0;
  if (some === 0) return false;
  for (let i = 0; i < 32; i += 1) {
    const difference = (signature[at + i] ?? 0) - (N_BYTES[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

/**
 * Returns the reason why a P-256 public key is unusable (SP 800-56A §5.6.2.3.3); undefined if it is usable. The order
 * is not checked: the cofactor is 1, so every point of the curve but infinity has order n. This encoding cannot
 * express infinity.
 * @param point 65 bytes, `04 ‖ x ‖ y` (SEC 1 §2.3.3).
 */
export function p256InvalidReason(point: Uint8Array): string | undefined {
  const x = coordinate(point, 1);
  const y = coordinate(point, 33);
  if (x >= FIELD_P256 || y >= FIELD_P256) return 'the P-256 public key has a coordinate outside the field';
  const onCurve = (y * y - (x * x * x - 3n * x + B)) % FIELD_P256 === 0n;
  return onCurve ? undefined : 'the P-256 public key is not a point of the curve';
}

/**
 * True for 64 bytes r‖s (RFC 9421 §3.3.4), each in [1, n − 1] (FIPS 186-5 §6.4.2). DER has another length or,
 * if it happens to have 64 bytes, other numbers. A high s is accepted: FIPS 186-5 has no low-s rule, and
 * signers do not follow one.
 */
export function p256SignatureFits(signature: Uint8Array): boolean {
  return signature.length === 64 && isScalar(signature, 0) && isScalar(signature, 32);
}

/**
 * The public members of a JWK, which engines import. Other members are left out, because engines react differently to
 * `use`, `key_ops` or `d`.
 */
export interface PublicJwk {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly y?: string;
}

/** A public key that passed every check for which no engine is needed. */
interface PublicKey {
  readonly alg: SignatureAlgorithm;
  /** The encoded point. Ed25519: the 32 bytes of RFC 8032 §5.1.2. P-256: `04 ‖ x ‖ y`. */
  readonly point: Uint8Array;
  readonly jwk: PublicJwk;
}

/**
 * The encoding of a public key's point: the JWK members that contain its coordinates, the bytes before the
 * coordinates, and the check of the point.
 */
interface PointForm {
  readonly coordinates: readonly ('x' | 'y')[];
  readonly prefix: readonly number[];
  readonly invalidReason: (point: Uint8Array) => string | undefined;
}

const POINTS: Readonly<Record<SignatureAlgorithm, PointForm>> = {
  ed25519: { coordinates: ['x'], prefix: [], invalidReason: ed25519InvalidReason },
  'ecdsa-p256-sha256': { coordinates: ['x', 'y'], prefix: [4], invalidReason: p256InvalidReason },
};

/** The supported key types in words, for error messages. */
const KEY_TYPES = ALGORITHM_NAMES.map((name) => `${ALGORITHMS[name].kty} and ${ALGORITHMS[name].crv}`);

/**
 * Matches unpadded base64url of exactly 32 bytes (RFC 7515 §2): the last of 43 characters has its two lowest
 * bits clear.
 */
const BASE64URL_32 = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

function decode32(text: string): number[] {
  return Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0));
}

/**
 * Reads the public part of a JWK. Private members, and members that state a purpose (read by check 8, key policy), are
 * ignored.
 * @returns a fixed text that says what is wrong, if the JWK is no usable Ed25519 or P-256 public key. Never throws.
 */
export function readPublicKey(jwk: Jwk): PublicKey | string {
  if (typeof jwk !== 'object' || jwk === null) return 'the JWK is not an object';
  const alg = algorithmOfKey(jwk);
  if (alg === undefined) return `kty and crv are neither ${KEY_TYPES.join(' nor ')}`;
  const { kty, crv } = ALGORITHMS[alg];
  const { coordinates, prefix, invalidReason } = POINTS[alg];
  const found: { x?: string; y?: string } = {};
  const bytes = [...prefix];
  for (const name of coordinates) {
    const text = jwk[name];
    if (typeof text !== 'string' || !BASE64URL_32.test(text)) {
      return `${name} is not the unpadded base64url of 32 bytes`;
    }
    found[name] = text;
    bytes.push(...decode32(text));
  }
  const point = Uint8Array.from(bytes);
  const { x = '', ...rest } = found;
  return invalidReason(point) ?? { alg, point, jwk: { kty, crv, x, ...rest } };
}

/**
 * Verifies a signature with one imported key. Called only with a signature that passed the check of its algorithm's
 * form.
 */
export type Verifier = (data: Uint8Array, signature: Uint8Array) => boolean | Promise<boolean>;

/**
 * The functions of an engine, one for each algorithm. Each imports a key that passed the common checks, and returns
 * the function that verifies with it.
 */
export type Primitives = Record<SignatureAlgorithm, (key: PublicKey) => Verifier | Promise<Verifier>>;

const SIGNATURE_FITS: Record<SignatureAlgorithm, (signature: Uint8Array) => boolean> = {
  ed25519: ed25519SignatureFits,
  'ecdsa-p256-sha256': p256SignatureFits,
};

async function importKey(primitives: Primitives, jwk: Jwk): Promise<VerifyKey | string> {
  const key = readPublicKey(jwk);
  if (typeof key === 'string') return key;
  try {
    return { alg: key.alg, handle: await primitives[key.alg](key) };
  } catch {
    return 'the crypto engine does not take the key';
  }
}

function verify(key: VerifyKey, data: Uint8Array, signature: Uint8Array): boolean | Promise<boolean> {
  if (!SIGNATURE_FITS[key.alg](signature)) return false;
  return (key.handle as Verifier)(data, signature);
}

/**
 * Makes an engine from an implementation's functions, with the common checks of keys and signatures in front. The
 * implementation only computes where all implementations agree: the cofactorless equation, and plain ECDSA
 * (verification.md §3.4, §3.7).
 */
export function withPrechecks(name: CryptoEngine['name'], primitives: Primitives): CryptoEngine {
  return { name, importKey: (jwk) => importKey(primitives, jwk), verify };
}
