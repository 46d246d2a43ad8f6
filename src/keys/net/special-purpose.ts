/** A block of addresses that no counterparty's host lies in, or whose addresses stand for others. */
export interface Block {
  readonly network: string;
  readonly prefix: number;
  /** As the registry names it. */
  readonly name: string;
  /** Where it is defined. */
  readonly source: string;
  /**
   * Where the bytes of an IPv4 address lie inside: such an address is judged by the one that it stands for. Several
   * where the block leaves the place open.
   */
  readonly embeds?: readonly Place[];
}

/** The four bytes, counted from 0 in the sixteen. */
export type Place = readonly [number, number, number, number];

function block(network: string, prefix: number, name: string, source: string, ...embeds: Place[]): Block {
  return { network, prefix, name, source, ...(embeds.length > 0 && { embeds }) };
}

const LAST_FOUR: Place = [12, 13, 14, 15];

/** Every row of the IANA IPv4 Special-Purpose Address Registry, the globally reachable ones too. */
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

/** What that registry leaves out (verification.md §5.11). */
export const IPV4_BEYOND: readonly Block[] = [
  block('224.0.0.0', 4, 'Multicast', 'RFC 5771'),
  // Inside each machine of a large cloud it is the machine's own host, with secrets to give.
  block('168.63.129.16', 32, 'Cloud host service', 'verification.md §5.11'),
];

/** Every row of the IANA IPv6 Special-Purpose Address Registry. */
export const IPV6_SPECIAL: readonly Block[] = [
  block('::1', 128, 'Loopback Address', 'RFC 4291 §2.5.3'),
  block('::', 128, 'Unspecified Address', 'RFC 4291 §2.5.2'),
  block('::ffff:0:0', 96, 'IPv4-mapped Address', 'RFC 4291 §2.5.5.2', LAST_FOUR),
  block('64:ff9b::', 96, 'IPv4-IPv6 Translat.', 'RFC 6052 §2.1', LAST_FOUR),
  // A site picks a prefix of its own inside: the IPv4 address lies where RFC 6052 §2.2 puts it for /48, /56, /64, /96.
  block(
    '64:ff9b:1::',
    48,
    'IPv4-IPv6 Translat. (local use)',
    'RFC 8215',
    ...([[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], LAST_FOUR] satisfies Place[]),
  ),
  block('100::', 64, 'Discard-Only Address Block', 'RFC 6666'),
  block('100:0:0:1::', 64, 'Dummy IPv6 Prefix', 'RFC 9780'),
  block('2001::', 23, 'IETF Protocol Assignments', 'RFC 2928'),
  // It embeds two addresses, the second one disguised; nobody serves from it.
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

/** What that registry leaves out: a form that embeds, and a part of 2000::/3 that was taken back. */
export const IPV6_BEYOND: readonly Block[] = [
  block('::', 96, 'IPv4-compatible Address', 'RFC 4291 §2.5.5.1', LAST_FOUR),
  // Nobody holds it, so that what answers there is a leftover of somebody's own network.
  block('3ffe::', 16, 'Returned (6bone)', 'RFC 3701'),
];

/** The whole of what IANA gives out for global unicast: what lies outside of it is refused, named above or not. */
export const IPV6_GLOBAL: Block = block('2000::', 3, 'Global Unicast', 'RFC 4291 §2.4');
