import type { Store } from '../../dist/index.js';

export type BackendName = 'redis' | 'postgres' | 'mysql' | 'sqlite';

/** Where a store is, for a process that did not make it. */
export interface Place {
  readonly backend: BackendName;
  /** URL of its server; a file has none. */
  readonly server?: string;
  /** Redis: the prefix of its keys. Postgres: its schema. MySQL: its database. SQLite: its file. */
  readonly name: string;
}

/** Connections to Postgres, and to MySQL: more than what 64 concurrent inserts gain by. */
export const POOL = 16;

/** Nothing of the other backends is loaded: it would be part of what the process holds. */
const OPENERS: Readonly<Record<BackendName, (place: Place) => Promise<Store>>> = {
  redis: async ({ server = '', name }) => {
    const { Redis } = await import('ioredis');
    const { redisStore } = await import('../../dist/redis.js');
    return redisStore({ client: new Redis(server), prefix: name });
  },
  postgres: async ({ server, name }) => {
    const { Pool } = await import('pg');
    const { postgresStore } = await import('../../dist/postgres.js');
    return postgresStore({ pool: new Pool({ connectionString: server, max: POOL }), schema: name });
  },
  mysql: async ({ server = '', name }) => {
    const { createPool } = await import('mysql2/promise');
    const { mysqlStore } = await import('../../dist/mysql.js');
    return mysqlStore({ pool: createPool({ uri: `${server}/${name}`, connectionLimit: POOL }) });
  },
  sqlite: async ({ name }) => {
    const { sqliteStore } = await import('../../dist/sqlite.js');
    return sqliteStore(name);
  },
};

/** Opens a store with connections of this process, which end with it. */
export async function openAt(place: Place): Promise<Store> {
  const store = await OPENERS[place.backend](place);
  await store.open();
  return store;
}
