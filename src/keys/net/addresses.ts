// Decides if addresses and URLs that counterparties chose may be used: only globally routable hosts, over https
// (verification.md §5.10, §5.11).
// Called before every fetch and for every resolved address.

/** An IP address as 4 or 16 bytes. */
type Address = Uint8Array;

const IPV4 = /^(?:(?:0|[1-9]\d{0,2})\.){3}(?:0|[1-9]\d{0,2})$/;
const GROUP = /^[0-9a-f]{1,4}$/i;

/**
 * Parses an address strictly: four decimal parts without leading zeros, or the text forms of RFC 4291 §2.2.
 * Zones, brackets, octal and short forms are refused, because programs read those in more than one way.
 */
export function parseAddress(text: string): Address | undefined {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text);
}

function parseIpv4(text: string): Address | undefined {
  if (!IPV4.test(text)) return undefined;
  const parts = text.split('.').map(Number);
  return parts.every((part) => part <= 255) ? Uint8Array.from(parts) : undefined;
}

function parseIpv6(text: string): Address | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const [headText = '', tailText] = halves;
  // The dotted IPv4 form is only allowed at the end of the address.
  const head = groupBytes(headText, tailText === undefined);
  const tail = tailText === undefined ? [] : groupBytes(tailText, true);
  if (head === undefined || tail === undefined) return undefined;
  const missing = 16 - head.length - tail.length;
  if (tailText === undefined ? missing !== 0 : missing < 2) return undefined;
  const bytes = new Uint8Array(16);
  bytes.set(head);
  bytes.set(tail, 16 - tail.length);
  return bytes;
}

function groupBytes(text: string, atEnd: boolean): number[] | undefined {
  if (text === '') return [];
  const groups = text.split(':');
  const bytes: number[] = [];
  for (const [index, group] of groups.entries()) {
    if (GROUP.test(group)) {
      const value = Number.parseInt(group, 16);
      bytes.push(value >> 8, value & 0xff);
      continue;
    }
    const quad = atEnd && index === groups.length - 1 ? parseIpv4(group) : undefined;
    if (quad === undefined) return undefined;
    bytes.push(...quad);
  }
  return bytes.length <= 16 ? bytes : undefined;
}

/** True if the first `prefix` bits of both addresses are equal. Never true for an IPv4 and an IPv6 address. */
export function sharesPrefix(a: Address, b: Address, prefix: number): boolean {
  if (a.length !== b.length) return false;
  const whole = prefix >> 3;
  for (let index = 0; index < whole; index += 1) if (a[index] !== b[index]) return false;
  const mask = 0xff & (0xff00 >> (prefix & 7));
  return ((a[whole] ?? 0) & mask) === ((b[whole] ?? 0) & mask);
}

const MAPPED: Address = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0);

/**
 * Converts an IPv4-mapped IPv6 address to IPv4; returns any other address unchanged. Dual-stack sockets report IPv4
 * peers in mapped form.
 */
function unmapped(address: Address): Address {
  return sharesPrefix(address, MAPPED, 96) ? address.subarray(12) : address;
}

/** True if two texts mean the same address, even if they are written differently. */
export function sameAddress(a: string, b: string): boolean {
  const left = parseAddress(a);
  const right = parseAddress(b);
  // A text that cannot be parsed (for example with a zone) equals only the same text.
  if (left === undefined || right === undefined) return a === b;
  return sharesPrefix(unmapped(left), unmapped(right), unmapped(left).length * 8);
}

/** A block of addresses that are not public hosts, or that contain an IPv4 address. */
export interface Block {
  readonly network: string;
  readonly prefix: number;
  /** The name of the block in the IANA registry. */
  readonly name: string;
  /** The document that defines the block, e.g. an RFC. */
  readonly source: string;
  /**
   * The positions of an IPv4 address that is embedded in an address of this block. The address is then public if the
   * embedded one is. There are several positions if the block does not fix one.
   */
  readonly embeds?: readonly ByteOffsets[];
}

/** Positions, from 0, of the four bytes of an IPv4 address within the sixteen of an IPv6 one. */
type ByteOffsets = readonly [number, number, number, number];

