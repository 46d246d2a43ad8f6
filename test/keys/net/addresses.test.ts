import { BlockList, isIP, isIPv6 } from 'node:net';
import {
  array,
  assert,
  bigInt,
  constantFrom,
  integer,
  ipV4,
  ipV4Extended,
  ipV6,
  oneof,
  property,
  string,
  tuple,
  webUrl,
} from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addressNotPublicReason,
  type Block,
  IPV4_BEYOND,
  IPV4_SPECIAL,
  IPV6_BEYOND,
  IPV6_SPECIAL,
  parseAddress,
  sameAddress,
  sharesPrefix,
  urlRefusedReason,
} from '../../../src/keys/for-tests.ts';
import {
  embeddingSpellings,
  ipv4Spellings,
  ipv4Text,
  ipv6Spellings,
  ipv6Text,
  neighbours,
  samples,
  spanOf,
} from './spellings.ts';

const bytes = (text: string): number[] | undefined => {
  const address = parseAddress(text);
  return address && [...address];
};

test('IPv4 is four decimal parts', () => {
  expect(bytes('0.0.0.0')).toEqual([0, 0, 0, 0]);
  expect(bytes('93.184.215.14')).toEqual([93, 184, 215, 14]);
  expect(bytes('255.255.255.255')).toEqual([255, 255, 255, 255]);
});

test.each([
  '',
  '1.2.3',
  '1.2.3.4.',
  '1.2.3.4.5',
  '1.2.3.256',
  '01.2.3.4',
  '0x1.2.3.4',
  '1.2.3.4 ',
  ' 1.2.3.4',
  '1.2.3.-4',
  '1.2.3.1e1',
  '2130706433',
  '１.2.3.4',
])('other spellings of IPv4 are not read: "%s"', (text) => {
  expect(parseAddress(text)).toBeUndefined();
});

test.each([
  ['::', '0:0:0:0:0:0:0:0'],
  ['::1', '0:0:0:0:0:0:0:1'],
  ['1::', '1:0:0:0:0:0:0:0'],
  ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
  ['::2:3:4:5:6:7:8', '0:2:3:4:5:6:7:8'],
  ['::ffff:1.2.3.4', '0:0:0:0:0:ffff:102:304'],
  ['1:2:3:4:5:6:1.2.3.4', '1:2:3:4:5:6:102:304'],
  ['2001:DB8::aF', '2001:db8:0:0:0:0:0:af'],
])('IPv6 in the forms of RFC 4291 §2.2: %s', (short, long) => {
  expect(bytes(short)).toHaveLength(16);
  expect(bytes(short)).toEqual(bytes(long));
});

test.each([
  ':',
  ':::',
  '1::2::3',
  '1:2:3:4:5:6:7',
  '1:2:3:4:5:6:7:8:9',
  '1:2:3:4:5:6:7:8::',
  '::1:2:3:4:5:6:7:8',
  '12345::',
  'g::',
  '1.2.3.4::',
  '::1.2.3.4:5',
  '::1.2.3',
  '::01.2.3.4',
  '1:2:3:4:5:6:7:1.2.3.4',
  'fe80::1%eth0',
  '[::1]',
])('what is no IPv6 address is not read: %s', (text) => {
  expect(parseAddress(text)).toBeUndefined();
});

test('reads exactly what the platform calls an address', () => {
  const pieces = constantFrom('::', ':', '.', '1', '0', 'ffff', '255', '256', '00', 'g', '%');
  const soup = array(pieces, { maxLength: 12 }).map((parts) => parts.join(''));
  assert(
    property(oneof(ipV4(), ipV4Extended(), ipV6(), soup, string()), (text) => {
      expect(parseAddress(text)?.length).toBe(text.includes('%') ? undefined : { 4: 4, 6: 16 }[isIP(text)]);
    }),
    { numRuns: 2000 },
  );
});

test('every spelling of an address gives the same bytes', () => {
  assert(
    property(ipV6(), (text) => {
      for (const spelling of ipv6Spellings(text)) expect(bytes(spelling.slice(1, -1))).toEqual(bytes(text));
    }),
  );
});

test('a prefix is compared to the bit', () => {
  assert(
    property(ipV4(), integer({ min: 0, max: 32 }), integer({ min: 0, max: 31 }), (text, prefix, bit) => {
      const address = parseAddress(text) ?? new Uint8Array();
      const other = Uint8Array.from(address);
      other[bit >> 3] = (other[bit >> 3] ?? 0) ^ (0x80 >> (bit & 7));
      expect(sharesPrefix(address, other, prefix)).toBe(bit >= prefix);
    }),
  );
  expect(sharesPrefix(Uint8Array.of(0, 0, 0, 0), new Uint8Array(16), 0)).toBe(false);
});

