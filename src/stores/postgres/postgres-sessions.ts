// Transactions of Postgres for `ctx.transaction`, and a check that the connection pooler supports transactions
// (admission.md §2.16, §9.3).
// Called by the backend; sql-transaction.ts runs them.
import { ConfigError } from '../../shared/errors.ts';
import { causesOf } from '../sql/connections.ts';
import { type Sessions, within } from '../sql/sql-transaction.ts';
import {
  asFault,
  checkOut,
  committing,
  giveBack,
  isOfContent,
  type PgClient,
  type PgPool,
  readOnlyIn,
  sqlState,
} from './postgres-client.ts';

/** Transactions for `ctx.transaction` on connections of the pool. */
export type PgSessions = Sessions<PgClient, readonly unknown[]>;

/**
 * Makes the object that begins and ends transactions of `ctx.transaction`.
 *
 * @param timeoutMs the time limit of each statement.
 */
export function sessionsOf(pool: PgPool, timeoutMs: number): PgSessions {
  const inTime = <T>(running: Promise<T>, what: string): Promise<T> =>
    within(running, timeoutMs, `Postgres: ${what}`).catch((error: unknown) => {
      throw ofTheFunction(error) ?? asFault(error);
    });
  return {
    checkOut: () =>
      checkOut(pool, timeoutMs).catch((error: unknown) => {
        throw asFault(error);
      }),
    begin: async (client, idleMs) => {
      // Without a limit for idle transactions, a process that freezes during one would keep the rows that it wrote
      // locked for ever.
      const idle = idleMs > 0 ? `SET LOCAL idle_in_transaction_session_timeout = ${idleMs}; ` : '';
      const text = `BEGIN ISOLATION LEVEL READ COMMITTED; ${idle}SELECT transaction_timestamp()::text AS started`;
      const results = await inTime(client.query(text), 'BEGIN');
      const [row] = [results].flat().flatMap(({ rows }) => rows) as { readonly started: string }[];
      return row?.started ?? '';
    },
    queryOn: (client) => async (text, values) =>
      (await inTime(client.query(text, [...values]), 'a statement')).rows,
    commit: async (client) => {
      try {
        await committing(client, () => within(client.query('COMMIT'), timeoutMs, 'Postgres: COMMIT'));
      } catch (error) {
        // A deferred constraint or trigger of the user's tables may fail at COMMIT. Its error is passed to the user
        // unchanged.
        throw isOfContent(error) ? error : asFault(error);
      }
    },
    rollBack: async (client) => {
      await within(client.query('ROLLBACK'), timeoutMs, 'Postgres: ROLLBACK');
    },
    giveBack,
    readOnly: (error) => {
      const found = readOnlyIn(error);
      return found === undefined ? undefined : asFault(found);
    },
  };
}

/** True for the error of PgBouncer in statement mode, which does not allow transactions and closes the connection. */
const isStatementMode = (error: unknown): boolean =>
  [...causesOf(error)].some((one) => /statement pooling/i.test(one.message));

/**
 * Checks that two statements can share a transaction.
 *
 * @throws ConfigError if the connection pooler does not support that.
 */
export async function checkTransactions(client: PgClient, sessions: PgSessions): Promise<void> {
  try {
    const started = await sessions.begin(client, 0);
    const [row] = await sessions.queryOn(client)('SELECT transaction_timestamp()::text AS started', []);
    const isSame = (row as { readonly started: string }).started === started;
    await sessions.rollBack(client);
    if (isSame) return;
  } catch (error) {
    if (!isStatementMode(error)) throw error;
  }
  throw new ConfigError(
    "postgresStore: the pooler gives each statement a connection of its own (PgBouncer's statement mode), so there are no transactions. Set pool_mode = transaction for this database, or connect the pool to the server.",
  );
}

/**
 * Messages for mistakes that a user's function makes with its transaction, by SQLSTATE. Any other error is a fault of
 * the store.
 */
const BY_STATE: Readonly<Record<string, string>> = {
  PW004:
    'the function ended the transaction itself, so the event could not be completed with it. ' +
    'Leave out COMMIT and ROLLBACK: return to commit, throw to roll back.',
  PW002:
    'the function changed the isolation level. Leave it at READ COMMITTED, which is what the transaction begins with.',
  '25P02':
    'a statement of the function failed and its error was caught, so PostgreSQL had given the ' +
    'transaction up; its writes were rolled back. Let the error through, or put the statement into a SAVEPOINT.',
};

function ofTheFunction(error: unknown): ConfigError | undefined {
  const text = BY_STATE[sqlState(error) ?? ''];
  return text === undefined ? undefined : new ConfigError(`ctx.transaction: ${text}`, { cause: error });
}
