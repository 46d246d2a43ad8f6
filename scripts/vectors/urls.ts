import type { Json } from './kit.ts';

/** Name, URL, canonical form, authority: by hand, from the rules of verification.md §4.1 to §4.8. */
type Row = readonly [name: string, url: string, targetUri: string, authority: string];

const HOST: readonly Row[] = [
  ['1. scheme in lower case', 'HTTPS://buyer.example/hooks', 'https://buyer.example/hooks', 'buyer.example'],
  ['1. http', 'HtTp://buyer.example/hooks', 'http://buyer.example/hooks', 'buyer.example'],
  [
    '2. host in lower case, path as it is',
    'https://BUYER.Example/Hooks',
    'https://buyer.example/Hooks',
    'buyer.example',
  ],
  ['2. one root dot', 'https://buyer.example./hooks', 'https://buyer.example/hooks', 'buyer.example'],
  [
    '2. root dot before a port',
    'https://buyer.example.:8443/hooks',
    'https://buyer.example:8443/hooks',
    'buyer.example:8443',
  ],
  [
    '2. raw non-ASCII host',
    'https://bücher.example/hooks',
    'https://xn--bcher-kva.example/hooks',
    'xn--bcher-kva.example',
  ],
  [
    '2. non-ASCII host in upper case',
    'https://BÜCHER.example/hooks',
    'https://xn--bcher-kva.example/hooks',
    'xn--bcher-kva.example',
  ],
  [
    '2. decomposed non-ASCII host',
    'https://bu\u0308cher.example/hooks',
    'https://xn--bcher-kva.example/hooks',
    'xn--bcher-kva.example',
  ],
  [
    '2. UTS-46 is non-transitional',
    'https://faß.example/hooks',
    'https://xn--fa-hia.example/hooks',
    'xn--fa-hia.example',
  ],
  [
    '2. A-label kept',
    'https://XN--BCHER-KVA.example/hooks',
    'https://xn--bcher-kva.example/hooks',
    'xn--bcher-kva.example',
  ],
  ['2. IPv6 in lower case', 'https://[2001:DB8::A]/hooks', 'https://[2001:db8::a]/hooks', '[2001:db8::a]'],
  ['2. IPv6 with a port', 'https://[2001:db8::1]:8443/', 'https://[2001:db8::1]:8443/', '[2001:db8::1]:8443'],
  ['2. IPv6 with the default port', 'https://[::1]:443/', 'https://[::1]/', '[::1]'],
  [
    '2. IPv6 is not compressed',
    'https://[2001:db8:0:0:0:0:0:1]/',
    'https://[2001:db8:0:0:0:0:0:1]/',
    '[2001:db8:0:0:0:0:0:1]',
  ],
  ['2. IPv4', 'https://192.0.2.1/hooks', 'https://192.0.2.1/hooks', '192.0.2.1'],
  [
    '3. userinfo stripped',
    'https://user:secret@buyer.example/hooks',
    'https://buyer.example/hooks',
    'buyer.example',
  ],
  [
    '3. empty userinfo stripped',
    'https://@buyer.example/hooks',
    'https://buyer.example/hooks',
    'buyer.example',
  ],
  [
    '4. default port of https',
    'https://buyer.example:443/hooks',
    'https://buyer.example/hooks',
    'buyer.example',
  ],
  ['4. default port of http', 'http://buyer.example:80/hooks', 'http://buyer.example/hooks', 'buyer.example'],
  [
    '4. port 80 of https kept',
    'https://buyer.example:80/hooks',
    'https://buyer.example:80/hooks',
    'buyer.example:80',
  ],
  [
    '4. port 443 of http kept',
    'http://buyer.example:443/hooks',
    'http://buyer.example:443/hooks',
    'buyer.example:443',
  ],
  [
    '4. other port kept',
    'https://buyer.example:8443/hooks',
    'https://buyer.example:8443/hooks',
    'buyer.example:8443',
  ],
];

