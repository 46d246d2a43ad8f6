// Types of `reconciler.discover` as users see them: the query, and the media buys and tasks that run at a seller.
import type { Adoption } from '../registrations/adopt.ts';
import type { Seller } from '../registrations/seller.ts';

/** Names the seller, and your account there, whose running media buys and tasks `reconciler.discover` lists. */
export interface DiscoverQuery extends Seller {
  /**
   * Your account at the seller, in the form in which calls contain it, e.g. `{ account_id: 'a1' }`. Absent: none is
   * sent.
   */
  readonly account?: object | undefined;
  /** Your own reference, by which `call` may choose its credentials. Adopted operations get it too. */
  readonly ref?: string | undefined;
  /** The `next` of a previous answer. */
  readonly after?: string | undefined;
  /** Aborts the requests; `discover` then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The media buys and tasks that run at a seller and that the store does not know, returned by `reconciler.discover`. */
export interface Discovery {
  readonly mediaBuys: readonly DiscoveredMediaBuy[];
  /** Absent if the seller has no list of its tasks; `errors` then says why. */
  readonly tasks?: readonly DiscoveredTask[];
  /**
   * The reasons why something may be missing. Empty: nothing is missing, or the remaining entries follow with `next`.
   */
  readonly errors: readonly DiscoveryError[];
  /** The `after` of the next call. Absent if there are no further entries. */
  readonly next?: string;
}

/** A media buy that runs at a seller. */
export interface DiscoveredMediaBuy {
  readonly mediaBuyId: string;
  /** The status as the seller wrote it, at most 128 characters. */
  readonly status: string;
  /** The start and the end, ISO 8601 in UTC, as far as the seller names them. */
  readonly start?: string;
  readonly end?: string;
  /** True if the seller's `webhook_activity` shows a URL at the host of `baseUrl`. Absent if it shows no URL. */
  readonly usesOurUrl?: boolean;
  /**
   * The argument for `registrations.adopt`. Sellers do not say how often they report. To have missing reports found,
   * add `reporting: { frequency }`.
   */
  readonly adoption: Adoption;
}

/** A task that has not ended at a seller. */
export interface DiscoveredTask {
  readonly taskId: string;
  readonly taskType: string;
  /** The status as the seller wrote it, at most 128 characters. */
  readonly status: string;
  /** ISO 8601, in UTC. */
  readonly createdAt?: string;
  /** The argument for `registrations.adopt`. */
  readonly adoption: Adoption;
}

/** The reason why a list was not read to its end, or why an entry of it is left out. */
export interface DiscoveryError {
  readonly of: 'mediaBuys' | 'tasks';
  /**
   * The code of the error: the seller's own, or `seller_busy`, `no_operation`, `answer_invalid`, `answer_refused` or
   * `unanswered`. `account_refused`: the tasks may belong to another account of yours.
   */
  readonly code: string;
  readonly message: string;
}
