// Forms the URLs that a seller may have signed when its signature does not verify for `publicUrl` (verification.md
// §2.34). The trial of a receiver and `explain` search them.
import type { Target } from '../auth/auth-contract.ts';
import { canonicalAuthority, type Scheme } from '../auth/rfc9421/host.ts';
import { canonicalOrUndefined, pathAndQuery, publicUrlOf, type PublicUrl } from './public-url.ts';

/** The source of each part of a URL that a seller may have been given (verification.md §2.34). */
export interface UrlForm {
  readonly scheme: Scheme;
  readonly authority: Source;
  /** The source of path and query. */
  readonly path: Source;
}

/**
 * The configured URL, or the request. `received` is `Host` or `:authority`, and the request target. It is never
 * `X-Forwarded-*`, which anybody can send.
 */
type Source = 'configured' | 'received';

const SOURCES: readonly Source[] = ['configured', 'received'];
const SCHEMES: readonly Scheme[] = ['https', 'http'];

/** All eight forms. The configured URL is one of them, so at most seven are left to try. */
export const URL_FORMS: readonly UrlForm[] = SOURCES.flatMap((path) =>
  SOURCES.flatMap((authority) => SCHEMES.map((scheme) => ({ scheme, authority, path }))),
);

/** The parts that a URL is put together from. */
export interface UrlEvidence {
  readonly publicUrl: PublicUrl;
  /** The target that `publicUrl` gives for this request. */
  readonly target: Target;
  /** The authority as received, before it is parsed. */
  readonly authority: string | undefined;
  readonly requestTarget: string;
  readonly allowLoopback: boolean;
}

/** A URL that `publicUrl` could be meant to be. */
export interface FormedUrl {
  /** The URL as the option would have to give it. */
  readonly publicUrl: string;
  readonly target: Target;
}

/** The URL of that form; undefined if the evidence gives none, or `publicUrl` could not hold it. */
export function formedUrl(form: UrlForm, evidence: UrlEvidence): FormedUrl | undefined {
  try {
    const { publicUrl, target, authority: received } = evidence;
    const text = form.authority === 'configured' ? target.authority : received;
    if (text === undefined) return undefined;
    const origin = `${form.scheme}://${canonicalAuthority(text, form.scheme)}`;
    return publicUrl.kind === 'exact'
      ? formedExact(origin, form, evidence)
      : formedPrefix(origin, form, evidence);
  } catch {
    // `Host` is malformed, or the option refuses such a URL: http, a fragment, a `*`.
    return undefined;
  }
}

/**
 * The characters that `URL` percent-encodes in a path, of those that a request target can have: `" < > ^ \` { }`
 * (WHATWG URL §1.3).
 */
const IN_PATH = /%(?:22|3[CE]|5E|60|7[BD])/gi;
/** The same for a query: `" ' < >`. */
const IN_QUERY = /%(?:2[27]|3[CE])/gi;
/**
 * The same for a query that was taken apart and put together again: all but `%` and the separators of its members.
 */
const IN_MEMBERS = /%(?:2[124789ACF]|3[ABCEF]|40|5[BCDE]|60|7[BCD])/gi;

/** The characters that `encodeURIComponent` leaves as they are, and other encoders encode. */
const LEFT = /[!'()*]/g;
const encoded = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

const without = (encoded: RegExp, text: string): string => text.replace(encoded, decodeURIComponent);

/**
 * The targets that a sender may have sent if a platform has rewritten one into `url` (verification.md §2.34). Path,
 * query, or both are in another percent-encoding. There are at most seven.
 * @param url path and query as the platform gives them.
 */
export function sentTargets(url: string): readonly string[] {
  const at = url.includes('?') ? url.indexOf('?') : url.length;
  const [path, query] = [url.slice(0, at), url.slice(at)];
  const sent = new Set(
    [without(IN_QUERY, query), without(IN_MEMBERS, query), query.replace(LEFT, encoded), query].flatMap(
      (sentQuery) => [without(IN_PATH, path), path].map((sentPath) => sentPath + sentQuery),
    ),
  );
  sent.delete(url);
  return [...sent];
}

/** Path and query of a canonical URL. */
function restOf({ targetUri }: Target): string {
  return targetUri.slice(targetUri.indexOf('/', 'https://'.length));
}

function formedExact(origin: string, form: UrlForm, evidence: UrlEvidence): FormedUrl | undefined {
  const { target, requestTarget, allowLoopback } = evidence;
  const rest = form.path === 'configured' ? restOf(target) : pathAndQuery(requestTarget);
  const formed = publicUrlOf(origin + rest, allowLoopback);
  return formed.kind === 'exact' ? { publicUrl: formed.target.targetUri, target: formed.target } : undefined;
}

/** Under a prefix, path and query are the request's in any case, so that only the origin can be wrong. */
function formedPrefix(origin: string, form: UrlForm, evidence: UrlEvidence): FormedUrl | undefined {
  const { publicUrl, requestTarget, allowLoopback } = evidence;
  if (publicUrl.kind !== 'prefix' || form.path === 'configured') return undefined;
  const formed = publicUrlOf(`${origin}${publicUrl.prefix.slice(publicUrl.origin.length)}*`, allowLoopback);
  if (formed.kind !== 'prefix') return undefined;
  const target = canonicalOrUndefined(formed.origin + pathAndQuery(requestTarget));
  return target && { publicUrl: `${formed.prefix}*`, target };
}
