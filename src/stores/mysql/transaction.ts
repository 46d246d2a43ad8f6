import { ConfigError } from '../../errors.ts';
import type { Sessions } from '../sql/transaction.ts';
import { within } from '../sql/within.ts';
import type { Answer, MysqlConnection, MysqlPool } from './client.ts';
import { askOn, checkOut, giveBack } from './client.ts';
import { asFault, errorNumber } from './faults.ts';

/**
 * @param timeoutMs of each statement.
 * @param begin the statement that begins a transaction, for an `idleMs`.
 */
export function sessionsOf(
  pool: MysqlPool,
  timeoutMs: number,
  begin: (idleMs: number) => string,
): Sessions<MysqlConnection, Answer> {
  const said = <T>(running: Promise<T>): Promise<T> =>
    running.catch((error: unknown) => {
      throw isEnded(error) ? new ConfigError(ENDED, { cause: error }) : asFault(error);
    });
  const run = async (connection: MysqlConnection, ...statements: readonly string[]): Promise<void> => {
    for (const sql of statements) await said(within(connection.query(sql), timeoutMs, `MySQL: ${sql}`));
  };
  return {
    checkOut: () => said(checkOut(pool, timeoutMs)),
    begin: async (connection, idleMs) => {
      // A process that is frozen inside would hold the rows that it has written for hours.
      await run(connection, begin(idleMs));
      return '';
    },
    queryOn: (connection) => (sql, values) => said(askOn(connection, timeoutMs)(sql, values)),
    commit: (connection) => run(connection, BACK, 'COMMIT'),
    rollBack: (connection) => run(connection, 'ROLLBACK', BACK),
    giveBack,
  };
}

const BACK = 'SET SESSION wait_timeout = @webhook_wait';

/** `SAVEPOINT proto_webhooks does not exist`. */
const isEnded = (error: unknown): boolean =>
  errorNumber(error) === 1305 && /\bproto_webhooks\b/.test((error as Error).message);

const ENDED =
  'ctx.transaction: its transaction had ended before the function did, so the event could not be completed with it. ' +
  'Leave out COMMIT, ROLLBACK and what commits by itself (CREATE, ALTER, TRUNCATE): return to commit, throw to roll back. ' +
  'And let errors through: the server rolls all back at a deadlock.';
