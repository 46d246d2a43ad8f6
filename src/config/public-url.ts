// Reads the option `publicUrl`, and checks other URLs in the owner's options (admission.md §2.9, contract.md §4.6). The
// configuration calls this file; receivers and registrations get canonical URLs from it.
import { canonicalTargetUri } from '../auth/rfc9421/signature-base.ts';
import type { Target } from '../auth/auth-contract.ts';
import { ConfigError } from '../shared/errors.ts';
import { describeMissing } from './validate.ts';

/** The URL that sellers were given: one URL, or a prefix (`…/*`) under which path and query come from the request. */
export type PublicUrl =
  | { readonly kind: 'exact'; readonly target: Target }
  | { readonly kind: 'prefix'; readonly prefix: string; readonly origin: string };

/** All URLs at which this receiver is reachable, as sellers were given them (verification.md §4.16). */
export type Bases = readonly [PublicUrl, ...PublicUrl[]];

/**
 * The most base URLs (values of `publicUrl`). If the request selects none of them, a signature may have to be verified
 * for each base URL.
 */
export const MOST_BASES = 8;

/**
 * Matches a path parameter in the notation of routers: `/:name` or `{name}`. In `://:name` nothing matches, because
 * that is a port without a host.
 */
const PARAMETER = /(?<!:\/)\/(:[A-Za-z_]\w*)|(\{[^/{}]*\})/;

/** Returns the first `:name` or `{name}` in a path; undefined if there is none. */
export function parameterIn(path: string): string | undefined {
  const found = PARAMETER.exec(path);
  return found?.[1] ?? found?.[2];
}

const FIX =
  "Give exactly the URL that sellers were given, e.g. publicUrl: 'https://buyer.example/webhooks/proto'.";

/**
 * Returns the base URL as it is written in the option `publicUrl`: `https://buyer.example/webhooks/*`, or an exact URL.
 */
export const written = (base: PublicUrl): string =>
  base.kind === 'exact' ? base.target.targetUri : `${base.prefix}*`;

/**
 * Reads the option `publicUrl`: one URL, or a list.
 * @throws ConfigError for an empty list, one of more than eight, a repeated URL, and a URL that `publicUrlOf` refuses.
 */
export function basesOf(given: string | readonly string[] | undefined, allowLoopback: boolean): Bases {
  if (!Array.isArray(given)) return [publicUrlOf(given as string | undefined, allowLoopback)];
  const urls = given as readonly (string | undefined)[];
  if (urls.length > MOST_BASES)
    throw new ConfigError(`publicUrl: has ${urls.length} URLs, at most ${MOST_BASES}.`);
  const [first, ...others] = urls.map((url) => publicUrlOf(url, allowLoopback));
  if (!first) throw new ConfigError(`publicUrl: is an empty list. ${FIX}`);
  const known = new Set<string>();
  for (const url of [first, ...others].map(written)) {
    if (known.has(url)) throw new ConfigError(`publicUrl: has ${url} twice. Keep one of them.`);
    known.add(url);
  }
  return [first, ...others];
}

/**
 * Reads one URL of the option `publicUrl`.
 * @throws ConfigError if `url` is not absolute, not https, or has a part that a receiver's URL cannot have.
 */
export function publicUrlOf(url: string | undefined, allowLoopback: boolean): PublicUrl {
  if (typeof url !== 'string' || url === '') {
    throw new ConfigError(`publicUrl: ${describeMissing(url, 'a string')}. ${FIX}`);
  }
  requireNoPattern(url);
  const wildcard = url.endsWith('/*');
  const target = canonicalOrUndefined(wildcard ? url.slice(0, -1) : url);
  if (!target) throw new ConfigError(`publicUrl: ${JSON.stringify(url)} is not an absolute URL. ${FIX}`);
  requireSignable(url, target, allowLoopback);
  if (!wildcard) return { kind: 'exact', target };
  if (target.targetUri.includes('?'))
    throw new ConfigError(`publicUrl: a prefix cannot have a query. ${FIX}`);
  const origin = target.targetUri.slice(0, target.targetUri.indexOf('/', 'https://'.length));
  return { kind: 'prefix', prefix: target.targetUri, origin };
}

