// Lets metrics read the account of a reconciler, through a member that users do not see.
import type { AccountQuery, StreamPage } from './account.ts';

/** The member of reconcilers with which metrics read media buys. It leaves out tasks, which are counted elsewhere. */
export const STREAM_PAGES: unique symbol = Symbol.for('proto-webhooks.stream-pages') as never;

export interface WithStreamPages {
  readonly [STREAM_PAGES]: (query: AccountQuery) => Promise<StreamPage>;
}
