// The interface between the search over all senders and the search for one sender (verification.md §5.4 to §5.7).
// Implemented by `sender-search.ts` and `narrowed-search.ts`; called by `key-search.ts`.

import type { SenderEntry } from '../config/sender-entry.ts';
import type { Candidate } from './key-resolver.ts';
import type { FetchMoment } from './document.ts';
import type { DeliveryBudget } from './safe-fetch.ts';

/**
 * The keys of one sender that have the searched key id. Both members may be set: keys were found, and the sender might
 * have others.
 */
export interface SenderMatch {
  /** The found keys; never an empty list. There are several if publishers pin different keys under one `kid`. */
  readonly candidates?: readonly Candidate[];
  /** The reason, for the owner's log, why the sender might have a key that was not found. */
  readonly undecided?: string;
}

/** The parameters of the key search for one delivery. */
export interface Search {
  readonly keyid: string;
  /**
   * True if the document was fetched after the delivery arrived. Only then a missing key is proved not to exist
   * (verification.md §2.26), and the delivery is refused for good.
   * Fetch numbers are compared before times, because two events in one millisecond have no order.
   */
  readonly isFreshEnough: (fetched: FetchMoment) => boolean;
  /** Returns the fetch limits for one sender, or for one publisher's file. */
  readonly fetchBudget: DeliveryBudget['fetchBudget'];
}

/**
 * The search for one sender's key: in its configured pins, in its publishers' pins and, if there are no pins, in its
 * JWKS.
 */
export interface SenderSearch {
  /** Fetches the documents that a first delivery would need. */
  warm(sender: SenderEntry): Promise<void>;
  /**
   * Searches as `cached` does, but without a promise. Undefined if neither configured pins nor a fresh JWKS decide;
   * then call `cached`. `final`: only configured pins could contain the key, and they do not.
   */
  cachedSync(sender: SenderEntry, keyid: string): (SenderMatch & { readonly final?: boolean }) | undefined;
  /** True if a key with this id is pinned by the owner or a publisher, or is in a JWKS that is fresh. */
  hasCached(sender: SenderEntry, keyid: string): boolean;
  /**
   * Searches cached copies. `expired`: the key was found, but a document that decides about it is past its lifetime.
   */
  cached(sender: SenderEntry, keyid: string): Promise<SenderMatch & { readonly expired?: boolean }>;
  /**
   * Searches copies within their lifetime, and fetches expired ones again. A copy that cannot be fetched again is
   * searched as it is.
   */
  readonly refreshed: (sender: SenderEntry, search: Search) => Promise<SenderMatch>;
  /**
   * Performs step 4 of key discovery (verification.md §5.4), for a key that no cached copy has: fetches the documents
   * again and searches them.
   */
  readonly refetched: (sender: SenderEntry, search: Search) => Promise<SenderMatch>;
  /**
   * Searches for other keys with the same `keyid`, because no key in `tried` verified the signature. Documents that
   * are too old to prove that there is none are fetched again.
   */
  untried(sender: SenderEntry, search: Search, tried: readonly Candidate[]): Promise<SenderMatch>;
}
