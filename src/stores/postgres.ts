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

/** `postgresStore`'s options. */
export interface PostgresStoreOptions extends StoreOptions {
  /** A pool of `pg` (8 or newer). It stays its owner's to end. `ctx.transaction` needs `max` of at least 2. */
  readonly pool: PgPool;
  /** Where `migrate` made the tables. `proto_webhooks`. */
  readonly schema?: string;
  /** An operation that is not answered by then is `store_unavailable`; waiting for a connection counts. Ms; 3 000. */
  readonly timeoutMs?: number;
  /**
   * `ctx.transaction`: how long the function may leave its transaction without a statement before the server rolls it
   * back and closes the connection, so that a frozen process frees its rows. Ms; 0: as the server is set up. By default
   * the longer of `leaseMs` and 30 000.
   */
  readonly idleInTransactionMs?: number;
  /** 0 ≤ n < 1. `Math.random`; spreads the tries of transactions that the server rolled back. */
  readonly random?: () => number;
}

/**
 * A store whose `transaction(request, fn)` gives `fn` a client of the pool, inside the transaction. When that has ended
 * each call on it fails with the code `transaction_over`, and nothing is sent: the connection serves others.
 */
export type PostgresStore = Store<PgClient> &
  Required<Pick<Store<PgClient>, 'transaction' | typeof Symbol.asyncDispose>> & {
    readonly inbox: StoreInbox;
    /**
     * Deletes what has expired, a few rows at a time. Accepts clear away what their own senders left; this is for
     * senders that have gone quiet: call it once a day, say. @returns how many rows.
     */
    sweep(): Promise<number>;
  };

/**
 * The store for several processes and machines: PostgreSQL 12 or newer, on tables that `migrate(pool)` makes, through
 * any pooler (nothing is kept in a session). Durability is what the server's settings say: `disk`, or `failover` with a
 * synchronous standby.
 * @throws ConfigError for a schema that is not a name; from `open()` where the server's settings or tables do not do.
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

/** The server's own most. */
const MOST_IDLE_MS = 2 ** 31 - 1;

/** What callers in JavaScript may give. @throws ConfigError */
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
