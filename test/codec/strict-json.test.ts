import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_DEPTH, parseStrictObject } from '../../src/codec/for-tests.ts';
import { ANY_UNIT, formOf, jsonSamples } from './json-texts.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const parse = (text: string) => parseStrictObject(bytes(text));

function valueOf(text: string): Record<string, unknown> {
  const result = parse(text);
  if (!result.ok) throw new Error(result.detail);
  return result.value;
}

function detailOf(input: string | Uint8Array): string {
  const result = typeof input === 'string' ? parse(input) : parseStrictObject(input);
  if (result.ok) throw new Error('expected a refusal');
  return result.detail;
}

const nested = (depth: number): string => `${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`;

describe('check 14: the body is UTF-8 JSON, an object', () => {
  it('gives what JSON.parse gives', () => {
    const text = '{"a":[1,-2.5e3,true,false,null,"x:\\"{[\\\\",{"b":{}}],"c:":"\\u00e9é😀"}';
    expect(valueOf(text)).toEqual(JSON.parse(text));
  });

  it('takes white space around and inside', () => {
    expect(valueOf(' \r\n\t{ "a" : [ ] , "b" : { } } \n')).toEqual({ a: [], b: {} });
  });

  it.each(['[]', '[{"a":1}]', '"text"', '1', 'true', 'null'])('refuses the non-object %s', (text) => {
    expect(detailOf(text)).toBe('the body is not a JSON object');
  });

  it.each([
    '',
    ' ',
    '{',
    '{"a"}',
    '{"a":1,}',
    "{'a':1}",
    '{"a":1}{"b":2}',
    '{"a":1} trailing',
    '{"a":01}',
    '{"a":NaN}',
    '{"a":"\n"}',
    '{"a":"unterminated',
    '{"a":"\\',
    '{"a":"\\x"}',
    '// comment\n{}',
    '}{',
    '\u0000{}',
  ])('refuses what is not JSON: %j', (text) => {
    expect(detailOf(text)).toBe('the body is not JSON');
  });

  it('never quotes the body in the detail', () => {
    expect(detailOf('{"secret": topsecret}')).not.toContain('secret');
  });

  it('refuses a BOM', () => {
    expect(detailOf('\uFEFF{"a":1}')).toBe('the body begins with a BOM');
  });

  it.each([
    ['a stray continuation byte', [0x80]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['a surrogate as UTF-8', [0xed, 0xa0, 0x80]],
    ['a truncated sequence', [0xe2, 0x82]],
    ['a code point over U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
    ['latin-1', [0xe9]],
  ])('refuses %s', (_name, inside) => {
    const body = Uint8Array.from([...bytes('{"a":"'), ...inside, ...bytes('"}')]);
    expect(detailOf(body)).toBe('the body is not UTF-8');
  });

  it('refuses UTF-16', () => {
    expect(parseStrictObject(Uint8Array.from(Buffer.from('{"a":1}', 'utf16le'))).ok).toBe(false);
  });

  it('reads the view, not the buffer behind it', () => {
    const whole = bytes('xx{"a":1}yy');
    expect(parseStrictObject(whole.subarray(2, 9))).toEqual({ ok: true, value: { a: 1 }, text: '{"a":1}' });
  });
});

describe('check 14: no object at any depth has a key twice', () => {
  it.each([
    ['plain', '{"a":1,"a":2}'],
    ['with equal values', '{"a":1,"a":1}'],
    ['escaped', '{"a":1,"\\u0061":2}'],
    ['both escaped', '{"\\u0061":1,"\\u0061":2}'],
    ['nested', '{"x":{"y":{"a":1,"a":2}}}'],
    ['in an array', '{"x":[1,{"a":1,"a":2}]}'],
    ['in an array in an array', '{"x":[[[{"a":{},"a":[]}]]]}'],
    ['in the value that is dropped', '{"x":{"a":1,"a":2},"y":0}'],
    ['called __proto__', '{"__proto__":1,"__proto__":2}'],
    ['called __proto__, objects', '{"__proto__":{},"__proto__":{}}'],
    ['empty', '{"":1,"":2}'],
    ['like an index', '{"1":1,"1":2}'],
    ['surrogate pair, escaped', '{"😀":1,"\\ud83d\\ude00":2}'],
    ['lone surrogate', '{"\\ud800":1,"\\uD800":2}'],
    ['with a colon and a quote in it', '{"a:\\"":1,"a:\\"":2}'],
    ['three times', '{"a":1,"a":2,"a":3}'],
  ])('refuses a duplicate: %s', (_name, text) => {
    expect(detailOf(text)).toContain('an object in the body has a name twice: ');
  });

  it.each([
    ['in two objects', '{"x":{"a":1},"y":{"a":2},"a":3}'],
    ['in objects of one array', '{"x":[{"a":1},{"a":2}]}'],
    ['of another case', '{"a":1,"A":2}'],
    ['of another normal form', '{"\\u00e9":1,"e\\u0301":2}'],
    ['1 and 01', '{"1":1,"01":2}'],
    ['as a value', '{"a":"a","b":"\\"a\\":1"}'],
  ])('takes one name %s', (_name, text) => {
    expect(valueOf(text)).toEqual(JSON.parse(text));
  });

  it('names at most 4, each sanitized, and says how many there are besides', () => {
    const twice = (name: string): string => `${JSON.stringify(name)}:1,${JSON.stringify(name)}:2`;
    expect(detailOf(`{${['a', 'b\u202Eevil', 'c'.repeat(40), 'd', 'e'].map(twice).join(',')}}`)).toBe(
      `an object in the body has a name twice: "a", "<sanitized:1>", "${'c'.repeat(32)}", "d", <...1 more>`,
    );
    expect(detailOf(`{${['a', 'b', 'c', 'd'].map(twice).join(',')}}`)).not.toContain('more');
    const many = Array.from({ length: 300 }, (_, at) => `n${at}`);
    expect(detailOf(`{${many.map(twice).join(',')}}`)).toMatch(/"n3", <\.\.\.296 more>$/);
  });
});

describe('check 14: __proto__ is harmless', () => {
  it('is an own property, never the prototype', () => {
    const value = valueOf('{"__proto__":{"polluted":true},"a":{"__proto__":null,"constructor":1}}');
    expect(Object.keys(value)).toEqual(['__proto__', 'a']);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(Object.getPrototypeOf(value['a'])).toBe(Object.prototype);
    expect('polluted' in value).toBe(false);
    expect('polluted' in {}).toBe(false);
  });
});

describe('check 14: a polluted Object.prototype', () => {
  it('adds no member to a body', () => {
    const key = 'added-by-somebody';
    // oxlint-disable-next-line no-extend-native -- what somebody else may do
    const add = (): void => void Object.defineProperty(Object.prototype, key, ADDED);
    const parseThen = (text: string): boolean => {
      add();
      try {
        return parse(text).ok;
      } finally {
        Reflect.deleteProperty(Object.prototype, key);
      }
    };
    expect(parseThen('{"a":{"b":1},"c":[{}]}')).toBe(true);
    expect(parseThen(`{"a":{"${key}":1}}`)).toBe(true);
    expect(parseThen('{"a":1,"a":2}')).toBe(false);
  });
});

const ADDED: PropertyDescriptor = { value: 1, enumerable: true, configurable: true, writable: true };

const DEEP = 'the body nests deeper than 256 levels';

describe('check 14: extreme bodies', () => {
  it(`takes depth ${MAX_DEPTH} and refuses one more`, () => {
    expect(parse(nested(MAX_DEPTH)).ok).toBe(true);
    expect(detailOf(nested(MAX_DEPTH + 1))).toBe(DEEP);
    const arrays = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
    expect(parse(arrays(MAX_DEPTH)).ok).toBe(true);
    expect(parse(arrays(MAX_DEPTH + 1)).ok).toBe(false);
  });

  it(`counts exactly near depth ${MAX_DEPTH}, where a count of whole blocks only suspects`, () => {
    // So many brackets in 64 bytes, that one level more for each of those that open would be too deep.
    const crowded = (depth: number) =>
      `{"a":${'['.repeat(depth - 2)}${Array(100).fill('[]').join(',')}${']'.repeat(depth - 2)}}`;
    for (let depth = 240; depth <= MAX_DEPTH; depth += 1)
      expect(parse(crowded(depth)).ok, `depth ${depth}`).toBe(true);
    expect(detailOf(crowded(MAX_DEPTH + 1))).toBe(DEEP);
  });

  it('counts no brackets inside strings', () => {
    expect(parse(`{"a":"${'[{'.repeat(1000)}"}`).ok).toBe(true);
  });

  it('counts depth, not brackets', () => {
    expect(parse(`{"a":[${Array(1000).fill('[]').join(',')}]}`).ok).toBe(true);
  });

  it.each([
    ['objects 10^5 deep', nested(100_000)],
    ['arrays 10^5 deep', `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['10^6 open brackets', '['.repeat(1_000_000)],
  ])('refuses %s', (_name, text) => {
    expect(detailOf(text)).toBe(DEEP);
  });

  it('takes 10^6 elements', () => {
    expect(valueOf(`{"a":[${'0,'.repeat(999_999)}0]}`)['a']).toHaveLength(1_000_000);
  });

  it('takes 10^5 members, and finds the one that is there twice', () => {
    const members = Array.from({ length: 100_000 }, (_, index) => `"k${index}":${index}`).join(',');
    expect(parse(`{${members}}`).ok).toBe(true);
    expect(detailOf(`{${members},"k77":0}`)).toContain('"k77"');
  });

  it('takes numbers of 10^4 digits', () => {
    expect(valueOf(`{"a":${'9'.repeat(10_000)},"b":0.${'3'.repeat(10_000)}}`)).toEqual({
      a: Infinity,
      b: 1 / 3,
    });
  });

  it('leaves lone surrogates intact', () => {
    expect(valueOf('{"a":"\\ud800","\\udfff":1}')).toEqual({ a: '\ud800', '\udfff': 1 });
  });
});

describe('strict JSON agrees with JSON.parse', () => {
  const object = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ maxDepth: 6 }));

  it('on clean input', () => {
    fc.assert(
      fc.property(object, fc.constantFrom(undefined, 1, '\t'), (value, space) => {
        // As text: JSON has no -0, which is a value like any other to `JSON.stringify` and written 0.
        const text = JSON.stringify(value, null, space);
        expect(JSON.stringify(valueOf(text))).toBe(JSON.stringify(value));
      }),
      { examples: [[{ a: [-0] }, undefined]] },
    );
  });

  it('takes nothing that JSON.parse refuses, and never throws', () => {
    let [taken, refused] = [0, 0];
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), fc.json().map(bytes), broken(object)), (body) => {
        const result = parseStrictObject(body);
        if (result.ok) {
          taken += 1;
          expect(() => JSON.parse(new TextDecoder().decode(body)) as unknown).not.toThrow();
        } else refused += 1;
      }),
      { numRuns: 500 },
    );
    expect(Math.min(taken, refused)).toBeGreaterThan(20);
  });

  it('finds every injected duplicate, plain and escaped, at every depth', () => {
    fc.assert(
      fc.property(object, fc.nat(), fc.boolean(), (value, pick, escaped) => {
        const injected = withDuplicate(value, pick, escaped);
        fc.pre(injected !== undefined);
        expect(detailOf(injected ?? '')).toContain('has a name twice');
      }),
      { numRuns: 1000 },
    );
  });
});

describe('strict JSON with escapes in member names', () => {
  it('takes what is an object and has no name twice, and gives the value that was written', () => {
    const seen: Record<string, number> = {};
    fc.assert(
      fc.property(jsonSamples(ANY_UNIT), ({ text, value, twice }) => {
        const result = parse(text);
        const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value);
        const expected = twice ? 'has a name twice: "' : isRecord ? formOf(value) : 'not a JSON object';
        expect(result.ok ? formOf(result.value) : result.detail).toContain(expected);
        const kind = twice ? 'twice' : isRecord ? 'taken' : 'no object';
        seen[kind] = (seen[kind] ?? 0) + 1;
      }),
      { numRuns: 3000 },
    );
    expect(Object.keys(seen).toSorted()).toEqual(['no object', 'taken', 'twice']);
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(100);
  });

  // The second of each is the first with a name escaped.
  it.each([
    ['{"a":1,"a":2}', '{"\\u0061":1,"a":2}'],
    ['{"x":{"y":{"a":1,"a":2}}}', '{"x":{"y":{"a":1,"\\u0061":2}}}'],
    ['{"x":[1,{"a":1,"a":2}]}', '{"\\u0078":[1,{"a":1,"a":2}]}'],
    ['{"a":1,}', '{"\\u0061":1,}'],
    ['{"a":1}{"b":2}', '{"\\u0061":1}{"b":2}'],
    ['{"a":01}', '{"\\u0061":01}'],
    ['{"a":"\n"}', '{"\\u0061":"\n"}'],
    ['\uFEFF{"a":1}', '\uFEFF{"\\u0061":1}'],
    ['[{"a":1}]', '[{"\\u0061":1}]'],
    [nested(MAX_DEPTH), nested(MAX_DEPTH).replace('a', '\\u0061')],
    [nested(MAX_DEPTH + 1), nested(MAX_DEPTH + 1).replace('a', '\\u0061')],
    [`{"a":x,"b":${'['.repeat(300)}`, `{"\\u0061":x,"b":${'['.repeat(300)}`],
    ['{"__proto__":1,"__proto__":2}', '{"__proto__":1,"\\u005f_proto__":2}'],
  ])('gives the same result for %j as for %j', (plain, escaped) => {
    const result = parse(plain);
    expect({ ...parse(escaped), text: '' }).toEqual({ ...result, text: '' });
  });

  it('a polluted Object.prototype adds no member', () => {
    // oxlint-disable-next-line no-extend-native -- what somebody else may do
    Object.defineProperty(Object.prototype, 'added', ADDED);
    const results = ['{"\\u0061":{"b":1}}', '{"\\u0061dded":1}', '{"added":1,"\\u0061dded":2}'].map(parse);
    Reflect.deleteProperty(Object.prototype, 'added');
    expect(results.map(({ ok }) => ok)).toEqual([true, true, false]);
  });
});

/** Valid JSON with one byte changed. */
function broken(object: fc.Arbitrary<unknown>): fc.Arbitrary<Uint8Array> {
  return fc.tuple(object, fc.nat(), fc.nat(255)).map(([value, at, byte]) => {
    const body = bytes(JSON.stringify(value));
    body[at % body.length] = byte;
    return body;
  });
}

/** JSON text of `value` with one member of one object written twice. */
function withDuplicate(value: unknown, pick: number, escaped: boolean): string | undefined {
  const total = countMembers(value);
  if (total === 0) return undefined;
  let left = pick % total;
  const escape = (name: string): string =>
    `"${Array.from({ length: name.length }, (_, at) => `\\u${name.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`;
  const write = (item: unknown): string => {
    if (Array.isArray(item)) return `[${item.map(write).join(',')}]`;
    if (typeof item !== 'object' || item === null) return JSON.stringify(item);
    const members = Object.entries(item).flatMap(([name, member]) => {
      const hit = left === 0;
      left -= 1;
      const written = `${JSON.stringify(name)}:${write(member)}`;
      return hit ? [written, `${escaped ? escape(name) : JSON.stringify(name)}:null`] : [written];
    });
    return `{${members.join(',')}}`;
  };
  return write(value);
}

function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((sum: number, item) => sum + countMembers(item), own);
}
