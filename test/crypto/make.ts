import { ed25519 } from '@noble/curves/ed25519.js';
import { p256 } from '@noble/curves/nist.js';
import { sha256, sha512 } from '@noble/hashes/sha2.js';
import { encodeBase64Url } from '../../src/codec/for-tests.ts';
import type { Jwk } from '../../src/index.ts';

/** `refused`: the key at import. Else what every engine says of the signature. */
export interface Case {
  readonly name: string;
  readonly jwk: Jwk;
  readonly message: Uint8Array;
  readonly signature: Uint8Array;
  readonly expected: boolean | 'refused';
}

export const base64url = encodeBase64Url;
export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
export const fromHex = (text: string): Uint8Array =>
  Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
export const concat = (...parts: readonly Uint8Array[]): Uint8Array =>
  Uint8Array.from(parts.flatMap((part) => [...part]));

/** `length` bytes of `value`, lowest first. */
export function littleEndian(value: bigint, length = 32): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => Number((value >> BigInt(8 * i)) & 0xffn));
}

export function bigEndian(value: bigint, length = 32): Uint8Array {
  return littleEndian(value, length).toReversed();
}

export function fromBigEndian(bytes: Uint8Array): bigint {
  return bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

/** A copy with bit `index` (of all bits) turned over. */
export function flip(bytes: Uint8Array, index: number): Uint8Array {
  const copy = new Uint8Array(bytes);
  const at = Math.floor(index / 8) % copy.length;
  copy[at] = (copy[at] ?? 0) ^ (1 << (index % 8));
  return copy;
}

export const okp = (point: Uint8Array): Jwk => ({ kty: 'OKP', crv: 'Ed25519', x: base64url(point) });
export const ec = (x: bigint, y: bigint): Jwk => ({
  kty: 'EC',
  crv: 'P-256',
  x: base64url(bigEndian(x)),
  y: base64url(bigEndian(y)),
});

/** Ed25519's curve: `ed.P` the field, `ed.L` the order. */
export const ed = {
  P: ed25519.Point.Fp.ORDER,
  L: ed25519.Point.Fn.ORDER,
  B: ed25519.Point.BASE,
  Point: ed25519.Point,
};
export type EdPoint = typeof ed.B;

/** The eight points whose order divides 8: multiples of one of order 8. */
export const TORSION: readonly EdPoint[] = (() => {
  const generator = ed.Point.fromHex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05');
  const points = [ed.Point.ZERO];
  for (let i = 1; i < 8; i += 1) points.push((points.at(-1) ?? generator).add(generator));
  return points;
})();

/** k of RFC 8032 §5.1.7. */
export function challenge(R: Uint8Array, A: Uint8Array, message: Uint8Array): bigint {
  return ed.Point.Fn.create(fromBigEndian(sha512(concat(R, A, message)).toReversed()));
}

/** A signature with chosen parts: somebody who has `a` can make each of these. */
export function edSign(parts: {
  readonly a: bigint;
  readonly r: bigint;
  readonly message: Uint8Array;
  /** Added to the public key. */
  readonly torsionA?: EdPoint;
  /** Added to R before k is computed. */
  readonly torsionR?: EdPoint;
  /** Stands for R's bytes, whatever R is. */
  readonly R?: Uint8Array;
}): { readonly A: Uint8Array; readonly k: bigint; readonly S: bigint; readonly signature: Uint8Array } {
  const A = ed.B.multiplyUnsafe(parts.a)
    .add(parts.torsionA ?? ed.Point.ZERO)
    .toBytes();
  const R =
    parts.R ??
    ed.B.multiplyUnsafe(parts.r)
      .add(parts.torsionR ?? ed.Point.ZERO)
      .toBytes();
  const k = challenge(R, A, parts.message);
  const S = (parts.r + k * parts.a) % ed.L;
  return { A, k, S, signature: concat(R, littleEndian(S)) };
}

/** P-256: `p.P` the field, `p.N` the order. */
export const p = {
  P: p256.Point.Fp.ORDER,
  N: p256.Point.Fn.ORDER,
  G: p256.Point.BASE,
  Point: p256.Point,
};
export type P256Point = typeof p.G;

export const digestNumber = (message: Uint8Array): bigint =>
  p.Point.Fn.create(fromBigEndian(sha256(message)));
export const rs = (r: bigint, s: bigint): Uint8Array => concat(bigEndian(r), bigEndian(s));

/** ECDSA (FIPS 186-5 §6.4.1) with a chosen nonce. */
export function ecSign(
  secret: bigint,
  nonce: bigint,
  message: Uint8Array,
): { readonly r: bigint; readonly s: bigint } {
  const r = p.Point.Fn.create(p.G.multiplyUnsafe(nonce).toAffine().x);
  const s = p.Point.Fn.create(p.Point.Fn.inv(nonce) * (digestNumber(message) + r * secret));
  return { r, s };
}

/** The public key under which (r, s) with the point R signs `message`: Q = r⁻¹(sR − zG) (SEC 1 §4.1.6). */
export function keyFor(R: P256Point, r: bigint, s: bigint, message: Uint8Array): P256Point {
  const { Fn } = p.Point;
  const inverse = Fn.inv(r);
  const u1 = Fn.create(-digestNumber(message) * inverse);
  return R.multiplyUnsafe(Fn.create(s * inverse)).add(p.G.multiplyUnsafe(u1));
}

/** The lowest point with x ≥ `from`. */
export function pointAbove(from: bigint): P256Point {
  for (let x = from; ; x += 1n) {
    try {
      return p.Point.fromBytes(concat(Uint8Array.of(2), bigEndian(x)));
    } catch {
      // No point has this x.
    }
  }
}