test('sameAddress: one host in any spelling, IPv4-mapped included', () => {
  expect(sameAddress('1.2.3.4', '1.2.3.4')).toBe(true);
  expect(sameAddress('::ffff:1.2.3.4', '1.2.3.4')).toBe(true);
  expect(sameAddress('2001:db8::1', '2001:DB8:0::1')).toBe(true);
  expect(sameAddress('fe80::1%eth0', 'fe80::1%eth0')).toBe(true);
});

test('another host differs', () => {
  expect(sameAddress('1.2.3.4', '1.2.3.5')).toBe(false);
  expect(sameAddress('::1.2.3.4', '1.2.3.4')).toBe(false);
  expect(sameAddress('64:ff9b::1.2.3.4', '1.2.3.4')).toBe(false);
  expect(sameAddress('fe80::1%eth0', 'fe80::1%eth1')).toBe(false);
  expect(sameAddress('::', '0.0.0.0')).toBe(false);
});

const IPV4: readonly Block[] = [...IPV4_SPECIAL, ...IPV4_BEYOND];
const PLAIN_IPV6 = [...IPV6_SPECIAL, ...IPV6_BEYOND].filter(({ embeds }) => embeds === undefined);
const EMBEDDING = IPV6_SPECIAL.filter(({ embeds }) => embeds !== undefined);
const named = (blocks: readonly Block[]): [string, Block][] =>
  blocks.map((block) => [`${block.network}/${block.prefix} ${block.name}`, block]);

const urlRefused = (host: string): boolean =>
  urlRefusedReason(`https://${host}/jwks.json`, false) !== undefined;

/** The platform's own matcher over the same rows: a second opinion on what lies inside. */
function listOf(blocks: readonly Block[]): BlockList {
  const list = new BlockList();
  for (const { network, prefix } of blocks)
    list.addSubnet(network, prefix, isIPv6(network) ? 'ipv6' : 'ipv4');
  return list;
}

const IPV4_LIST = listOf(IPV4);
const IPV6_LIST = listOf(PLAIN_IPV6);
const EMBEDDING_LIST = listOf([...EMBEDDING, { network: '::', prefix: 96, name: '', source: '' }]);
const GLOBAL_LIST = listOf([{ network: '2000::', prefix: 3, name: '', source: '' }]);

test('the registries have these rows', () => {
  expect(IPV4_SPECIAL).toHaveLength(26);
  expect(IPV6_SPECIAL).toHaveLength(25);
  for (const block of [...IPV4, ...IPV6_SPECIAL, ...IPV6_BEYOND]) {
    const { first, last } = spanOf(block);
    // The network is the first address of the block: no bits beyond the prefix.
    expect([block.network, first % (last - first + 1n)]).toEqual([block.network, 0n]);
    expect(block.name).not.toBe('');
    expect(block.source).toMatch(/^(?:RFC \d+|verification\.md)/);
  }
});

describe('no address of an IPv4 special-purpose block is public, however it is written', () => {
  test.each(named(IPV4))('%s', (_name, block) => {
    for (const address of samples(block)) {
      expect(addressNotPublicReason(address)).toBeDefined();
      for (const host of [...ipv4Spellings(address), ...embeddingSpellings(address)]) {
        expect([host, urlRefused(host)]).toEqual([host, true]);
      }
    }
  });
});

describe('no address of an IPv6 special-purpose block is public, however it is written', () => {
  test.each(named(PLAIN_IPV6))('%s', (_name, block) => {
    for (const address of samples(block)) {
      expect(addressNotPublicReason(address)).toBeDefined();
      for (const host of ipv6Spellings(address)) expect([host, urlRefused(host)]).toEqual([host, true]);
    }
  });
});

describe('addresses just outside a block are public, unless another block begins there', () => {
  test.each(named(IPV4))('%s', (_name, block) => {
    for (const address of neighbours(block)) {
      const inAnother = IPV4_LIST.check(address);
      expect([address, addressNotPublicReason(address) !== undefined]).toEqual([address, inAnother]);
      expect([address, urlRefused(address)]).toEqual([address, inAnother]);
    }
  });

  test.each(named(PLAIN_IPV6))('%s', (_name, block) => {
    for (const address of neighbours(block).filter((text) => !EMBEDDING_LIST.check(text, 'ipv6'))) {
      const expected = IPV6_LIST.check(address, 'ipv6') || !GLOBAL_LIST.check(address, 'ipv6');
      expect([address, addressNotPublicReason(address) !== undefined]).toEqual([address, expected]);
      expect([address, urlRefused(`[${address}]`)]).toEqual([address, expected]);
    }
  });

  test.each([
    '1.0.0.0',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '169.253.255.255',
    '169.255.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '191.255.255.255',
    '192.0.1.0',
    '192.0.3.0',
    '192.167.255.255',
    '192.169.0.0',
    '198.17.255.255',
    '198.20.0.0',
    '203.0.114.0',
    '223.255.255.255',
    '168.63.129.15',
    '168.63.129.17',
    '2000::',
    '2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '2001:200::',
    '2001:db7:ffff:ffff:ffff:ffff:ffff:ffff',
    '2001:db9::',
    '2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '2003::',
    '2620:4f:7fff:ffff:ffff:ffff:ffff:ffff',
    '2620:4f:8001::',
    '3ffd:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '3fff:1000::',
    '3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
  ])('%s', (address) => {
    expect(addressNotPublicReason(address)).toBeUndefined();
  });
});

