// Finds a sender's key set: from brand.json to its `jwks_uri`, and from there to the JWKS (verification.md §5.1 to
// §5.4).
// Called by each sender's search, by `key-owners.ts` and for signatures of revocation lists.

import type { SenderEntry } from '../config/sender-entry.ts';
import type { LoadBrandJson, Location, Locator } from './agent-location.ts';
import type { BrandJson } from './brand-json.ts';
import type { Copy, CopyResult, DocumentKind, Freshness } from './document.ts';
import type { DocumentCache } from './document-cache.ts';
import type { KeySet } from './jwks.ts';
import { type FetchBudget, unlimitedBudget } from './safe-fetch.ts';

/** Finds a sender's key set (verification.md §5.1 to §5.4); the methods differ in how fresh the copies must be. */
export interface SenderKeys {
  /**
   * Returns the key set from cached copies, without a promise. Undefined if a copy is missing or not fresh, or if no
   * other method has found the set before. In these cases call `cached`.
   */
  cachedSync(sender: SenderEntry): CachedKeys | undefined;
  /** Returns the key set from cached copies. Fetches nothing. */
  cached(sender: SenderEntry): Promise<CachedKeys | undefined>;
  /** Returns the key set within its lifetime. A cached set that cannot be refreshed is returned as it is. */
  current(sender: SenderEntry, budget?: FetchBudget): Promise<CopyResult<KeySet>>;
  /**
   * Returns a key set that satisfies `freshness`, fetched again if needed. brand.json is fetched again only when its
   * own lifetime is over.
   */
  renewed(
    sender: SenderEntry,
    freshness: Freshness<KeySet>,
    budget: FetchBudget,
  ): Promise<CopyResult<KeySet>>;
}

interface CachedKeys {
  readonly copy: Copy<KeySet>;
  /** True if every document from brand.json to the JWKS is within its lifetime. */
  readonly fresh: boolean;
  /** Notes that the cached copies were used, which may start a background refresh. */
  noteUse(): void;
}

/** The kinds of the documents from brand.json to the JWKS. */
interface ChainKinds {
  readonly brandJson: DocumentKind<BrandJson>;
  readonly jwks: DocumentKind<KeySet>;
}

