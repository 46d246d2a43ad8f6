import type { Head } from '../../shared/delivery.ts';
import type { Target } from '../auth-contract.ts';
import { PrintableError } from '../../codec/printable-value.ts';

/**
 * Thrown by `canonicalTargetUri` for a URL or a `Host` that has no canonical form. `message` is for the receiver's
 * operator.
 */
export class TargetUriError extends PrintableError {
  override readonly name = 'TargetUriError';
  /** The stable code, always `webhook_target_uri_malformed`. */
  readonly code = 'webhook_target_uri_malformed';
}

/** The schemes that a webhook URL can have, with the port that is left out of the canonical form. */
export type Scheme = 'https' | 'http';
const DEFAULT_PORTS: Record<Scheme, number> = { https: 443, http: 80 };

/** RFC 3986 §3.2.2 `IPv4address`: no leading zeros. */
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?=\d)|$)){4}$/;

/** RFC 3986 §3.2.2 `IPv6address`, lower case. */
function isIpv6(text: string): boolean {
  const halves = text.split('::');
  if (halves.length > 2) return false;
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')));
  const last = groups.at(-1) ?? '';
  // The dotted form may only stand at the very end, where it takes the place of two groups.
  const dotted = text.endsWith(last) && IPV4.test(last);
  const hex = dotted ? groups.slice(0, -1) : groups;
  if (!hex.every((group) => /^[0-9a-f]{1,4}$/.test(group))) return false;
  const count = hex.length + (dotted ? 2 : 0);
  return halves.length === 2 ? count <= 7 : count === 8;
}

/**
 * UTS-46, non-transitional, by the platform's URL host parser: the one part of `URL` that is used.
 * What else that parser does to a host (percent-decoding, IPv4 numbers, dropped tabs) must not happen here, so
 * only letters, digits, `-`, `_`, `.` and non-ASCII go in, and what comes out as a number is refused.
 */
function toAscii(host: string): string {
  if (!/^(?:[A-Za-z0-9._-]|\P{ASCII})+$/u.test(host))
    throw new TargetUriError('Host has a forbidden character.');
  let ascii: string;
  try {
    ascii = new URL(`https://${host}`).hostname;
  } catch (cause) {
    throw new TargetUriError('Host is not an internationalized domain name.', { cause });
  }
  if (/(?:^|\.)(?:\d+|0x[0-9a-f]*)\.?$/.test(ascii))
    throw new TargetUriError('Host is a number in non-ASCII characters.');
  return ascii;
}

function canonicalName(host: string): string {
  const ascii = /^\p{ASCII}*$/u.test(host) ? host.toLowerCase() : toAscii(host);
  const name = ascii.endsWith('.') ? ascii.slice(0, -1) : ascii;
  if (name === '') throw new TargetUriError('Host is empty.');
  // RFC 3986 would let a reg-name hold percent-encodings and sub-delims; no name that resolves has them.
  if (!/^[a-z0-9._-]+$/.test(name)) throw new TargetUriError('Host has a forbidden character.');
  if (name.split('.').includes('')) throw new TargetUriError('Host has an empty label.');
  return name;
}

function canonicalLiteral(literal: string): string {
  if (literal.includes('%')) throw new TargetUriError('Host is an IPv6 address with a zone id.');
  const address = literal.toLowerCase();
  if (!isIpv6(address)) throw new TargetUriError('Host is not an IPv6 address.');
  return `[${address}]`;
}

function portSuffix(text: string, scheme: Scheme): string {
  // RFC 3986 §6.2.3: an empty port is the default port.
  if (text === '' || text === ':') return '';
  if (!/^:[0-9]{1,16}$/.test(text)) {
    throw new TargetUriError('Port is not a number, or an IPv6 address stands without brackets.');
  }
  const port = Number(text.slice(1));
  if (port > 65_535) throw new TargetUriError('Port is above 65535.');
  return port === DEFAULT_PORTS[scheme] ? '' : `:${port}`;
}

/**
 * Canonical `host[:port]`, the form of `@authority` (verification.md §4.2 to §4.4).
 * @param text `uri-host [":" port]` as in a `Host` field or a URL without userinfo.
 * @param scheme decides which port is the default.
 * @throws TargetUriError
 */
export function canonicalAuthority(text: string, scheme: Scheme): string {
  if (text.startsWith('[')) {
    const end = text.indexOf(']');
    if (end < 0) throw new TargetUriError('Host lacks its closing bracket.');
    return canonicalLiteral(text.slice(1, end)) + portSuffix(text.slice(end + 1), scheme);
  }
  const colon = text.indexOf(':');
  const end = colon < 0 ? text.length : colon;
  return canonicalName(text.slice(0, end)) + portSuffix(text.slice(end), scheme);
}

