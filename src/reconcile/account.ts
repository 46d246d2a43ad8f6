// Answers a query of the account in pages: reports that are due, that came, and that are missing (owed.md §5).
// `reconciler.account` and `proto-webhooks owed` call it. stream-account.ts describes one media buy, tasks-account.ts
// the operations.
import { wholeNumber } from '../config/validate.ts';
import type { Hashes } from '../crypto/engine.ts';
import { ConfigError } from '../shared/errors.ts';
import { storedId } from '../stages/ids.ts';
import type { StoreRegistrations } from '../stores/store.ts';
import { owing, type Tolerance } from './evaluate.ts';
import { type NamedStream, readStreams } from './read-streams.ts';
import { isNews, isWhole, type StreamAccount, streamAccountOf } from './stream-account.ts';
import { type TaskCounts, tasksOf } from './tasks-account.ts';

/** Selects a page of the account: a seller, a media buy, or a time. It is passed to `reconciler.account`. */
export interface AccountQuery {
  /** The agent URL of one seller. Absent: all. */
  readonly agentUrl?: string | undefined;
  /** One media buy. Requires `agentUrl`. */
  readonly mediaBuyId?: string | undefined;
  /**
   * A time, Unix ms. The page then has the media buys with news after this time, with their missing and held windows
   * that end after it. It also has the tasks that were registered or ended after it. Absent: all.
   */
  readonly since?: number | undefined;
  /** The `next` of the previous page. */
  readonly after?: string | undefined;
  /** The largest number of media buys on the page, 1 to 1000. Default: 100. */
  readonly limit?: number | undefined;
}

/** A page of the account: reports and tasks that were expected, those that came, and those that are missing. */
export interface Account {
  /**
   * True if nothing on this page is missing, held or unverifiable, and no task is unresolved or orphaned. The account
   * is complete if each of its pages is. It is false if `mediaBuyId` is unknown.
   */
  readonly complete: boolean;
  /** The time of the page, Unix ms on the store's clock. */
  readonly asOf: number;
  /** The counts of tasks. Present only on the first page, i.e. without `after`. */
  readonly tasks?: TaskCounts;
  readonly streams: readonly StreamAccount[];
  /** The number of media buys that `since` leaves out of the page. Absent if the query has no `since`. */
  readonly unchanged?: number;
  /** The `after` of the next page. Absent on the last page. */
  readonly next?: string;
}

/** The parts from which an account is read. */
export interface AccountSource {
  readonly rows: StoreRegistrations;
  readonly hashes: Hashes;
  readonly tolerance: Tolerance;
}

/** Returns a page of the account. @throws ConfigError (rejects) for a query that cannot be answered. */
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

/** A page of the account, without its tasks. */
export type StreamPage = Pick<Account, 'streams' | 'unchanged' | 'asOf' | 'next'>;

/** Returns a page of media buys. @throws ConfigError (rejects) for a query that cannot be answered. */
export async function streamsOf(source: AccountSource, query: AccountQuery): Promise<StreamPage> {
  const { agentUrl, since } = query;
  const { rows, tolerance } = source;
  // `since` may be any time, also one before 1970.
  if (since !== undefined) wholeNumber('account: since', since, 0, -Number.MAX_SAFE_INTEGER);
  const pageOf = pageBy(source, query);
  // The time is read before the streams. Otherwise a window that becomes due in between would be shown as missing.
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

/** A page of the requested streams. */
interface NamePage {
  readonly rows: readonly NamedStream[];
  readonly next?: string;
}

/**
 * Returns the function that reads the page.
 * @throws ConfigError for a query that cannot be answered, before anything is read.
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
