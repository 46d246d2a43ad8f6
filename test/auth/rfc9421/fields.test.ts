import * as fc from 'fast-check';
import { parseDictionary } from 'structured-headers';
import { describe, expect, test } from 'vitest';
import { type Member, readDictionary } from '../../../src/auth/for-tests.ts';

function members(field: string): ReadonlyMap<string, Member> {
  const result = readDictionary(field);
  if (typeof result === 'string') throw new Error(result);
  return result;
}

const UNKNOWN = 'has a string that does not end, or an item that RFC 8941 does not know';

describe('the scanner in front of structured-headers (verification.md §3.2)', () => {
  test('raw text is kept byte for byte, without the white space around a member', () => {
    const field = 'a=1 ,\t sig1=( "x"   "y;z, )" ); created=1;n="\\"" , b';
    expect(members(field).get('sig1')?.raw).toBe('( "x"   "y;z, )" ); created=1;n="\\""');
    expect([...members(field).keys()]).toEqual(['a', 'sig1', 'b']);
  });

  test('a comma or a semicolon inside a string separates nothing', () => {
    const found = members('a="x, b=1;c";p="y, ;z\\"", d=1');
    expect([...found.keys()]).toEqual(['a', 'd']);
    expect(found.get('a')?.rawParameters).toEqual(new Map([['p', '"y, ;z\\""']]));
  });

  test('percent signs in tokens, at signs in strings', () => {
    expect(members('a=b%c;p="%";q="@1"').get('a')?.rawParameters.size).toBe(2);
  });

  test("parameters of an inner list's components are not its own", () => {
    const found = members('a=("x";p=1 "y";p=1);p=1.0;q');
    expect(found.get('a')?.rawParameters).toEqual(
      new Map([
        ['p', '1.0'],
        ['q', ''],
      ]),
    );
  });

  test.each([
    ['padded standard', 'a=:-_8=:', '-_8='],
    ['unpadded base64url', 'a=:-_8:;p', '-_8'],
    ['standard alphabet', 'a=:+/8=:', '+/8='],
  ])('a byte sequence in %s is a byte sequence', (_, field, base64) => {
    expect(members(field).get('a')?.base64).toBe(base64);
    expect(members(field).get('a')?.value[0]).toEqual(Uint8Array.of(251, 255).buffer);
  });

  test('1,024 members are read, 1,025 are not', () => {
    const field = (count: number): string => Array.from({ length: count }, (_, at) => `a${at}`).join(', ');
    expect(members(field(1024)).size).toBe(1024);
    expect(readDictionary(field(1025))).toBe('has more than 1024 members');
  });

  test.each([
    ['a label twice', 'a=1, b=2, a=3', 'has a label twice'],
    ['a label twice, once without a value', 'a, b, a=1', 'has a label twice'],
    ['a parameter twice', 'a=1;p=1;p=2', 'has a parameter twice'],
    ['a parameter twice, once without a value', 'a=1;p;p=2', 'has a parameter twice'],
    ['a parameter twice after white space', 'a=1;p=1;  p=2', 'has a parameter twice'],
    ['a parameter of a component twice', 'a=("x";p;p)', 'has a parameter twice'],
    ['a string that does not end', 'a="x, b=1', UNKNOWN],
    ['a date of RFC 9651', 'a=@1', UNKNOWN],
    ['a date of RFC 9651 in a parameter', 'a=1;p=@1;q=2', UNKNOWN],
    ['a display string of RFC 9651', 'a=%"x"', UNKNOWN],
    ['a parameter twice, hidden behind one', 'a=();x=%"\\";p=1;y="\\"";p=2;y="a"', UNKNOWN],
  ])('%s is refused', (_, field, detail) => {
    expect(readDictionary(field)).toBe(detail);
  });

  test.each([
    ['empty', ''],
    ['white space', '  '],
    ['trailing comma', 'a=1,'],
    ['leading comma', ', a=1'],
    ['two commas', 'a=1,, b=2'],
    ['upper-case label', 'A=1'],
    ['text after a member', 'a=1 b'],
    ['inner list without its end', 'a=("x"'],
    ['no space between components', 'a=("x""y")'],
    ['16 digits', 'a=1234567890123456'],
    ['latin-1 in a string', 'a="\u00e9"'],
    ['NUL', 'a=1\u0000'],
    ['NUL in a string', 'a="\u0000"'],
    ['line feed', 'a=1\nb=2'],
    ['other characters in a byte sequence', 'a=:YQ!=:'],
    ['byte sequence without its end', 'a=:YQ=='],
    ['a quote in a byte sequence', 'a=:Y"Q:, b=:Y"Q:'],
    ['a comma in a byte sequence', 'a=:YQ,b=YQ:'],
  ])('%s is not a dictionary', (_, field) => {
    expect(typeof readDictionary(field)).toBe('string');
  });

  const pieces = [
    'sig1',
    'a',
    '=',
    '(',
    ')',
    ';',
    ',',
    ' ',
    '"',
    '\\',
    ':',
    'YQ',
    '-_',
    '==',
    '1',
    '.5',
    '?1',
    '*',
    '\t',
    '%"',
  ];
  const piece = fc.constantFrom(...pieces);

  test('never throws, whatever the string', () => {
    const any = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(piece).map((pieces) => pieces.join('')),
    );
    fc.assert(
      fc.property(any, (field) => {
        const result = readDictionary(field);
        expect(typeof result === 'string' || result.size > 0).toBe(true);
      }),
      { numRuns: 5000 },
    );
  });

  test('what is accepted is what structured-headers reads, with nothing hidden and every raw text in place', () => {
    let accepted = 0;
    const item = fc.constantFrom('1', '"x, ;\\""', 'tok:en', ':YQ==:', '("a" "b";p)', '?0', '1.5');
    const parameters = fc.uniqueArray(fc.constantFrom(';p', ';q=1', '; r="a,b;c"'));
    const member = fc
      .tuple(fc.constantFrom('a', 'b', 'c', 'sig1'), item, parameters)
      .map(([label, value, tail]) => [label, `${value}${tail.join('')}`] as const);
    fc.assert(
      fc.property(fc.array(member, { minLength: 1, maxLength: 4 }), (sent) => {
        const field = sent.map((pair) => pair.join('=')).join(', ');
        if (new Set(sent.map(([label]) => label)).size < sent.length) {
          expect(readDictionary(field)).toBe('has a label twice');
          return;
        }
        accepted += 1;
        const found = [...members(field).values()];
        expect(found.map(({ label, value }) => [label, value])).toEqual([...parseDictionary(field)]);
        expect(found.map(({ label, raw }) => [label, raw])).toEqual(sent);
      }),
      { numRuns: 2000 },
    );
    expect(accepted).toBeGreaterThan(200);
  });
});
