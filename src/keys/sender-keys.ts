import type { SenderEntry } from '../senders.ts';
import type { LoadBrandJson, Locate, Location, Locator } from './agent-location.ts';
import type { BrandJson } from './brand-json.ts';
import type { DocumentCache } from './document-cache.ts';
import type { Answer, Copy, DocumentKind, Wish } from './document.ts';
import { freeLeave, type Leave } from './fetch-budget.ts';
import type { KeySet } from './jwks.ts';

/** The way from a sender to its key set: brand.json, `jwks_uri`, JWKS (verification.md §5.1 to §5.4). */
export interface SenderKeys {
  /** `held` of what is fresh and was used before, without waiting; undefined where `held` has to be asked. */
  atHand(sender: SenderEntry): HeldKeys | undefined;
  /** What is held, without any fetch. */
  held(sender: SenderEntry): Promise<HeldKeys | undefined>;
  /** The set within its life; the one held where it cannot be refreshed. */
  current(sender: SenderEntry, leave?: Leave): Promise<Answer<KeySet>>;
  /** A set that fulfils the wish, fetched again if need be. brand.json is renewed only by its own life. */
  renewed(sender: SenderEntry, wish: Wish<KeySet>, leave: Leave): Promise<Answer<KeySet>>;
}

interface HeldKeys {
  readonly copy: Copy<KeySet>;
  /** Every document on the way is within its life. */
  readonly fresh: boolean;
  /** Says that they were used: see `DocumentCache.used`. */
  used(): void;
}

/** The documents on the way. */
interface ChainKinds {
  readonly brandJson: DocumentKind<BrandJson>;
  readonly jwks: DocumentKind<KeySet>;
}

export function createSenderKeys(
  cache: DocumentCache,
  kinds: ChainKinds,
  { locate, known }: Locator,
): SenderKeys {
  const { brandJson, jwks } = kinds;
  /** brand.json by its life; where it says nothing usable about this agent, asked again under the cooldown. */
  const find = async (sender: SenderEntry, leave: Leave): Promise<Location> => {
    const began = cache.order();
    const location = await locate(sender, (url) => cache.current(brandJson, url, leave));
    if (location.ok || !location.renewable) return location;
    const wish: Wish<BrandJson> = { wanted: () => false, decisive: (copy) => copy.order > began };
    const newer: LoadBrandJson = async (url) => {
      const answer = await cache.renewed(brandJson, url, wish, leave);
      return answer.ok ? answer : await cache.current(brandJson, url, leave);
    };
    return await locate(sender, newer);
  };
  return {
    atHand: (sender) => atHand(cache, kinds, known, sender),
    held: (sender) => held(cache, kinds, locate, sender),
    current: async (sender, leave = freeLeave(sender.agentUrl)) => {
      const location = await find(sender, leave);
      return location.ok ? await cache.current(jwks, location.jwksUri, leave) : location;
    },
    renewed: async (sender, wish, leave) => {
      const location = await find(sender, leave);
      return location.ok ? await cache.renewed(jwks, location.jwksUri, wish, leave) : location;
    },
  };
}

async function held(
  cache: DocumentCache,
  kinds: ChainKinds,
  locate: Locate,
  sender: SenderEntry,
): Promise<HeldKeys | undefined> {
  let fresh = true;
  const urls: string[] = [];
  const noted = <T>(copy: Copy<T> | undefined): Copy<T> | undefined => {
    if (copy !== undefined && !cache.isFresh(copy)) fresh = false;
    return copy;
  };
  const location = await locate(sender, (url) => {
    urls.push(url);
    const copy = noted(cache.held(kinds.brandJson, url));
    return copy ? { ok: true, copy } : { ok: false, reason: 'not held' };
  });
  if (!location.ok) return undefined;
  const { jwksUri } = location;
  const copy = noted(cache.held(kinds.jwks, jwksUri));
  return copy && { copy, fresh, used: () => noteUse(cache, kinds, urls, jwksUri, sender) };
}

function atHand(
  cache: DocumentCache,
  kinds: ChainKinds,
  known: Locator['known'],
  sender: SenderEntry,
): HeldKeys | undefined {
  const urls: string[] = [];
  const jwksUri = known(sender, (url) => {
    urls.push(url);
    return freshCopy(cache, kinds.brandJson, url)?.value;
  });
  const copy = jwksUri === undefined ? undefined : freshCopy(cache, kinds.jwks, jwksUri);
  if (jwksUri === undefined || copy === undefined) return undefined;
  return { copy, fresh: true, used: () => noteUse(cache, kinds, urls, jwksUri, sender) };
}

function freshCopy<T>(cache: DocumentCache, kind: DocumentKind<T>, url: string): Copy<T> | undefined {
  const copy = cache.held(kind, url);
  return copy !== undefined && cache.isFresh(copy) ? copy : undefined;
}

function noteUse(
  cache: DocumentCache,
  { brandJson, jwks }: ChainKinds,
  urls: readonly string[],
  jwksUri: string,
  { agentUrl }: SenderEntry,
): void {
  for (const url of urls) cache.used(brandJson, url, agentUrl);
  cache.used(jwks, jwksUri, agentUrl);
}
