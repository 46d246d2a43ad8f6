import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalTargetUri, TargetUriError } from '../../../src/auth/rfc9421/index.ts';

function refusal(url: string): unknown {
  try {
    return canonicalTargetUri(url);
  } catch (error) {
    return error;
  }
}

describe('canonical @target-uri (verification.md §4.1 to §4.8)', () => {
  test.each([
    ['1. scheme lower case', 'HTTPS://buyer.example/a', 'https://buyer.example/a', 'buyer.example'],
    ['2. host lower case', 'https://Buyer.EXAMPLE/A', 'https://buyer.example/A', 'buyer.example'],
    ['2. one root dot removed', 'https://buyer.example./a', 'https://buyer.example/a', 'buyer.example'],
    [
      '2. root dot before a port',
      'https://buyer.example.:8443/',
      'https://buyer.example:8443/',
      'buyer.example:8443',
    ],
    [
      '2. raw non-ASCII host',
      'https://bücher.example/',
      'https://xn--bcher-kva.example/',
      'xn--bcher-kva.example',
    ],
    [
      '2. non-ASCII upper case',
      'https://BÜCHER.example/',
      'https://xn--bcher-kva.example/',
      'xn--bcher-kva.example',
    ],
    [
      '2. UTS-46 non-transitional',
      'https://faß.example/',
      'https://xn--fa-hia.example/',
      'xn--fa-hia.example',
    ],
    [
      '2. A-label kept',
      'https://XN--bcher-kva.example/',
      'https://xn--bcher-kva.example/',
      'xn--bcher-kva.example',
    ],
    [
      '2. ideographic root dot',
      'https://bücher.example。/',
      'https://xn--bcher-kva.example/',
      'xn--bcher-kva.example',
    ],
    ['2. IPv6 hex lower case', 'https://[2001:DB8::1]/', 'https://[2001:db8::1]/', '[2001:db8::1]'],
    ['2. IPv6 with a port', 'https://[::1]:8443/', 'https://[::1]:8443/', '[::1]:8443'],
    ['2. IPv6, default port', 'https://[::1]:443/', 'https://[::1]/', '[::1]'],
    [
      '2. IPv6 not compressed',
      'https://[0:0:0:0:0:0:0:1]/',
      'https://[0:0:0:0:0:0:0:1]/',
      '[0:0:0:0:0:0:0:1]',
    ],
    [
      '2. IPv6, dotted end',
      'https://[::FFFF:192.0.2.1]/',
      'https://[::ffff:192.0.2.1]/',
      '[::ffff:192.0.2.1]',
    ],
    ['2. IPv4', 'http://127.0.0.1:8080/', 'http://127.0.0.1:8080/', '127.0.0.1:8080'],
    ['2. underscore', 'https://a_b.example/', 'https://a_b.example/', 'a_b.example'],
    [
      '3. userinfo stripped',
      'https://user:pa%20ss@buyer.example/a',
      'https://buyer.example/a',
      'buyer.example',
    ],
    ['3. empty userinfo stripped', 'https://@buyer.example/a', 'https://buyer.example/a', 'buyer.example'],
    ['4. default port, https', 'https://buyer.example:443/a', 'https://buyer.example/a', 'buyer.example'],
    ['4. default port, http', 'http://buyer.example:80/a', 'http://buyer.example/a', 'buyer.example'],
    [
      "4. the other scheme's port kept",
      'https://buyer.example:80/',
      'https://buyer.example:80/',
      'buyer.example:80',
    ],
    ['4. port kept', 'http://buyer.example:443/', 'http://buyer.example:443/', 'buyer.example:443'],
    ['4. empty port', 'https://buyer.example:/a', 'https://buyer.example/a', 'buyer.example'],
    ['4. leading zeros', 'https://buyer.example:0443/a', 'https://buyer.example/a', 'buyer.example'],
  ])('%s: %s', (_, url, targetUri, authority) => {
    expect(canonicalTargetUri(url)).toEqual({ targetUri, authority });
  });

  test.each([
    ['5. empty path', '', '/'],
    ['5. empty path before a query', '?a=1', '/?a=1'],
    ['5. empty path before a fragment', '#a', '/'],
    ['5. dot segments', '/a/./b/../c', '/a/c'],
    ['5. dot segments at the end', '/a/b/..', '/a/'],
    ['5. a dot at the end', '/a/b/.', '/a/b/'],
    ['5. above the root', '/../../a', '/a'],
    ['5. only dots', '/..', '/'],
    ['5. more dots are a name', '/a/.../b', '/a/.../b'],
    ['5. a dot in a name', '/a/.b/c.', '/a/.b/c.'],
    ['5. consecutive slashes kept', '/a//b///c', '/a//b///c'],
    ['5. leading slashes kept', '//a', '//a'],
    ['5. dot segments among slashes', '//a/..//b', '///b'],
    ['5. a dot segment takes an empty one', '/a//../b', '/a/b'],
    ['6. hex upper case', '/a%2fb%c3%a9', '/a%2Fb%C3%A9'],
    ['6. unreserved decoded', '/%7Euser/%41%2d%5F%2E%30', '/~user/A-_.0'],
    ['6. reserved kept', '/%2F%3f%23%40%3A', '/%2F%3F%23%40%3A'],
    ['6. decoded once', '/%2541', '/%2541'],
    ['6. everything else as it is', "/a'b(c)*!$&+,;=:@%zz%", "/a'b(c)*!$&+,;=:@%zz%"],
    ['5 and 6. encoded dots are dots', '/a/%2E%2e/b', '/b'],
    ['7. query byte for byte', "/?b=%7e&a='%2f'/../x", "/?b=%7e&a='%2f'/../x"],
    ['7. empty query kept', '/a?', '/a?'],
    ['7. second question mark', '/a?b?c', '/a?b?c'],
    ['8. fragment stripped', '/a?b#c?d/../#e', '/a?b'],
    ['8. empty fragment stripped', '/a#', '/a'],
  ])('%s: %s', (_, rest, expected) => {
    expect(canonicalTargetUri(`https://buyer.example${rest}`).targetUri).toBe(
      `https://buyer.example${expected}`,
    );
  });

  test.each([
    ['relative', '/hooks'],
    ['no scheme', 'buyer.example/hooks'],
    ['one slash', 'https:/buyer.example/'],
    ['another scheme', 'ftp://buyer.example/'],
    ['a scheme that is none', '1https://buyer.example/'],
    ['empty', ''],
    ['empty host', 'https:///hooks'],
    ['empty host with a port', 'https://:443/'],
    ['empty host with userinfo', 'https://user@/'],
    ['only a root dot', 'https://./'],
    ['two root dots', 'https://buyer.example../'],
    ['empty label', 'https://buyer..example/'],
    ['leading dot', 'https://.buyer.example/'],
    ['empty label after UTS-46', 'https://\u00ad.example/'],
    ['two ideographic dots', 'https://bücher。。example/'],
    ['bare IPv6', 'https://2001:db8::1/'],
    ['bare IPv6 loopback', 'https://::1/'],
    ['missing closing bracket', 'https://[2001:db8::1/'],
    ['text after the bracket', 'https://[::1]x/'],
    ['zone id', 'https://[fe80::1%25eth0]/'],
    ['zone id, raw', 'https://[fe80::1%eth0]/'],
    ['IPv6 of nine groups', 'https://[1:2:3:4:5:6:7:8:9]/'],
    ['IPv6 of seven groups', 'https://[1:2:3:4:5:6:7]/'],
    ['IPv6 compressed twice', 'https://[1::2::3]/'],
    ['IPv6 of five digits', 'https://[12345::]/'],
    ['IPv6 with a dotted start', 'https://[192.0.2.1::]/'],
    ['IPv6 with a dotted octet above 255', 'https://[::ffff:192.0.2.256]/'],
    ['empty brackets', 'https://[]/'],
    ['IPvFuture', 'https://[v1.a]/'],
    ['percent in the host', 'https://b%75yer.example/'],
    ['percent in a non-ASCII host', 'https://b%C3%BCcher.ü.example/'],
    ['full-width percent', 'https://％41.example/'],
    ['full-width slash', 'https://buyer.example／evil.example/'],
    ['sub-delims in the host', 'https://buyer!.example/'],
    ['backslash', 'https://buyer.example\\@evil.example/'],
    ['backslash before a path', 'https://buyer.example\\a'],
    ['two at signs', 'https://a@b@buyer.example/'],
    ['number in full-width digits', 'https://１２７.0.0.1/'],
    ['hexadecimal number in full-width digits', 'https://0x７f.1/'],
    ['port that is not a number', 'https://buyer.example:8a/'],
    ['negative port', 'https://buyer.example:-1/'],
    ['port above 65535', 'https://buyer.example:65536/'],
    ['two ports', 'https://buyer.example:1:2/'],
    ['port beyond numbers', `https://buyer.example:${'9'.repeat(400)}/`],
    ['space', 'https://buyer.example/a b'],
    ['leading space', ' https://buyer.example/'],
    ['line feed', 'https://buyer.example/a\n"@method": GET'],
    ['tab in the host', 'https://buyer\t.example/'],
    ['NUL', 'https://buyer.example/\u0000'],
    ['lone surrogate', 'https://buyer.example/\ud800'],
    ['backslash in the path', 'https://buyer.example/hooks\\a'],
    ['backslash after the host', 'https://buyer.example\\hooks'],
    ['percent-encoding that makes another', 'https://buyer.example/%%34%31'],
  ])('%s is refused', (_, url) => {
    const error = refusal(url);
    expect(error).toBeInstanceOf(TargetUriError);
    expect(error).toMatchObject({ name: 'TargetUriError', code: 'webhook_target_uri_malformed' });
  });

  const part = (chars: string) => fc.string({ unit: fc.constantFrom(...Array.from(chars)), maxLength: 14 });
  const url = fc
    .tuple(
      fc.constantFrom('https', 'HTTP', 'http'),
      fc.oneof(
        part('aZ0.-_ßü:'),
        fc.domain(),
        fc.ipV6().map((address) => `[${address}]`),
      ),
      fc.constantFrom('', ':', ':443', ':80', ':00080', ':8443'),
      part('/.%2eE41a7é~'),
      part('?%a/.#'),
    )
    .map(([scheme, host, port, path, rest]) => `${scheme}://${host}${port}/${path}${rest}`);

  test('canonicalization is idempotent, and nothing but TargetUriError is thrown', () => {
    let canonical = 0;
    fc.assert(
      fc.property(fc.oneof(url, fc.webUrl({ withQueryParameters: true, withFragments: true })), (given) => {
        const first = refusal(given);
        if (first instanceof Error) {
          expect(first).toBeInstanceOf(TargetUriError);
          return;
        }
        canonical += 1;
        const { targetUri } = canonicalTargetUri(given);
        expect(canonicalTargetUri(targetUri)).toEqual(first);
      }),
      { numRuns: 3000 },
    );
    expect(canonical).toBeGreaterThan(500);
  });

  test('any string at all is canonical or refused', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const result = refusal(`https://${text}`);
        expect(result instanceof TargetUriError || !(result instanceof Error)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
