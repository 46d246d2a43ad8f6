import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, readJson } from '../../src/codec/for-tests.ts';

const canonical = (text: string): string => canonicalJson(readJson(text));

describe('canonical JSON (RFC 8785)', () => {
  it('RFC 8785 §3.2.2: literals, numbers, strings', () => {
    const sample = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`;
    expect(canonical(sample)).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });

  it('RFC 8785 §3.2.3: members sorted by UTF-16 code units', () => {
    const sample = String.raw`{
      "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"
    }`;
    const order = [...canonical(sample).matchAll(/:"([^"]+)"/g)].map(([, name]) => name);
    expect(order).toEqual([
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ]);
  });

  it.each([
    ['-0', '0'],
    ['0.0', '0'],
    ['1.0', '1'],
    ['1e21', '1e+21'],
    ['1e20', '100000000000000000000'],
    ['5e-324', '5e-324'],
    ['1.7976931348623157e308', '1.7976931348623157e+308'],
    ['1e-7', '1e-7'],
    ['0.000001', '0.000001'],
    ['9007199254740993', '9007199254740992'],
  ])('RFC 8785 appendix B: %s is written %s', (text, expected) => {
    expect(canonical(text)).toBe(expected);
  });

  it('sorts names like indexes as text', () => {
    expect(canonical('{"10":1,"9":2,"a":3,"1":4}')).toBe('{"1":4,"10":1,"9":2,"a":3}');
  });

  it('keeps the order of arrays and sorts inside them', () => {
    expect(canonical('{"z":[{"b":1,"a":2},[3,1,2]],"a":{}}')).toBe('{"a":{},"z":[{"a":2,"b":1},[3,1,2]]}');
  });

  it('keeps __proto__ as a member', () => {
    expect(canonical('{"b":1,"__proto__":{"a":1}}')).toBe('{"__proto__":{"a":1},"b":1}');
  });

  it('writes lone surrogates as their escapes', () => {
    expect(canonical('{"a":"\\uD800"}')).toBe('{"a":"\\ud800"}');
  });

  it('tells a number too large for a double from null', () => {
    expect(canonical('[1e400,-1e400,null]')).toBe('[Infinity,-Infinity,null]');
  });

  it('gives one text for another order of members and other white space', () => {
    expect(canonical('{ "b" : [ 1.50 ],\n"a":"\\u0041" }')).toBe(canonical('{"a":"A","b":[1.5]}'));
    expect(canonical('{"a":1}')).not.toBe(canonical('{"a":"1"}'));
  });

  it('is idempotent, and changes nothing of the value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalJson(value);
        expect(readJson(text)).toEqual(readJson(JSON.stringify(value)));
        expect(canonical(text)).toBe(text);
      }),
    );
  });
});
