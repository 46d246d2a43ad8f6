import { describe, expect, it } from 'vitest';
import { duplicateNames } from '../../src/codec/for-tests.ts';

describe('duplicateNames', () => {
  it('finds each once, unescaped, in order of the second occurrence', () => {
    const text = '{"b":1,"a":[{"x":1,"\\u0078":2,"x":3},{"x":0}],"a":0,"b":{"b":0},"c":"c"}';
    expect(duplicateNames(text, 4)).toEqual(['x', 'a', 'b']);
  });

  it('stops at the limit', () => {
    expect(duplicateNames('{"a":1,"a":1,"b":1,"b":1,"c":1,"c":1}', 2)).toEqual(['a', 'b']);
  });

  it('is not confused by strings', () => {
    expect(duplicateNames('{"a":"{\\"a\\":1","b":[":","}"],"c\\\\":1,"c\\\\":2}', 4)).toEqual(['c\\']);
  });

  it('finds none in clean text', () => {
    expect(duplicateNames('{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}', 4)).toEqual([]);
  });
});