function block(
  network: string,
  prefix: number,
  name: string,
  source: string,
  ...embeds: ByteOffsets[]
): Block {
  return { network, prefix, name, source, ...(embeds.length > 0 && { embeds }) };
}

const LAST_FOUR: ByteOffsets = [12, 13, 14, 15];

/** Every row of the IANA IPv4 Special-Purpose Address Registry, even the globally reachable ones. */
export const IPV4_SPECIAL: readonly Block[] = [
  block('0.0.0.0', 8, '"This network"', 'RFC 791 §3.2'),
  block('0.0.0.0', 32, '"This host on this network"', 'RFC 1122 §3.2.1.3'),
  block('10.0.0.0', 8, 'Private-Use', 'RFC 1918'),
  block('100.64.0.0', 10, 'Shared Address Space', 'RFC 6598'),
  block('127.0.0.0', 8, 'Loopback', 'RFC 1122 §3.2.1.3'),
  block('169.254.0.0', 16, 'Link Local', 'RFC 3927'),
  block('172.16.0.0', 12, 'Private-Use', 'RFC 1918'),
  block('192.0.0.0', 24, 'IETF Protocol Assignments', 'RFC 6890 §2.1'),
  block('192.0.0.0', 29, 'IPv4 Service Continuity Prefix', 'RFC 7335'),
  block('192.0.0.8', 32, 'IPv4 dummy address', 'RFC 7600'),
  block('192.0.0.9', 32, 'Port Control Protocol Anycast', 'RFC 7723'),
  block('192.0.0.10', 32, 'Traversal Using Relays around NAT Anycast', 'RFC 8155'),
  block('192.0.0.170', 32, 'NAT64/DNS64 Discovery', 'RFC 8880'),
  block('192.0.0.171', 32, 'NAT64/DNS64 Discovery', 'RFC 8880'),
  block('192.0.2.0', 24, 'Documentation (TEST-NET-1)', 'RFC 5737'),
  block('192.31.196.0', 24, 'AS112-v4', 'RFC 7535'),
  block('192.52.193.0', 24, 'AMT', 'RFC 7450'),
  block('192.88.99.0', 24, 'Deprecated (6to4 Relay Anycast)', 'RFC 7526'),
  block('192.88.99.2', 32, '6a44-relay anycast address', 'RFC 6751'),
  block('192.168.0.0', 16, 'Private-Use', 'RFC 1918'),
  block('192.175.48.0', 24, 'Direct Delegation AS112 Service', 'RFC 7534'),
  block('198.18.0.0', 15, 'Benchmarking', 'RFC 2544'),
  block('198.51.100.0', 24, 'Documentation (TEST-NET-2)', 'RFC 5737'),
  block('203.0.113.0', 24, 'Documentation (TEST-NET-3)', 'RFC 5737'),
  block('240.0.0.0', 4, 'Reserved', 'RFC 1112 §4'),
  block('255.255.255.255', 32, 'Limited Broadcast', 'RFC 919 §7'),
];

/** Blocks that are not in the IANA IPv4 registry but are refused too (verification.md §5.11). */
export const IPV4_BEYOND: readonly Block[] = [
  block('224.0.0.0', 4, 'Multicast', 'RFC 5771'),
  // In virtual machines of a large cloud, this address is the service of the physical host, which reveals secrets.
  block('168.63.129.16', 32, 'Cloud host service', 'verification.md §5.11'),
];

