// Reads pages of the account: the list of the reports and tasks that are due, that arrived, and that are missing
// (owed.md §5). `reconciler.account` and `proto-webhooks owed` call it. stream-account.ts describes one media buy, and
// tasks-account.ts counts the tasks.
import { wholeNumber } from '../config/validate.ts';
import type { Hashes } from '../crypto/engine.ts';
import { ConfigError } from '../shared/errors.ts';
import { storedId } from '../stages/ids.ts';
import type { StoreRegistrations } from '../stores/store.ts';
import { owing, type Tolerance } from './evaluate.ts';
import { type NamedStream, readStreams } from './read-streams.ts';
import { isNews, isWhole, type StreamAccount, streamAccountOf } from './stream-account.ts';
import { type TaskCounts, tasksOf } from './tasks-account.ts';

/** Selects a page of `reconciler.account`: by seller, by media buy, or by time. */
export interface AccountQuery {
  /** The agent URL of one seller. Absent: all sellers. */
  readonly agentUrl?: string | undefined;
  /** The id of one media buy. Requires `agentUrl`, because two sellers may use the same id. */
  readonly mediaBuyId?: string | undefined;
  /**
   * A time, Unix ms. Media buys that have not changed since this time are left out. So are entries of `missing` and
   * `held` whose period ended by then, and open or orphaned tasks that have not changed since. Absent: nothing is left
   * out.
   */
  readonly since?: number | undefined;
  /** The `next` of the previous page. Absent: the first page. */
  readonly after?: string | undefined;
  /** The largest number of media buys on the page, 1 to 1000. Default: 100. */
  readonly limit?: number | undefined;
}

/** A page of `reconciler.account`: the reports and tasks that were expected, that arrived, and that are missing. */
export interface Account {
  /**
   * True if no report on this page is missing, no event with a report is DEAD, and it is known which reports are owed.
   * On the first page, no task may be `unresolved` or `orphaned` either. The account is complete if each of its pages
   * is complete. False if `mediaBuyId` is unknown.
   */
  readonly complete: boolean;
  /** The time as of which the page is true, Unix ms on the store's clock. */
  readonly asOf: number;
  /** The counts of tasks. Only the first page has them, i.e. the answer to a query without `after`. */
  readonly tasks?: TaskCounts;
  readonly streams: readonly StreamAccount[];
  /** The number of media buys that `since` leaves out of the page. Absent if the query has no `since`. */
  readonly unchanged?: number;
  /** The value of `after` in the query for the next page. Absent on the last page. */
  readonly next?: string;
}

/** The store's rows and the settings from which the account is read. */
export interface AccountSource {
  readonly rows: StoreRegistrations;
  readonly hashes: Hashes;
  readonly tolerance: Tolerance;
}

/** Returns a page of the account. @throws ConfigError (rejects) for an invalid query. */
export async function accountOf(source: AccountSource, query: AccountQuery): Promise<Account> {
  const { agentUrl, mediaBuyId, since, after } = query;
  const page = await streamsOf(source, query);
  const { streams, unchanged = 0, asOf } = page;
  const tasks = after === undefined ? await tasksOf(source, { agentUrl, since, asOf }) : undefined;
  const isKnown = mediaBuyId === undefined || streams.length + unchanged > 0;
  return {
    complete: isKnown && streams.every(isWhole) && !tasks?.unresolved && !tasks?.orphaned,
    ...(tasks && { tasks }),
    ...page,
  };
}

/** A page of the account without the counts of tasks. */
export type StreamPage = Pick<Account, 'streams' | 'unchanged' | 'asOf' | 'next'>;

/** Returns a page of media buys with their reports. @throws ConfigError (rejects) for an invalid query. */
export async function streamsOf(source: AccountSource, query: AccountQuery): Promise<StreamPage> {
  const { agentUrl, since } = query;
  const { rows, tolerance } = source;
  // `since` may be any time, even one before 1970, so a negative number is allowed.
  if (since !== undefined) wholeNumber('account: since', since, 0, -Number.MAX_SAFE_INTEGER);
  const pageOf = pageBy(source, query);
  // The time is read before the rows. Otherwise a report that arrives after the rows were read, and becomes due
  // meanwhile, would be shown as missing.
  const asOf = await rows.run(agentUrl ?? '', (_rows, now) => now);
  const page = await pageOf();
  const streams: StreamAccount[] = [];
  let unchanged = 0;
  for (const { agentUrl: of, stream, stateOf } of await readStreams(rows, page.rows)) {
    const seen = { owed: owing(stream, stateOf, asOf, tolerance), now: asOf, tolerance, since };
    if (since === undefined || isNews(stream, seen.owed, since))
      streams.push(streamAccountOf(of, stream, seen));
    else unchanged += 1;
  }
  return {
    asOf,
    streams,
    ...(since !== undefined && { unchanged }),
    ...(page.next !== undefined && { next: page.next }),
  };
}

/** A page of store rows, one for each requested media buy, and the cursor of the next page. */
interface NamePage {
  readonly rows: readonly NamedStream[];
  readonly next?: string;
}

/**
 * Checks the query, and returns a function that reads the page of rows.
 * @throws ConfigError for an invalid query, before anything is read.
 */
function pageBy(
  { rows, hashes }: AccountSource,
  { agentUrl, mediaBuyId, limit, after }: AccountQuery,
): () => Promise<NamePage> {
  const most = wholeNumber('account: limit', limit, 100, 1, 1000);
  if (mediaBuyId === undefined) {
    return () =>
      rows.page({
        kind: 'stream',
        limit: most,
        ...(agentUrl !== undefined && { sender: agentUrl }),
        ...(after !== undefined && { after }),
      });
  }
  if (agentUrl === undefined) {
    throw new ConfigError('account: mediaBuyId needs agentUrl. Media buys of two sellers may have one id.');
  }
  return async () => ({ rows: [{ sender: agentUrl, id: storedId(mediaBuyId, hashes) }] });
}