/** Refuses a router's pattern, e.g. `/:id`, in place of the URL that sellers were given. @throws ConfigError */
function requireNoPattern(url: string): void {
  const [path = ''] = url.replace(/\/\*$/, '/').split('?');
  const found = parameterIn(path) ?? (path.includes('*') ? '*' : undefined);
  if (found === undefined) return;
  const wrong = found === '*' ? 'a * that is not a final /*' : `the parameter ${found}`;
  const prefix = `${path.slice(0, path.indexOf(found)).replace(/[^/]*$/, '')}*`;
  throw new ConfigError(
    `publicUrl: ${JSON.stringify(url)} has ${wrong}; no seller calls that. If each has a path of its own, write publicUrl: '${prefix}', and the paths in senders: { '/…': [ … ] }.`,
  );
}

/**
 * Refuses a URL that sellers cannot sign as it is: without https, with user information or a fragment, or with
 * characters outside ASCII. @throws ConfigError
 */
function requireSignable(url: string, { targetUri }: Target, allowLoopback: boolean): void {
  if (!targetUri.startsWith('https://') && !allowLoopback) {
    throw new ConfigError(
      `publicUrl: ${JSON.stringify(url)} is not https. ${FIX} For development on http set allowLoopback: true.`,
    );
  }
  if (/^[^/]*\/\/[^/?#]*@/.test(url) || url.includes('#')) {
    throw new ConfigError(
      `publicUrl: user information and fragments are never part of what is signed. ${FIX}`,
    );
  }
  if (!isSignable(targetUri)) {
    throw new ConfigError(
      `publicUrl: ${JSON.stringify(url)} has characters that no signature can cover. Percent-encode them, as sellers do: /caf%C3%A9 for /café.`,
    );
  }
}

/** True if the URL has only printable ASCII characters. */
export const isSignable = (targetUri: string): boolean => !/[^\x21-\x7e]/.test(targetUri);

export function canonicalOrUndefined(url: string): Target | undefined {
  try {
    return canonicalTargetUri(url);
  } catch {
    return undefined;
  }
}

/** Requires an absolute URL with https. @throws ConfigError that names `where`. */
export function requireUrl(where: string, url: unknown, allowLoopback: boolean): void {
  const target = typeof url === 'string' ? canonicalOrUndefined(url) : undefined;
  if (!target) throw new ConfigError(`${where}: ${JSON.stringify(url)} is not an absolute URL.`);
  if (!target.targetUri.startsWith('https://') && !allowLoopback) {
    throw new ConfigError(
      `${where}: ${JSON.stringify(url)} is not https. For development set allowLoopback: true.`,
    );
  }
}

/** Matches host and path of the agent URLs of simulated sellers (`proto-webhooks dev`), as `URL` writes them. */
const OF_DEV =
  /^(127\.[\d.]+|0\.0\.0\.0|(.+\.)?localhost\.?|\[::(1|ffff:7f\w*:\w+)?])\/+proto-webhooks-dev\//;

/** True for the agent URL of a simulated seller (`proto-webhooks dev`), at any port of this machine. */
export function isOfDev(agentUrl: unknown): boolean {
  const url = URL.parse(String(agentUrl));
  return url !== null && OF_DEV.test(url.hostname + url.pathname);
}

/**
 * Requires an agent URL. @throws ConfigError for a URL that `requireUrl` refuses, and in production for a simulated
 * seller of `proto-webhooks dev` (dev.md §1.4).
 */
export function requireAgent(where: string, url: unknown, allowLoopback: boolean): void {
  if (globalThis.process?.env?.['NODE_ENV'] === 'production' && isOfDev(url)) {
    throw new ConfigError(
      `${where}: ${JSON.stringify(url)} is a seller of proto-webhooks dev, refused under NODE_ENV=production. Remove it there.`,
    );
  }
  requireUrl(where, url, allowLoopback);
}

/** Returns path and query of a request target in origin form or absolute form (RFC 9112 §3.2). */
export function pathAndQuery(requestTarget: string): string {
  const absolute = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#]*/.exec(requestTarget);
  const rest = absolute ? requestTarget.slice(absolute[0].length) : requestTarget;
  return rest.startsWith('/') ? rest : `/${rest}`;
}
