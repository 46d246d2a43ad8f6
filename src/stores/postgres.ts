import { ConfigError } from '../errors.ts';
import type { FailResult, PeekResult, Store, StoreInbox, StoreOptions } from './contract.ts';
import { requireOptions } from './given.ts';
import type { Call } from './postgres/call.ts';
import { acceptCall, acceptResult, completeCall, failCall, recordCall, renewCall } from './postgres/call.ts';
import type { PgClient, PgPool } from './postgres/client.ts';
import { poolMax, requirePool } from './postgres/client.ts';
import { connectionOf } from './postgres/connection.ts';
import { asFault } from './postgres/faults.ts';
import { inboxOf } from './postgres/inbox.ts';
import { DEFAULT_SCHEMA } from './postgres/schema.ts';
import { serverOf, type Server } from './postgres/server.ts';
import { durabilityOf } from './postgres/settings.ts';
import { slotsOf } from './postgres/slots.ts';
import { runTransaction } from './postgres/transaction.ts';

export type { PgClient, PgConnection, PgPool, PgResult } from './postgres/client.ts';
export { migrate } from './postgres/schema.ts';
export type { MigrateOptions } from './postgres/schema.ts';

/** `postgresStore`'s options. */
export interface PostgresStoreOptions extends StoreOptions {
  /** A pool of `pg` (8 or newer). It stays its owner's to end. `ctx.transaction` needs `max` of at least 2. */
  readonly pool: PgPool;
  /** Where `migrate` made the tables. `proto_webhooks`. */
  readonly schema?: string;
  /** An operation that is not answered by then is `store_unavailable`; waiting for a connection counts. Ms; 3 000. */
  readonly timeoutMs?: number;
  /** 0 ≤ n < 1. `Math.random`; spreads the tries of transactions that the server rolled back. */
  readonly random?: () => number;
}

/** A store whose `transaction(request, fn)` gives `fn` a client of the pool, inside the transaction. */
export type PostgresStore = Store<PgClient> &
  Required<Pick<Store<PgClient>, 'transaction'>> & {
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
 * @throws ConfigError for a schema that is no name; from `open()` where the server's settings or tables do not do.
 */
export function postgresStore(options: PostgresStoreOptions): PostgresStore {
  check(options);
  const { pool, random = Math.random, clockOffsetMs = () => 0, timeoutMs = 3000 } = options;
  const schema = options.schema ?? DEFAULT_SCHEMA;
  const server = serverOf({ pool, schema, timeoutMs, clockOffsetMs });
  const connection = connectionOf({ pool, server, schema, timeoutMs, random });
  const { current, during } = connection;
  const run = async (call: Call): Promise<string> => (await current().batches.run(call)).kind;
  const asked = <T>(work: (server: Server) => Promise<T>): Promise<T> =>
    during(() => work(current().server)).catch((error: unknown) => {
      throw asFault(error);
    });
  const transactions = slotsOf(Math.max(1, poolMax(pool) - 1));
  return {
    name: 'postgres',
    open: connection.open,
    durability: async () => durabilityOf(await connection.readSettings()),
    get durabilityAdvice() {
      return connection.advice();
    },
    accept: async (request) =>
      acceptResult(await current().batches.run(acceptCall(request)), request.acceptId),
    complete: async (request) => (await run(completeCall(request))) as 'done' | 'lost',
    fail: async (request) => (await run(failCall(request))) as FailResult,
    renew: async (request) => (await run(renewCall(request))) as 'renewed' | 'lost',
    peek: async (sender, key) => (await run(recordCall('peek', sender, key))) as PeekResult,
    transaction: async (request, fn, over) => {
      current();
      if (poolMax(pool) < 2) throw new ConfigError(TOO_SMALL);
      const parts = { pool, server, timeoutMs };
      return during(() => transactions.run(() => runTransaction(parts, request, fn, over), over));
    },
    clock: () => asked((server) => server.clock()),
    inbox: inboxOf({ current, random, clockOffsetMs, during }),
    sweep: () => asked((server) => server.sweep()),
    close: connection.close,
  };
}

const OPTION_NAMES: Readonly<Record<keyof PostgresStoreOptions, true>> = {
  pool: true,
  schema: true,
  timeoutMs: true,
  random: true,
  clockOffsetMs: true,
};

/** What callers in JavaScript may give. @throws ConfigError */
function check(options: Partial<PostgresStoreOptions> | undefined): void {
  requirePool('postgresStore', 'postgresStore({ pool })', options?.pool);
  requireOptions('postgresStore', options, OPTION_NAMES);
}

const TOO_SMALL =
  'ctx.transaction: the pool has one connection, which the transaction would keep from the store. Set its max to 2 or more.';
