import { wholeNumber } from '../config/validate.ts';
import type { Hashes } from '../crypto/engine.ts';
import { buyStreamIn, isRegistered } from '../registrations/streams.ts';
import { ConfigError } from '../shared/errors.ts';
import { storedId } from '../stages/ids.ts';
import type { RegistrationRow, StoreRegistrations } from '../stores/store.ts';
import { owing, type Tolerance } from './evaluate.ts';
import { isWhole, type StreamAccount, streamAccountOf } from './stream-account.ts';
import { type TaskCounts, tasksOf } from './tasks-account.ts';

/*
 * The account: the query, and the pages that answer it (owed.md §5). What stands of one media buy, stream-account.ts says; what of the
 * operations, tasks-account.ts.
 */

/** Selects a page of the account: a seller, a media buy, a time. Passed to `reconciler.account`. */
export interface AccountQuery {
  /** The agent URL of one seller. Absent: all. */
  readonly agentUrl?: string | undefined;
  /** One media buy. Requires `agentUrl`. */
  readonly mediaBuyId?: string | undefined;
  /** Only missing and held windows that end after this time, Unix ms. Absent: all. */
  readonly since?: number | undefined;
  /** The `next` of the page before. */
  readonly after?: string | undefined;
  /** The largest number of media buys on the page, 1 to 1000. Default: 100. */
  readonly limit?: number | undefined;
}

/** A page of the account: what was promised, what came, and what is missing. */
export interface Account {
  /**
   * True if nothing on this page is missing, held or unverifiable, and no task is unresolved or orphaned. The
   * account is complete if each of its pages is. It is false if nothing is known of `mediaBuyId`.
   */
  readonly complete: boolean;
  /** The time of the page, Unix ms on the store's clock. */
  readonly asOf: number;
  /** Present on the first page: without `after`. */
  readonly tasks?: TaskCounts;
  readonly streams: readonly StreamAccount[];
  /** The `after` of the next page. Absent on the last page. */
  readonly next?: string;
}

/** The parts from which an account is read. */
export interface AccountSource {
  readonly rows: StoreRegistrations;
  readonly hashes: Hashes;
  readonly tolerance: Tolerance;
}

/** @throws ConfigError (rejects) for a query that cannot be. */
export async function accountOf(source: AccountSource, query: AccountQuery): Promise<Account> {
  const { agentUrl, mediaBuyId, after } = query;
  const { streams, asOf, next } = await streamsOf(source, query);
  const tasks = after === undefined ? await tasksOf(source.rows, agentUrl) : undefined;
  const isKnown = mediaBuyId === undefined || streams.length > 0;
  return {
    complete: isKnown && streams.every(isWhole) && !tasks?.unresolved && !tasks?.orphaned,
    asOf,
    ...(tasks && { tasks }),
    streams,
    ...(next !== undefined && { next }),
  };
}

/** A page of the account, without its tasks. */
export type StreamPage = Pick<Account, 'streams' | 'asOf' | 'next'>;

/** @throws ConfigError (rejects) for a query that cannot be. */
export async function streamsOf(source: AccountSource, query: AccountQuery): Promise<StreamPage> {
  const { agentUrl, since } = query;
  // Any time may be asked for.
  if (since !== undefined) wholeNumber('account: since', since, 0, -Number.MAX_SAFE_INTEGER);
  const page = await namesOf(source, query);
  const described = await Promise.all(page.rows.map((row) => streamOf(source, row, since)));
  return {
    streams: described.flatMap((one) => one ?? []),
    asOf: await source.rows.run(agentUrl ?? '', (_rows, now) => now),
    ...(page.next !== undefined && { next: page.next }),
  };
}

/** A page of the streams that are asked for. */
interface StreamNames {
  readonly rows: readonly Pick<RegistrationRow, 'sender' | 'id'>[];
  readonly next?: string;
}

async function namesOf(
  { rows, hashes }: AccountSource,
  { agentUrl, mediaBuyId, limit, after }: AccountQuery,
): Promise<StreamNames> {
  const most = wholeNumber('account: limit', limit, 100, 1, 1000);
  if (mediaBuyId === undefined) {
    return rows.page({
      kind: 'stream',
      limit: most,
      ...(agentUrl !== undefined && { sender: agentUrl }),
      ...(after !== undefined && { after }),
    });
  }
  if (agentUrl !== undefined) return { rows: [{ sender: agentUrl, id: storedId(mediaBuyId, hashes) }] };
  throw new ConfigError('account: mediaBuyId needs agentUrl. Media buys of two sellers may have one id.');
}

async function streamOf(
  { rows, tolerance }: AccountSource,
  { sender, id }: Pick<RegistrationRow, 'sender' | 'id'>,
  since: number | undefined,
): Promise<StreamAccount | undefined> {
  return rows.run(sender, (step, now) => {
    const row = step.get('stream', id);
    const stream = row && buyStreamIn(row);
    if (!stream || !isRegistered(stream)) return undefined;
    return streamAccountOf(sender, stream, {
      owed: owing(stream, (key) => step.eventState(key), now, tolerance),
      now,
      tolerance,
      since,
    });
  });
}
