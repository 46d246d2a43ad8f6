import { expect, test } from 'vitest';
import { checkRevocation } from '../../src/config/for-tests.ts';
import type { SenderRevocation } from '../../src/index.ts';

test.each([
  [undefined],
  [{}],
  [{ url: 'https://seller.example/r.json', discover: false, revokedKids: ['k'] }],
])('revocation: %j is taken', (given) => {
  expect(() => checkRevocation('senders[0].revocation', given, false)).not.toThrow();
});

test.each([
  ['a list of key ids in its place', ['k']],
  ['null', null],
  ['a misspelt member', { revokedKeys: ['k'] }],
  ['a relative URL', { url: '/r.json' }],
  ['an http URL', { url: 'http://seller.example/r.json' }],
  ['discover that is no boolean', { discover: 'no' }],
  ['one key id that is not an array', { revokedKids: 'k' }],
  ['key ids that are no strings', { revokedKids: [1] }],
])('revocation: %s is a ConfigError', (_what, given) => {
  expect(() => checkRevocation('senders[0].revocation', given as unknown as SenderRevocation, false)).toThrow(
    /^senders\[0\]\.revocation/,
  );
});

test('an http URL is taken for development', () => {
  expect(() => checkRevocation('r', { url: 'http://127.0.0.1:1/r' }, true)).not.toThrow();
});
