import { type Case, concat, ed, edSign, flip, fromHex, littleEndian, okp, TORSION, utf8 } from './make.ts';

const MESSAGE = utf8('"@method": POST');
const a = 0x0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdefn % ed.L;
const r = 0x0fedcba987654321fedcba987654321fedcba987654321fedcba9876543210n % ed.L;
const honest = edSign({ a, r, message: MESSAGE });
const R = honest.signature.subarray(0, 32);

/** y with the sign bit of x, reduced or not. */
const encoding = (y: bigint, sign: 0 | 1): Uint8Array => littleEndian(y | (BigInt(sign) << 255n));

/** Grinds messages until k fits. */
function ground(fits: (k: bigint) => boolean, make: (message: Uint8Array) => ReturnType<typeof edSign>) {
  for (let i = 0; ; i += 1) {
    const message = utf8(`ground ${i}`);
    const signed = make(message);
    if (fits(signed.k)) return { message, ...signed };
  }
}

const RFC8032: readonly (readonly [string, string, string, string])[] = [
  [
    'TEST 1',
    'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    '',
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  ],
  [
    'TEST 2',
    '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    '72',
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  ],
  [
    'TEST 3',
    'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
    'af82',
    '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
  ],
];

/** All encodings of the eight points of small order: the canonical ones, y + p, and x = 0 with its sign bit set. */
export const SMALL_ORDER_ENCODINGS: readonly Uint8Array[] = [
  ...new Set(TORSION.map((point) => point.toAffine().y)),
  ed.P,
  ed.P + 1n,
].flatMap((y) => [encoding(y, 0), encoding(y, 1)]);

/** Points of large order written with y + p: the ones whose y is below 19. */
export const NON_CANONICAL_ENCODINGS: readonly Uint8Array[] = Array.from({ length: 17 }, (_, i) =>
  BigInt(i + 2),
)
  .filter((y) => {
    try {
      return ed.Point.fromBytes(encoding(y, 0)).toBytes().length === 32;
    } catch {
      return false;
    }
  })
  .map((y) => encoding(ed.P + y, 0));

export const OFF_CURVE: Uint8Array = encoding(2n, 0);

const withKey = (
  name: string,
  A: Uint8Array,
  expected: Case['expected'],
  signature = honest.signature,
): Case => ({
  name,
  jwk: okp(A),
  message: MESSAGE,
  signature,
  expected,
});
const withSignature = (name: string, signature: Uint8Array, expected: boolean, A = honest.A): Case =>
  withKey(name, A, expected, signature);
const withS = (name: string, S: bigint): Case => withSignature(name, concat(R, littleEndian(S)), false);

const keys: readonly Case[] = [
  ...SMALL_ORDER_ENCODINGS.map((A, i) => withKey(`A of small order, encoding ${i}`, A, 'refused')),
  // S·B − k·A = R with S = 0 and R = A = identity, for any message: what Node 22 lets pass.
  withKey(
    'A and R the identity, S = 0',
    encoding(1n, 0),
    'refused',
    concat(encoding(1n, 0), littleEndian(0n)),
  ),
  ...NON_CANONICAL_ENCODINGS.map((A, i) => withKey(`A not canonical, encoding ${i}`, A, 'refused')),
  withKey('A off the curve', OFF_CURVE, 'refused'),
  withKey('another key', ed.B.multiplyUnsafe(a + 1n).toBytes(), false),
  withKey('−A', flip(honest.A, 255), false),
];

const scalars: readonly Case[] = [
  withS('S + L', honest.S + ed.L),
  withS('S + 8 L', honest.S + 8n * ed.L),
  withS('S = L', ed.L),
  withS('S = L − 1', ed.L - 1n),
  withS('S = 0', 0n),
  withS('S all ones', (1n << 256n) - 1n),
];

const nonces: readonly Case[] = [
  ...SMALL_ORDER_ENCODINGS.map((small, i) => {
    // S = k·a: the cofactored equation holds for every small R, the cofactorless one for the identity.
    const { signature } = edSign({ a, r: 0n, message: MESSAGE, R: small });
    return withSignature(`R of small order, encoding ${i}`, signature, false);
  }),
  ...TORSION.slice(1).map((torsionR, i) =>
    withSignature(`R = rB + T${i + 1}`, edSign({ a, r, message: MESSAGE, torsionR }).signature, false),
  ),
  ...NON_CANONICAL_ENCODINGS.map((bytes, i) =>
    withSignature(
      `R not canonical, encoding ${i}`,
      edSign({ a, r, message: MESSAGE, R: bytes }).signature,
      false,
    ),
  ),
  withSignature('R off the curve', edSign({ a, r, message: MESSAGE, R: OFF_CURVE }).signature, false),
  withSignature('−R', flip(honest.signature, 255), false),
];

const lengths: readonly Case[] = [0, 1, 32, 63, 65, 96, 128].map((length) => {
  const signature = new Uint8Array(length);
  signature.set(honest.signature.subarray(0, length));
  return withSignature(`${length} bytes`, signature, false);
});

/** A = aB + T: no flaw of the key, and the cofactorless equation holds where k·T vanishes. */
const mixed: readonly Case[] = TORSION.slice(1).flatMap((torsionA, i) => {
  const order = [8n, 4n, 8n, 2n, 8n, 4n, 8n][i] ?? 8n;
  const make = (message: Uint8Array): ReturnType<typeof edSign> => edSign({ a, r, message, torsionA });
  const vanishing = ground((k) => k % order === 0n, make);
  const remaining = ground((k) => k % order !== 0n, make);
  const name = `A = aB + T${i + 1} (order ${order})`;
  return [
    { ...vanishing, name: `${name}, ${order} | k`, jwk: okp(vanishing.A), expected: true },
    { ...remaining, name: `${name}, ${order} ∤ k`, jwk: okp(remaining.A), expected: false },
  ];
});

/** Mixed A and small R, S = k·a, ground until −k·T = R: the cofactorless equation holds and only the pre-check refuses. */
function mixedAndSmall(): Case {
  const torsionA = TORSION[1] ?? ed.B;
  const small = TORSION[3] ?? ed.B;
  const signed = ground(
    (k) => k % 8n === 5n,
    (message) => edSign({ a, r: 0n, message, torsionA, R: small.toBytes() }),
  );
  return { ...signed, name: 'A = aB + T, R = −kT', jwk: okp(signed.A), expected: false };
}

export const ED25519_CASES: readonly Case[] = [
  ...RFC8032.map(([name, A, message, signature]) => ({
    name: `RFC 8032 §7.1, ${name}`,
    jwk: okp(fromHex(A)),
    message: fromHex(message),
    signature: fromHex(signature),
    expected: true,
  })),
  withSignature('a signature with chosen a and r', honest.signature, true),
  { ...withSignature('another message', honest.signature, false), message: utf8('"@method": GET') },
  { ...withSignature('the empty message', honest.signature, false), message: new Uint8Array() },
  ...keys,
  ...scalars,
  ...nonces,
  ...lengths,
  ...mixed,
  mixedAndSmall(),
];