describe('IPv6 is refused unless it is in 2000::/3', () => {
  test.each([
    '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '4000::',
    '200::1',
    '5f00::1',
    '::ffff:0:808:808',
    '::1:0:0:0',
    'fec0::1',
    'ff02::1',
    'ff0e::1',
    'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
  ])('%s', (address) => {
    expect(addressNotPublicReason(address)).toBeDefined();
  });
});

describe('an address that embeds an IPv4 address is classified by it', () => {
  test.each(['8.8.8.8', '1.0.0.1', '93.184.215.14', '223.255.255.255'])('public inside: %s', (address) => {
    for (const host of embeddingSpellings(address)) expect([host, urlRefused(host)]).toEqual([host, false]);
  });

  test.each(['127.0.0.1', '10.0.0.1', '169.254.169.254', '168.63.129.16', '224.0.0.1', '0.0.0.0'])(
    'private inside: %s',
    (address) => {
      for (const host of embeddingSpellings(address)) expect([host, urlRefused(host)]).toEqual([host, true]);
    },
  );

  test.each(['64:ff9b:1:808:8:800::', '64:ff9b:1:808::808:808', '64:ff9b:1:0:8:808:800:0'])(
    'in local-use NAT64, public wherever it may lie: %s',
    (address) => {
      expect(addressNotPublicReason(address)).toBeUndefined();
    },
  );

  test.each([
    ['/48', '64:ff9b:1:7f00:0:100::'],
    ['/56', '64:ff9b:1:a:0:1:100::'],
    ['/64', '64:ff9b:1:0:a:1:200::'],
    ['/96', '64:ff9b:1::a00:1'],
    ['/96 behind a public one', '64:ff9b:1:808:8:800:a00:1'],
  ])('in local-use NAT64, private where RFC 6052 §2.2 may put it: %s', (_where, address) => {
    expect(addressNotPublicReason(address)).toMatch(/local use/);
  });

  test('Teredo is refused, whatever it embeds', () => {
    expect(addressNotPublicReason('2001:0:808:808::f7f7:f7f7')).toBe('TEREDO, RFC 4380');
  });
});

test('the reason names the most specific block, and the embedded address', () => {
  expect(addressNotPublicReason('10.1.2.3')).toBe('Private-Use, RFC 1918');
  expect(addressNotPublicReason('192.0.0.9')).toBe('Port Control Protocol Anycast, RFC 7723');
  expect(addressNotPublicReason('::1')).toBe('Loopback Address, RFC 4291 §2.5.3');
  expect(addressNotPublicReason('::ffff:10.1.2.3')).toBe(
    'IPv4-mapped Address of 10.1.2.3: Private-Use, RFC 1918',
  );
  expect(addressNotPublicReason('4000::')).toBe('not in 2000::/3');
});

test.each(['', 'seller.example', 'fe80::1%eth0', '2606:4700::1111%1', '[::1]', '0177.0.0.1', '2130706433'])(
  'what cannot be read as an address is refused: "%s"',
  (text) => {
    expect(addressNotPublicReason(text)).toBe('not an IP address');
  },
);

test('the result equals that of the platform’s block lists, over all addresses', () => {
  const nearBlocks = (blocks: readonly Block[]) =>
    tuple(constantFrom(...blocks), bigInt({ min: -2n, max: 2n })).map(([block, step]) => {
      const { first, last } = spanOf(block);
      return step < 0n ? first + step : last + step;
    });
  const inRange = (bits: bigint) => (value: bigint) => value >= 0n && value < 1n << bits;
  assert(
    property(
      oneof(bigInt({ min: 0n, max: (1n << 32n) - 1n }), nearBlocks(IPV4).filter(inRange(32n))).map(ipv4Text),
      (address) => (addressNotPublicReason(address) !== undefined) === IPV4_LIST.check(address),
    ),
    { numRuns: 2000 },
  );
  assert(
    property(
      oneof(bigInt({ min: 0n, max: (1n << 128n) - 1n }), nearBlocks(PLAIN_IPV6).filter(inRange(128n)))
        .map(ipv6Text)
        .filter((address) => !EMBEDDING_LIST.check(address, 'ipv6')),
      (address) =>
        (addressNotPublicReason(address) !== undefined) ===
        (IPV6_LIST.check(address, 'ipv6') || !GLOBAL_LIST.check(address, 'ipv6')),
    ),
    { numRuns: 2000 },
  );
});

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
    'its neighbours are accepted: %s',
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
  ])('its neighbours are accepted: [%s]', (address) => {
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
  'a public IPv4 address in its usual spelling is accepted: %s',
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
