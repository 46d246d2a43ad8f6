// Builds the URLs that a seller may have signed when its signature does not verify for `publicUrl` (verification.md
// §2.34). A receiver's search for a wrong `publicUrl` and the command `explain` try these URLs.
import type { Target } from '../auth/auth-contract.ts';
import { canonicalAuthority, type Scheme } from '../auth/rfc9421/host.ts';
import { canonicalOrUndefined, pathAndQuery, publicUrlOf, type PublicUrl } from './public-url.ts';

/** For each part of a URL that a seller may have signed, the source of that part (verification.md §2.34). */
export interface UrlForm {
  readonly scheme: Scheme;
  readonly authority: Source;
  /** The source of path and query. */
  readonly path: Source;
}

/**
 * The source of a part of a URL: the configured URL, or the request as received (`Host` or `:authority`, and the
 * request target). `X-Forwarded-*` is never used, because anybody can send it.
 */
type Source = 'configured' | 'received';

const SOURCES: readonly Source[] = ['configured', 'received'];
const SCHEMES: readonly Scheme[] = ['https', 'http'];

/** All eight combinations of sources. One of them gives the configured URL, so at most seven are left to try. */
export const URL_FORMS: readonly UrlForm[] = SOURCES.flatMap((path) =>
  SOURCES.flatMap((authority) => SCHEMES.map((scheme) => ({ scheme, authority, path }))),
);

/** The facts from which a URL is put together. */
export interface UrlEvidence {
  readonly publicUrl: PublicUrl;
  /** The URL of this request according to `publicUrl`. */
  readonly target: Target;
  /** The authority as received, before it is parsed. */
  readonly authority: string | undefined;
  readonly requestTarget: string;
  readonly allowLoopback: boolean;
}

/** A URL that may be the right value of `publicUrl`. */
export interface FormedUrl {
  /** The value of the option `publicUrl` with which the receiver would expect this URL. */
  readonly publicUrl: string;
  readonly target: Target;
}

/**
 * Returns the URL whose parts come from the sources in `form`; undefined if a part is missing, or `publicUrl` cannot
 * have that value.
 */
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
    // `Host` is malformed, or the option `publicUrl` refuses the URL, e.g. for http, a fragment or a `*`.
    return undefined;
  }
}

/**
 * Matches the encoded form of the path characters `" < > ^ \` { }`. `URL` encodes them, but a sender may have sent them
 * unencoded (WHATWG URL §1.3).
 */
const IN_PATH = /%(?:22|3[CE]|5E|60|7[BD])/gi;
/** Matches the encoded form of the characters that `URL` percent-encodes in a query: `" ' < >`. */
const IN_QUERY = /%(?:2[27]|3[CE])/gi;
/**
 * Matches the encoded form of all characters but `%` and separators, for a query that a platform has parsed and
 * rebuilt.
 */
const IN_MEMBERS = /%(?:2[124789ACF]|3[ABCEF]|40|5[BCDE]|60|7[BCD])/gi;

/** The characters that `encodeURIComponent` leaves as they are, but other encoders encode. */
const LEFT = /[!'()*]/g;
const encoded = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

const without = (encoded: RegExp, text: string): string => text.replace(encoded, decodeURIComponent);

/**
 * Returns the request targets that a sender may have sent, if a platform has rewritten the target into `url`
 * (verification.md §2.34). They differ from `url` in the percent-encoding of path, query, or both. There are at most
 * seven.
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

/** Returns path and query of a canonical URL. */
function restOf({ targetUri }: Target): string {
  return targetUri.slice(targetUri.indexOf('/', 'https://'.length));
}

function formedExact(origin: string, form: UrlForm, evidence: UrlEvidence): FormedUrl | undefined {
  const { target, requestTarget, allowLoopback } = evidence;
  const rest = form.path === 'configured' ? restOf(target) : pathAndQuery(requestTarget);
  const formed = publicUrlOf(origin + rest, allowLoopback);
  return formed.kind === 'exact' ? { publicUrl: formed.target.targetUri, target: formed.target } : undefined;
}

/**
 * Builds the URL for a `publicUrl` that ends in `/*`. Path and query always come from the request, so only the origin
 * can be wrong.
 */
function formedPrefix(origin: string, form: UrlForm, evidence: UrlEvidence): FormedUrl | undefined {
  const { publicUrl, requestTarget, allowLoopback } = evidence;
  if (publicUrl.kind !== 'prefix' || form.path === 'configured') return undefined;
  const formed = publicUrlOf(`${origin}${publicUrl.prefix.slice(publicUrl.origin.length)}*`, allowLoopback);
  if (formed.kind !== 'prefix') return undefined;
  const target = canonicalOrUndefined(formed.origin + pathAndQuery(requestTarget));
  return target && { publicUrl: `${formed.prefix}*`, target };
}
