// Answers 503 to a request whose path belongs to no base URL, because a proxy of the owner may have changed the
// path (verification.md §4.15).
// Loaded on demand by `select` and `several-bases.ts`.

import { canonicalOrUndefined, pathAndQuery, type PublicUrl, written } from '../config/public-url.ts';
import type { Head } from '../shared/delivery.ts';
import { Fault } from '../shared/errors.ts';
import type { Protocols } from '../shared/wire-names.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import { hmacSecretsOf } from '../auth/credentials.ts';
import { readSignatureFields } from '../auth/rfc9421/checks.ts';
import { inTime, type SelectContext } from './selected.ts';

export type Prefix = Extract<PublicUrl, { kind: 'prefix' }>;

/** True if the request has the header of a legacy scheme with which one of the senders is registered. */
function hasLegacyField({ headers }: Head, senders: readonly SenderEntry[], protocols: Protocols): boolean {
  return senders.some(({ auth }) => {
    if (auth.scheme === 'bearer') return headers.has(auth.header ?? 'authorization');
    if (hmacSecretsOf(auth).length === 0) return false;
    return protocols.some(({ hmacSignatureHeader }) => headers.has(hmacSignatureHeader));
  });
}

/** True if the delivery names a key id of a registered sender. Keys are found as for any delivery. */
async function hasKnownKey(
  { headers }: Head,
  senders: readonly SenderEntry[],
  { keys, now }: SelectContext,
): Promise<boolean> {
  const fields = readSignatureFields(headers);
  const keyid = fields.kind === 'parsed' ? fields.input.parameters.keyid : undefined;
  const signing = senders.filter(({ auth }) => auth.scheme === 'signature');
  if (keyid === undefined || signing.length === 0) return false;
  const { candidates } = await keys.find(keyid, { senders: signing, arrivedAt: now() });
  return candidates.length > 0;
}

/**
 * Returns the URLs that sellers may have been given. A proxy may have removed a part of the prefix from the received
 * path, or nothing.
 */
function meantUrls({ url = '/' }: Head, { origin, prefix }: Prefix): ReadonlySet<string> {
  const received = pathAndQuery(url);
  const path = prefix.slice(origin.length);
  const cut = Array.from(path.matchAll(/\//g), ({ index }) => index)
    .filter((at) => received.startsWith(path.slice(at)))
    .map((at) => path.slice(0, at));
  const meant = ['', ...cut].map((lost) => canonicalOrUndefined(origin + lost + received)?.targetUri);
  return new Set(meant.filter((target) => target !== undefined));
}

/**
 * Returns the senders that may have sent the request. A `senders` function is asked with each URL that the seller may
 * have been given.
 */
async function possibleSenders(
  delivery: Head,
  bases: readonly Prefix[],
  { config }: SelectContext,
): Promise<readonly SenderEntry[]> {
  const { fixed, forUrl } = config.senders;
  if (fixed) return fixed;
  // If the `senders` function throws for an unknown path, it is treated as if it returned [].
  const ask = async (targetUri: string): Promise<readonly SenderEntry[]> =>
    inTime((async () => forUrl(targetUri))()).catch(() => []);
  const urls = new Set(bases.flatMap((base) => [...meantUrls(delivery, base)]));
  return (await Promise.all(Array.from(urls, ask))).flat();
}

/**
 * Answers 503 to a request whose path does not belong to `publicUrl` (verification.md §4.15). A router or proxy of
 * the owner changed the path, and the seller must not lose its event for that. Raises an alarm only if a registered
 * sender may have sent the request, so that strangers cannot raise alarms.
 * @throws Fault (rejects) `misconfigured`, always.
 */
export async function refuseStray(
  delivery: Head,
  bases: readonly Prefix[],
  context: SelectContext,
): Promise<never> {
  const message = strayMessage(bases);
  const senders = await possibleSenders(delivery, bases, context);
  if (
    hasLegacyField(delivery, senders, context.protocols) ||
    (await hasKnownKey(delivery, senders, context))
  ) {
    context.raiseAlarm({ code: 'misconfigured', message });
  }
  throw new Fault('misconfigured', message);
}

export const strayMessage = (bases: readonly Prefix[]): string =>
  `the request target is not under publicUrl ${bases.map(written).join(' or ')}: pass the whole path that sellers call (Express: req.originalUrl; nginx: proxy_pass without a path), or correct publicUrl`;
