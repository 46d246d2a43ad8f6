// Follows HTTP redirects of a publisher's adagents.json, within one registrable domain only (verification.md §5.10).
// Called by `fetchDocument` for documents whose kind allows redirects.

import { sameRegistrableDomain } from './registrable-domain.ts';
import { urlRefusedReason } from './net/addresses.ts';

/** Status codes (RFC 9110 §15.4) that redirect to another URL of the same document. */
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

const MAX_HOPS = 3;

interface RedirectRules {
  /** Sends one GET request under the rules for key documents, such as the time limit. */
  readonly get: (url: string) => Promise<Response>;
  readonly allowLoopback: boolean;
}

/** The last response and its URL, or the reason why a redirect was not followed. */
type RedirectEnd =
  | { readonly ok: true; readonly at: string; readonly response: Response }
  | { readonly ok: false; readonly reason: string };

/**
 * Follows redirects within the registrable domain of the first URL, over https, at most three (verification.md
 * §5.10). A response that is not a redirect is returned unchanged.
 * @param url the URL that was requested; `first` is the response to that request.
 * @throws the errors of `get`.
 */
export async function redirectedWithin(
  { get, allowLoopback }: RedirectRules,
  url: string,
  first: Response,
): Promise<RedirectEnd> {
  let [at, response] = [url, first];
  for (let hops = 0; isRedirect(response); hops += 1) {
    await response.body?.cancel();
    if (hops === MAX_HOPS) return { ok: false, reason: `redirected more than ${MAX_HOPS} times` };
    const next = absolute(response.headers.get('location'), at);
    if (next === undefined) return { ok: false, reason: 'redirected to something that is not a URL' };
    const reason = urlRefusedReason(next, allowLoopback) ?? (await strangeReason(next, at, url));
    if (reason !== undefined) return { ok: false, reason: `redirected, and not followed: ${reason}` };
    [at, response] = [next, await get(next)];
  }
  return { ok: true, at, response };
}

function isRedirect({ status, redirected, type }: Response): boolean {
  return !redirected && type !== 'opaqueredirect' && REDIRECTS.has(status);
}

function absolute(location: string | null, base: string): string | undefined {
  return location !== null && URL.canParse(location, base) ? new URL(location, base).href : undefined;
}

async function strangeReason(next: string, from: string, first: string): Promise<string | undefined> {
  const [to, before, asked] = [new URL(next), new URL(from), new URL(first)];
  if (to.protocol !== 'https:' && before.protocol === 'https:') return 'from https to http';
  const hosts = [asked, to].map(({ hostname }) => hostname.replace(/\.$/, '')) as [string, string];
  return (await sameRegistrableDomain(...hosts)) ? undefined : 'to another registrable domain';
}
