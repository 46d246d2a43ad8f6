import { type Block, parseAddress } from '../../../src/keys/for-tests.ts';

/** An address as one number. */
export function toNumber(text: string): bigint {
  const bytes = parseAddress(text);
  if (bytes === undefined) throw new Error(`${text} is not an address`);
  return bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
}

export function ipv4Text(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join('.');
}

function groups(value: bigint): string[] {
  return Array.from({ length: 8 }, (_, index) =>
    ((value >> BigInt(112 - 16 * index)) & 0xffffn).toString(16),
  );
}

export function ipv6Text(value: bigint): string {
  return groups(value).join(':');
}

const isIpv6 = (block: Block): boolean => block.network.includes(':');

/** The block's bounds as numbers, and how numbers of its family are written. */
export interface Span {
  readonly first: bigint;
  readonly last: bigint;
  readonly text: (value: bigint) => string;
}

export function spanOf(block: Block): Span {
  const bits = isIpv6(block) ? 128 : 32;
  const first = toNumber(block.network);
  return {
    first,
    last: first + (1n << BigInt(bits - block.prefix)) - 1n,
    text: isIpv6(block) ? ipv6Text : ipv4Text,
  };
}

/** First, middle and last address of a block. */
export function samples(block: Block): string[] {
  const { first, last, text } = spanOf(block);
  return [...new Set([first, (first + last + 1n) / 2n, last])].map(text);
}

/** The addresses right before and right after a block, where there are such. */
export function neighbours(block: Block): string[] {
  const { first, last, text } = spanOf(block);
  const end = isIpv6(block) ? 1n << 128n : 1n << 32n;
  return [first - 1n, last + 1n].filter((value) => value >= 0n && value < end).map(text);
}

const FULL_WIDTH = 0xff10 - 0x30;

const replaceDigits = (text: string, to: (digit: string) => string): string => text.replace(/\d/g, to);

/** Every way in which the URL standard, or some resolver, reads an IPv4 address. */
export function ipv4Spellings(dotted: string): string[] {
  const n = toNumber(dotted);
  const parts = dotted.split('.').map(Number);
  const [a = 0] = parts;
  const [, b = 0] = parts;
  const octal = (part: number): string => `0${part.toString(8)}`;
  const hex = (part: number): string => `0x${part.toString(16)}`;
  return [
    dotted,
    `${dotted}.`,
    n.toString(),
    `${n}.`,
    `0${n.toString(8)}`,
    `0x${n.toString(16)}`,
    `0X${n.toString(16).toUpperCase().padStart(8, '0')}`,
    parts.map(octal).join('.'),
    parts.map((part) => octal(part).padStart(8, '0')).join('.'),
    parts.map(hex).join('.'),
    [octal(a), ...parts.slice(1)].join('.'),
    [hex(a), octal(b), ...parts.slice(2)].join('.'),
    `${a}.${n & 0xffffffn}`,
    `${a}.${b}.${n & 0xffffn}`,
    `${hex(a)}.${octal(b)}.${n & 0xffffn}.`,
    replaceDigits(dotted, (digit) => String.fromCodePoint((digit.codePointAt(0) ?? 0) + FULL_WIDTH)),
    dotted.replaceAll('.', '。'),
    dotted.replaceAll('.', '．'),
    replaceDigits(dotted, (digit) => `%3${digit}`),
    dotted.replaceAll('.', '%2E'),
    `${dotted.slice(0, 1)}\t${dotted.slice(1)}`,
  ];
}

/** Every IPv6 address that stands for an IPv4 address, in brackets. */
export function embeddingSpellings(dotted: string): string[] {
  const hex = toNumber(dotted).toString(16).padStart(8, '0');
  const [high, low] = [hex.slice(0, 4), hex.slice(4)];
  return [
    `[::ffff:${dotted}]`,
    `[::FFFF:${high}:${low}]`,
    `[0:0:0:0:0:ffff:${dotted}]`,
    `[0000:0000:0000:0000:0000:ffff:${high}:${low}]`,
    `[::${dotted}]`,
    `[::${high}:${low}]`,
    `[0:0:0:0:0:0:${high}:${low}]`,
    `[64:ff9b::${dotted}]`,
    `[64:ff9b:0:0:0:0:${high}:${low}]`,
    `[0064:FF9B::${high}:${low}]`,
    `[64:ff9b:1::${dotted}]`,
    `[2002:${high}:${low}::]`,
    `[2002:${high}:${low}:1:2:3:4:5]`,
  ];
}

/** The ways to write an IPv6 address, in brackets. */
export function ipv6Spellings(text: string): string[] {
  const all = groups(toNumber(text));
  const full = all.map((group) => group.padStart(4, '0'));
  const tail = ipv4Text(toNumber(text) & 0xffffffffn);
  return [
    all.join(':'),
    full.join(':'),
    full.join(':').toUpperCase(),
    [...all.slice(0, 6), tail].join(':'),
    new URL(`https://[${all.join(':')}]/`).hostname.slice(1, -1),
  ].map((spelling) => `[${spelling}]`);
}
