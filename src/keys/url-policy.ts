/** IPv4 address as an unsigned 32-bit number. */
type Ipv4 = number;

/**
 * Every block of the IANA IPv4 special-purpose registry, globally reachable ones included, then multicast, 240/4 and
 * the host-internal service address of a large cloud (verification.md, section 5 "Fetching counterparty URLs").
 */
const IPV4_REFUSED: readonly (readonly [network: string, prefix: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
  ['168.63.129.16', 32],
];

/** Names that never lead out of the machine or its network (RFC 6761 §6.3, RFC 6762 §3, ICANN's `.internal`). */
const LOCAL_NAME = /(?:^|\.)(?:localhost|local|internal|home\.arpa)$/;

function ipv4Number(dotted: string): Ipv4 {
  return dotted.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

function ipv4Refused(dotted: string): boolean {
  const address = ipv4Number(dotted);
  return IPV4_REFUSED.some(([network, prefix]) => {
    const size = 2 ** (32 - prefix);
    return Math.floor(address / size) === Math.floor(ipv4Number(network) / size);
  });
}

/** The eight groups of an IPv6 address in the serialisation of the URL standard (§3.5: hex, compressed, no dots). */
function ipv6Groups(text: string): number[] {
  const [head = '', tail] = text.split('::');
  const groups = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const left = groups(head);
  const right = tail === undefined ? [] : groups(tail);
  return [...left, ...Array.from({ length: 8 - left.length - right.length }, () => 0), ...right];
}

/**
 * Allow-list: 2000::/3 less its special blocks. Forms that embed an IPv4 address (mapped, compatible, NAT64, 6to4,
 * Teredo) lie outside of what is left, so none needs to be looked into.
 */
function ipv6Refused(text: string): boolean {
  const [a = 0, b = 0, c = 0] = ipv6Groups(text);
  if (a < 0x2000 || a > 0x3fff) return true;
  if (a === 0x2001 && (b < 0x0200 || b === 0x0db8)) return true; // 2001::/23, 2001:db8::/32
  if (a === 0x2002) return true; // 6to4
  if (a === 0x2620 && b === 0x4f && c === 0x8000) return true; // 2620:4f:8000::/48
  return a === 0x3fff && b < 0x1000; // 3fff::/20
}

/**
 * `hostname` as `URL` gives it: the parser has turned every textual form of an IPv4 address (decimal, octal, hex, short,
 * full-width, percent-encoded, with a trailing dot) into four decimal parts.
 */
function hostRefused(hostname: string): string | undefined {
  const name = hostname.replace(/\.$/, '');
  const local = name.startsWith('[')
    ? ipv6Refused(name.slice(1, -1))
    : /^\d+\.\d+\.\d+\.\d+$/.test(name)
      ? ipv4Refused(name)
      : LOCAL_NAME.test(name) || !name.includes('.');
  return local ? `${hostname} is not a public host` : undefined;
}

/**
 * Judges a URL that a counterparty chose, before anything is fetched from it: https only, no userinfo, no host that is
 * visibly not public (verification.md, section 5).
 * @param allowLoopback development: http and private hosts too.
 * @returns why it is refused, for the owner's log, or undefined where it may be fetched.
 */
export function refusedUrl(url: string, allowLoopback: boolean): string | undefined {
  if (!URL.canParse(url)) return 'not an absolute URL';
  const { protocol, username, password, hostname } = new URL(url);
  if (protocol !== 'https:' && !(allowLoopback && protocol === 'http:')) return 'not an https URL';
  if (username !== '' || password !== '') return 'a URL with user information';
  return allowLoopback ? undefined : hostRefused(hostname);
}
