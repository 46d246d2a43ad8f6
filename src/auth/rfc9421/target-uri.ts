import type { Target } from '../contract.ts';
import type { Scheme } from './host-name.ts';
import { canonicalAuthority, TargetUriError } from './host-name.ts';

export { TargetUriError } from './host-name.ts';

/** Scheme, authority, path, query with its `?`; the fragment is matched and dropped (RFC 3986, appendix B). */
const URI = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?$/s;

/** RFC 3986 §3.2.1. */
const USERINFO = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:]|%[0-9A-Fa-f]{2})*$/;

/** RFC 3986 §5.2.4 for a path that is empty or starts with a slash; consecutive slashes stay as they are. */
function removeDotSegments(path: string): string {
  const segments = path.split('/').slice(1);
  const output: string[] = [];
  for (const segment of segments) {
    if (segment === '..') output.pop();
    else if (segment !== '.') output.push(segment);
  }
  // A final dot segment names a directory: its slash stays.
  const last = segments.at(-1);
  if (last === '.' || last === '..') output.push('');
  return `/${output.join('/')}`;
}

/** RFC 3986 §6.2.2.1 and §6.2.2.2: hex upper case, unreserved characters decoded, everything else as it is. */
function normalizePercent(path: string): string {
  return path.replace(/%[0-9A-Fa-f]{2}/g, (triplet) => {
    const char = String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
    return /[A-Za-z0-9\-._~]/.test(char) ? char : triplet.toUpperCase();
  });
}

function canonicalPath(path: string): string {
  // RFC 3986 has no place for it, and many a parser of URLs takes it for a slash.
  if (path.includes('\\')) throw new TargetUriError('Path has a backslash.');
  const normal = normalizePercent(removeDotSegments(path));
  // `%%34%31` would decode to `%41`, which would decode again: no form of it is canonical.
  if (normalizePercent(normal) !== normal)
    throw new TargetUriError('Path has an ambiguous percent-encoding.');
  // `%2E%2E` has become a dot segment by now; without this a canonical form would have another canonical form.
  return removeDotSegments(normal);
}

function schemeOf(text: string): Scheme {
  const scheme = text.toLowerCase();
  if (scheme !== 'https' && scheme !== 'http') throw new TargetUriError('Scheme is neither https nor http.');
  return scheme;
}

function withoutUserinfo(authority: string): string {
  const at = authority.lastIndexOf('@');
  if (!USERINFO.test(authority.slice(0, Math.max(at, 0)))) {
    throw new TargetUriError('Userinfo has a forbidden character.');
  }
  return authority.slice(at + 1);
}

/**
 * Canonical `@target-uri` and `@authority` of the URL that sellers were given (verification.md §4.1 to
 * §4.8). Idempotent. `URL` is no substitute: it rewrites queries and decodes differently.
 * @param url absolute, `https` or `http`.
 * @returns `targetUri`, e.g. `https://buyer.example/hooks?x=1`, and `authority`, e.g. `buyer.example:8443`.
 * @throws TargetUriError (code `webhook_target_uri_malformed`) for a URL that has no canonical form.
 */
export function canonicalTargetUri(url: string): Target {
  // No URI holds white space, controls or lone surrogates; a line feed would forge a line of the signature base.
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u0020\u007f]|\p{Surrogate}/u.test(url))
    throw new TargetUriError('URL has a forbidden character.');
  const match = URI.exec(url);
  if (!match) throw new TargetUriError('URL is not absolute.');
  const [, schemeText = '', authorityText = '', path = '', query = ''] = match;
  const scheme = schemeOf(schemeText);
  const authority = canonicalAuthority(withoutUserinfo(authorityText), scheme);
  return { targetUri: `${scheme}://${authority}${canonicalPath(path)}${query}`, authority };
}
