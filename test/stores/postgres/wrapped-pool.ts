import type { Pool } from 'pg';
import type { PgClient, PgPool, PgResult } from '../../../src/stores/postgres.ts';

/** A statement on its way: `run` sends it, to the client that was checked out. */
export type Around = (run: () => Promise<PgResult>, text: string, client: PgClient) => Promise<PgResult>;

/** The pool, with something around each statement. */
export function wrappedPool(pool: Pool, around: Around): PgPool {
  return {
    options: pool.options,
    on: (event, listener) => pool.on(event, listener),
    removeListener: (event, listener) => pool.removeListener(event, listener),
    connect: async () => wrappedClient(await pool.connect(), around),
  };
}

function wrappedClient(client: PgClient, around: Around): PgClient {
  return {
    query: (text, values) => around(() => client.query(text, values), text, client),
    release: (error) => client.release(error),
    on: (event, listener) => client.on(event, listener),
    removeListener: (event, listener) => client.removeListener(event, listener),
  };
}
