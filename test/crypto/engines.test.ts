import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CryptoEngine } from '../../src/auth/rfc9421/index.ts';
import { ALL_ENGINES } from './all-engines.ts';
import { ED25519_CASES } from './ed25519-cases.ts';
import { type Case, ec, ecSign, ed, edSign, flip, okp, p, rs } from './make.ts';
import { P256_CASES } from './p256-cases.ts';

const engines = ALL_ENGINES.map(([, engine]) => engine);

/** Each engine says so. */
const all = (expected: Case['expected']): Case['expected'][] => engines.map(() => expected);

async function verdict(engine: CryptoEngine, { jwk, message, signature }: Case): Promise<Case['expected']> {
  const key = await engine.importKey(jwk);
  return typeof key === 'string' ? 'refused' : engine.verify(key, message, signature);
}

const verdicts = (input: Case): Promise<Case['expected'][]> =>
  Promise.all(engines.map((engine) => verdict(engine, input)));

describe('all engines give the same verdict', () => {
  it('runs the requested engines', () => {
    expect(engines.map(({ name }) => name)).toEqual(['native', 'webcrypto', 'noble', 'native', 'native']);
  });

  it.each(ED25519_CASES)('Ed25519: $name → $expected', async (input) => {
    expect(await verdicts(input)).toEqual(all(input.expected));
  });

  it.each(P256_CASES)('P-256: $name → $expected', async (input) => {
    expect(await verdicts(input)).toEqual(all(input.expected));
  });

  it('give the same reason why a key is refused', async () => {
    for (const { jwk } of [...ED25519_CASES, ...P256_CASES].filter(
      ({ expected }) => expected === 'refused',
    )) {
      const [first, ...others] = await Promise.all(engines.map((engine) => engine.importKey(jwk)));
      expect(first).toBeTypeOf('string');
      expect(others).toEqual(others.map(() => first));
    }
  });

  it('takes bytes on shared memory and views into larger buffers', async () => {
    for (const input of [ED25519_CASES[1], P256_CASES[0]]) {
      if (!input) throw new Error('no case');
      const shared = new Uint8Array(new SharedArrayBuffer(input.message.length));
      shared.set(input.message);
      const wide = new Uint8Array(70);
      wide.set(input.signature, 3);
      const same = { ...input, message: shared, signature: wide.subarray(3, 67) };
      expect(await verdicts(same)).toEqual(all(true));
    }
  });
});

describe('all engines on made-up inputs', () => {
  const scalar = (order: bigint): fc.Arbitrary<bigint> => fc.bigInt({ min: 1n, max: order - 1n });
  const message = fc.uint8Array({ minLength: 1, maxLength: 300 });
  const runs = { numRuns: 25 };

  function spoiled(input: Case, part: 'message' | 'signature', bit: number): Case {
    return { ...input, [part]: flip(input[part], bit) };
  }

  async function expectTrueThenFalse(input: Case, bit: number): Promise<void> {
    expect(await verdicts(input)).toEqual(all(true));
    expect(await verdicts(spoiled(input, 'message', bit))).toEqual(all(false));
    expect(await verdicts(spoiled(input, 'signature', bit))).toEqual(all(false));
  }

  it('Ed25519: a signature verifies, and no more with any bit of message or signature flipped', async () => {
    await fc.assert(
      fc.asyncProperty(scalar(ed.L), scalar(ed.L), message, fc.nat(), async (a, r, bytes, bit) => {
        const { A, signature } = edSign({ a, r, message: bytes });
        const input: Case = { name: '', jwk: okp(A), message: bytes, signature, expected: true };
        await expectTrueThenFalse(input, bit);
        const [first, ...others] = await verdicts({ ...input, jwk: okp(flip(A, bit)) });
        expect(first).not.toBe(true);
        expect(others).toEqual(others.map(() => first));
      }),
      runs,
    );
  });

  it('P-256: a signature verifies, and no more with any bit of message or signature flipped', async () => {
    await fc.assert(
      fc.asyncProperty(scalar(p.N), scalar(p.N), message, fc.nat(), async (secret, nonce, bytes, bit) => {
        const { x, y } = p.G.multiplyUnsafe(secret).toAffine();
        const { r, s } = ecSign(secret, nonce, bytes);
        const input: Case = { name: '', jwk: ec(x, y), message: bytes, signature: rs(r, s), expected: true };
        await expectTrueThenFalse(input, bit);
        expect(await verdicts({ ...input, jwk: ec(x, y ^ (1n << BigInt(bit % 256))) })).toEqual(
          all('refused'),
        );
      }),
      runs,
    );
  });

  it('agrees on, and never throws for, any 64 bytes under any 32', async () => {
    const bytes = (length: number): fc.Arbitrary<Uint8Array> =>
      fc.uint8Array({ minLength: length, maxLength: length });
    await fc.assert(
      fc.asyncProperty(bytes(32), fc.uint8Array({ maxLength: 70 }), message, async (A, signature, data) => {
        const [first, ...others] = await verdicts({
          name: '',
          jwk: okp(A),
          message: data,
          signature,
          expected: false,
        });
        expect(first).not.toBe(true);
        expect(others).toEqual(others.map(() => first));
      }),
      runs,
    );
  });
});
