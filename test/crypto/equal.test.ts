import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { equalBytes } from '../../src/crypto/for-tests.ts';
import { flip } from './make.ts';

/** The bytes, and how many of them were read. */
function counted(bytes: Uint8Array): { readonly bytes: Uint8Array; readonly reads: () => number } {
  let reads = 0;
  const get = (target: Uint8Array, name: string | symbol): unknown => {
    if (typeof name === 'string' && /^\d+$/.test(name)) reads += 1;
    return Reflect.get(target, name, target);
  };
  return { bytes: new Proxy(bytes, { get }), reads: () => reads };
}

describe('equalBytes', () => {
  it('is true for the same bytes, false with any bit flipped', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 80 }), fc.nat(), (bytes, bit) => {
        expect(equalBytes(bytes, new Uint8Array(bytes))).toBe(true);
        expect(equalBytes(bytes, flip(bytes, bit))).toBe(false);
      }),
    );
  });

  it('reads all of both, wherever they differ: its time says nothing of where', () => {
    const secret = Uint8Array.from({ length: 32 }, (_, at) => at);
    for (let at = -1; at < secret.length; at += 1) {
      const given = secret.map((byte, index) => (index === at ? byte ^ 1 : byte));
      const [one, two] = [counted(secret), counted(given)];
      expect(equalBytes(one.bytes, two.bytes)).toBe(at < 0);
      expect([one.reads(), two.reads()]).toEqual([32, 32]);
    }
  });

  it('is false for a prefix, true for nothing and nothing', () => {
    const bytes = Uint8Array.of(1, 2, 0);
    expect(equalBytes(bytes, bytes.subarray(0, 2))).toBe(false);
    expect(equalBytes(bytes.subarray(0, 2), bytes)).toBe(false);
    expect(equalBytes(new Uint8Array(), new Uint8Array())).toBe(true);
  });
});
