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

/** The pool, which notes the SQLSTATE of each transaction that the server rolls back because of another one. */
export function notingPool(pool: Pool, rolledBack: string[]): PgPool {
  return wrappedPool(pool, async (run) => {
    try {
      return await run();
    } catch (error) {
      const { code = '' } = error as { readonly code?: string };
      if (code.startsWith('40')) rolledBack.push(code);
      throw error;
    }
  });
}

function wrappedClient(client: PgClient, around: Around): PgClient {
  return {
    query: (text, values) => around(() => client.query(text, values), text, client),
    release: (error) => client.release(error),
    on: (event: 'error' | 'notice', listener: never) => client.on(event as 'error', listener),
    removeListener: (event: 'error' | 'notice', listener: never) =>
      client.removeListener(event as 'error', listener),
  };
}
