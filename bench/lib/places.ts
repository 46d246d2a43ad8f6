import { dirname, join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Redis } from 'ioredis';
import type { Pool as MysqlPool } from 'mysql2/promise';
import type { Pool } from 'pg';
import type { Store } from '../../dist/index.js';

export type BackendName = 'redis' | 'postgres' | 'mysql' | 'sqlite';

/** Where a store is, for a process that did not make it. */
export interface StoreLocation {
  readonly backend: BackendName;
  /** URL of its server; a file has none. */
  readonly server?: string;
  /** Redis: the prefix of its keys. Postgres: its schema. MySQL: its database. SQLite: its file. */
  readonly name: string;
}

/** Connections to Postgres, and to MySQL: more than what 64 concurrent inserts gain by. */
export const POOL = 16;

/** The cheapest write that a backend has, under a key that was never used. */
export type BareWrite = (key: string) => Promise<unknown>;

const HASH = '3b7c0f4a9d2e51860c4f7a8b9d6e3f2013c5a7e9b1d3f50724681ace0bdf9753';
const DAY_MS = 86_400_000;

/** SQLite: stands beside the store's file, with the table of the others (`backends.ts`). */
export const SQLITE_BARE = 'bare.db';

export const bareWrites = {
  redis:
    (client: Redis): BareWrite =>
    (key) =>
      client.set(`bare:${key}`, HASH, 'PX', DAY_MS, 'NX'),
  postgres:
    (pool: Pool): BareWrite =>
    (key) =>
      pool.query('INSERT INTO bare (key, hash) VALUES ($1, $2)', [key, HASH]),
  mysql:
    (pool: MysqlPool): BareWrite =>
    (key) =>
      pool.execute('INSERT INTO bare.bare (name, hash) VALUES (?, ?)', [key, HASH]),
  sqlite: (db: DatabaseSync): BareWrite => {
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    const insert = db.prepare('INSERT INTO bare (key, hash) VALUES (?, ?)');
    return async (key) => insert.run(key, HASH);
  },
} as const;

interface Opener {
  readonly store: () => Store;
  readonly bareWrite: () => BareWrite;
}

/** Nothing of the other backends is loaded: it would be part of what the process holds. */
const OPENERS: Readonly<Record<BackendName, (place: StoreLocation) => Promise<Opener>>> = {
  redis: async ({ server = '', name }) => {
    const { Redis } = await import('ioredis');
    const { redisStore } = await import('../../dist/redis.js');
    const client = new Redis(server);
    return {
      store: () => redisStore({ client, prefix: name }),
      bareWrite: () => bareWrites.redis(client),
    };
  },
  postgres: async ({ server, name }) => {
    const { Pool } = await import('pg');
    const { postgresStore } = await import('../../dist/postgres.js');
    const pool = new Pool({ connectionString: server, max: POOL });
    return {
      store: () => postgresStore({ pool, schema: name }),
      bareWrite: () => bareWrites.postgres(pool),
    };
  },
  mysql: async ({ server = '', name }) => {
    const { createPool } = await import('mysql2/promise');
    const { mysqlStore } = await import('../../dist/mysql.js');
    const pool = createPool({ uri: `${server}/${name}`, connectionLimit: POOL });
    return { store: () => mysqlStore({ pool }), bareWrite: () => bareWrites.mysql(pool) };
  },
  sqlite: async ({ name }) => {
    const { DatabaseSync } = await import('node:sqlite');
    const { sqliteStore } = await import('../../dist/sqlite.js');
    return {
      store: () => sqliteStore(name),
      bareWrite: () => bareWrites.sqlite(new DatabaseSync(join(dirname(name), SQLITE_BARE))),
    };
  },
};

/** Opens a store with connections of this process, which end with it. */
export async function openAt(place: StoreLocation): Promise<Store> {
  const store = (await OPENERS[place.backend](place)).store();
  await store.open();
  return store;
}

/** With connections of this process, which end with it. */
export async function bareWriteAt(place: StoreLocation): Promise<BareWrite> {
  return (await OPENERS[place.backend](place)).bareWrite();
}