/** Every row of the IANA IPv6 Special-Purpose Address Registry. */
export const IPV6_SPECIAL: readonly Block[] = [
  block('::1', 128, 'Loopback Address', 'RFC 4291 §2.5.3'),
  block('::', 128, 'Unspecified Address', 'RFC 4291 §2.5.2'),
  block('::ffff:0:0', 96, 'IPv4-mapped Address', 'RFC 4291 §2.5.5.2', LAST_FOUR),
  block('64:ff9b::', 96, 'IPv4-IPv6 Translat.', 'RFC 6052 §2.1', LAST_FOUR),
  // Each site chooses a prefix of its own in this block. Depending on its length (/48, /56, /64 or /96), RFC 6052 §2.2
  // puts the IPv4 address at another position.
  block(
    '64:ff9b:1::',
    48,
    'IPv4-IPv6 Translat. (local use)',
    'RFC 8215',
    ...([[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], LAST_FOUR] satisfies ByteOffsets[]),
  ),
  block('100::', 64, 'Discard-Only Address Block', 'RFC 6666'),
  block('100:0:0:1::', 64, 'Dummy IPv6 Prefix', 'RFC 9780'),
  block('2001::', 23, 'IETF Protocol Assignments', 'RFC 2928'),
  // A Teredo address embeds two IPv4 addresses, the second one inverted. No host serves from such an address, so both
  // are ignored and the block is refused.
  block('2001::', 32, 'TEREDO', 'RFC 4380'),
  block('2001:1::1', 128, 'Port Control Protocol Anycast', 'RFC 7723'),
  block('2001:1::2', 128, 'Traversal Using Relays around NAT Anycast', 'RFC 8155'),
  block('2001:1::3', 128, 'DNS-SD Service Registration Protocol Anycast', 'RFC 9665'),
  block('2001:2::', 48, 'Benchmarking', 'RFC 5180'),
  block('2001:3::', 32, 'AMT', 'RFC 7450'),
  block('2001:4:112::', 48, 'AS112-v6', 'RFC 7535'),
  block('2001:10::', 28, 'Deprecated (previously ORCHID)', 'RFC 4843'),
  block('2001:20::', 28, 'ORCHIDv2', 'RFC 7343'),
  block('2001:30::', 28, 'Drone Remote ID Protocol Entity Tags (DETs) Prefix', 'RFC 9374'),
  block('2001:db8::', 32, 'Documentation', 'RFC 3849'),
  block('2002::', 16, '6to4', 'RFC 3056', [2, 3, 4, 5]),
  block('2620:4f:8000::', 48, 'Direct Delegation AS112 Service', 'RFC 7534'),
  block('3fff::', 20, 'Documentation', 'RFC 9637'),
  block('5f00::', 16, 'Segment Routing (SRv6) SIDs', 'RFC 9602'),
  block('fc00::', 7, 'Unique-Local', 'RFC 4193'),
  block('fe80::', 10, 'Link-Local Unicast', 'RFC 4291 §2.5.6'),
];

/**
 * Blocks that are not in the IANA IPv6 registry but need a check too: one embeds IPv4 addresses, the other was returned
 * to IANA.
 */
export const IPV6_BEYOND: readonly Block[] = [
  block('::', 96, 'IPv4-compatible Address', 'RFC 4291 §2.5.5.1', LAST_FOUR),
  // Nobody is assigned this block now, so a host that answers there belongs to a private network.
  block('3ffe::', 16, 'Returned (6bone)', 'RFC 3701'),
];

/**
 * The only block from which IANA assigns global unicast addresses. IPv6 addresses outside it are refused, even if no
 * list above has them.
 */
const IPV6_GLOBAL: Block = block('2000::', 3, 'Global Unicast', 'RFC 4291 §2.4');

interface ParsedBlock extends Block {
  readonly first: Address;
}

function parsed(block: Block): ParsedBlock {
  const first = parseAddress(block.network);
  if (first === undefined) throw new TypeError(`${block.network} is not an address`);
  return { ...block, first };
}

/** All listed blocks, longest prefix first, so that the first block found is the most specific. */
const BLOCKS: readonly ParsedBlock[] = [...IPV4_SPECIAL, ...IPV4_BEYOND, ...IPV6_SPECIAL, ...IPV6_BEYOND]
  .map(parsed)
  .sort((a, b) => b.prefix - a.prefix);

const GLOBAL: ParsedBlock = parsed(IPV6_GLOBAL);

const contains = (block: ParsedBlock, address: Address): boolean =>
  sharesPrefix(block.first, address, block.prefix);

/**
 * Returns the reason why an address is not public, or undefined if it is (verification.md §5.11). IPv4 is refused
 * inside the listed blocks; IPv6 is refused outside 2000::/3 too.
 */
