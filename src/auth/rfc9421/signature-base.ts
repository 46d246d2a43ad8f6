// Builds the signature base and the canonical target URI of a request (RFC 9421 §2.5, verification.md §4.1 to
// §4.10).
// Called by verification, by signing, and for every configured URL.

import { fieldValue, type HeaderFields } from '../../shared/delivery.ts';
import type { Target } from '../auth-contract.ts';
import { canonicalAuthority, type Scheme, TargetUriError } from './host.ts';

/**
 * The parts of a request from which `signatureBase` builds the signed text: the method, the canonical URL and the
 * headers.
 */
export interface RequestFacts {
  /** The request method. The signature base has it in upper case. */
  readonly method: string;
  /** The canonical target, as `canonicalTargetUri` returns it. */
  readonly target: Target;
  readonly headers: HeaderFields;
}

/** The five components that every signature of the profile covers (contract.md §5.5). */
export const REQUIRED_COMPONENTS: readonly string[] = Object.freeze([
  '@method',
  '@target-uri',
  '@authority',
  'content-type',
  'content-digest',
]);

/** Matches the parts of a canonical target URI: scheme, path, and query with its `?`. */
const CANONICAL_URI = /^(https?):\/\/[^/]*([^?]*)(.*)$/s;

function uriPart(facts: RequestFacts, part: 1 | 2 | 3): string {
  return CANONICAL_URI.exec(facts.target.targetUri)?.[part] ?? '';
}

/**
 * Derived components (RFC 9421 §2.2). All except the method come from the configured URL, because proxies may
 * change the request's own URL.
 */
const DERIVED: ReadonlyMap<string, (facts: RequestFacts) => string> = new Map([
  ['@method', (facts: RequestFacts) => facts.method.toUpperCase()],
  ['@target-uri', (facts) => facts.target.targetUri],
  ['@authority', (facts) => facts.target.authority],
  ['@scheme', (facts) => uriPart(facts, 1)],
  ['@path', (facts) => uriPart(facts, 2)],
  // RFC 9421 §2.2.7: an absent query is a lone question mark.
  ['@query', (facts) => uriPart(facts, 3) || '?'],
  ['@request-target', (facts) => uriPart(facts, 2) + uriPart(facts, 3)],
]);

/** RFC 9421 §2: a component name is a field name in lower case. */
const FIELD_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;

/** True if `name`, in lower case, can be the name of a header. */
export const isFieldName = (name: string): boolean => FIELD_NAME.test(name);

/** RFC 9421 §2.5: the signature base is ASCII, and a line feed in a value would forge one of its lines. */
const FIELD_VALUE = /^[\t\x20-\x7e]*$/;

/**
 * Returns the value of a header as it is written in the signature base. Undefined if the request has no usable value.
 */
function plainField(name: string, headers: HeaderFields): string | undefined {
  return isFieldName(name) ? textOf(name, headers) : undefined;
}

function textOf(name: string, headers: HeaderFields): string | undefined {
  const value = fieldValue(headers, name);
  return value !== undefined && FIELD_VALUE.test(value) ? value : undefined;
}

/** True if the request has a usable value for each of the five required components. */
export function coversRequired(headers: HeaderFields): boolean {
  return textOf('content-type', headers) !== undefined && textOf('content-digest', headers) !== undefined;
}

/**
 * Builds the lines of the five required components in one step. The text is the same that `componentValue` would give.
 */
function requiredLines({ method, target, headers }: RequestFacts): string | undefined {
  const type = textOf('content-type', headers);
  const digest = textOf('content-digest', headers);
  if (type === undefined || digest === undefined) return undefined;
  return `"@method": ${method.toUpperCase()}\n"@target-uri": ${target.targetUri}\n"@authority": ${target.authority}\n"content-type": ${type}\n"content-digest": ${digest}\n`;
}

/** True if `component` can be in this request's signature base. It must have no parameters, as check 6 demands. */
export function isCoverable(component: string, headers: HeaderFields): boolean {
  return DERIVED.has(component) || plainField(component, headers) !== undefined;
}

/** Returns the value of a component (RFC 9421 §2.1, §2.2); undefined if the request has none. */
function componentValue(component: string, facts: RequestFacts): string | undefined {
  return DERIVED.get(component)?.(facts) ?? plainField(component, facts.headers);
}

/**
 * Matches scheme, authority, path, and query with its `?`; the fragment is matched and dropped (RFC 3986,
 * appendix B).
 */
const URI = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?$/s;

