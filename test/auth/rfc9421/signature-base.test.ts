import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalTargetUri, signatureBase } from '../../../src/auth/rfc9421/index.ts';
import { REQUIRED_COMPONENTS } from '../../../src/auth/for-tests.ts';
import { decodeBase64 } from '../../../src/codec/for-tests.ts';
import { headerFields } from '../../../src/for-tests.ts';
import { B26, TEST_KEY_ED25519 } from './published.ts';
import { engine } from './support.ts';

const facts = {
  method: 'post',
  target: canonicalTargetUri('https://example.com/foo?param=Value&Pet=dog'),
  headers: headerFields([
    ['Date', 'Tue, 20 Apr 2021 02:07:55 GMT'],
    ['Content-Type', 'application/json'],
    ['Content-Length', '18'],
    ['X-List', ' a '],
    ['X-List', 'b'],
    ['X-Empty', ''],
    ['X-Latin', '\u00e9'],
    ['X-Feed', 'a\n"@method": GET'],
    ['X;sf', 'a'],
  ]),
};

describe('signature base (RFC 9421 §2.5)', () => {
  test('the request of RFC 9421 B.2.6 has its base, and its signature verifies', async () => {
    const base = signatureBase(B26.components, facts, B26.params) ?? '';
    expect(base).toBe(B26.base);
    const key = await engine.importKey(TEST_KEY_ED25519);
    const signature = decodeBase64(B26.signature);
    if (typeof key === 'string' || !signature) throw new Error('the RFC is right');
    expect(await engine.verify(key, new TextEncoder().encode(base), signature)).toBe(true);
  });

  test.each([
    ['@method', 'POST'],
    ['@target-uri', 'https://example.com/foo?param=Value&Pet=dog'],
    ['@authority', 'example.com'],
    ['@scheme', 'https'],
    ['@path', '/foo'],
    ['@query', '?param=Value&Pet=dog'],
    ['@request-target', '/foo?param=Value&Pet=dog'],
    ['x-list', 'a, b'],
    ['x-empty', ''],
  ])('%s', (component, value) => {
    expect(signatureBase([component], facts, '()')).toBe(`"${component}": ${value}\n"@signature-params": ()`);
  });

  test('an absent query is a single question mark (RFC 9421 §2.2.7), an empty one too', () => {
    for (const url of ['https://example.com', 'https://example.com?']) {
      const bare = { ...facts, target: canonicalTargetUri(url) };
      expect(signatureBase(['@query', '@path'], bare, '()')).toMatch(/^"@query": \?\n"@path": \/\n/);
    }
  });

  test('no component at all leaves the parameters', () => {
    expect(signatureBase([], facts, '();created=1')).toBe('"@signature-params": ();created=1');
  });

  test.each([
    ['a field that the request lacks', 'x-absent'],
    ['an unknown derived component', '@status'],
    ['a derived component that takes a parameter', '@query-param'],
    ['the parameters themselves', '@signature-params'],
    ['a name in upper case', 'Date'],
    ['a name that is no field name', 'x;sf'],
    ['an empty name', ''],
    ['a value that is not ASCII', 'x-latin'],
    ['a value that would forge a line', 'x-feed'],
  ])('%s has no base', (_, component) => {
    expect(signatureBase([component], facts, '()')).toBeUndefined();
  });

  test('parameters that would forge a line have no base', () => {
    expect(signatureBase(['@method'], facts, '()\n"@path": /')).toBeUndefined();
  });

  test('the required five at once have the lines that each of them has by itself', () => {
    const printable = fc.string({ unit: 'grapheme-ascii' });
    const lines = fc.array(fc.oneof({ weight: 5, arbitrary: printable }, fc.string({ unit: 'binary' })), {
      maxLength: 2,
    });
    fc.assert(
      fc.property(fc.constantFrom('POST', 'post'), lines, lines, (method, type, digest) => {
        const headers = headerFields([
          ...type.map((line) => ['Content-Type', line] as const),
          ...digest.map((line) => ['Content-Digest', line] as const),
        ]);
        const request = { method, target: facts.target, headers };
        const oneByOne = signatureBase([...REQUIRED_COMPONENTS], request, B26.params);
        expect(signatureBase(REQUIRED_COMPONENTS, request, B26.params)).toBe(oneByOne);
      }),
      { numRuns: 1000 },
    );
  });
});
