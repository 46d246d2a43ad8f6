import { assert, constantFrom, property, string } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { storableJson } from '../../src/for-tests.ts';

const storable = (text: string): string => text.replaceAll('\0', '\uFFFD').toWellFormed();

describe('storableJson', () => {
  it('returns the same object when everything can be stored', () => {
    const value = { a: ['\\u0000', '😀', '\\'], b: { c: null } };
    expect(storableJson(value)).toBe(value);
  });

  it('keeps the last of members whose names become equal', () => {
    expect(storableJson({ 'a\0': 1, 'a\ud800': 2, b: 3 })).toEqual({ 'a\uFFFD': 2, b: 3 });
  });

  it('replaces NUL and lone surrogates, in names too, and nothing else', () => {
    const text = string({
      unit: constantFrom('\0', '\\', '\ud83d', '\ude00', '😀', 'u0000', '"', 'a'),
    });
    assert(
      property(text, text, (name, value) => {
        const changed = storableJson({ [name]: value, deep: [[value]] });
        expect(changed).toEqual({ [storable(name)]: storable(value), deep: [[storable(value)]] });
      }),
      { numRuns: 2000 },
    );
  });
});
