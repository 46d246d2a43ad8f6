// The interface between the search over senders and one sender's part in it (verification.md §5.4 to §5.7).
// Implemented by `sender-search.ts` and `narrowed-search.ts`; called by `key-search.ts`.

import type { SenderEntry } from '../config/sender-entry.ts';
import type { Candidate } from './key-resolver.ts';
import type { FetchMoment } from './document.ts';
import type { DeliveryBudget } from './safe-fetch.ts';

/** One sender's keys under a key id. Both members are set if a cached key exists but a refresh failed. */
export interface SenderMatch {
  /** At least one, if present; several if publishers pin several keys under one `kid`. */
  readonly candidates?: readonly Candidate[];
  /** The reason why this sender's keys do not decide; for the owner's log. */
  readonly undecided?: string;
}

/** The search of one delivery. */
export interface Search {
  readonly keyid: string;
  /**
   * True if a document was fetched after the delivery arrived, which alone proves a missing key unknown
   * (verification.md §2.26). Fetch numbers decide before the clock: two events of one millisecond have no
   * order, and a wrong "unknown" would end the event.
   */
  readonly isFreshEnough: (fetched: FetchMoment) => boolean;
  /** Budget for one sender, or for one publisher's file. */
  readonly fetchBudget: DeliveryBudget['fetchBudget'];
}

/** One sender's part in a search: its own pins, those of its publishers, and its JWKS if nobody pins. */
export interface SenderSearch {
  /** Fetches the documents that a first delivery would need. */
  warm(sender: SenderEntry): Promise<void>;
  /**
   * As `cached`, without a promise, if the sender's own pins or its fresh JWKS decide; otherwise undefined,
   * and `cached` has to be asked. `final`: only the owner's pins could have the key, and they lack it.
   */
  cachedSync(sender: SenderEntry, keyid: string): (SenderMatch & { readonly final?: boolean }) | undefined;
  /** True if a key of that id is pinned, or in a fresh JWKS. */
  hasCached(sender: SenderEntry, keyid: string): boolean;
  /** Searches cached copies. `expired`: there is a key, in a copy past its lifetime. */
  cached(sender: SenderEntry, keyid: string): Promise<SenderMatch & { readonly expired?: boolean }>;
  /** Searches copies within their lifetime, or the cached ones if those cannot be refreshed. */
  readonly refreshed: (sender: SenderEntry, search: Search) => Promise<SenderMatch>;
  /** Performs step 4 (verification.md §5.4) if no cached copy has the key: documents are fetched again. */
  readonly refetched: (sender: SenderEntry, search: Search) => Promise<SenderMatch>;
  /**
   * Searches other keys under the same `keyid` after every key in `tried` failed, in documents that are
   * recent enough to decide.
   */
  untried(sender: SenderEntry, search: Search, tried: readonly Candidate[]): Promise<SenderMatch>;
}