function notPublicReason(address: Address): string | undefined {
  const block = BLOCKS.find((candidate) => contains(candidate, address));
  if (block?.embeds !== undefined) return embeddedNotPublicReason(address, block, block.embeds);
  if (block !== undefined) return `${block.name}, ${block.source}`;
  return address.length === 4 || contains(GLOBAL, address) ? undefined : 'not in 2000::/3';
}

function embeddedNotPublicReason(
  address: Address,
  block: Block,
  places: readonly ByteOffsets[],
): string | undefined {
  const inside = places.map((place) => Uint8Array.from(place, (index) => address[index] ?? 0));
  // If a block has several possible positions, those not in use mostly begin with a zero byte. They are ignored,
  // because no translator forwards to 0.0.0.0/8. If all begin with zero, no IPv4 address is embedded.
  const read = inside.filter((ipv4) => places.length === 1 || ipv4[0] !== 0);
  if (read.length === 0) return `${block.name}, ${block.source}`;
  for (const ipv4 of read) {
    const why = notPublicReason(ipv4);
    if (why !== undefined) return `${block.name} of ${ipv4.join('.')}: ${why}`;
  }
  return undefined;
}

/**
 * Decides if one address is globally routable.
 * @param text an address as a resolver returns it, or from a URL without the brackets.
 * @returns the reason, for the owner's log, why the address is not routable; undefined if it is.
 */
export function addressNotPublicReason(text: string): string | undefined {
  const address = parseAddress(text);
  return address === undefined ? 'not an IP address' : notPublicReason(address);
}

/**
 * Matches names that always stay within the machine or its network (RFC 6761 §6.3, RFC 6762 §3, ICANN's
 * `.internal`).
 */
const LOCAL_NAME = /(?:^|\.)(?:localhost|local|internal|home\.arpa)$/;

/** Matches the host as it is written in the URL, before a parser has changed it. */
const AS_WRITTEN = /^[^/?#]*\/\/([^/?#]*?)(?::\d*)?(?:[/?#]|$)/;

/**
 * Returns the reason why a host is not public; undefined if it may be public. `hostname` comes from `URL`, which has
 * converted IPv6 into its canonical form, and every spelling of an IPv4 address into four decimal parts. Such spellings
 * are decimal, octal, hex, short, full-width, percent-encoded, or end in a dot.
 */
function hostNotPublicReason(hostname: string, url: string): string | undefined {
  if (hostname.startsWith('[')) return literalNotPublicReason(hostname, hostname.slice(1, -1));
  if (parseAddress(hostname) !== undefined) {
    // An IPv4 address in another spelling is refused, because other programs read it as another address or as a name.
    const written = AS_WRITTEN.exec(url)?.[1] === hostname;
    return (
      literalNotPublicReason(hostname, hostname) ??
      (written ? undefined : 'an IPv4 address in an odd spelling')
    );
  }
  const name = hostname.replace(/\.$/, '');
  // A name with an empty label is refused. Without one, the URL parser accepts no name that ends in a number.
  const odd = name.split('.').includes('');
  return odd || LOCAL_NAME.test(name) || !name.includes('.') ? `${hostname} is not a public host` : undefined;
}

function literalNotPublicReason(hostname: string, address: string): string | undefined {
  const why = addressNotPublicReason(address);
  return why === undefined ? undefined : `${hostname} is not a public host (${why})`;
}

/**
 * Decides, before anything is fetched, if a URL from a counterparty may be fetched. It must be https, without
 * userinfo, and its host must not be visibly private (verification.md §5.10, §5.11).
 * @param allowLoopback development: allows http and private hosts too.
 * @returns the reason, for the owner's log, to refuse the URL; undefined if it may be fetched.
 */
export function urlRefusedReason(url: string, allowLoopback: boolean): string | undefined {
  if (!URL.canParse(url)) return 'not an absolute URL';
  const { protocol, username, password, hostname } = new URL(url);
  if (protocol !== 'https:' && !(allowLoopback && protocol === 'http:')) return 'not an https URL';
  if (username !== '' || password !== '') return 'a URL with user information';
  return allowLoopback ? undefined : hostNotPublicReason(hostname, url);
}