export function createSenderKeys(
  cache: DocumentCache,
  { brandJson, jwks }: ChainKinds,
  { locate, cachedUri }: Locator,
  /** Called with every copy of a sender's keys. */
  noteKeys: (agentUrl: string, set: KeySet) => void = () => undefined,
): SenderKeys {
  /**
   * Finds the URL of the JWKS. If brand.json has nothing usable about this agent, brand.json is fetched again, at most
   * once per cooldown.
   */
  const find = async (sender: SenderEntry, budget: FetchBudget): Promise<Location> => {
    const fetchCount = cache.fetchCount();
    const location = await locate(sender, (kind, url) => cache.current(kind, url, budget));
    if (location.ok || !location.renewable) return location;
    const freshness: Freshness<BrandJson> = {
      hasWanted: () => false,
      isFreshEnough: (copy) => copy.fetchNumber > fetchCount,
    };
    const newer: LoadBrandJson = async (kind, url) => {
      const result = await cache.renewed(kind, url, freshness, budget);
      return result.ok ? result : await cache.current(kind, url, budget);
    };
    return await locate(sender, newer);
  };

  const freshCopy = <T>(kind: DocumentKind<T>, url: string): Copy<T> | undefined => {
    const copy = cache.cached(kind, url);
    return copy !== undefined && cache.isFresh(copy) ? copy : undefined;
  };

  const useSet = createLatestSets((url) => cache.forget(jwks, url));
  const noted = ({ agentUrl }: SenderEntry, url: string, result: CopyResult<KeySet>): CopyResult<KeySet> => {
    if (!result.ok) return result;
    useSet(agentUrl, url);
    noteKeys(agentUrl, result.copy.value);
    return result;
  };

  const noteUse = (brandUrls: readonly string[], jwksUri: string, { agentUrl }: SenderEntry): void => {
    for (const url of brandUrls) cache.noteUse(brandJson, url, agentUrl);
    cache.noteUse(jwks, jwksUri, agentUrl);
  };

  return {
    cachedSync: (sender) => {
      const urls: string[] = [];
      const jwksUri = cachedUri(sender, (url) => {
        urls.push(url);
        return freshCopy(brandJson, url)?.value;
      });
      if (jwksUri === undefined) return undefined;
      const copy = freshCopy(jwks, jwksUri);
      if (copy) noteKeys(sender.agentUrl, copy.value);
      return copy && { copy, fresh: true, noteUse: () => noteUse(urls, jwksUri, sender) };
    },
    cached: async (sender) => {
      let fresh = true;
      const urls: string[] = [];
      const location = await locate(sender, async (kind, url) => {
        urls.push(url);
        const copy = cache.cached(kind, url);
        if (copy === undefined) {
          const elsewhere = await cache.elsewhere(kind, url);
          return { ok: false, reason: 'not cached', ...(elsewhere !== undefined && { elsewhere }) };
        }
        fresh &&= cache.isFresh(copy);
        return { ok: true, copy };
      });
      if (!location.ok) return undefined;
      const { jwksUri } = location;
      const copy = cache.cached(jwks, jwksUri);
      if (copy === undefined) return undefined;
      fresh &&= cache.isFresh(copy);
      return { copy, fresh, noteUse: () => noteUse(urls, jwksUri, sender) };
    },
    current: async (sender, budget = unlimitedBudget(sender.agentUrl)) => {
      const location = await find(sender, budget);
      if (!location.ok) return location;
      const { jwksUri } = location;
      return noted(sender, jwksUri, await cache.current(jwks, jwksUri, budget));
    },
    renewed: async (sender, freshness, budget) => {
      const location = await find(sender, budget);
      if (!location.ok) return location;
      const { jwksUri } = location;
      const result = noted(sender, jwksUri, await cache.renewed(jwks, jwksUri, freshness, budget));
      const { insteadOf } = location;
      // The host's brand.json gave 404, so the JWKS was found through the registrable domain. By now the host may have
      // a brand.json. So a missing key is proved only if the 404 is as recent as the JWKS must be.
      const isTooOld =
        insteadOf && freshness.ignoresCooldown !== true && !freshness.isFreshEnough(insteadOf.absence);
      if (!result.ok || freshness.hasWanted(result.copy) || !isTooOld) return result;
      return { ok: false, reason: `${insteadOf.url} was answered with 404 before, and not since` };
    },
  };
}

/** The maximum number of senders whose JWKS is remembered. */
const MAX_SENDERS = 100_000;

/**
 * Keeps one JWKS, of at most 64 KiB, per sender in the cache (verification.md §5.18). When a sender's brand.json names
 * another JWKS, the former one is dropped once the new one was fetched, unless another sender uses it too.
 * @returns a function to call after each fetch of a set, with the sender's agent URL and the URL of the set.
 */
function createLatestSets(forget: (url: string) => void): (agentUrl: string, url: string) => void {
  const latest = new Map<string, string>();
  const users = new Map<string, number>();
  /** Notes that one sender no longer uses a JWKS. Returns true if no other sender uses it. */
  const leave = (url: string): boolean => {
    const left = (users.get(url) ?? 1) - 1;
    if (left > 0) users.set(url, left);
    else users.delete(url);
    return left <= 0;
  };
  return (agentUrl, url) => {
    const before = latest.get(agentUrl);
    if (before === url) return;
    latest.set(agentUrl, url);
    users.set(url, (users.get(url) ?? 0) + 1);
    if (before !== undefined && leave(before)) forget(before);
    const [oldest] = latest;
    if (latest.size <= MAX_SENDERS || oldest === undefined) return;
    latest.delete(oldest[0]);
    leave(oldest[1]);
  };
}
