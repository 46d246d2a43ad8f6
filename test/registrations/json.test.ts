import { describe, expect, it } from 'vitest';
import { RegistrationError } from '../../src/registrations/index.ts';
import { argumentsText, checkedRef, contextText } from '../../src/registrations/for-tests.ts';

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(RegistrationError);
    return (error as RegistrationError).code;
  }
  return expect.fail('it was taken');
}

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = { in: value };
  return value;
}

const circular: Record<string, unknown> = {};
circular['self'] = [circular];

describe('limits of a registration', () => {
  // `{"a":"…"}` is 8 bytes around the text.
  it.each([
    ['arguments', argumentsText, 256 * 1024],
    ['context', contextText, 16 * 1024],
  ] as const)('%s: as many bytes of JSON as are said, and no more', (_name, text, most) => {
    expect(text({ a: 'x'.repeat(most - 8) })).toHaveLength(most);
    expect(codeOf(() => text({ a: 'x'.repeat(most - 7) }))).toBe('request_too_large');
    // Bytes, not characters: € is three.
    expect(codeOf(() => text({ a: '€'.repeat(most / 2) }))).toBe('request_too_large');
  });

  it('ref: 1 KiB', () => {
    expect(checkedRef('x'.repeat(1024))).toHaveLength(1024);
    expect(codeOf(() => checkedRef('x'.repeat(1025)))).toBe('request_too_large');
    expect(codeOf(() => checkedRef('€'.repeat(342)))).toBe('request_too_large');
    for (const ref of [undefined, null, 1, {}]) expect(codeOf(() => checkedRef(ref))).toBe('request_invalid');
  });
});

describe('what a registration keeps', () => {
  it('is an own copy of plain JSON; a member that is undefined is left out', () => {
    const given = { a: [1, null, true, { b: 'x' }], left: undefined };
    expect(argumentsText(given)).toBe('{"a":[1,null,true,{"b":"x"}]}');
    expect(argumentsText(JSON.parse('{"__proto__":{"a":1}}'))).toBe('{"__proto__":{"a":1}}');
    expect(argumentsText(Object.assign(Object.create(null) as object, { a: 1 }))).toBe('{"a":1}');
  });

  it.each([
    ['no object', [undefined, null, 'text', 1, [1]]],
    ['what JSON loses', [{ a: Number.NaN }, { a: Infinity }, { a: [undefined] }, { a: 1n }, { a: () => 1 }]],
    [
      'what JSON makes something else of',
      [{ a: new Date(0) }, { a: new Map() }, { a: Object.create({ b: 1 }) }],
    ],
    ['what has no end', [circular, nested(257)]],
  ])('is never %s', (_, values) => {
    for (const value of values) {
      expect(codeOf(() => argumentsText(value))).toBe('request_invalid');
      expect(codeOf(() => contextText(value))).toBe('request_invalid');
    }
  });

  it('says where', () => {
    expect(() => argumentsText({ packages: [{ budget: Number.NaN }] })).toThrow(
      'arguments.packages[0].budget is NaN',
    );
    expect(() => argumentsText({ packages: [{ start: new Date(0) }] })).toThrow(
      /arguments\.packages\[0\]\.start is not a plain object/,
    );
  });

  it('nests as deep as a delivery may', () => {
    expect(argumentsText(nested(256))).toContain('{"in":1}');
  });
});
