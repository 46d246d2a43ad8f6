/** The field's order p = 2^255 − 19 (RFC 8032 §5.1). */
const P: bigint = 2n ** 255n - 19n;
/** The curve's constant d = −121665/121666 mod p (RFC 8032 §5.1). */
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;

/** The group's order L (RFC 8032 §5.1), little-endian as S is. */
const L: readonly number[] = [
  0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/** y of two of the four points of order 8; the other two have −y. */
const Y8 = 0x5fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n;

/** The five y of the eight points whose order divides 8: 1, −1, 0, and the two of order 8. Both signs of x are one y. */
const SMALL_ORDER_Y: readonly bigint[] = [1n, P - 1n, 0n, Y8, P - Y8];

const SMALL_ORDER: readonly (readonly number[])[] = SMALL_ORDER_Y.map((y) =>
  Array.from({ length: 32 }, (_, i) => Number((y >> BigInt(8 * i)) & 0xffn)),
);

/** y < p, on bytes: only 2^255 − 19 … 2^255 − 1 are too large, and they share all bytes but the lowest. */
function isCanonical(point: Uint8Array, at: number): boolean {
  if (((point[at + 31] ?? 0) & 0x7f) !== 0x7f || (point[at] ?? 0) < 0xed) return true;
  for (let i = 1; i < 31; i += 1) if (point[at + i] !== 0xff) return true;
  return false;
}

/** Whatever its sign bit: `x = 0` with the bit set is no encoding at all, and refused here with the others. */
function isSmallOrder(point: Uint8Array, at: number): boolean {
  return SMALL_ORDER.some((small) => {
    for (let i = 0; i < 31; i += 1) if (point[at + i] !== small[i]) return false;
    return ((point[at + 31] ?? 0) & 0x7f) === small[31];
  });
}

/** S < L, or the same signature could be written a second way (RFC 8032 §5.1.7). */
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
    if (rest & 1n) result = (result * square) % P;
    square = (square * square) % P;
  }
  return result;
}

/** x² = (y² − 1)/(dy² + 1) has a root: by Euler's criterion on u·v, which is a square where u/v is (RFC 8032 §5.1.3). */
function isOnCurve(point: Uint8Array): boolean {
  let y = 0n;
  for (let i = 31; i >= 0; i -= 1) y = (y << 8n) | BigInt((point[i] ?? 0) & (i === 31 ? 0x7f : 0xff));
  const y2 = (y * y) % P;
  const uv = ((y2 + P - 1n) * (D * y2 + 1n)) % P;
  return power(uv, (P - 1n) / 2n) !== P - 1n;
}

/**
 * What is wrong with an Ed25519 public key, once, at import. Engines differ here: some accept the identity as a key,
 * under which one signature fits every message (verification.md §3.8). A point of mixed order is no flaw: the
 * cofactorless equation decides each of its signatures.
 * @param point 32 bytes.
 */
export function ed25519KeyFlaw(point: Uint8Array): string | undefined {
  if (!isCanonical(point, 0)) return 'the Ed25519 public key is not canonically encoded';
  if (isSmallOrder(point, 0)) return 'the Ed25519 public key is a point of small order';
  return isOnCurve(point) ? undefined : 'the Ed25519 public key is not a point of the curve';
}

/** R canonical and not of small order, S < L (verification.md §3.6): before any engine sees the signature. */
export function ed25519SignatureFits(signature: Uint8Array): boolean {
  return (
    signature.length === 64 &&
    isCanonical(signature, 0) &&
    !isSmallOrder(signature, 0) &&
    isReducedScalar(signature, 32)
  );
}
