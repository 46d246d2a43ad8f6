import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseSignatureInputFast, parseSignatureInputFull } from '../../../src/auth/for-tests.ts';
import { parseSignatureInput } from '../../../src/auth/rfc9421/index.ts';

const TAIL = ';created=1;expires=2;nonce="n";keyid="k";alg="a";tag="t"';
const MALFORMED = { kind: 'refused', code: 'webhook_signature_header_malformed', check: 1 };

describe('Signature-Input (verification.md §2.1)', () => {
  test('components, parameters and raw text of sig1', () => {
    expect(parseSignatureInput(`sig1=("@method" "content-type")${TAIL}`)).toEqual({
      kind: 'signature-input',
      components: ['@method', 'content-type'],
      parameters: { created: 1, expires: 2, nonce: 'n', keyid: 'k', alg: 'a', tag: 't' },
      raw: `("@method" "content-type")${TAIL}`,
    });
  });

  test('exactly one label is processed, wherever it stands; others are ignored', () => {
    const field = `a=("x";sf);created=1.5;alg=tok, sig1=("@method")${TAIL}, b=()`;
    expect(parseSignatureInput(field)).toMatchObject({ components: ['@method'], raw: `("@method")${TAIL}` });
  });

  test('unusual white space and escapes are kept in the raw text', () => {
    const raw = '( "@method"  "x" ); created=1;keyid="a\\"b\\\\c"';
    expect(parseSignatureInput(`  sig1=${raw}  `)).toMatchObject({
      raw,
      components: ['@method', 'x'],
      parameters: { created: 1, keyid: 'a"b\\c' },
    });
  });

  test('missing parameters are left to check 2, an empty list to check 6', () => {
    expect(parseSignatureInput('sig1=()')).toEqual({
      kind: 'signature-input',
      components: [],
      parameters: {},
      raw: '()',
    });
  });

  test('unknown parameters of any type are ignored', () => {
    expect(parseSignatureInput('sig1=("x");created=1;other=tok;flag;n=1.5')).toMatchObject({
      parameters: { created: 1 },
    });
  });

  test('a component with parameters is named with them', () => {
    expect(parseSignatureInput('sig1=("x";sf "y";key="a";req)')).toMatchObject({
      components: ['"x";sf', '"y";key;req'],
    });
  });

  test('negative integers and 15 digits are integers', () => {
    expect(parseSignatureInput('sig1=();created=-1;expires=999999999999999')).toMatchObject({
      parameters: { created: -1, expires: 999_999_999_999_999 },
    });
  });

  test.each([
    ['a member that is not an inner list', 'sig1="x"'],
    ['a member that is a flag', 'sig1'],
    ['a member that is a byte sequence', 'sig1=:YQ==:'],
    ['another member that is not an inner list', `sig1=("x")${TAIL}, b=1`],
    ['no label sig1', `sig2=("x")${TAIL}`],
    ['an upper-case label', `Sig1=("x")${TAIL}`],
    ['created as a decimal', 'sig1=("x");created=1.0'],
    ['created as a string', 'sig1=("x");created="1"'],
    ['created as a flag', 'sig1=("x");created'],
    ['created as a token', 'sig1=("x");created=now'],
    ['created as a date', 'sig1=("x");created=@1'],
    ['created with 16 digits', 'sig1=("x");created=1000000000000000'],
    ['created with an exponent', 'sig1=("x");created=1e9'],
    ['created with a plus sign', 'sig1=("x");created=+1'],
    ['expires as a decimal', 'sig1=("x");created=1;expires=2.5'],
    ['nonce as a token', 'sig1=("x");nonce=abc'],
    ['nonce as a byte sequence', 'sig1=("x");nonce=:YQ==:'],
    ['keyid as a token', 'sig1=("x");keyid=abc'],
    ['keyid as an integer', 'sig1=("x");keyid=1'],
    ['alg as a token', 'sig1=("x");alg=ed25519'],
    ['tag as a flag', 'sig1=("x");tag'],
    ['a duplicated parameter', `sig1=("x")${TAIL};created=1`],
    ['a duplicated unknown parameter', `sig1=("x")${TAIL};o;o`],
    ['a duplicated label', `sig1=("x")${TAIL}, sig1=("x")${TAIL}`],
    ['another duplicated label', `sig1=("x")${TAIL}, b=(), b=()`],
    ['a component that is a token', `sig1=("@method" x)${TAIL}`],
    ['components without quotes', `sig1=(@method @target-uri)${TAIL}`],
    ['a component that is an integer', `sig1=(1)${TAIL}`],
    ['a list that does not end', 'sig1=("x"'],
    ['latin-1', `sig1=("x")${TAIL};o="\u00e9"`],
    ['NUL', `sig1=("x")${TAIL}\u0000`],
    ['nothing', ''],
  ])('%s is refused', (_, field) => {
    expect(parseSignatureInput(field)).toMatchObject(MALFORMED);
  });

  test('never throws, whatever the string', () => {
    const pieces = [
      'sig1=(',
      '"@method"',
      ')',
      ' ',
      ';created=',
      '1',
      ';keyid="',
      '"',
      ',',
      'a',
      '.0',
      '\\',
      ';tag=',
    ];
    const built = fc.array(fc.constantFrom(...pieces), { maxLength: 20 }).map((all) => all.join(''));
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), built), (field) => {
        expect(['signature-input', 'refused']).toContain(parseSignatureInput(field).kind);
      }),
      { numRuns: 3000 },
    );
  });

  test('the fast path leaves anything but a plain semicolon to the full parser', () => {
    const field = `sig1=("@method")${TAIL}`;
    expect(parseSignatureInputFast(field)).toBeDefined();
    for (const { index } of field.matchAll(/;/g)) {
      for (const other of ',: x') {
        const changed = field.slice(0, index) + other + field.slice(index + 1);
        expect(parseSignatureInputFast(changed), changed).toBeUndefined();
      }
    }
  });

  test('the fast path gives what the full parser gives', () => {
    const name = fc.constantFrom('"@method"', '"content-type"', '"x"', '"X"', '"y";sf', '');
    const parameters = [
      ';created=1',
      ';created=01',
      ';created=-1',
      ';created=1.0',
      ';expires=2',
      ';keyid="k, ;]"',
      ';nonce=""',
      ';keyid="\\""',
      ';tag="t"',
      ';alg=x',
      '; alg="y"',
      ';other="o"',
      ';expires=1234567890123456',
      ' ',
    ];
    const parameter = fc.constantFrom(...parameters);
    const field = fc
      .tuple(
        fc.array(name, { maxLength: 4 }),
        fc.array(parameter, { maxLength: 6 }),
        fc.constantFrom('', ', b=()'),
      )
      .map(([names, tail, rest]) => `sig1=(${names.join(' ')})${tail.join('')}${rest}`);
    fc.assert(
      fc.property(field, (text) => {
        expect(parseSignatureInput(text)).toEqual(parseSignatureInputFull(text));
      }),
      { numRuns: 5000 },
    );
  });

  test('the fast path gives what the full parser gives: all six parameters in any order, some of them odd', () => {
    const list = fc.constantFrom(
      '("@method" "@target-uri" "@authority" "content-type" "content-digest")',
      '("@method" "@target-uri" "@authority" "content-type" "content-digest" "x")',
      '("@method" "content-type")',
      '("@method"  "content-type")',
      '("@method", "x")',
      '(@method)',
      '()',
      '',
    );
    const digits = fc.oneof(
      fc.nat().map(String),
      fc.string({ unit: fc.constantFrom(...Array.from('0123456789')), maxLength: 17 }),
    );
    const integer = fc.oneof(
      { weight: 20, arbitrary: digits },
      fc.constantFrom('-1', '1.0', '+1', ' 1', '"1"'),
    );
    const text = fc.oneof(
      {
        weight: 20,
        arbitrary: fc.string({ unit: 'grapheme-ascii' }).map((value) => value.replaceAll(/["\\]/g, '')),
      },
      fc.string({ unit: 'binary', maxLength: 4 }),
    );
    const quotedText = text.map((value) => `"${value}"`);
    const six = fc.tuple(
      integer.map((value) => `created=${value}`),
      integer.map((value) => `expires=${value}`),
      quotedText.map((value) => `nonce=${value}`),
      quotedText.map((value) => `keyid=${value}`),
      fc.oneof({ weight: 9, arbitrary: quotedText }, fc.constant('token')).map((value) => `alg=${value}`),
      quotedText.map((value) => `tag=${value}`),
    );
    const shuffled = six.chain((all) => fc.shuffledSubarray(all, { minLength: 5 }));
    const end = fc.constantFrom('', '', '', '', ' ', ';', ';created=1', ';t="x"', ', b=()', 'x');
    let fast = 0;
    fc.assert(
      fc.property(list, shuffled, end, (covered, parameters, tail) => {
        const field = `sig1=${covered};${parameters.join(';')}${tail}`;
        if (parseSignatureInputFast(field)) fast += 1;
        expect(parseSignatureInput(field)).toEqual(parseSignatureInputFull(field));
      }),
      { numRuns: 5000 },
    );
    expect(fast).toBeGreaterThan(50);
  });

  test.each([
    ['the usual list', '("@method" "@target-uri" "@authority" "content-type" "content-digest")'],
    ['another list', '("@method" "content-type")'],
  ])('%s takes the fast path', (_, list) => {
    const field = `sig1=${list}${TAIL}`;
    expect(parseSignatureInputFast(field)).toEqual(parseSignatureInputFull(field));
  });
});
