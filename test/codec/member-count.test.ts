import { readFile } from 'node:fs/promises';
import * as fc from 'fast-check';
import wabt from 'wabt';
import { describe, expect, it, vi } from 'vitest';
import { countMembers, TOO_DEEP } from '../../src/codec/member-count.ts';
import { MODULE, simdCounter } from '../../src/codec/member-count-simd.ts';

const MOST = 64;
const encoder = new TextEncoder();

const counter = simdCounter();
if (!counter) throw new Error('this runtime has no WebAssembly with SIMD');
const simd = (text: string): number => counter(encoder.encode(text), MOST);
const plain = (text: string): number => countMembers(encoder.encode(text), MOST);

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
    fc.assert(
      fc.property(text, (body) => {
        const exact = plain(body);
        expect(exact).toBeGreaterThanOrEqual(0);
        // It may only suspect depth, and may not where the text has no brackets for it.
        const opening = body.split(/[[{]/).length - 1;
        if (opening <= MOST) expect(simd(body)).toBe(exact);
        else expect([exact, TOO_DEEP]).toContain(simd(body));
      }),
      { numRuns: 3000 },
    );
  });

  it.each([62, 63, 64, 65, 127, 128, 129])(
    'count alike after %i backslashes, escaped quotes behind',
    (length) => {
      for (const quotes of ['', '\\"', '\\":{', '\\\\']) {
        const body = `{"${'\\\\'.repeat(length)}${quotes}":1,"a":{"b:":2}}`;
        expect([simd(body), simd(`  ${body}`)]).toEqual([3, 3]);
        expect(plain(body)).toBe(3);
      }
    },
  );

  it('count alike over the end of a chunk, in a string, in an escape and outside', () => {
    const chunk = 65_536 - 64;
    for (const shift of [-3, -2, -1, 0, 1, 2]) {
      const value = `${'x'.repeat(chunk + shift - '{"k":"'.length)}\\"\\\\:{`;
      const body = `{"k":"${value}","l":[${'{"m":0},'.repeat(20_000)}1]}`;
      expect([simd(body), plain(body)]).toEqual([20_002, 20_002]);
    }
  });

  it('neither misses text that nests too deep', () => {
    for (const at of [0, 1, 63, 64, 65_472, 100_000]) {
      const deep = `{"a":"${'x'.repeat(at)}","b":${'['.repeat(MOST)}${']'.repeat(MOST)}}`;
      const fits = `{"a":"${'x'.repeat(at)}","b":${'['.repeat(MOST - 1)}${']'.repeat(MOST - 1)}}`;
      expect([simd(deep), plain(deep)]).toEqual([TOO_DEEP, TOO_DEEP]);
      expect([simd(fits), plain(fits)]).toContain(2);
      expect(plain(fits)).toBe(2);
    }
    expect(simd('['.repeat(1_000_000))).toBe(TOO_DEEP);
  });

  it('a text leaves nothing behind for the next', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (garbage) => {
        counter(garbage, MOST);
        expect(simd('{"a":{"b":"\\":"}}')).toBe(2);
      }),
    );
  });

  it('takes a view for its own bytes, and no bytes at all', () => {
    const whole = encoder.encode('::{"a":1}::');
    expect(counter(whole.subarray(2, 9), MOST)).toBe(1);
    expect(counter(new Uint8Array(), MOST)).toBe(0);
  });
});

describe('the SIMD counter', () => {
  it('is member-count.wat, assembled', async () => {
    const source = await readFile(new URL('../../src/codec/member-count.wat', import.meta.url), 'utf8');
    const assembler = await wabt();
    const assembled = assembler.parseWat('member-count.wat', source, { simd: true, bulk_memory: true });
    expect(MODULE).toBe(Buffer.from(assembled.toBinary({}).buffer).toString('base64'));
  });

  it('is done without where WebAssembly is missing, or bytes may not be compiled', () => {
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
