import type { SenderEntry } from '../config/sender-entry.ts';
import type { Candidate } from './key-resolver.ts';
import type { FetchMoment } from './document.ts';
import type { DeliveryBudget } from './safe-fetch.ts';

/** What one sender has under a key id; both members where an old key is cached and a newer one could not be had. */
export interface SenderMatch {
  /** Several where publishers pin several keys under one `kid`. Absent or at least one. */
  readonly candidates?: readonly Candidate[];
  /** Why this sender's keys do not decide; for the owner's log. */
  readonly undecided?: string;
}

/** One delivery's search. */
export interface Search {
  readonly keyid: string;
  /**
   * Whether a document was fetched after the delivery arrived, which alone makes a missing key unknown
   * (verification.md §2.26). The clock decides only where fetch numbers do not: two events of one millisecond have no
   * order, and a wrong "unknown" would end the event.
   */
  readonly isFreshEnough: (fetched: FetchMoment) => boolean;
  /** Of one sender, or of one publisher's file. */
  readonly fetchBudget: DeliveryBudget['fetchBudget'];
}

/** One sender's part in a search: its own pins, those of its publishers, and its JWKS where nobody pins. */
export interface SenderSearch {
  /** Fetches what a first delivery would need. */
  warm(sender: SenderEntry): Promise<void>;
  /**
   * `cached` without a promise, where the sender's own pins decide, or its fresh JWKS where nobody pins; undefined where
   * `cached` has to be asked. `final`: only the owner's pins could have the key, and they lack it.
   */
  cachedSync(sender: SenderEntry, keyid: string): (SenderMatch & { readonly final?: boolean }) | undefined;
  /** Whether a key of that id is pinned, or in a fresh JWKS. */
  hasCached(sender: SenderEntry, keyid: string): boolean;
  /** From cached copies. `expired`: there is a key, in a copy past its lifetime. */
  cached(sender: SenderEntry, keyid: string): Promise<SenderMatch & { readonly expired?: boolean }>;
  /** From copies within their lifetime, or the cached ones where those cannot be refreshed. */
  readonly refreshed: (sender: SenderEntry, search: Search) => Promise<SenderMatch>;
  /** Step 4 (verification.md §5.4), where no cached copy has the key: documents are fetched again. */
  readonly refetched: (sender: SenderEntry, search: Search) => Promise<SenderMatch>;
  /** After every key in `tried` failed: others under the same `keyid`, from documents that are recent enough to say. */
  untried(sender: SenderEntry, search: Search, tried: readonly Candidate[]): Promise<SenderMatch>;
}
