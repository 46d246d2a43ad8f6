import { p256 } from '@noble/curves/nist.js';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { derSignature } from '../../src/crypto/for-tests.ts';
import { p, rs } from './make.ts';

describe('derSignature', () => {
  it('writes the shortest INTEGERs, with a zero before a high bit', () => {
    expect([...derSignature(rs(1n, 0x80n))]).toEqual([0x30, 7, 2, 1, 1, 2, 2, 0, 0x80]);
    expect([...derSignature(rs(0x7fn, 0x100n))]).toEqual([0x30, 7, 2, 1, 0x7f, 2, 2, 1, 0]);
  });

  it('is at most 72 bytes', () => {
    expect(derSignature(rs(p.N - 1n, p.N - 1n))).toHaveLength(72);
  });

  it('agrees with a DER writer for any r and s', () => {
    const size = fc.nat({ max: 255 });
    const scalar = fc
      .tuple(fc.bigInt({ min: 1n, max: p.N - 1n }), size)
      .map(([value, shift]) => value >> BigInt(shift))
      .filter((value) => value > 0n);
    fc.assert(
      fc.property(scalar, scalar, (r, s) => {
        expect([...derSignature(rs(r, s))]).toEqual([...new p256.Signature(r, s).toBytes('der')]);
      }),
    );
  });
});
