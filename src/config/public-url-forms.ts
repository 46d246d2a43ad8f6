import type { Target } from '../auth/auth-contract.ts';
import { canonicalAuthority, type Scheme } from '../auth/rfc9421/host.ts';
import { canonicalOrUndefined, pathAndQuery, publicUrlOf, type PublicUrl } from './public-url.ts';

/** Where each part of a URL comes from that a seller may have been given: verification.md §2.34. */
export interface UrlForm {
  readonly scheme: Scheme;
  readonly authority: Source;
  /** Path and query. */
  readonly path: Source;
}

/** `received`: in `Host` or `:authority`, and in the request target. Never in `X-Forwarded-*`, which anybody can send. */
type Source = 'configured' | 'received';

const SOURCES: readonly Source[] = ['configured', 'received'];
const SCHEMES: readonly Scheme[] = ['https', 'http'];

/** All of them; the configured URL itself is one, and so seven are left to try. */
export const URL_FORMS: readonly UrlForm[] = SOURCES.flatMap((path) =>
  SOURCES.flatMap((authority) => SCHEMES.map((scheme) => ({ scheme, authority, path }))),
);

/** What a URL is put together from. */
export interface UrlEvidence {
  readonly publicUrl: PublicUrl;
  /** Of `publicUrl`, for this request. */
  readonly target: Target;
  /** As received, before anything is made of it. */
  readonly authority: string | undefined;
  readonly requestTarget: string;
  readonly allowLoopback: boolean;
}

/** A URL that `publicUrl` could be meant to be. */
export interface FormedUrl {
  /** As the option would have to say it. */
  readonly publicUrl: string;
  readonly target: Target;
}

/** The URL of that form, or undefined where the evidence gives none or `publicUrl` could not hold it. */
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
    // A `Host` that is none, or a URL that is refused as an option: http, a fragment, a `*`.
    return undefined;
  }
}

/** Of what a request target can have, what `URL` percent-encodes in a path: `" < > ^ \` { }` (WHATWG URL §1.3). */
const IN_PATH = /%(?:22|3[CE]|5E|60|7[BD])/gi;
/** The same in a query: `" ' < >`. */
const IN_QUERY = /%(?:2[27]|3[CE])/gi;
/** Where a query was taken apart and put together again: all but what separates its members, and `%`. */
const IN_MEMBERS = /%(?:2[124789ACF]|3[ABCEF]|40|5[BCDE]|60|7[BCD])/gi;

/** What `encodeURIComponent` leaves as it is, and others encode. */
const LEFT = /[!'()*]/g;
const encoded = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

const without = (encoded: RegExp, text: string): string => text.replace(encoded, decodeURIComponent);

/**
 * What a sender can have sent where a platform has made this of it (verification.md §2.34): path, query, or both in another
 * percent-encoding. At most seven.
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

/** Under a prefix path and query are the request's in any case: only its origin can be wrong. */
function formedPrefix(origin: string, form: UrlForm, evidence: UrlEvidence): FormedUrl | undefined {
  const { publicUrl, requestTarget, allowLoopback } = evidence;
  if (publicUrl.kind !== 'prefix' || form.path === 'configured') return undefined;
  const formed = publicUrlOf(`${origin}${publicUrl.prefix.slice(publicUrl.origin.length)}*`, allowLoopback);
  if (formed.kind !== 'prefix') return undefined;
  const target = canonicalOrUndefined(formed.origin + pathAndQuery(requestTarget));
  return target && { publicUrl: `${formed.prefix}*`, target };
}
