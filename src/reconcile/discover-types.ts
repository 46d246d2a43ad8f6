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
  /**
   * Your own reference. The option `call` of the registrations may choose credentials by it. Adopted media buys and
   * tasks get it too.
   */
  readonly ref?: string | undefined;
  /** The `next` of the previous result. Absent: the lists are read from the beginning. */
  readonly after?: string | undefined;
  /** Aborts the requests; `discover` then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The result of `reconciler.discover`: the media buys and tasks that run at a seller and are unknown to the store. */
export interface Discovery {
  readonly mediaBuys: readonly DiscoveredMediaBuy[];
  /** Absent if the seller has no list of its tasks; `errors` then says why. */
  readonly tasks?: readonly DiscoveredTask[];
  /**
   * The reasons why entries may be missing. If there are none, all entries are here, or the remaining ones follow with
   * `next`.
   */
  readonly errors: readonly DiscoveryError[];
  /** The value of `after` in the query for the next entries. Absent if there are no further entries. */
  readonly next?: string;
}

/** A media buy that runs at a seller, and that the store does not know. */
export interface DiscoveredMediaBuy {
  readonly mediaBuyId: string;
  /** The status as the seller wrote it, at most 128 characters. */
  readonly status: string;
  /** The start and the end of the media buy, ISO 8601 in UTC, as far as the seller names them. */
  readonly start?: string;
  readonly end?: string;
  /**
   * True if the seller's `webhook_activity` shows a URL at the host of the registrations' `baseUrl`. Absent if the
   * seller shows no URL.
   */
  readonly usesOurUrl?: boolean;
  /**
   * The argument for `registrations.adopt`. Sellers do not say how often they report. To have missing reports found,
   * add `reporting: { frequency }`.
   */
  readonly adoption: Adoption;
}

/** A task that has not ended at a seller, and that the store does not know. */
export interface DiscoveredTask {
  readonly taskId: string;
  readonly taskType: string;
  /** The status as the seller wrote it, at most 128 characters. */
  readonly status: string;
  /** The time at which the task was created, ISO 8601 in UTC. Absent if the seller does not name it. */
  readonly createdAt?: string;
  /** The argument for `registrations.adopt`, which starts to poll the task. */
  readonly adoption: Adoption;
}

/** The reason why a list of media buys or tasks was not read to its end, or why some of its entries are left out. */
export interface DiscoveryError {
  readonly of: 'mediaBuys' | 'tasks';
  /**
   * The code of the error: the seller's own, or `seller_busy`, `no_operation`, `answer_invalid`, `answer_refused` or
   * `unanswered`. `account_refused`: the tasks may belong to another account of yours.
   */
  readonly code: string;
  readonly message: string;
}
