import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { equalBytes } from '../../src/crypto/equal.ts';
import { flip } from './make.ts';

describe('equalBytes', () => {
  it('is true for the same bytes, false with any bit flipped', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 80 }), fc.nat(), (bytes, bit) => {
        expect(equalBytes(bytes, new Uint8Array(bytes))).toBe(true);
        expect(equalBytes(bytes, flip(bytes, bit))).toBe(false);
      }),
    );
  });

  it('is false for a prefix, true for nothing and nothing', () => {
    const bytes = Uint8Array.of(1, 2, 0);
    expect(equalBytes(bytes, bytes.subarray(0, 2))).toBe(false);
    expect(equalBytes(bytes.subarray(0, 2), bytes)).toBe(false);
    expect(equalBytes(new Uint8Array(), new Uint8Array())).toBe(true);
  });
});
