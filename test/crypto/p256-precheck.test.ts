import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { p256InvalidReason, p256SignatureFits } from '../../src/crypto/for-tests.ts';
import { bigEndian, concat, p, pointAbove, rs } from './make.ts';

const point = (x: bigint, y: bigint): Uint8Array => concat(Uint8Array.of(4), bigEndian(x), bigEndian(y));
const G = p.G.toAffine();

describe('p256InvalidReason', () => {
  it('finds none in any multiple of the base point', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: p.N - 1n }), (k) => {
        const { x, y } = p.G.multiplyUnsafe(k).toAffine();
        expect(p256InvalidReason(point(x, y))).toBeUndefined();
      }),
      { numRuns: 20 },
    );
  });

  it('finds points off the curve, (0, 0) among them', () => {
    expect(p256InvalidReason(point(G.x, G.y + 1n))).toContain('not a point of the curve');
    expect(p256InvalidReason(point(G.x + 1n, G.y))).toContain('not a point of the curve');
    expect(p256InvalidReason(point(0n, 0n))).toContain('not a point of the curve');
  });

  it('finds coordinates that are not reduced, though their residues are a point', () => {
    const { x, y } = pointAbove(5n).toAffine();
    expect(p256InvalidReason(point(x, y))).toBeUndefined();
    expect(p256InvalidReason(point(x + p.P, y))).toContain('outside the field');
    expect(p256InvalidReason(point(x, p.P))).toContain('outside the field');
  });
});

describe('p256SignatureFits', () => {
  it('takes r and s in [1, n − 1]', () => {
    for (const value of [1n, p.N / 2n, p.N - 1n]) {
      expect(p256SignatureFits(rs(value, 1n))).toBe(true);
      expect(p256SignatureFits(rs(1n, value))).toBe(true);
    }
  });

  it('refuses 0 and n and above', () => {
    for (const value of [0n, p.N, p.N + 1n, p.P, (1n << 256n) - 1n]) {
      expect(p256SignatureFits(rs(value, 1n))).toBe(false);
      expect(p256SignatureFits(rs(1n, value))).toBe(false);
    }
  });

  it('refuses any length but 64', () => {
    for (const length of [0, 32, 63, 65, 70, 71, 72]) {
      expect(p256SignatureFits(new Uint8Array(length).fill(1))).toBe(false);
    }
  });
});
