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

/** `mysqlStore`'s options. */
export interface MysqlStoreOptions extends StoreOptions {
  /**
   * A pool of `mysql2/promise` (3 or newer), with the database in which `migrate` made the tables. It stays its owner's
   * to end. `ctx.transaction` needs a `connectionLimit` of at least 2.
   */
  readonly pool: MysqlPool;
  /** An operation that is not answered by then is `store_unavailable`; waiting for a connection counts. Ms; 3 000. */
  readonly timeoutMs?: number;
  /**
   * `ctx.transaction`: how long the function may leave its transaction without a statement before the server closes the
   * connection and rolls it back, so that a frozen process frees its rows. Ms, in whole seconds; 0: as the server is set
   * up. By default the longer of `leaseMs` and 30 000.
   */
  readonly idleInTransactionMs?: number;
  /** 0 ≤ n < 1. `Math.random`; spreads the tries of transactions that the server rolled back. */
  readonly random?: () => number;
}

/**
 * A store whose `transaction(request, fn)` gives `fn` a connection of the pool, inside the transaction. When that has
 * ended each call on it fails with the code `transaction_over`, and nothing is sent: the connection serves others.
 */
export type MysqlStore = Store<MysqlConnection> &
  Required<Pick<Store<MysqlConnection>, 'transaction' | typeof Symbol.asyncDispose>> & {
    readonly inbox: StoreInbox;
    /**
     * Deletes what has expired, a few rows at a time. Accepts clear away what their own senders left; this is for
     * senders that have gone quiet: call it once a day, say. @returns how many rows.
     */
    sweep(): Promise<number>;
  };

/**
 * The store for several processes and machines on MariaDB (10.6 or newer; 10.11 is the one that is tested), on tables
 * and procedures that `migrate(pool)` makes. MySQL 8.0.19 or newer has the statements too, and is not tested. Durability
 * is what the server's settings say: `disk` with `innodb_flush_log_at_trx_commit = 1`, and `sync_binlog = 1` where the
 * binary log is on.
 * @throws ConfigError for options that cannot work; from `open()` where the server's settings or tables do not do.
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
    // Before they come together with others: no call fails for another one's sender.
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

/** The server's own most. */
const MOST_IDLE_MS = 31_536_000_000;

/** What callers in JavaScript may give. @throws ConfigError */
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
