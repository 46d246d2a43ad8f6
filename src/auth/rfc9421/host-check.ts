import type { Head } from '../../delivery.ts';
import type { Target } from '../contract.ts';
import type { Scheme } from './host-name.ts';
import { canonicalAuthority } from './host-name.ts';

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

/** One `Host` line that is our authority as it is written in canonical form, and no other name of it. */
function isUsual({ headers, url }: Head, { authority }: Target): boolean {
  const lines = headers.get('host');
  const alone = lines?.length === 1 && lines[0] === authority && !headers.has(':authority');
  return alone && (url === undefined || url.startsWith('/'));
}

/**
 * The part of check 10 that needs no key. Nothing is ever derived from `X-Forwarded-*`.
 * @param hostCheck `off`: the configured URL stands alone; contradictions inside the request remain.
 */
export function compareHost(delivery: Head, target: Target, hostCheck: 'strict' | 'off'): HostComparison {
  if (isUsual(delivery, target)) return SAME;
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
