import { assert, ipV4Extended, ipV6, oneof, property, string, webUrl } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { urlRefusedReason } from '../../src/keys/net/addresses.ts';

const refused = (url: string): boolean => urlRefusedReason(url, false) !== undefined;

test.each([
  'https://seller.example/.well-known/brand.json',
  'https://seller.example:8443/jwks',
  'https://8.8.8.8/jwks',
  'https://[2606:4700::1111]/jwks',
  'https://xn--bcher-kva.example/',
])('a public https URL is fetched: %s', (url) => {
  expect(urlRefusedReason(url, false)).toBeUndefined();
});

test.each([
  'http://seller.example/',
  'ftp://seller.example/',
  'data:application/json,{}',
  'file:///etc/passwd',
])('https only: %s', (url) => {
  expect(urlRefusedReason(url, false)).toBe('not an https URL');
});

test.each(['https://user@seller.example/', 'https://:secret@seller.example/'])('no userinfo: %s', (url) => {
  expect(urlRefusedReason(url, false)).toBe('a URL with user information');
  expect(urlRefusedReason(url, true)).toBe('a URL with user information');
});

test.each(['', 'seller.example', '/jwks.json', 'https://', 'https://[::1/', 'https://999.1.1.1/'])(
  'not an absolute URL: %s',
  (url) => {
    expect(urlRefusedReason(url, false)).toBe('not an absolute URL');
  },
);

describe('a literal address that is not globally routable is refused', () => {
  test.each([
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '100.127.255.255',
    '127.0.0.1',
    '169.254.169.254',
    '168.63.129.16',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.9',
    '192.0.2.1',
    '192.31.196.1',
    '192.52.193.1',
    '192.88.99.1',
    '192.168.1.1',
    '192.175.48.1',
    '198.18.0.1',
    '198.19.255.255',
    '198.51.100.7',
    '203.0.113.7',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
  ])('%s', (address) => {
    expect(refused(`https://${address}/`)).toBe(true);
    expect(refused(`https://[::ffff:${address}]/`)).toBe(true);
    expect(refused(`https://[64:ff9b::${address}]/`)).toBe(true);
    expect(refused(`https://[::${address}]/`)).toBe(true);
  });

  test.each([
    '2130706433',
    '0177.0.0.1',
    '0x7f.0.0.1',
    '0x7f000001',
    '127.1',
    '127.0.0.1.',
    '%31%32%37.0.0.1',
    '１２７.0.0.1',
    '127。0。0。1',
  ])('another spelling of 127.0.0.1: %s', (host) => {
    expect(refused(`https://${host}/`)).toBe(true);
  });

  test.each([
    '::',
    '::1',
    '::a9fe:a9fe',
    '::ffff:0:127.0.0.1',
    '64:ff9b:1::1',
    '100::1',
    '100:0:0:1::1',
    '200::1',
    '2001::1',
    '2001:1ff::1',
    '2001:db8::1',
    '2002:7f00:1::',
    '2620:4f:8000::1',
    '3ffe::1',
    '3fff::1',
    '3fff:fff::1',
    '4000::1',
    '5f00::1',
    'fc00::1',
    'fd12:3456::1',
    'fe80::1',
    'fec0::1',
    'ff02::1',
  ])('[%s]', (address) => {
    expect(refused(`https://[${address}]/`)).toBe(true);
  });

  test.each(['9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '172.15.255.255', '172.32.0.0'])(
    'its neighbours are not: %s',
    (address) => {
      expect(refused(`https://${address}/`)).toBe(false);
    },
  );

  test.each([
    '2001:200::1',
    '2001:db7::1',
    '2001:db9::1',
    '2003::1',
    '2620:4f:8001::1',
    '3ffd::1',
    '3fff:1000::1',
  ])('its neighbours are not: [%s]', (address) => {
    expect(refused(`https://[${address}]/`)).toBe(false);
  });
});

test.each([
  'localhost',
  'LOCALHOST.',
  'a.localhost',
  'printer.local',
  'metadata.google.internal',
  'seller',
  'r.home.arpa',
])('a name that never leads out of the network is refused: %s', (host) => {
  expect(refused(`https://${host}/`)).toBe(true);
});

test.each([
  '134744072',
  '0x8.8.8.8',
  '010.8.8.8',
  '8.8.2056',
  '8.8.8.8.',
  '%38.8.8.8',
  '８.8.8.8',
  '8。8。8。8',
])('a public IPv4 address in an odd spelling is refused: others read it otherwise: %s', (host) => {
  expect(urlRefusedReason(`https://${host}/`, false)).toBe('an IPv4 address in an odd spelling');
});

test.each(['https://8.8.8.8', 'https://8.8.8.8:8443/jwks', 'HTTPS://8.8.8.8?a', 'https://8.8.8.8#a'])(
  'in its own it is not: %s',
  (url) => {
    expect(urlRefusedReason(url, false)).toBeUndefined();
  },
);

test.each([
  'a..example',
  'seller.example..',
  '8.8.8.8..',
  '.seller.example',
  '127.0.0.1..',
  'a.0x7f..',
  'a.1..',
])('a name that some resolver could take for an address, or that is none, is refused: %s', (host) => {
  expect(refused(`https://${host}/`)).toBe(true);
});

test('a name with its root dot is fetched', () => {
  expect(refused('https://seller.example./jwks')).toBe(false);
});

test('the reason names the block', () => {
  expect(urlRefusedReason('https://10.1.2.3/', false)).toBe(
    '10.1.2.3 is not a public host (Private-Use, RFC 1918)',
  );
  expect(urlRefusedReason('https://[::1]/', false)).toMatch(
    /^\[::1\] is not a public host \(Loopback Address/,
  );
});

test('allowLoopback, for development, allows http and private hosts', () => {
  expect(urlRefusedReason('http://127.0.0.1:3000/', true)).toBeUndefined();
  expect(urlRefusedReason('http://localhost/', true)).toBeUndefined();
  expect(urlRefusedReason('https://[::1]/', true)).toBeUndefined();
  expect(urlRefusedReason('ftp://127.0.0.1/', true)).toBe('not an https URL');
});

test('never throws, whatever the text', () => {
  assert(
    property(oneof(string(), webUrl(), ipV4Extended(), ipV6()), (text) => {
      for (const url of [text, `https://${text}/`, `https://[${text}]/`]) urlRefusedReason(url, false);
    }),
  );
});
