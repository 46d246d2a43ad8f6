import type { Jwk } from '../crypto/engine.ts';
import type { Copy } from './document.ts';
import type { KeySet } from './jwks.ts';

/**
 * When the keys of each JWKS were first seen here, which alone says whose a key is that two publish (verification.md
 * §2.36). In fetches that were begun: a fetch is later than an answer only where it was begun after the answer was there.
 */
export interface FirstSeen {
  /** A copy takes the place of another. */
  landed(copy: Copy<KeySet>, before: Copy<KeySet> | undefined): void;
  /** How many fetches had been begun when the key was first seen in this set; undefined where the set has none such. */
  seen(copy: Copy<KeySet>, key: string): number | undefined;
  /** Whether a fetch begun after `since` others brought a set of this place without the key. */
  lackedSince(set: KeySet, key: string, since: number): boolean;
}

interface KeyPast {
  readonly seen: number;
  /** The fetch of the last copy without it; none where it was there from the first. */
  readonly lacked: number;
}

interface Past {
  readonly keys: ReadonlyMap<string, KeyPast>;
  /** The last fetch that the server itself answered with the document. */
  readonly direct: number;
}

const NEVER = -1;

/** What one signature verifies under: the `kid`, and the members of the JWK that an engine reads, in canonical form. */
export function keyName(kid: string, { kty, crv, x, y }: Jwk): string {
  return JSON.stringify([kty, crv, x, kty === 'EC' ? y : '', kid]);
}

/** @param order see `DocumentCache.order`. */
export function createFirstSeen(order: () => number): FirstSeen {
  // By the set and not by its URL: it goes with the document.
  const pasts = new WeakMap<KeySet, Past>();
  const note = (copy: Copy<KeySet>, before: Past | undefined): Past => {
    const lacked = before?.direct ?? NEVER;
    const keys = new Map<string, KeyPast>();
    for (const [kid, jwk] of copy.value.jwks) {
      const key = keyName(kid, jwk);
      keys.set(key, before?.keys.get(key) ?? { seen: order(), lacked });
    }
    const past = { keys, direct: copy.indirect === true ? lacked : copy.order };
    pasts.set(copy.value, past);
    return past;
  };
  return {
    landed: (copy, before) => void note(copy, before && (pasts.get(before.value) ?? note(before, undefined))),
    seen: (copy, key) => (pasts.get(copy.value) ?? note(copy, undefined)).keys.get(key)?.seen,
    lackedSince: (set, key, since) => (pasts.get(set)?.keys.get(key)?.lacked ?? NEVER) > since,
  };
}
