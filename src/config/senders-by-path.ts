import { ConfigError } from '../shared/errors.ts';
import { canonicalOrUndefined, isSignable, parameterIn, type PublicUrl } from './public-url.ts';
import type { SendersByPath } from './receiver-options.ts';
import type { SenderEntry } from './sender-entry.ts';
import { type ResolveSenders, type SenderDefaults, senderList } from './sender-source.ts';

type Prefix = Extract<PublicUrl, { kind: 'prefix' }>;

/** The fix if a URL belongs to registrations. */
export const APART =
  'Give createRegistrations another baseUrl, or have them adopt this URL: registrations.adopt({ agentUrl, url }).';

const NOBODY: readonly SenderEntry[] = [];

/**
 * Senders by the path that they were given. Nobody is known anywhere else, whatever an object inherits.
 * @param taken below it no path may be: it is another's. Absent: nothing is.
 * @throws ConfigError for a path that no delivery can have, and for what `senderList` refuses.
 */
export function sendersByPath(
  byPath: SendersByPath,
  publicUrl: PublicUrl,
  defaults: SenderDefaults,
  taken?: string,
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
  if (publicUrl.kind === 'exact') {
    throw new ConfigError(
      `senders: has paths, but publicUrl is one URL, ${publicUrl.target.targetUri}. Let it end in /*, above all of them.`,
    );
  }
  const known = new Map<string, { readonly path: string; readonly entries: readonly SenderEntry[] }>();
  for (const path of paths) {
    const where = `senders[${JSON.stringify(path)}]`;
    const url = urlOf(path, where, publicUrl, taken);
    const same = known.get(url);
    if (same)
      throw new ConfigError(`${where}: is the path ${JSON.stringify(same.path)} again. Keep one of them.`);
    known.set(url, { path, entries: senderList(where, byPath[path], defaults) });
  }
  return { forUrl: (targetUri) => known.get(withoutQuery(targetUri))?.entries ?? NOBODY };
}

function withoutQuery(targetUri: string): string {
  const at = targetUri.indexOf('?');
  return at === -1 ? targetUri : targetUri.slice(0, at);
}

/** The URL of that path, as deliveries are judged by it. @throws ConfigError naming `where` */
function urlOf(path: string, where: string, { origin, prefix }: Prefix, taken: string | undefined): string {
  const written = wrongly(path);
  if (written !== undefined) throw new ConfigError(`${where}: ${written}`);
  const url = canonicalOrUndefined(origin + path)?.targetUri;
  if (url === undefined) throw new ConfigError(`${where}: is not the path of a URL.`);
  if (!isSignable(url)) {
    throw new ConfigError(
      `${where}: has characters that no signature can cover. Percent-encode them, as sellers do: /caf%C3%A9 for /café.`,
    );
  }
  if (taken !== undefined && url.startsWith(taken)) {
    throw new ConfigError(
      `${where}: is below the baseUrl of registrations, ${taken}, whose paths belong to them alone. ${APART}`,
    );
  }
  if (url.startsWith(prefix)) return url;
  throw new ConfigError(
    `${where}: is not under publicUrl, ${prefix}*. Write the whole path, ${prefix.slice(origin.length)}…, or a publicUrl above it.`,
  );
}

/** Says what is wrong with the path as it is written; undefined: nothing. */
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
