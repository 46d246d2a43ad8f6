import { describe, expect, test } from 'vitest';
import { compareHost } from '../../../src/auth/for-tests.ts';
import { canonicalTargetUri } from '../../../src/auth/rfc9421/index.ts';
import { headerFields } from '../../../src/for-tests.ts';
import { deliveryOf } from './support.ts';

const target = canonicalTargetUri('https://buyer.example/hooks');

function compare(
  lines: readonly (readonly [string, string])[],
  url?: string,
  hostCheck: 'strict' | 'off' = 'strict',
) {
  return compareHost(deliveryOf({}, { headers: headerFields(lines), url }), target, hostCheck).kind;
}

describe("the request's authority (verification.md §4.11 to §4.14)", () => {
  test.each([
    ['neither present: nothing to compare', [], undefined],
    ['Host', [['Host', 'buyer.example']], '/hooks'],
    ['Host with the default port', [['Host', 'Buyer.Example:443']], '/hooks'],
    ['Host with a root dot', [['Host', 'buyer.example.']], '/hooks'],
    [':authority', [[':authority', 'buyer.example']], '/hooks'],
    [
      ':authority and Host',
      [
        [':authority', 'buyer.example'],
        ['host', 'BUYER.example'],
      ],
      '/hooks',
    ],
    ['absolute-form', [['Host', 'buyer.example']], 'https://buyer.example/hooks'],
    [
      'absolute-form behind a proxy that ends TLS',
      [['Host', 'buyer.example']],
      'HTTP://buyer.example:80/hooks',
    ],
    [
      'X-Forwarded-Host is nothing',
      [
        ['Host', 'buyer.example'],
        ['X-Forwarded-Host', 'evil.example'],
      ],
      '/hooks',
    ],
  ] as const)('same: %s', (_, lines, url) => {
    expect(compare(lines, url)).toBe('same');
  });

  test.each([
    ['another name', [['Host', 'internal.example']], '/hooks'],
    ['another port', [['Host', 'buyer.example:8443']], '/hooks'],
    ["the other scheme's default port", [['Host', 'buyer.example:80']], '/hooks'],
    ['no name', [['Host', '']], '/hooks'],
    ['a Host that has no canonical form', [['Host', 'a b']], '/hooks'],
    [':authority', [[':authority', 'internal.example']], '/hooks'],
    ['the same other name everywhere', [['Host', 'a.example']], 'http://a.example/hooks'],
    ['absolute-form alone', [], 'http://internal.example/hooks'],
  ] as const)('differs, but not under hostCheck off: %s', (_, lines, url) => {
    expect(compare(lines, url)).toBe('differs');
    expect(compare(lines, url, 'off')).toBe('same');
  });

  test.each([
    [
      'repeated Host',
      [
        ['Host', 'buyer.example'],
        ['Host', 'evil.example'],
      ],
      '/hooks',
    ],
    [
      'the same Host twice',
      [
        ['Host', 'buyer.example'],
        ['Host', 'buyer.example'],
      ],
      '/hooks',
    ],
    ['Host lines that were joined', [['Host', 'buyer.example, buyer.example']], '/hooks'],
    [
      ':authority against Host',
      [
        [':authority', 'buyer.example'],
        ['host', 'evil.example'],
      ],
      '/hooks',
    ],
    [
      'Host against :authority',
      [
        [':authority', 'evil.example'],
        ['host', 'buyer.example'],
      ],
      '/hooks',
    ],
    ['absolute-form naming another authority', [['Host', 'buyer.example']], 'http://evil.example/hooks'],
    ['absolute-form naming ours, Host another', [['Host', 'evil.example']], 'https://buyer.example/hooks'],
    ['absolute-form of another scheme', [['Host', 'buyer.example']], 'ftp://evil.example/hooks'],
    ['absolute-form of another scheme, naming ours', [['Host', 'buyer.example']], 'WS://buyer.example/hooks'],
    ['absolute-form of another scheme alone', [], 'ftp://buyer.example/hooks'],
    ['absolute-form with userinfo', [['Host', 'buyer.example']], 'https://a@buyer.example/hooks'],
    ['absolute-form without a name', [['Host', 'buyer.example']], 'https:///hooks'],
  ] as const)('contradiction, under hostCheck off too: %s', (_, lines, url) => {
    expect(compare(lines, url)).toBe('contradiction');
    expect(compare(lines, url, 'off')).toBe('contradiction');
  });
});
