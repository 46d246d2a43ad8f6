import { ConfigError } from '../../errors.ts';
import type { Sessions } from '../sql/transaction.ts';
import { within } from '../sql/within.ts';
import type { PgClient, PgPool } from './client.ts';
import { checkOut, committing, giveBack } from './client.ts';
import { asFault, isServerError, sqlState } from './faults.ts';

/** @param timeoutMs of each statement. */
export function sessionsOf(pool: PgPool, timeoutMs: number): Sessions<PgClient, readonly unknown[]> {
  const said = <T>(running: Promise<T>, what: string): Promise<T> =>
    within(running, timeoutMs, `Postgres: ${what}`).catch((error: unknown) => {
      throw ofTheFunction(error) ?? asFault(error);
    });
  return {
    checkOut: () =>
      checkOut(pool, timeoutMs).catch((error: unknown) => {
        throw asFault(error);
      }),
    begin: async (client, idleMs) => {
      // A process that is frozen inside would hold the rows that it has written for ever.
      const idle = idleMs > 0 ? `SET LOCAL idle_in_transaction_session_timeout = ${idleMs}; ` : '';
      const text = `BEGIN ISOLATION LEVEL READ COMMITTED; ${idle}SELECT transaction_timestamp()::text AS started`;
      const results = await said(client.query(text), 'BEGIN');
      const [row] = [results].flat().flatMap(({ rows }) => rows) as { readonly started: string }[];
      return row?.started ?? '';
    },
    queryOn: (client) => async (text, values) =>
      (await said(client.query(text, [...values]), 'a statement')).rows,
    commit: async (client) => {
      try {
        await committing(client, () => within(client.query('COMMIT'), timeoutMs, 'Postgres: COMMIT'));
      } catch (error) {
        // A deferred constraint of the owner's tables fails here, and is the owner's.
        const isTheirs = (sqlState(error) ?? '').startsWith('23') && isServerError(error);
        throw isTheirs ? error : asFault(error);
      }
    },
    rollBack: async (client) => {
      await within(client.query('ROLLBACK'), timeoutMs, 'Postgres: ROLLBACK');
    },
    giveBack,
  };
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
