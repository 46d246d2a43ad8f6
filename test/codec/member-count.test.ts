import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countMembers, type MemberCount } from '../../src/codec/for-tests.ts';

const MOST = 64;
const encoder = new TextEncoder();

const count = (text: string): MemberCount | undefined => countMembers(encoder.encode(text), MOST);
const found = (members: number, escapedNames = false): MemberCount => ({ members, escapedNames });

/** JSON whose strings are full of what is counted outside them, and of what ends them or does not. */
const tricky = fc.string({ unit: fc.constantFrom('"', '\\', ':', '{', '[', '}', ']', 'a', 'é', '😀', '\n') });
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    tricky,
    fc.double({ noNaN: true }),
    fc.constantFrom(null, true, {}, []),
    fc.array(tie('json'), { maxLength: 6 }),
    fc.dictionary(tricky, tie('json'), { maxKeys: 6 }),
  ),
}));
const text = fc
  .tuple(json, fc.constantFrom(undefined, 1, '\t'), fc.nat(64))
  .map(([value, space, indent]) => ' '.repeat(indent) + JSON.stringify(value, null, space));

/** Members and levels of a value, by walking it. */
function walked(value: unknown): { readonly members: number; readonly levels: number } {
  if (typeof value !== 'object' || value === null) return { members: 0, levels: 0 };
  const inner = Object.values(value).map(walked);
  const own = Array.isArray(value) ? 0 : inner.length;
  return {
    members: inner.reduce((sum, { members }) => sum + members, own),
    levels: 1 + Math.max(0, ...inner.map(({ levels }) => levels)),
  };
}

describe('check 14: members and levels', () => {
  it('are as many as the value has', () => {
    let deep = 0;
    fc.assert(
      fc.property(text, fc.nat(6), (body, most) => {
        const { members, levels } = walked(JSON.parse(body));
        if (levels > most) deep += 1;
        expect(countMembers(encoder.encode(body), most)?.members).toBe(levels > most ? undefined : members);
      }),
      { numRuns: 3000 },
    );
    expect(deep).toBeGreaterThan(100);
  });

  it.each([62, 63, 64, 65, 127, 128, 129])('after %i backslashes, escaped quotes behind', (length) => {
    for (const quotes of ['', '\\"', '\\":{', '\\\\']) {
      const body = `{"${'\\\\'.repeat(length)}${quotes}":1,"a":{"b:":2}}`;
      expect([count(body), count(`  ${body}`)]).toEqual([found(3, true), found(3, true)]);
    }
  });

  it('of text that nests too deep are not told', () => {
    for (const at of [0, 1, 100_000]) {
      const deep = `{"a":"${'x'.repeat(at)}","b":${'['.repeat(MOST)}${']'.repeat(MOST)}}`;
      const fits = `{"a":"${'x'.repeat(at)}","b":${'['.repeat(MOST - 1)}${']'.repeat(MOST - 1)}}`;
      expect([count(deep), count(fits)]).toEqual([undefined, found(2)]);
    }
    expect(count('['.repeat(1_000_000))).toBeUndefined();
  });

  it('of a view are those of its own bytes, and no bytes have none', () => {
    const whole = encoder.encode('::{"a":1}::');
    expect(countMembers(whole.subarray(2, 9), MOST)).toEqual(found(1));
    expect(countMembers(new Uint8Array(), MOST)).toEqual(found(0));
  });
});

describe('check 14: a backslash in a member name', () => {
  const isSeen = (body: string): boolean | undefined => count(body)?.escapedNames;

  it.each([
    ['an escape', '{"a\\u0062":1}'],
    ['an escape of an escape', '{"\\\\":1}'],
    ['a quote', '{"\\"":1}'],
    ['white space before the colon', '{"\\n" \t\r\n :1}'],
    ['in the first of many', `{"\\n":1${',"a":2'.repeat(100)}}`],
    ['in the last of many', `{${'"a":2,'.repeat(100)}"\\n":1}`],
    ['nested', '{"a":[1,{"b":{"\\n":1}}]}'],
    ['behind a value that has one', '{"a":"\\n","\\n":1}'],
  ])('is seen: %s', (_name, body) => {
    expect(isSeen(body)).toBe(true);
  });

  it.each([
    ['a value', '{"a":"\\n"}'],
    ['a value that looks like a name', '{"a":"\\":"}'],
    ['an item', '{"a":["\\n","\\\\"],"b":{"c":"d"}}'],
    ['a value before a name', `{"a":"\\n"${' '.repeat(70)},${' '.repeat(70)}"b":1}`],
  ])('is not seen: %s', (_name, body) => {
    expect(isSeen(body)).toBe(false);
  });

  it('is looked for in strings of nothing else', () => {
    for (let pairs = 1; pairs <= 100; pairs += 1) {
      const string = `"${'\\\\'.repeat(pairs)}"`;
      expect(isSeen(`{${string}:1}`)).toBe(true);
      expect(isSeen(`{"a":${string},"b":1}`)).toBe(false);
    }
  });

  it('is what the names of valid JSON say', () => {
    let written = 0;
    fc.assert(
      fc.property(json, (value) => {
        let expected = false;
        const body = JSON.stringify(value, (name, member: unknown) => {
          // The root and items of arrays come by names without any.
          expected ||= JSON.stringify(name).includes('\\');
          return member;
        });
        if (expected) written += 1;
        expect(isSeen(body)).toBe(expected);
      }),
      { numRuns: 1000 },
    );
    expect(written).toBeGreaterThan(100);
  });
});
