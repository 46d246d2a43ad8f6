/** The field's order p, the coefficient b and the group's order n of P-256 (SP 800-186 §3.2.1.3). */
const P = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn;
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

/** 1 ≤ value < n, big-endian. */
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
 * What is wrong with a P-256 public key (SP 800-56A §5.6.2.3.3; the cofactor is 1, so every point of the curve but
 * infinity, which this form cannot write, has order n).
 * @param point 65 bytes, `04 ‖ x ‖ y` (SEC 1 §2.3.3).
 */
export function p256KeyFlaw(point: Uint8Array): string | undefined {
  const x = coordinate(point, 1);
  const y = coordinate(point, 33);
  if (x >= P || y >= P) return 'the P-256 public key has a coordinate outside the field';
  const onCurve = (y * y - (x * x * x - 3n * x + B)) % P === 0n;
  return onCurve ? undefined : 'the P-256 public key is not a point of the curve';
}

/**
 * 64 bytes r‖s (RFC 9421 §3.3.4), each in [1, n − 1] (FIPS 186-5 §6.4.2). DER has another length or, by chance of 64
 * bytes, other numbers. A high s is accepted: FIPS 186-5 knows no low-s rule and signers do not follow one.
 */
export function p256SignatureFits(signature: Uint8Array): boolean {
  return signature.length === 64 && isScalar(signature, 0) && isScalar(signature, 32);
}
