// Decides for which of several base URLs a delivery is meant (verification.md §4.16).
// Loaded on demand by `select`, if `publicUrl` has several entries.

import type { Target } from '../auth/auth-contract.ts';
import { compareHost } from '../auth/rfc9421/host.ts';
import { canonicalOrUndefined, pathAndQuery, type PublicUrl } from '../config/public-url.ts';
import type { Head } from '../shared/delivery.ts';
import { type Refusal, unavailable } from '../shared/outcome.ts';
import {
  NO_FORM,
  selectAt,
  type SelectContext,
  type Selected,
  targetAt,
  UNEXPLAINED,
  urlAt,
  type UrlOfBase,
} from './selected.ts';
import { type Prefix, refuseStray, strayMessage } from './stray.ts';

/** Returns the base URL itself, without a request's path. */
const placeOf = (base: PublicUrl): Target =>
  base.kind === 'exact'
    ? base.target
    : { targetUri: base.prefix, authority: base.origin.slice(base.origin.indexOf('//') + 2) };

/** True if the request's host is that of the base URL, or the request names no host. */
const isNamed = (delivery: Head, base: PublicUrl): boolean =>
  compareHost(delivery, placeOf(base), 'strict').kind === 'same';

/**
 * True if path and query of the request equal those of the URL. Always true under a prefix (`/*`), because that URL has
 * the request's own path.
 */
function hasPath({ url }: Head, { base, target: { targetUri } }: UrlOfBase): boolean {
  if (base.kind === 'prefix') return true;
  const origin = targetUri.slice(0, targetUri.indexOf('/', 'https://'.length));
  return url !== undefined && canonicalOrUndefined(origin + pathAndQuery(url))?.targetUri === targetUri;
}

interface Ranked extends UrlOfBase {
  readonly isNamed: boolean;
  readonly hasPath: boolean;
}

/**
 * Returns the URLs for which the delivery may be meant, without duplicates. URLs with the request's host come first.
 * Within both groups, URLs with the request's path come first, then the order of the list decides.
 */
export function urlsOf(delivery: Head, bases: readonly PublicUrl[]): readonly Ranked[] {
  const found = new Map<string, Ranked>();
  for (const base of bases) {
    const target = urlAt(base, delivery.url);
    if (!target || found.has(target.targetUri)) continue;
    const at = { base, target };
    found.set(target.targetUri, { ...at, isNamed: isNamed(delivery, base), hasPath: hasPath(delivery, at) });
  }
  const rank = (url: Ranked): number => (url.isNamed ? 0 : 2) + (url.hasPath ? 0 : 1);
  return [...found.values()].sort((a, b) => rank(a) - rank(b));
}

/**
 * Returns the base URLs that end in `/*` and have the request's host, if the request's path belongs to no base URL of
 * that host. A router or proxy of the owner may have changed the path (verification.md §4.15).
 */
function strayedFrom(
  delivery: Head,
  bases: readonly PublicUrl[],
  urls: readonly Ranked[],
): readonly Prefix[] {
  if (urls.some((url) => url.isNamed)) return [];
  return bases.filter((base) => base.kind === 'prefix').filter((base) => isNamed(delivery, base));
}

/**
 * Selects the URL and the senders of a delivery among several base URLs.
 * @throws Fault (rejects) as `select` does.
 */
export async function selectAmong(delivery: Head, context: SelectContext): Promise<Selected | Refusal> {
  const { bases } = context.config;
  if (!bases.some((base) => targetAt(base, delivery.url))) return NO_FORM;
  const urls = urlsOf(delivery, bases);
  const strayed = strayedFrom(delivery, bases, urls);
  let nobody: Refusal | undefined;
  for (const [i, at] of urls.entries()) {
    const selected = await selectAt(delivery, at, context);
    if (selected.kind === 'selected')
      return withOthers(selected, { urls: urls.slice(i + 1), strayed }, context);
    nobody ??= selected;
  }
  if (strayed.length > 0) return refuseStray(delivery, strayed, context);
  if (nobody) return nobody;
  // A base with one exact URL would always be in `urls`, which is empty here. So all bases are prefixes (`/*`).
  return refuseStray(
    delivery,
    bases.filter((base) => base.kind === 'prefix'),
    context,
  );
}

interface Rest {
  readonly urls: readonly UrlOfBase[];
  readonly strayed: readonly Prefix[];
}

function withOthers(selected: Selected, { urls, strayed }: Rest, context: SelectContext): Selected {
  const { delivery } = selected;
  let ofAnother = selected.refused;
  const others = async (): Promise<readonly Selected[]> => {
    const found = await Promise.all(urls.map(async (at) => selectAt(delivery, at, context)));
    const known = found.filter((one) => one.kind === 'selected');
    ofAnother ??= known.find(({ refused }) => refused)?.refused;
    return known;
  };
  const refused: Selected['refused'] = (refusal) => {
    if (strayed.length === 0 || !UNEXPLAINED.has(refusal.code)) return ofAnother?.(refusal) ?? refusal;
    const message = strayMessage(strayed);
    // No alarm is raised if the key belongs to no registered sender, so that strangers cannot raise it.
    if (refusal.code !== 'webhook_signature_key_unknown')
      context.raiseAlarm({ code: 'misconfigured', message });
    return unavailable('misconfigured', message);
  };
  return { ...selected, refused, ...(urls.length > 0 && { others }) };
}
