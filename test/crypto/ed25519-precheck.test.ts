import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ed25519InvalidReason, ed25519SignatureFits } from '../../src/crypto/for-tests.ts';
import { NON_CANONICAL_ENCODINGS, OFF_CURVE, SMALL_ORDER_ENCODINGS } from './ed25519-cases.ts';
import { concat, ed, edSign, littleEndian, TORSION, utf8 } from './make.ts';

const { A, signature } = edSign({ a: 5n, r: 7n, message: utf8('m') });
const withR = (R: Uint8Array): Uint8Array => concat(R, signature.subarray(32));
const withS = (S: bigint): Uint8Array => concat(signature.subarray(0, 32), littleEndian(S));

describe('ed25519InvalidReason', () => {
  it('finds none in a multiple of the base point, nor in one of mixed order', () => {
    expect(ed25519InvalidReason(A)).toBeUndefined();
    for (const T of TORSION)
      expect(ed25519InvalidReason(ed.B.multiplyUnsafe(5n).add(T).toBytes())).toBeUndefined();
  });

  it('finds all 14 encodings of the 8 points of small order, canonical or not', () => {
    expect(SMALL_ORDER_ENCODINGS).toHaveLength(14);
    const reasons = SMALL_ORDER_ENCODINGS.map(ed25519InvalidReason);
    expect(reasons.filter((reason) => reason?.includes('small order'))).toHaveLength(10);
    expect(reasons.filter((reason) => reason?.includes('not canonically encoded'))).toHaveLength(4);
  });

  it('a point is of small order by all of its bytes', () => {
    for (const encoding of SMALL_ORDER_ENCODINGS) {
      for (let at = 0; at < 32; at += 1) {
        const bytes = Uint8Array.from(encoding);
        bytes[at] = (bytes[at] ?? 0) ^ 0x10;
        expect(ed25519InvalidReason(bytes) ?? '', `byte ${at}`).not.toContain('small order');
      }
    }
  });

  it('finds y ≥ p', () => {
    expect(NON_CANONICAL_ENCODINGS.length).toBeGreaterThan(0);
    for (const bytes of NON_CANONICAL_ENCODINGS) expect(ed25519InvalidReason(bytes)).toContain('canonical');
    expect(ed25519InvalidReason(new Uint8Array(32).fill(0xff))).toContain('canonical');
  });

  it('y < p is canonical, whichever byte says so', () => {
    // 2^255 − 1 is not below p. With one bit less anywhere but in the lowest byte it is.
    for (let at = 1; at < 32; at += 1) {
      const bytes = new Uint8Array(32).fill(0xff);
      bytes[31] = 0x7f;
      bytes[at] = (bytes[at] ?? 0) ^ 0x01;
      expect(ed25519InvalidReason(bytes) ?? '', `byte ${at}`).not.toContain('canonical');
    }
  });

  it('finds y that no point of the curve has', () => {
    expect(ed25519InvalidReason(OFF_CURVE)).toContain('not a point of the curve');
  });

  it('agrees with a decoder by the letter of RFC 8032 §5.1.3 on what is a point', () => {
    const nearP = fc.bigInt({ min: ed.P - 40n, max: (1n << 255n) - 1n });
    const y = fc.oneof(
      fc.bigInt({ min: 0n, max: (1n << 255n) - 1n }),
      fc.bigInt({ min: 0n, max: 40n }),
      nearP,
    );
    const seen = { true: 0, false: 0 };
    fc.assert(
      fc.property(y, fc.boolean(), (value, sign) => {
        const bytes = littleEndian(value | (sign ? 1n << 255n : 0n));
        let sound: boolean;
        try {
          sound = !ed.Point.fromBytes(bytes, false).isSmallOrder();
        } catch {
          sound = false;
        }
        seen[`${sound}`] += 1;
        expect(ed25519InvalidReason(bytes) === undefined).toBe(sound);
      }),
      { numRuns: 300 },
    );
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(20);
  });
});

describe('ed25519SignatureFits', () => {
  it('takes canonical R of large order and S < L', () => {
    expect(ed25519SignatureFits(signature)).toBe(true);
    expect(ed25519SignatureFits(withS(0n))).toBe(true);
    expect(ed25519SignatureFits(withS(ed.L - 1n))).toBe(true);
  });

  it('refuses S ≥ L', () => {
    for (const S of [ed.L, ed.L + 1n, 2n * ed.L, (1n << 256n) - 1n]) {
      expect(ed25519SignatureFits(withS(S))).toBe(false);
    }
  });

  it('refuses R of small order or not canonical', () => {
    for (const R of [...SMALL_ORDER_ENCODINGS, ...NON_CANONICAL_ENCODINGS]) {
      expect(ed25519SignatureFits(withR(R))).toBe(false);
    }
  });

  it('refuses any length but 64', () => {
    expect(ed25519SignatureFits(signature.subarray(0, 63))).toBe(false);
    expect(ed25519SignatureFits(concat(signature, new Uint8Array(1)))).toBe(false);
    expect(ed25519SignatureFits(new Uint8Array())).toBe(false);
  });
});
