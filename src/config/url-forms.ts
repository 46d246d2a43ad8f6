import type { Target } from '../auth/contract.ts';
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