/** Matches the userinfo of RFC 3986 §3.2.1. */
const USERINFO = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:]|%[0-9A-Fa-f]{2})*$/;

/**
 * Removes dot segments (RFC 3986 §5.2.4) from a path that is empty or starts with a slash. Consecutive slashes are
 * kept.
 */
function removeDotSegments(path: string): string {
  const segments = path.split('/').slice(1);
  const output: string[] = [];
  for (const segment of segments) {
    if (segment === '..') output.pop();
    else if (segment !== '.') output.push(segment);
  }
  // A final dot segment means a directory, so its slash is kept.
  const last = segments.at(-1);
  if (last === '.' || last === '..') output.push('');
  return `/${output.join('/')}`;
}

/**
 * Applies RFC 3986 §6.2.2.1 and §6.2.2.2: hex in upper case, unreserved characters decoded, everything else
 * unchanged.
 */
function normalizePercent(path: string): string {
  return path.replace(/%[0-9A-Fa-f]{2}/g, (triplet) => {
    const char = String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
    return /[A-Za-z0-9\-._~]/.test(char) ? char : triplet.toUpperCase();
  });
}

function canonicalPath(path: string): string {
  // RFC 3986 does not allow a backslash, and many URL parsers read it as a slash.
  if (path.includes('\\')) throw new TargetUriError('Path has a backslash.');
  const normal = normalizePercent(removeDotSegments(path));
  // `%%34%31` would decode to `%41`, which could be decoded again, so the path has no canonical form.
  if (normalizePercent(normal) !== normal)
    throw new TargetUriError('Path has an ambiguous percent-encoding.');
  // The percent-encoded `%2E%2E` has become a dot segment and must be removed. Otherwise the result would change if it
  // were canonicalised again.
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
 * Returns the canonical `@target-uri` and `@authority` of a webhook URL, which its signatures cover. The result does
 * not change if it is passed in again. `URL` is no substitute, because it rewrites queries and decodes differently.
 * @param url absolute, `https` or `http`.
 * @returns `targetUri`, e.g. `https://buyer.example/hooks?x=1`, and `authority`, e.g. `buyer.example:8443`.
 * @throws TargetUriError (code `webhook_target_uri_malformed`) for a URL that has no canonical form.
 * @example
 * ```ts
 * import { canonicalTargetUri } from 'proto-webhooks/rfc9421';
 *
 * const { authority, targetUri } = canonicalTargetUri('https://Buyer.example:443/hooks?x=1');
 * console.log(authority, targetUri); // buyer.example https://buyer.example/hooks?x=1
 * ```
 */
export function canonicalTargetUri(url: string): Target {
  // No URI has white space, controls or lone surrogates; a line feed would forge a line of the signature
  // base.
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

/**
 * Builds the text that a signature covers (RFC 9421 §2.5): one line for each component, then `@signature-params`.
 * Signers and verifiers both use it; encode it with `TextEncoder`.
 * @param components names without parameters, in the order of `signatureParams`, e.g.
 *   `['@method', 'content-type']`.
 * @param facts method, canonical target and header fields.
 * @param signatureParams the inner list with its parameters, exactly as in `Signature-Input` after `sig1=`. A
 *   verifier passes the text as received, because a new serialisation could differ from the signed one.
 * @returns undefined if the request has no value for a component, or if a field's value is not printable ASCII.
 * @example
 * ```ts
 * import { canonicalTargetUri, signatureBase } from 'proto-webhooks/rfc9421';
 *
 * const target = canonicalTargetUri('https://buyer.example/hooks');
 * const headers = new Map([['content-type', ['application/json']]]);
 * const params = '("@method" "content-type");created=1700000000;keyid="key-1"';
 * console.log(signatureBase(['@method', 'content-type'], { method: 'POST', target, headers }, params));
 * ```
 */
export function signatureBase(
  components: readonly string[],
  facts: RequestFacts,
  signatureParams: string,
): string | undefined {
  if (!/^[\x20-\x7e]*$/.test(signatureParams)) return undefined;
  // For the required components, the fast parser (`parseSignatureInputFast`) returns this same array.
  const isRequired = components === REQUIRED_COMPONENTS;
  const lines = isRequired ? requiredLines(facts) : linesOf(components, facts);
  return lines === undefined ? undefined : `${lines}"@signature-params": ${signatureParams}`;
}

function linesOf(components: readonly string[], facts: RequestFacts): string | undefined {
  let lines = '';
  for (const component of components) {
    const value = componentValue(component, facts);
    if (value === undefined) return undefined;
    lines += `"${component}": ${value}\n`;
  }
  return lines;
}
