import { parseAddress } from './net/address.ts';
import { addressRefused } from './net/judge-address.ts';

/** Names that never lead out of the machine or its network (RFC 6761 §6.3, RFC 6762 §3, ICANN's `.internal`). */
const LOCAL_NAME = /(?:^|\.)(?:localhost|local|internal|home\.arpa)$/;

/** The host as it stands in the URL, before any parser has touched it. */
const AS_WRITTEN = /^[^/?#]*\/\/([^/?#]*?)(?::\d*)?(?:[/?#]|$)/;

/**
 * `hostname` as `URL` gives it: the parser has turned every textual form of an IPv4 address (decimal, octal, hex, short,
 * full-width, percent-encoded, with a trailing dot) into four decimal parts, and IPv6 into its canonical form.
 */
function hostRefused(hostname: string, url: string): string | undefined {
  if (hostname.startsWith('[')) return literalRefused(hostname, hostname.slice(1, -1));
  if (parseAddress(hostname) !== undefined) {
    // Others read the same text as another address, or as a name.
    const written = AS_WRITTEN.exec(url)?.[1] === hostname;
    return literalRefused(hostname, hostname) ?? (written ? undefined : 'an IPv4 address in an odd spelling');
  }
  const name = hostname.replace(/\.$/, '');
  // A name that ends in a number does not get through the URL parser, but with an empty label behind it.
  const odd = name.split('.').includes('');
  return odd || LOCAL_NAME.test(name) || !name.includes('.') ? `${hostname} is not a public host` : undefined;
}

function literalRefused(hostname: string, address: string): string | undefined {
  const why = addressRefused(address);
  return why === undefined ? undefined : `${hostname} is not a public host (${why})`;
}

/**
 * Judges a URL that a counterparty chose, before anything is fetched from it: https only, no userinfo, no host that is
 * visibly not public (verification.md §5.10, §5.11).
 * @param allowLoopback development: http and private hosts too.
 * @returns why it is refused, for the owner's log, or undefined where it may be fetched.
 */
export function refusedUrl(url: string, allowLoopback: boolean): string | undefined {
  if (!URL.canParse(url)) return 'not an absolute URL';
  const { protocol, username, password, hostname } = new URL(url);
  if (protocol !== 'https:' && !(allowLoopback && protocol === 'http:')) return 'not an https URL';
  if (username !== '' || password !== '') return 'a URL with user information';
  return allowLoopback ? undefined : hostRefused(hostname, url);
}