/** Name, path (and what follows), canonical form. */
const PATHS: readonly (readonly [name: string, rest: string, canonical: string])[] = [
  ['5. empty path', '', '/'],
  ['5. empty path before a query', '?x=1', '/?x=1'],
  ['5. empty path before a fragment', '#part', '/'],
  ['5. single dot segments', '/./a/./b', '/a/b'],
  ['5. double dot segments', '/a/b/../c', '/a/c'],
  ['5. double dot at the end', '/a/b/..', '/a/'],
  ['5. single dot at the end', '/a/b/.', '/a/b/'],
  ['5. above the root', '/../../a', '/a'],
  ['5. three dots are a name', '/a/.../b', '/a/.../b'],
  ['5. a name that begins with a dot', '/.well-known/a', '/.well-known/a'],
  ['5. consecutive slashes kept', '/a//b///c', '/a//b///c'],
  ['5. consecutive slashes in front kept', '//a', '//a'],
  ['5. dot segments among slashes', '/a//../b', '/a/b'],
  ['5. trailing slash kept', '/a/', '/a/'],
  ['6. hexadecimal digits in upper case', '/a%2fb%c3%a9', '/a%2Fb%C3%A9'],
  ['6. tilde decoded', '/%7Euser', '/~user'],
  ['6. letters and digits decoded', '/%41%7a%30', '/Az0'],
  ['6. hyphen, dot, underscore decoded', '/a%2Db%2Ec%5Fd', '/a-b.c_d'],
  ['6. reserved characters stay encoded', '/%3A%40%21%24%26', '/%3A%40%21%24%26'],
  ['6. encoded space stays', '/a%20b', '/a%20b'],
  ['6. encoded percent stays, decoded once', '/a%2541', '/a%2541'],
  ['6. raw reserved characters stay', "/a:b@c!$&'()*+,;=", "/a:b@c!$&'()*+,;="],
  ['5 and 6. encoded dots are dot segments', '/a/%2e%2E/b', '/b'],
  ['7. query byte for byte', "/h?b=%7e&a='%2f'&c=/../x", "/h?b=%7e&a='%2f'&c=/../x"],
  ['7. order of the query kept', '/h?z=1&a=2&z=3', '/h?z=1&a=2&z=3'],
  ['7. empty query kept', '/h?', '/h?'],
  ['7. second question mark', '/h?a?b', '/h?a?b'],
  ['7. plus in the query', '/h?q=a+b%20c', '/h?q=a+b%20c'],
  ['8. fragment stripped', '/h?x=1#part', '/h?x=1'],
  ['8. empty fragment stripped', '/h#', '/h'],
  ['8. question mark in a fragment', '/h#a?b', '/h'],
];

const REJECTED: readonly (readonly [name: string, url: string])[] = [
  ['relative', '/hooks'],
  ['no scheme', 'buyer.example/hooks'],
  ['scheme-relative', '//buyer.example/hooks'],
  ['another scheme', 'ftp://buyer.example/hooks'],
  ['empty', ''],
  ['2. two root dots', 'https://buyer.example../hooks'],
  ['2. only a root dot', 'https://./hooks'],
  ['2. empty label', 'https://buyer..example/hooks'],
  ['2. empty label in front', 'https://.buyer.example/hooks'],
  ['2. IPv6 with a zone id', 'https://[fe80::1%25eth0]/hooks'],
  ['2. bare IPv6', 'https://2001:db8::1/hooks'],
  ['2. bare IPv6 loopback', 'https://::1/hooks'],
  ['2. missing closing bracket', 'https://[2001:db8::1/hooks'],
  ['2. text after the bracket', 'https://[::1]x/hooks'],
  ['2. IPv6 of too many groups', 'https://[1:2:3:4:5:6:7:8:9]/hooks'],
  ['2. nothing in the brackets', 'https://[]/hooks'],
  ['3. empty host', 'https:///hooks'],
  ['3. empty host with userinfo', 'https://user@/hooks'],
  ['3. empty host with a port', 'https://:443/hooks'],
  ['4. port that is no number', 'https://buyer.example:https/hooks'],
  ['4. port above 65535', 'https://buyer.example:65536/hooks'],
  ['white space in the host', 'https://buyer .example/hooks'],
  ['line feed in the path', 'https://buyer.example/hooks\n"@method": GET'],
];

/** `canonicalization.json`. */
export function canonicalization(): Json {
  const forms: readonly Row[] = [
    ...HOST,
    ...PATHS.map(([name, rest, canonical]): Row => [
      name,
      `https://buyer.example${rest}`,
      `https://buyer.example${canonical}`,
      'buyer.example',
    ]),
  ];
  return {
    description:
      'Canonical @target-uri and @authority of URLs, and URLs that have none. A number in a name is that of the rule.',
    cases: [
      ...forms.map(([name, input_url, expected_target_uri, expected_authority]) => ({
        name,
        input_url,
        expected_target_uri,
        expected_authority,
      })),
      ...REJECTED.map(([name, input_url]) => ({ name, input_url, reject: true })),
    ],
  };
}
