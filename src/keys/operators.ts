// Decides if a brand.json may list an agent of another domain, and finds the brand.json of the registrable domain
// (verification.md §5.1).
// Called by `agent-location.ts`.

import type { SenderEntry } from '../config/sender-entry.ts';
import type { BrandJson, Period } from './brand-json.ts';
import { registrableDomain, sameRegistrableDomain } from './registrable-domain.ts';

/**
 * The two files of a search: the brand.json where the search begins, and the one that lists agents. Both are the same
 * file unless the first one points to another.
 */
export interface BrandFiles {
  readonly configured: BrandJson;
  readonly listing: BrandJson;
  /** URL of `listing`. */
  readonly at: string;
}

/**
 * True if the file `listing` may list the agent. That is so if the sender has no `brandJsonUrl`, or if that URL or `at`
 * is at the agent's registrable domain. Otherwise one of the two files must name the agent's host or its registrable
 * domain as an authorized operator.
 */
export async function mayList(
  sender: SenderEntry,
  { configured, listing, at }: BrandFiles,
  now: number,
): Promise<boolean> {
  if (sender.brandJsonUrl === undefined) return true;
  const agent = hostOf(sender.agentUrl);
  if (await sameRegistrableDomain(hostOf(sender.brandJsonUrl), agent)) return true;
  if (await sameRegistrableDomain(hostOf(at), agent)) return true;
  // If the seller itself declares the file's URL, only the brand.json of a house (a company with brands) may name
  // operators.
  const files = [configured, listing].filter(({ isHouse }) => isHouse || sender.declared === undefined);
  const named = (domain: string): boolean =>
    files.some(({ operators }) => operators.get(domain)?.some((period) => isWithinPeriod(period, now)));
  if (named(agent)) return true;
  const domain = await registrableDomain(agent);
  return domain !== undefined && named(domain);
}

const isWithinPeriod = (
  { from = Number.NEGATIVE_INFINITY, until = Number.POSITIVE_INFINITY }: Period,
  now: number,
): boolean => from <= now && now < until;

/** Returns the next time (Unix ms) at which an operator's authorization begins or ends; `Infinity` if there is none. */
export function nextChange({ configured, listing }: BrandFiles, now: number): number {
  let next = Number.POSITIVE_INFINITY;
  for (const { operators } of [configured, listing]) {
    for (const periods of operators.values())
      for (const { from = now, until = now } of periods)
        for (const at of [from, until]) if (at > now) next = Math.min(next, at);
  }
  return next;
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname.replace(/\.$/, '') : '';
}

/**
 * Returns the URL of the registrable domain's brand.json (verification.md §5.1). Undefined if the agent's host is that
 * domain itself or has none, or if `url` is not https.
 * @param url the well-known brand.json at an agent's host.
 */
export async function registrableBrandJsonUrl(url: string): Promise<string | undefined> {
  const host = hostOf(url);
  const domain = await registrableDomain(host);
  const isOther = domain !== undefined && domain !== host && url.startsWith('https:');
  return isOther ? `https://${domain}/.well-known/brand.json` : undefined;
}
