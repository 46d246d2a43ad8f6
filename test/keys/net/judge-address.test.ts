import { BlockList, isIPv6 } from 'node:net';
import { assert, bigInt, constantFrom, oneof, property, tuple } from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addressNotPublicReason,
  type Block,
  IPV4_BEYOND,
  IPV4_SPECIAL,
  IPV6_BEYOND,
  IPV6_SPECIAL,
  urlRefusedReason,
} from '../../../src/keys/net/addresses.ts';
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

describe('the addresses right outside of a block are public, but where another block begins', () => {
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

describe('an address that stands for an IPv4 address is judged by that one', () => {
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

test('a reason names the block that fits best, and the address inside', () => {
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

test('the verdict is the same as by the platform’s block lists, over all addresses', () => {
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
