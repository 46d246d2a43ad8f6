import type { SenderEntry } from '../senders.ts';
import { type Locate, type LoadBrandJson, type Location } from './agent-location.ts';
import type { BrandJson } from './brand-json.ts';
import type { Answer, Copy, DocumentKind, MayFetch, Wish } from './document.ts';
import type { DocumentCache } from './document-cache.ts';
import { JWKS, type KeySet } from './jwks.ts';

/** The way from a sender to its key set: brand.json, `jwks_uri`, JWKS (verification.md, section 5, steps 1 to 4). */
export interface SenderKeys {
  /** What is held, without any fetch. `fresh`: every document on the way is within its life. */
  held(sender: SenderEntry): Promise<{ readonly copy: Copy<KeySet>; readonly fresh: boolean } | undefined>;
  /** The set within its life; the one held where it cannot be refreshed. */
  current(sender: SenderEntry, mayFetch?: MayFetch): Promise<Answer<KeySet>>;
  /** A set that fulfils the wish, fetched again if need be. brand.json is renewed only by its own life. */
  renewed(sender: SenderEntry, wish: Wish<KeySet>, mayFetch: MayFetch): Promise<Answer<KeySet>>;
}

export function createSenderKeys(
  cache: DocumentCache,
  brandJson: DocumentKind<BrandJson>,
  locate: Locate,
): SenderKeys {
  /** brand.json by its life; where it says nothing usable about this agent, asked again under the cooldown. */
  const find = async (sender: SenderEntry, mayFetch?: MayFetch): Promise<Location> => {
    const began = cache.order();
    const location = await locate(sender, (url) => cache.current(brandJson, url, mayFetch));
    if (location.ok || !location.renewable) return location;
    const wish: Wish<BrandJson> = { wanted: () => false, decisive: (copy) => copy.order > began };
    const newer: LoadBrandJson = async (url) => {
      const answer = await cache.renewed(brandJson, url, wish, mayFetch);
      return answer.ok ? answer : await cache.current(brandJson, url, mayFetch);
    };
    return await locate(sender, newer);
  };
  return {
    held: async (sender) => {
      let fresh = true;
      const noted = <T>(copy: Copy<T> | undefined): Copy<T> | undefined => {
        if (copy !== undefined && !cache.isFresh(copy)) fresh = false;
        return copy;
      };
      const location = await locate(sender, (url) => {
        const copy = noted(cache.held(brandJson, url));
        return copy ? { ok: true, copy } : { ok: false, reason: 'not held' };
      });
      const copy = location.ok ? noted(cache.held(JWKS, location.jwksUri)) : undefined;
      return copy && { copy, fresh };
    },
    current: async (sender, mayFetch) => {
      const location = await find(sender, mayFetch);
      return location.ok ? await cache.current(JWKS, location.jwksUri, mayFetch) : location;
    },
    renewed: async (sender, wish, mayFetch) => {
      const location = await find(sender, mayFetch);
      return location.ok ? await cache.renewed(JWKS, location.jwksUri, wish, mayFetch) : location;
    },
  };
}
