import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readJson } from '../../src/codec/for-tests.ts';
import { type Form, FORM } from '../reliability/form.ts';
import { ANY_UNIT, formOf, jsonSamples } from './json-texts.ts';

const SHARE: Readonly<Record<Form, number>> = { short: 0.4, rows: 1, long: 10 };

/** Random texts of a test. */
const runs = (rows: number): number => SHARE[FORM] * rows;

/** What JSON.parse says to a text: only whether it takes it, for its names are not to be trusted. */
function takes(text: string, read: (text: string) => unknown): boolean {
  try {
    read(text);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

describe('readJson returns the value that was serialised', () => {
  it('whatever its names are made of', () => {
    fc.assert(
      fc.property(jsonSamples(ANY_UNIT), ({ text, value }) => {
        expect(formOf(readJson(text))).toBe(formOf(value));
      }),
      { numRuns: runs(1000) },
    );
  });

  it('and what JSON.parse returns, where that can be trusted', async () => {
    const program = fileURLToPath(new URL('fixtures/unprimed.ts', import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [
      '--no-warnings',
      program,
      String(runs(1500)),
    ]);
    expect(Number(stdout)).toBeGreaterThan(runs(300));
  });

  it.each([
    ['members in the order of JSON.parse', '{"b":1,"2":1,"a":1,"1":1,"b":2}', ['1', '2', 'b', 'a']],
    ['__proto__ as an own member', '{"\\u005f_proto__":{"x":1},"a":1}', ['__proto__', 'a']],
  ])('%s', (_name, text, names) => {
    const value = readJson(text) as object;
    expect(Object.keys(value)).toEqual(names);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect('x' in value).toBe(false);
  });

  it('a member that Object.prototype has as a constant', () => {
    const name = 'constant-of-somebody';
    // oxlint-disable-next-line no-extend-native -- what somebody else may do
    Object.defineProperty(Object.prototype, name, { value: 1, configurable: true });
    const value = readJson(`{"${name}":2}`);
    Reflect.deleteProperty(Object.prototype, name);
    expect(value).toEqual({ [name]: 2 });
  });
});

describe('readJson accepts what JSON.parse accepts, and nothing else', () => {
  it('for every prefix of a text', () => {
    let taken = 0;
    fc.assert(
      fc.property(jsonSamples(ANY_UNIT), ({ text }) => {
        for (let end = 0; end <= text.length; end += 1) {
          const start = text.slice(0, end);
          const expected = takes(start, JSON.parse);
          if (expected) taken += 1;
          if (takes(start, readJson) !== expected) throw new Error(`${expected}: ${start}`);
        }
      }),
      { numRuns: runs(100) },
    );
    // Each text is a prefix of its own, and none of the others need be JSON.
    expect(taken).toBeGreaterThanOrEqual(runs(100));
  });

  it('for texts with insertions, deletions and replacements', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        ...Array.from('"\\:,{}[]u0123456789abcdefxEe+-. \t\n\r\u00a0\ufeff\u2028\0/\''),
        '//',
        'null',
        'NaN',
      ),
      fc.string({ unit: 'binary', maxLength: 2 }),
    );
    let taken = 0;
    fc.assert(
      fc.property(
        jsonSamples(ANY_UNIT),
        fc.array(fc.tuple(fc.nat(), fc.nat(2), piece), { minLength: 1, maxLength: 3 }),
        ({ text }, changes) => {
          let broken = text;
          for (const [where, length, put] of changes) {
            const at = where % (broken.length + 1);
            broken = broken.slice(0, at) + put + broken.slice(at + length);
          }
          const expected = takes(broken, JSON.parse);
          if (expected) taken += 1;
          expect(takes(broken, readJson)).toBe(expected);
        },
      ),
      { numRuns: runs(4000) },
    );
    expect(taken).toBeGreaterThan(runs(200));
    expect(taken).toBeLessThan(runs(3800));
  });

  it.each([
    '',
    ' ',
    '{"\\u0061"}',
    '{"\\u0061":1,}',
    '{,"\\u0061":1}',
    '{"\\u0061":1 "b":2}',
    '{"\\u0061":1]',
    '["\\u0061",]',
    '[1 2]',
    '{"\\u006":1}',
    '{"\\x61":1}',
    '{"\\u0061\n":1}',
    '{"\\u0061":01}',
    '{"\\u0061":1}\u00a0',
    '\ufeff{"\\u0061":1}',
    '{"\\u0061":1}{}',
    '{"\\u0061',
    '{"\\',
    '{\\u0061:1}',
  ])('not %j', (text) => {
    expect([takes(text, JSON.parse), takes(text, readJson)]).toEqual([false, false]);
  });

  it('says where the error is, and quotes nothing', () => {
    expect(() => readJson('{"secr\\u0065t": topsecret}')).toThrow(new SyntaxError('no JSON at character 16'));
  });
});

describe('readJson takes linear time', () => {
  // Each of these took minutes if any step were quadratic.
  it.each([
    ['names', (count: number) => `{${Array.from({ length: count }, (_, at) => `"\\u0061${at}":0`).join()}}`],
    ['one name again and again', (count: number) => `{${Array(count).fill('"\\u0061":0').join()}}`],
    ['one long name', (count: number) => `{"${'\\u0061'.repeat(count * 2)}":0}`],
    ['names without an end', (count: number) => '{"\\u0061'.repeat(count)],
    ['a long number', (count: number) => `{"\\u0061":${'1'.repeat(count * 10)}}`],
    ['white space', (count: number) => `{"\\u0061"${' '.repeat(count * 10)}:0}`],
    ['items', (count: number) => `{"\\u0061":[${'0,'.repeat(count * 4)}0]}`],
  ])('%s', (_name, of) => {
    const text = of(200_000);
    expect(takes(text, readJson)).toBe(takes(text, JSON.parse));
  });
});
