import { derSignature } from '../../src/crypto/for-tests.ts';
import {
  type Case,
  bigEndian,
  concat,
  ec,
  ecSign,
  fromHex,
  keyFor,
  p,
  pointAbove,
  rs,
  utf8,
} from './make.ts';

const MESSAGE = utf8('"@method": POST');
const secret = 0xc9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721n;
const nonce = 0xa6e3c57dd01abe90086538398355dd4c3b17aa873382b0f24d6129493d8aad60n;
const { r, s } = ecSign(secret, nonce, MESSAGE);
const Q = p.G.multiplyUnsafe(secret).toAffine();

const withKey = (name: string, x: bigint, y: bigint, expected: Case['expected']): Case => ({
  name,
  jwk: ec(x, y),
  message: MESSAGE,
  signature: rs(r, s),
  expected,
});
const withSignature = (name: string, signature: Uint8Array, expected = false): Case => ({
  ...withKey(name, Q.x, Q.y, expected),
  signature,
});

/** Under a key made to fit (r, s) and R, so that values no signer would meet by chance are tried too. */
function fitted(
  name: string,
  R: ReturnType<typeof pointAbove>,
  found: bigint,
  expected: boolean,
  written = found,
): Case {
  const { x, y } = keyFor(R, found, s, MESSAGE).toAffine();
  return { name, jwk: ec(x, y), message: MESSAGE, signature: rs(written, s), expected };
}

/** Q = −(z/r)G: the point that is computed is infinity, whatever s is. */
function infinity(): Case {
  const { x, y } = keyFor(p.Point.ZERO, r, s, MESSAGE).toAffine();
  return {
    name: 'u1·G + u2·Q is infinity',
    jwk: ec(x, y),
    message: MESSAGE,
    signature: rs(r, s),
    expected: false,
  };
}

const lowX = pointAbove(1n);
const wrapped = pointAbove(p.N);
const smallX = pointAbove(5n).toAffine();

/** A DER signature of 64 bytes: r and s of 29 bytes each. */
const shortDer = derSignature(concat(bigEndian(1n << 230n), bigEndian(1n << 231n)));

const scalars: readonly Case[] = [
  withSignature('r = 0', rs(0n, s)),
  withSignature('s = 0', rs(r, 0n)),
  withSignature('r = s = 0', rs(0n, 0n)),
  withSignature('r = n', rs(p.N, s)),
  withSignature('s = n', rs(r, p.N)),
  withSignature('r = n − 1', rs(p.N - 1n, s)),
  withSignature('s = n − 1', rs(r, p.N - 1n)),
  withSignature('r and s all ones', new Uint8Array(64).fill(0xff)),
  withSignature('r = s = 1', rs(1n, 1n)),
  withSignature('s‖r', rs(s, r)),
  withSignature('high s', rs(r, p.N - s), true),
];

export const P256_CASES: readonly Case[] = [
  {
    name: 'RFC 6979 §A.2.5, SHA-256, "sample"',
    jwk: ec(Q.x, Q.y),
    message: utf8('sample'),
    signature: fromHex(
      'efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8',
    ),
    expected: true,
  },
  withSignature('a signature with a chosen nonce', rs(r, s), true),
  { ...withSignature('another message', rs(r, s)), message: utf8('"@method": GET') },
  { ...withSignature('the empty message', rs(r, s)), message: new Uint8Array() },
  withSignature('DER', derSignature(rs(r, s))),
  withSignature('DER of 64 bytes', shortDer),
  ...[0, 1, 32, 63, 65, 128].map((length) =>
    withSignature(`${length} bytes`, concat(rs(r, s), new Uint8Array(64)).subarray(0, length)),
  ),
  withSignature('raw with a leading zero each', concat(bigEndian(r, 33), bigEndian(s, 33))),
  ...scalars,
  fitted('a short r', lowX, lowX.toAffine().x, true),
  fitted('r = x − n, x ≥ n', wrapped, wrapped.toAffine().x - p.N, true),
  fitted('r = x, x ≥ n', wrapped, wrapped.toAffine().x - p.N, false, wrapped.toAffine().x),
  fitted('r + n', lowX, lowX.toAffine().x, false, lowX.toAffine().x + p.N),
  infinity(),
  withKey('another key', p.G.toAffine().x, p.G.toAffine().y, false),
  withKey('−Q', Q.x, p.P - Q.y, false),
  withKey('x = 0, a point of the curve', 0n, pointAbove(0n).toAffine().y, false),
  withKey('off the curve', Q.x, Q.y + 1n, 'refused'),
  withKey('(0, 0)', 0n, 0n, 'refused'),
  withKey('x + p', smallX.x + p.P, smallX.y, 'refused'),
  withKey('x = p', p.P, pointAbove(0n).toAffine().y, 'refused'),
  withKey('y = p', Q.x, p.P, 'refused'),
  withKey('all ones', (1n << 256n) - 1n, (1n << 256n) - 1n, 'refused'),
];
