// The interface between the search over all senders and the search for one sender (verification.md §5.4 to §5.7).
// Implemented by `sender-search.ts` and `narrowed-search.ts`; called by `key-search.ts`.

import type { SenderEntry } from '../config/sender-entry.ts';
import type { Candidate } from './key-resolver.ts';
import type { FetchMoment } from './document.ts';
import type { DeliveryBudget } from './safe-fetch.ts';

/** One sender's keys with a key id. Both members are set if a cached key was found and its refresh failed. */
export interface SenderMatch {
  /** If present, not empty. There are several if publishers pin several keys under one `kid`. */
  readonly candidates?: readonly Candidate[];
  /** The reason, for the owner's log, why this sender's keys give no final result. */
  readonly undecided?: string;
}

/** The search of one delivery. */
export interface Search {
  readonly keyid: string;
  /**
   * True if the document was fetched after the delivery arrived; only then a missing key is proved unknown
   * (verification.md §2.26). Fetch numbers are compared before times, because two events in one millisecond have no
   * order. A wrong "unknown" would end the event.
   */
  readonly isFreshEnough: (fetched: FetchMoment) => boolean;
  /** Returns the budget for one sender, or for one publisher's file. */
  readonly fetchBudget: DeliveryBudget['fetchBudget'];
}

/** The search for one sender: in its own pins, in its publishers' pins and, if nobody pins, in its JWKS. */
export interface SenderSearch {
  /** Fetches the documents that a first delivery would need. */
  warm(sender: SenderEntry): Promise<void>;
  /**
   * As `cached`, but without a promise. Undefined if neither the sender's own pins nor its fresh JWKS decide; then
   * call `cached`. `final`: only the owner's pins could have the key, and they do not.
   */
  cachedSync(sender: SenderEntry, keyid: string): (SenderMatch & { readonly final?: boolean }) | undefined;
  /** True if a key of that id is pinned, or in a fresh JWKS. */
  hasCached(sender: SenderEntry, keyid: string): boolean;
  /** Searches cached copies. `expired`: the key was found in a copy whose lifetime is over. */
  cached(sender: SenderEntry, keyid: string): Promise<SenderMatch & { readonly expired?: boolean }>;
  /** Searches copies within their lifetime. A copy that cannot be refreshed is searched as it is. */
  readonly refreshed: (sender: SenderEntry, search: Search) => Promise<SenderMatch>;
  /**
   * Performs step 4 (verification.md §5.4), if no cached copy has the key: fetches the documents again and searches
   * them.
   */
  readonly refetched: (sender: SenderEntry, search: Search) => Promise<SenderMatch>;
  /**
   * Searches for other keys with the same `keyid` after no key in `tried` could verify. It uses documents that are
   * recent enough to prove that there is no such key.
   */
  untried(sender: SenderEntry, search: Search, tried: readonly Candidate[]): Promise<SenderMatch>;
}