/**
 * What the request says of its own authority, against the configured URL (verification.md §4.11 to §4.13).
 * `differs` is decided by the signature: only the seller can have signed our URL, so where it verifies a proxy of
 * ours rewrote `Host`. `contradiction` is refused whatever the signature says.
 */
export type HostComparison =
  | { readonly kind: 'same' }
  | { readonly kind: 'differs'; readonly received: string }
  | { readonly kind: 'contradiction'; readonly detail: string };

/** An absolute-form request target (RFC 9112 §3.2.2); userinfo has no place in it. */
const ABSOLUTE_FORM = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([^/?#]*)/;

/** Canonical, or as it came where it has no canonical form: then it equals no configured authority. */
function authorityOf(text: string, scheme: Scheme): string {
  try {
    return canonicalAuthority(text, scheme);
  } catch {
    return text;
  }
}

/** `:authority` and `Host`, in the order of their weight. */
function hostLines({ headers }: Head): readonly string[] {
  return [...(headers.get(':authority') ?? []), ...(headers.get('host') ?? [])];
}

/** The authority that the request was sent to, by its own word, as it came. Never of `X-Forwarded-*`. */
export function receivedAuthority(delivery: Head): string | undefined {
  return hostLines(delivery)[0] ?? ABSOLUTE_FORM.exec(delivery.url ?? '')?.[2];
}

/** Every authority that the request names: `:authority`, `Host`, absolute-form target, in the order of their weight. */
function authoritiesOf(delivery: Head, scheme: Scheme): readonly string[] {
  const authorities = hostLines(delivery).map((line) => authorityOf(line, scheme));
  const absolute = ABSOLUTE_FORM.exec(delivery.url ?? '');
  if (absolute) {
    const [, ownScheme = '', authority = ''] = absolute;
    // A proxy that ends TLS passes `http://`; each form is read with the default port of its own scheme.
    authorities.push(authorityOf(authority, ownScheme.toLowerCase() === 'https' ? 'https' : 'http'));
  }
  return authorities;
}

/** An authority under another scheme is none of ours, and has no default port to compare it by. */
function isForeign(url: string | undefined): boolean {
  const scheme = ABSOLUTE_FORM.exec(url ?? '')?.[1]?.toLowerCase();
  return scheme !== undefined && scheme !== 'https' && scheme !== 'http';
}

/** More than one line, or lines that `Headers` joined: no host name holds a comma. */
function isRepeated(delivery: Head, name: 'host' | ':authority'): boolean {
  const lines = delivery.headers.get(name) ?? [];
  return lines.length > 1 || lines.some((line) => line.includes(','));
}

export const SAME: HostComparison = { kind: 'same' };

/**
 * The request names no authority, or one: in one line of `Host` or `:authority`, and it is ours as it is written in
 * canonical form.
 */
function isPlainHost({ headers, url }: Head, { authority }: Target): boolean {
  const host = headers.get('host');
  const lines = headers.get(':authority') ?? host;
  if (lines !== host && host !== undefined) return false;
  const isOurs = lines === undefined || (lines.length === 1 && lines[0] === authority);
  return isOurs && (url === undefined || url.startsWith('/'));
}

/**
 * The part of check 10 that needs no key. Nothing is ever derived from `X-Forwarded-*`.
 * @param hostCheck `off`: the configured URL stands alone; contradictions inside the request remain.
 */
export function compareHost(delivery: Head, target: Target, hostCheck: 'strict' | 'off'): HostComparison {
  if (isPlainHost(delivery, target)) return SAME;
  if (isRepeated(delivery, 'host') || isRepeated(delivery, ':authority')) {
    return { kind: 'contradiction', detail: 'Host is repeated.' };
  }
  if (isForeign(delivery.url)) {
    return { kind: 'contradiction', detail: 'The request target is neither https nor http.' };
  }
  const scheme: Scheme = target.targetUri.startsWith('https:') ? 'https' : 'http';
  const [received, ...others] = authoritiesOf(delivery, scheme);
  if (received === undefined) return SAME;
  if (others.some((other) => other !== received)) {
    return {
      kind: 'contradiction',
      detail: 'Host, :authority and request target name different authorities.',
    };
  }
  return hostCheck === 'off' || received === target.authority ? SAME : { kind: 'differs', received };
}
