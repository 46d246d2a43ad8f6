import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isLongerJson } from '../../src/codec/for-tests.ts';

/** The array, and how many of its items were read. */
function counted(items: readonly unknown[]): { readonly list: unknown; readonly reads: () => number } {
  let reads = 0;
  const list = new Proxy(items, {
    get: (target, name, receiver): unknown => {
      if (typeof name === 'string' && /^\d+$/.test(name)) reads += 1;
      return Reflect.get(target, name, receiver);
    },
  });
  return { list, reads: () => reads };
}

describe('whether a value is longer as JSON', () => {
  it('is never said of one that is not', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(isLongerJson(value, text.length)).toBe(false);
      }),
    );
  });

  it.each<readonly [string, unknown]>([
    ['a text', 'x'.repeat(100)],
    ['a name', { ['x'.repeat(100)]: 1 }],
    ['items', Array.from({ length: 60 }, () => 1)],
    ['members', Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`m${at}`, {}]))],
    ['levels', JSON.parse(`${'['.repeat(60)}${']'.repeat(60)}`)],
  ])('is known of %s to the character', (_what, value) => {
    const { length } = JSON.stringify(value);
    expect(isLongerJson(value, length)).toBe(false);
    expect(isLongerJson(value, length - 1)).toBe(true);
  });

  it('leaves out what JSON leaves out', () => {
    expect(isLongerJson({ a: undefined, ['x'.repeat(100)]: undefined }, 2)).toBe(false);
    expect(isLongerJson(undefined, 4)).toBe(false);
  });

  it('looks at no more than that takes, at a circle too', () => {
    const { list, reads } = counted(Array.from({ length: 100_000 }, () => 1));
    expect(isLongerJson({ a: 'x'.repeat(1_000), list }, 1_000)).toBe(true);
    expect(reads()).toBe(0);
    expect(isLongerJson(list, 1_000)).toBe(true);
    expect(reads()).toBeLessThanOrEqual(501);
    const round: unknown[] = [];
    round.push(round);
    expect(isLongerJson(round, 1_000)).toBe(false);
  });
});
