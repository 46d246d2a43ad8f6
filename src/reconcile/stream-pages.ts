// Lets the metrics read pages of media buys from a reconciler, through a member that the public types do not show.
import type { AccountQuery, StreamPage } from './account.ts';

/**
 * The hidden member of a reconciler with which the metrics read media buys. The pages have no tasks, which are counted
 * elsewhere.
 */
export const STREAM_PAGES: unique symbol = Symbol.for('proto-webhooks.stream-pages') as never;

export interface WithStreamPages {
  readonly [STREAM_PAGES]: (query: AccountQuery) => Promise<StreamPage>;
}
