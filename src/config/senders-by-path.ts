// Reads the option `senders` if it is an object with a list for each path (admission.md §2.10, §2.11). Finds the
// senders of a delivery's URL. The file senders.ts calls this.
import { ConfigError } from '../shared/errors.ts';
import {
  type Bases,
  canonicalOrUndefined,
  isSignable,
  parameterIn,
  type PublicUrl,
  written,
} from './public-url.ts';
import type { SendersByPath } from './receiver-options.ts';
import type { SenderEntry } from './sender-entry.ts';
import { type ResolveSenders, type SenderDefaults, senderList } from './sender-source.ts';

type Prefix = Extract<PublicUrl, { kind: 'prefix' }>;

/** The advice for the error if a URL in `senders` belongs to registrations. */
export const APART =
  'Give createRegistrations another baseUrl, or have them adopt this URL: registrations.adopt({ agentUrl, url }).';

const NOBODY: readonly SenderEntry[] = [];

/**
 * Reads the senders of each path. Only the object's own members count as paths, not inherited ones.
 * @param taken prefixes that belong to registrations: no path may be below them.
 * @throws ConfigError for a path that no delivery can have, and for a list that `senderList` refuses.
 */
export function sendersByPath(
  byPath: SendersByPath,
  bases: Bases,
  defaults: SenderDefaults,
  taken: readonly string[],
): ResolveSenders {
  const paths = Object.keys(byPath);
  if (paths.length === 0) {
    throw new ConfigError(
      "senders: has no path. Give at least one: { '/webhooks/seller': [{ agentUrl: 'https://seller.example/mcp' }] }.",
    );
  }
  if ('agentUrl' in byPath) {
    throw new ConfigError('senders: is one sender. Put it into an array: senders: [{ agentUrl: … }].');
  }
  const prefixes = bases.map(requirePrefix);
  const known = new Map<string, { readonly path: string; readonly entries: readonly SenderEntry[] }>();
  for (const path of paths) {
    const where = `senders[${JSON.stringify(path)}]`;
    const urls = urlsOf(path, where, prefixes, taken);
    const same = urls.map((url) => known.get(url)).find((one) => one !== undefined);
    if (same)
      throw new ConfigError(`${where}: is the path ${JSON.stringify(same.path)} again. Keep one of them.`);
    const entries = senderList(where, byPath[path], defaults);
    for (const url of urls) known.set(url, { path, entries });
  }
  return { forUrl: (targetUri) => known.get(withoutQuery(targetUri))?.entries ?? NOBODY };
}

function withoutQuery(targetUri: string): string {
  const at = targetUri.indexOf('?');
  return at === -1 ? targetUri : targetUri.slice(0, at);
}

/** Requires a base URL that ends in `/*`. @throws ConfigError for an exact URL. */
function requirePrefix(base: PublicUrl): Prefix {
  if (base.kind === 'prefix') return base;
  throw new ConfigError(
    `senders: has paths, but publicUrl is one URL, ${written(base)}. Let it end in /*, above all of them.`,
  );
}

/**
 * Returns the canonical URLs of a path, one for each base URL that the path is under.
 * @throws ConfigError that names `where`.
 */
function urlsOf(
  path: string,
  where: string,
  bases: readonly Prefix[],
  taken: readonly string[],
): readonly string[] {
  const wrong = wrongly(path);
  if (wrong !== undefined) throw new ConfigError(`${where}: ${wrong}`);
  const urls = bases.flatMap((base) => {
    const url = urlAt(path, where, base);
    return url.startsWith(base.prefix) ? url : [];
  });
  for (const url of urls) {
    const above = taken.find((prefix) => url.startsWith(prefix));
    if (above === undefined) continue;
    throw new ConfigError(
      `${where}: is below the baseUrl of registrations, ${above}, whose paths belong to them alone. ${APART}`,
    );
  }
  if (urls.length > 0) return urls;
  const [{ origin, prefix }] = bases as readonly [Prefix, ...Prefix[]];
  throw new ConfigError(
    `${where}: is not under publicUrl, ${bases.map(written).join(', ')}. Write the whole path, ${prefix.slice(origin.length)}…, or a publicUrl above it.`,
  );
}

/** Returns the URL of a path at the origin of a base URL. @throws ConfigError that names `where`. */
function urlAt(path: string, where: string, { origin }: Prefix): string {
  const url = canonicalOrUndefined(origin + path)?.targetUri;
  if (url === undefined) throw new ConfigError(`${where}: is not the path of a URL.`);
  if (isSignable(url)) return url;
  throw new ConfigError(
    `${where}: has characters that no signature can cover. Percent-encode them, as sellers do: /caf%C3%A9 for /café.`,
  );
}

/** Returns the mistake in a path of `senders`; undefined if there is none. */
function wrongly(path: string): string | undefined {
  const parameter = parameterIn(path) ?? (path.includes('*') ? '*' : undefined);
  if (parameter !== undefined) {
    return `has ${parameter}, and paths are exact. Write one path for each seller, or a function: senders: (url) => … .`;
  }
  if (!path.startsWith('/'))
    return "is not a path. Write it as it is in the seller's URL: '/webhooks/seller'.";
  if (/[?#]/.test(path))
    return 'has a query or a fragment. Write only the path: any query is accepted there.';
  return undefined;
}
