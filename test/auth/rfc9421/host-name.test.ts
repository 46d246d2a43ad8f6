import { describe, expect, test } from 'vitest';
import { canonicalAuthority } from '../../../src/auth/for-tests.ts';
import { TargetUriError } from '../../../src/auth/rfc9421/index.ts';

describe('authority of a Host field (verification.md §4.2 to §4.4)', () => {
  test.each([
    ['Buyer.Example', 'https', 'buyer.example'],
    ['buyer.example:443', 'https', 'buyer.example'],
    ['buyer.example:443', 'http', 'buyer.example:443'],
    ['buyer.example:80', 'http', 'buyer.example'],
    ['buyer.example.', 'https', 'buyer.example'],
    ['bücher.example:8443', 'https', 'xn--bcher-kva.example:8443'],
    ['[2001:DB8::A]:443', 'https', '[2001:db8::a]'],
  ] as const)('%s under %s is %s', (host, scheme, expected) => {
    expect(canonicalAuthority(host, scheme)).toBe(expected);
  });

  test.each([
    '',
    ':443',
    'user@buyer.example',
    'buyer.example/a',
    'a.example, b.example',
    'a b',
    '[::1',
    '::1',
    'a:b',
  ])('%j is refused', (host) => {
    expect(() => canonicalAuthority(host, 'https')).toThrow(TargetUriError);
  });
});
