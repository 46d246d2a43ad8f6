/** An IP address as bytes: 4 or 16. */
export type Address = Uint8Array;

const IPV4 = /^(?:(?:0|[1-9]\d{0,2})\.){3}(?:0|[1-9]\d{0,2})$/;
const GROUP = /^[0-9a-f]{1,4}$/i;

/**
 * Strict: four decimal parts without leading zeros, or the text forms of RFC 4291 §2.2. No zone, no brackets, no octal,
 * no short forms: whoever reads those does so in more than one way.
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
  // A dotted quad may only be what the address ends with.
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

/** The first `prefix` bits are the same; addresses of the two families have none in common. */
export function sharesPrefix(a: Address, b: Address, prefix: number): boolean {
  if (a.length !== b.length) return false;
  const whole = prefix >> 3;
  for (let index = 0; index < whole; index += 1) if (a[index] !== b[index]) return false;
  const mask = 0xff & (0xff00 >> (prefix & 7));
  return ((a[whole] ?? 0) & mask) === ((b[whole] ?? 0) & mask);
}

const MAPPED: Address = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0);

/** Sockets that speak both families report an IPv4 peer in its mapped form. */
function unmapped(address: Address): Address {
  return sharesPrefix(address, MAPPED, 96) ? address.subarray(12) : address;
}

/** One host, however the two texts are spelled. */
export function sameAddress(a: string, b: string): boolean {
  const left = parseAddress(a);
  const right = parseAddress(b);
  // One that cannot be read (a zone) is only itself.
  if (left === undefined || right === undefined) return a === b;
  return sharesPrefix(unmapped(left), unmapped(right), unmapped(left).length * 8);
}
