// The public entry `proto-webhooks/postgres`: a store on PostgreSQL (admission.md §9.3).
// Called by users. `storeOf` makes the store from the backend in `postgres/postgres-backend.ts`.
import { ConfigError } from '../shared/errors.ts';
import type { Store, StoreInbox, StoreOptions } from './store.ts';
import { storeOf } from './optimistic/optimistic-store.ts';
import { requireOptions } from './text.ts';
import { postgresBackend } from './postgres/postgres-backend.ts';
import type { PgClient, PgPool } from './postgres/postgres-client.ts';
import { requirePool } from './postgres/postgres-client.ts';
import { DEFAULT_SCHEMA } from './postgres/postgres-schema.ts';

export type { PgClient, PgConnection, PgPool, PgResult } from './postgres/postgres-client.ts';
export { migrate } from './postgres/postgres-schema.ts';
export type { MigrateOptions } from './postgres/postgres-schema.ts';

/** Options of `postgresStore`: the pool of connections, the schema, and time limits. */
export interface PostgresStoreOptions extends StoreOptions {
  /** A pool of `pg` (8 or newer). The caller ends the pool. `ctx.transaction` needs a `max` of at least 2. */
  readonly pool: PgPool;
  /** The schema in which `migrate` made the tables. Default: `proto_webhooks`. */
  readonly schema?: string;
  /**
   * The time limit of an operation, including the wait for a connection, ms. After it the operation fails with
   * `store_unavailable`. Default: 3 000.
   */
  readonly timeoutMs?: number;
  /**
   * The longest time that the function of `ctx.transaction` may go without a statement, ms. After it the server
   * rolls back and closes the connection, so that a frozen process frees its rows.
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
 * A store on PostgreSQL, made by `postgresStore`. In a handler, `ctx.transaction(fn)` passes a client of the pool to
 * `fn`, inside the database transaction that completes the event.
 *
 * After the transaction each call on that client fails with the code `transaction_over` and sends nothing, because
 * the connection serves others.
 */
export type PostgresStore = Store<PgClient> &
  Required<Pick<Store<PgClient>, 'transaction' | typeof Symbol.asyncDispose>> & {
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
 * Creates a store on PostgreSQL 12 or newer, for several processes and machines. `migrate(pool)` makes its tables.
 * Any pooler works, because nothing is kept in a session.
 *
 * The server's settings decide its durability. It is `disk` (answered events survive a power failure), or `failover`
 * (the loss of the machine) with a synchronous standby.
 * @throws ConfigError for an invalid schema name; from `open()` if the server's settings or tables are unsuitable.
 * @example
 * ```ts
 * import pg from 'pg';
 * import { migrate, postgresStore } from 'proto-webhooks/postgres';
 *
 * const pool = new pg.Pool({ connectionString: 'postgres://localhost/buyer', max: 10 });
 * await migrate(pool);
 * export const store = postgresStore({ pool });
 * ```
 */
export function postgresStore(options: PostgresStoreOptions): PostgresStore {
  check(options);
  const { pool, random = Math.random, clockOffsetMs = () => 0, timeoutMs = 3000 } = options;
  const schema = options.schema ?? DEFAULT_SCHEMA;
  const { idleInTransactionMs } = options;
  const backend = postgresBackend({ pool, schema, timeoutMs, idleInTransactionMs, clockOffsetMs, random });
  const store = storeOf(backend, { clockOffsetMs, random });
  const { sweep } = store;
  return Object.assign(store, { sweep: async () => sweep(await backend.scopes()) });
}

const OPTION_NAMES: Readonly<Record<keyof PostgresStoreOptions, true>> = {
  pool: true,
  schema: true,
  timeoutMs: true,
  idleInTransactionMs: true,
  random: true,
  clockOffsetMs: true,
};

/** The longest idle timeout that the server allows. Ms. */
const MOST_IDLE_MS = 2 ** 31 - 1;

/** Checks the options, because callers in JavaScript may pass wrong ones. @throws ConfigError */
function check(options: Partial<PostgresStoreOptions> | undefined): void {
  requirePool('postgresStore', 'postgresStore({ pool })', options?.pool);
  requireOptions('postgresStore', options, OPTION_NAMES);
  const { idleInTransactionMs: idle = 0 } = options ?? {};
  if (!Number.isSafeInteger(idle) || idle < 0 || idle > MOST_IDLE_MS) {
    throw new ConfigError(
      `postgresStore: idleInTransactionMs is ${String(idle)}. Give whole milliseconds, 0 to ${MOST_IDLE_MS}.`,
    );
  }
}
