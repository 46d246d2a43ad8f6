import { isIP } from 'node:net';
import {
  array,
  assert,
  constantFrom,
  integer,
  ipV4,
  ipV4Extended,
  ipV6,
  oneof,
  property,
  string,
} from 'fast-check';
import { expect, test } from 'vitest';
import { parseAddress, sameAddress, sharesPrefix } from '../../../src/keys/net/addresses.ts';
import { ipv6Spellings } from './spellings.ts';

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

test('reads what the platform calls an address, and nothing else', () => {
  const pieces = constantFrom('::', ':', '.', '1', '0', 'ffff', '255', '256', '00', 'g', '%');
  const soup = array(pieces, { maxLength: 12 }).map((parts) => parts.join(''));
  assert(
    property(oneof(ipV4(), ipV4Extended(), ipV6(), soup, string()), (text) => {
      expect(parseAddress(text)?.length).toBe(text.includes('%') ? undefined : { 4: 4, 6: 16 }[isIP(text)]);
    }),
    { numRuns: 2000 },
  );
});

test('every spelling of an address is the same bytes', () => {
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

test('one host is the same in each spelling, IPv4-mapped included', () => {
  expect(sameAddress('1.2.3.4', '1.2.3.4')).toBe(true);
  expect(sameAddress('::ffff:1.2.3.4', '1.2.3.4')).toBe(true);
  expect(sameAddress('2001:db8::1', '2001:DB8:0::1')).toBe(true);
  expect(sameAddress('fe80::1%eth0', 'fe80::1%eth0')).toBe(true);
});

test('another host is not', () => {
  expect(sameAddress('1.2.3.4', '1.2.3.5')).toBe(false);
  expect(sameAddress('::1.2.3.4', '1.2.3.4')).toBe(false);
  expect(sameAddress('64:ff9b::1.2.3.4', '1.2.3.4')).toBe(false);
  expect(sameAddress('fe80::1%eth0', 'fe80::1%eth1')).toBe(false);
  expect(sameAddress('::', '0.0.0.0')).toBe(false);
});
