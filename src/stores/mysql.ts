// The public entry `proto-webhooks/mysql`: a store on MariaDB and MySQL (admission.md §9.6).
// Called by users. `storeOf` makes the store from the backend in `mysql/mysql-backend.ts`.
import { ConfigError } from '../shared/errors.ts';
import type { AcceptRequest, Store, StoreInbox, StoreOptions } from './store.ts';
import { storeOf } from './optimistic/optimistic-store.ts';
import type { RegistrationRows } from './store-registrations.ts';
import { requireOptions } from './text.ts';
import { checkSender, mysqlBackend } from './mysql/mysql-backend.ts';
import type { MysqlConnection, MysqlPool } from './mysql/mysql-client.ts';
import { requirePool } from './mysql/mysql-client.ts';

export type { MysqlConnection, MysqlPool } from './mysql/mysql-client.ts';
export { migrate } from './mysql/mysql-schema.ts';
export type { MigrateOptions } from './mysql/mysql-schema.ts';

/** Options of `mysqlStore`: the pool of connections, and time limits. */
export interface MysqlStoreOptions extends StoreOptions {
  /**
   * A pool of `mysql2/promise` (3 or newer), on the database in which `migrate` made the tables. The caller ends the
   * pool. `ctx.transaction` needs a `connectionLimit` of at least 2.
   */
  readonly pool: MysqlPool;
  /**
   * The time limit of an operation, including the wait for a connection, ms. After it the operation fails with
   * `store_unavailable`. Default: 3 000.
   */
  readonly timeoutMs?: number;
  /**
   * The longest time that the function of `ctx.transaction` may go without a statement, ms, rounded to whole
   * seconds. After it the server closes the connection and rolls back, so that a frozen process frees its rows.
   *
   * 0 keeps the server's setting. Default: the longer of `leaseMs` and 30 000.
   */
  readonly idleInTransactionMs?: number;
  /**
   * Returns a number in [0, 1) that spreads the retries of transactions that the server rolled back. Default:
   * `Math.random`.
   */
  readonly random?: () => number;
}

/**
 * A store on MariaDB or MySQL, made by `mysqlStore`. In a handler, `ctx.transaction(fn)` passes a connection of the
 * pool to `fn`, inside the database transaction that completes the event.
 *
 * After the transaction each call on that connection fails with the code `transaction_over` and sends nothing,
 * because the connection serves others.
 */
export type MysqlStore = Store<MysqlConnection> &
  Required<Pick<Store<MysqlConnection>, 'transaction' | typeof Symbol.asyncDispose>> & {
    readonly inbox: StoreInbox;
    /**
     * Deletes expired rows, a few at a time. A delivery already deletes expired rows of its own sender. Call `sweep`
     * e.g. once a day for senders that send no more.
     *
     * @returns the number of deleted rows.
     */
    sweep(): Promise<number>;
  };

/**
 * Creates a store on MariaDB 10.6 or newer, for several processes and machines. `migrate(pool)` makes its tables and
 * procedures. MariaDB 10.11 is tested; MySQL 8.0.19 or newer supports the statements but is not tested.
 *
 * The server's settings decide its durability. It is `disk` (answered events survive a power failure) with
 * `innodb_flush_log_at_trx_commit = 1`, and `sync_binlog = 1` if the binary log is on.
 * @throws ConfigError for invalid options; from `open()` if the server's settings or tables are unsuitable.
 * @example
 * ```ts
 * import { createPool } from 'mysql2/promise';
 * import { migrate, mysqlStore } from 'proto-webhooks/mysql';
 *
 * const pool = createPool({ uri: 'mysql://localhost/buyer', connectionLimit: 10 });
 * await migrate(pool);
 * export const store = mysqlStore({ pool });
 * ```
 */
export function mysqlStore(options: MysqlStoreOptions): MysqlStore {
  check(options);
  const { pool, random = Math.random, clockOffsetMs = () => 0, timeoutMs = 3000 } = options;
  const { idleInTransactionMs } = options;
  const backend = mysqlBackend({ pool, timeoutMs, idleInTransactionMs, clockOffsetMs, random });
  const store = storeOf(backend, { clockOffsetMs, random });
  const { sweep, registrations } = store;
  const accept = store.accept.bind(store);
  return Object.assign(store, {
    sweep: async () => sweep(await backend.scopes()),
    // The sender's name is checked before the call joins a batch, so that a wrong name does not fail the other calls of
    // the batch.
    accept: async (request: AcceptRequest) => {
      checkSender(request.sender);
      return accept(request);
    },
    ...(registrations && {
      registrations: {
        ...registrations,
        run: async <T>(sender: string, plan: (rows: RegistrationRows, now: number) => T): Promise<T> => {
          checkSender(sender);
          return registrations.run(sender, plan);
        },
      },
    }),
  });
}

const OPTION_NAMES: Readonly<Record<keyof MysqlStoreOptions, true>> = {
  pool: true,
  timeoutMs: true,
  idleInTransactionMs: true,
  random: true,
  clockOffsetMs: true,
};

/** The longest idle timeout that the server allows. Ms: a year. */
const MOST_IDLE_MS = 31_536_000_000;

/** Checks the options, because callers in JavaScript may pass wrong ones. @throws ConfigError */
function check(options: Partial<MysqlStoreOptions> | undefined): void {
  requirePool('mysqlStore', 'mysqlStore({ pool })', options?.pool);
  requireOptions('mysqlStore', options, OPTION_NAMES);
  const { idleInTransactionMs: idle = 0 } = options ?? {};
  if (!Number.isSafeInteger(idle) || idle < 0 || idle > MOST_IDLE_MS) {
    throw new ConfigError(
      `mysqlStore: idleInTransactionMs is ${String(idle)}. Give whole milliseconds, 0 to ${MOST_IDLE_MS}.`,
    );
  }
}
