import { readFile } from 'node:fs/promises';
import * as fc from 'fast-check';
import wabt from 'wabt';
import { describe, expect, it, vi } from 'vitest';
import { countMembers, type MemberCount, MODULE, simdCounter } from '../../src/codec/for-tests.ts';

const MOST = 64;
const encoder = new TextEncoder();

const counter = simdCounter();
if (!counter) throw new Error('this runtime has no WebAssembly with SIMD');
const simd = (text: string): MemberCount | undefined => counter(encoder.encode(text), MOST);
const plain = (text: string): MemberCount | undefined => countMembers(encoder.encode(text), MOST);
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

describe('check 14: the SIMD counter and the plain one', () => {
  it('count alike in valid JSON, wherever blocks of 64 bytes end', () => {
    let compared = 0;
    fc.assert(
      fc.property(text, (body) => {
        const exact = plain(body);
        expect(exact).toBeDefined();
        // It may only suspect depth, and may not where the text has no brackets for it.
        const opening = body.split(/[[{]/).length - 1;
        if (opening <= MOST) compared += 1;
        if (opening <= MOST) expect(simd(body)).toEqual(exact);
        else expect([exact, undefined]).toContainEqual(simd(body));
      }),
      { numRuns: 3000 },
    );
    expect(compared).toBeGreaterThan(1000);
  });

  it.each([62, 63, 64, 65, 127, 128, 129])(
    'count alike after %i backslashes, escaped quotes behind',
    (length) => {
      for (const quotes of ['', '\\"', '\\":{', '\\\\']) {
        const body = `{"${'\\\\'.repeat(length)}${quotes}":1,"a":{"b:":2}}`;
        expect([simd(body), simd(`  ${body}`)]).toEqual([found(3, true), found(3, true)]);
        expect(plain(body)).toEqual(found(3, true));
      }
    },
  );

  it('count alike over the end of a chunk, in a string, in an escape and outside', () => {
    const chunk = 65_536 - 64;
    for (const shift of [-3, -2, -1, 0, 1, 2]) {
      const value = `${'x'.repeat(chunk + shift - '{"k":"'.length)}\\"\\\\:{`;
      const body = `{"k":"${value}","l":[${'{"m":0},'.repeat(20_000)}1]}`;
      expect([simd(body), plain(body)]).toEqual([found(20_002), found(20_002)]);
    }
  });

  it('both notice text that nests too deep', () => {
    for (const at of [0, 1, 63, 64, 65_472, 100_000]) {
      const deep = `{"a":"${'x'.repeat(at)}","b":${'['.repeat(MOST)}${']'.repeat(MOST)}}`;
      const fits = `{"a":"${'x'.repeat(at)}","b":${'['.repeat(MOST - 1)}${']'.repeat(MOST - 1)}}`;
      expect([simd(deep), plain(deep)]).toEqual([undefined, undefined]);
      expect([found(2), undefined]).toContainEqual(simd(fits));
      expect(plain(fits)).toEqual(found(2));
    }
    expect(simd('['.repeat(1_000_000))).toBeUndefined();
  });

  it('a text has no effect on the next', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (garbage) => {
        counter(garbage, MOST);
        expect(simd('{"a":{"b":"\\":"}}')).toEqual(found(2));
      }),
    );
  });

  it('reads a view by its own bytes, and accepts no bytes', () => {
    const whole = encoder.encode('::{"a":1}::');
    expect(counter(whole.subarray(2, 9), MOST)).toEqual(found(1));
    expect(counter(new Uint8Array(), MOST)).toEqual(found(0));
  });
});

describe('check 14: a backslash in a member name', () => {
  const both = (body: string): boolean[] =>
    [simd(body), plain(body)].map((count) => count?.escapedNames ?? false);

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
    expect(both(body)).toEqual([true, true]);
  });

  it.each([
    ['a value', '{"a":"\\n"}'],
    ['a value that looks like a name', '{"a":"\\":"}'],
    ['an item', '{"a":["\\n","\\\\"],"b":{"c":"d"}}'],
    ['a value before a name', `{"a":"\\n"${' '.repeat(70)},${' '.repeat(70)}"b":1}`],
  ])('is not seen: %s', (_name, body) => {
    expect(both(body)).toEqual([false, false]);
  });

  it('is seen or not wherever blocks and chunks end between it, the quote and the colon', () => {
    const chunk = 65_536 - 64;
    for (const block of [128, 192, chunk]) {
      for (let shift = -70; shift <= 2; shift += 1) {
        const start = `{"p":"${'x'.repeat(block + shift)}",`;
        for (const [inside, space] of [
          [0, 0],
          [64, 0],
          [0, 64],
          [70, 70],
        ] as const) {
          const string = `"\\n${'y'.repeat(inside)}"${' '.repeat(space)}`;
          expect(both(`${start}${string}:1}`)).toEqual([true, true]);
          expect(both(`${start}"q":${string}}`)).toEqual([false, false]);
          expect(both(`${start}"q":[${string},"r"],"s":1}`)).toEqual([false, false]);
        }
      }
    }
  });

  it('is looked for in strings of nothing else', () => {
    for (let pairs = 1; pairs <= 100; pairs += 1) {
      const string = `"${'\\\\'.repeat(pairs)}"`;
      expect(both(`{${string}:1}`)).toEqual([true, true]);
      expect(both(`{"a":${string},"b":1}`)).toEqual([false, false]);
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
        expect(plain(body)?.escapedNames).toBe(expected);
      }),
      { numRuns: 1000 },
    );
    expect(written).toBeGreaterThan(100);
  });
});

describe('the SIMD counter', () => {
  it('is member-count.wat, assembled', async () => {
    const source = await readFile(new URL('../../src/codec/member-count.wat', import.meta.url), 'utf8');
    const assembler = await wabt();
    const assembled = assembler.parseWat('member-count.wat', source, { simd: true, bulk_memory: true });
    expect(MODULE).toBe(Buffer.from(assembled.toBinary({}).buffer).toString('base64'));
  });

  it('is not used when WebAssembly is missing or may not be compiled', () => {
    const Module = new Proxy(Object, {
      construct() {
        throw new Error('Wasm code generation disallowed by embedder');
      },
    });
    const { Instance } = Reflect.get(globalThis, 'WebAssembly') as Parameters<typeof simdCounter>[0] & object;
    expect(simdCounter({ Module, Instance })).toBeUndefined();
    vi.stubGlobal('WebAssembly', undefined);
    const without = simdCounter();
    vi.unstubAllGlobals();
    expect(without).toBeUndefined();
  });
});
