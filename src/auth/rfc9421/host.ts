// Brings authorities (`host[:port]`) to canonical form, and compares `Host` with the configured URL (verification.md
// §4.2 to §4.4, §4.11 to §4.14).
// Called for check 10 (the signature), for the choice among several base URLs, and to find a wrong `publicUrl`.

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

/** Matches an `IPv4address` of RFC 3986 §3.2.2: no leading zeros. */
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?=\d)|$)){4}$/;

/** True for an `IPv6address` of RFC 3986 §3.2.2, in lower case. */
function isIpv6(text: string): boolean {
  const halves = text.split('::');
  if (halves.length > 2) return false;
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')));
  const last = groups.at(-1) ?? '';
  // An IPv4 address may only be at the very end of an IPv6 address, where it takes the place of two groups.
  const dotted = text.endsWith(last) && IPV4.test(last);
  const hex = dotted ? groups.slice(0, -1) : groups;
  if (!hex.every((group) => /^[0-9a-f]{1,4}$/.test(group))) return false;
  const count = hex.length + (dotted ? 2 : 0);
  return halves.length === 2 ? count <= 7 : count === 8;
}

/**
 * Converts a host name to ASCII by UTS-46 (non-transitional), with the platform's URL parser. That parser would
 * also decode percent signs, read IPv4 numbers and drop tabs, which must not happen here. So only letters, digits,
 * `-`, `_`, `.` and non-ASCII characters are passed to it, and a result that is a number is refused.
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
  // RFC 3986 allows percent-encodings and sub-delims in a reg-name, but no name that DNS resolves has them.
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
 * Returns the canonical `host[:port]`, the form of `@authority` (verification.md §4.2 to §4.4).
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
 * Result of comparing the request's own authority with the configured URL (verification.md §4.11 to §4.13). After
 * `differs` the signature decides. Only the seller can have signed the configured URL, so if the signature verifies, a
 * proxy of the receiver changed `Host`. After `contradiction` the delivery is refused even if the signature is valid.
 */
export type HostComparison =
  | { readonly kind: 'same' }
  | { readonly kind: 'differs'; readonly received: string }
  | { readonly kind: 'contradiction'; readonly detail: string };

/** Matches an absolute-form request target (RFC 9112 §3.2.2); userinfo is not allowed in it. */
const ABSOLUTE_FORM = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([^/?#]*)/;

/**
 * Returns the canonical form of an authority. If there is none, returns the text itself, which equals no configured
 * authority.
 */
function authorityOf(text: string, scheme: Scheme): string {
  try {
    return canonicalAuthority(text, scheme);
  } catch {
    return text;
  }
}

/** Returns the lines of `:authority` and `Host`, in order of precedence. */
function hostLines({ headers }: Head): readonly string[] {
  return [...(headers.get(':authority') ?? []), ...(headers.get('host') ?? [])];
}

/** Returns the authority that the request itself names, unchanged. `X-Forwarded-*` is never used. */
export function receivedAuthority(delivery: Head): string | undefined {
  return hostLines(delivery)[0] ?? ABSOLUTE_FORM.exec(delivery.url ?? '')?.[2];
}

/**
 * Returns every authority that the request names, in order of precedence: `:authority`, `Host`, absolute-form target.
 */
function authoritiesOf(delivery: Head, scheme: Scheme): readonly string[] {
  const authorities = hostLines(delivery).map((line) => authorityOf(line, scheme));
  const absolute = ABSOLUTE_FORM.exec(delivery.url ?? '');
  if (absolute) {
    const [, ownScheme = '', authority = ''] = absolute;
    // A proxy that ends TLS may send `http://`, so each form is read with the default port of its own scheme.
    authorities.push(authorityOf(authority, ownScheme.toLowerCase() === 'https' ? 'https' : 'http'));
  }
  return authorities;
}

/**
 * True for a target with a scheme other than http or https. It is never the configured URL, and has no default port for
 * a comparison.
 */
function isForeign(url: string | undefined): boolean {
  const scheme = ABSOLUTE_FORM.exec(url ?? '')?.[1]?.toLowerCase();
  return scheme !== undefined && scheme !== 'https' && scheme !== 'http';
}

/** True for several lines, or for lines that `Headers` has joined, because no host name contains a comma. */
function isRepeated(delivery: Head, name: 'host' | ':authority'): boolean {
  const lines = delivery.headers.get(name) ?? [];
  return lines.length > 1 || lines.some((line) => line.includes(','));
}

export const SAME: HostComparison = { kind: 'same' };

/**
 * True if the request names no authority, or only the configured one, in one line of `Host` or `:authority` in
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
 * Compares the request's host with the configured URL, which is the part of check 10 that needs no key. `X-Forwarded-*`
 * is never used.
 * @param hostCheck `off`: the request's host is not compared with the configured URL, but contradictions inside the
 * request are still refused.
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
