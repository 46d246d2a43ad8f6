import { ConfigError } from '../../errors.ts';
import type { Within } from '../backend.ts';
import type { Query } from './backend.ts';
import type { PgClient, PgPool } from './client.ts';
import { checkOut, committing, giveBack, within } from './client.ts';
import { asFault, isServerError, sqlState } from './faults.ts';
import { handOut } from './handed-out.ts';

export interface TransactionParts {
  readonly pool: PgPool;
  readonly timeoutMs: number;
  /** Resolves when the schema is known to be this package's. */
  readonly known: () => Promise<void> | undefined;
  /** The port on one client. `started`: when its transaction began. */
  readonly within: (query: Query, started: string) => Within;
  /** How long the server waits for the next statement before it rolls back. Ms; 0: as it is set up. */
  readonly idleMs: number;
  /** Told of each use of the client after the end. */
  readonly onLateUse: (error: Error) => void;
}

/**
 * The owner's writes and the completion in one transaction of a client of its own. The lease is looked at before (a
 * paused process must not begin) and decides at the end, by the compare-and-set that is the last statement before
 * COMMIT; in between it is renewed by others, and nothing of the store's is locked.
 * @param over a function that has not ended when it aborts is left alone, and its connection closed: it may go on
 *   writing on it, and nobody else may get those writes.
 * @throws what `work` throws, rolled back; Fault `store_unavailable` where the connection breaks, at COMMIT with unknown
 *   outcome: then the record says what happened; what the owner's deferred constraints say.
 */
export async function runTransaction<T>(
  { pool, timeoutMs, known, within: withinOf, idleMs, onLateUse }: TransactionParts,
  work: (tx: PgClient, within: Within) => Promise<T>,
  over?: AbortSignal,
): Promise<T> {
  await known();
  const client = await checkOut(pool, timeoutMs).catch((error: unknown) => {
    throw asFault(error);
  });
  const query: Query = async (text, values) => {
    try {
      return (await within(client.query(text, values), timeoutMs, 'a statement')).rows;
    } catch (error) {
      throw ofTheFunction(error) ?? asFault(error);
    }
  };
  const { tx, revoke } = handOut(client, onLateUse);
  try {
    const started = await begin(client, timeoutMs, idleMs);
    const value = await work(tx, withinOf(query, started));
    revoke();
    await commit(client, timeoutMs);
    giveBack(client);
    return value;
  } catch (error) {
    revoke();
    const left = over?.aborted === true && error === over.reason;
    giveBack(client, left ? error : await rollBack(client, timeoutMs));
    throw error;
  }
}

async function begin(client: PgClient, timeoutMs: number, idleMs: number): Promise<string> {
  // A process that is frozen inside would hold the rows that it has written for ever.
  const idle = idleMs > 0 ? `SET LOCAL idle_in_transaction_session_timeout = ${idleMs}; ` : '';
  const text = `BEGIN ISOLATION LEVEL READ COMMITTED; ${idle}SELECT transaction_timestamp()::text AS started`;
  const results = await within(client.query(text), timeoutMs, 'BEGIN').catch((error: unknown) => {
    throw asFault(error);
  });
  const [row] = [results].flat().flatMap(({ rows }) => rows) as { readonly started: string }[];
  return row?.started ?? '';
}

async function commit(client: PgClient, timeoutMs: number): Promise<void> {
  try {
    await committing(client, () => within(client.query('COMMIT'), timeoutMs, 'COMMIT'));
  } catch (error) {
    // A deferred constraint of the owner's tables fails here, and is the owner's.
    const isTheirs = (sqlState(error) ?? '').startsWith('23') && isServerError(error);
    throw isTheirs ? error : asFault(error);
  }
}

/** What the function has done to its transaction, by SQLSTATE. What is not here is a fault of ours. */
const BY_STATE: Readonly<Record<string, string>> = {
  PW004:
    'the function ended the transaction itself, so the event could not be completed with it. ' +
    'Leave out COMMIT and ROLLBACK: return to commit, throw to roll back.',
  '25P02':
    'a statement of the function failed and its error was caught, so PostgreSQL had given the ' +
    'transaction up; its writes were rolled back. Let the error through, or put the statement into a SAVEPOINT.',
};

function ofTheFunction(error: unknown): ConfigError | undefined {
  const text = BY_STATE[sqlState(error) ?? ''];
  return text === undefined ? undefined : new ConfigError(`ctx.transaction: ${text}`, { cause: error });
}

/** @returns the error of a connection that is of no more use. */
async function rollBack(client: PgClient, timeoutMs: number): Promise<unknown> {
  try {
    await within(client.query('ROLLBACK'), timeoutMs, 'ROLLBACK');
    return undefined;
  } catch (error) {
    return error;
  }
}
