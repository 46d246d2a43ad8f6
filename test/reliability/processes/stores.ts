import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import type { Store } from '../../../src/index.ts';
import type { StoreInbox } from '../../../src/stores/index.ts';
import type { MysqlConnection } from '../../../src/stores/mysql.ts';
import type { PgClient } from '../../../src/stores/postgres.ts';
import type { SqliteHandle } from '../../../src/stores/sqlite.ts';
import type { Build } from './build.ts';
import { OWN } from './build.ts';

/** Where a store's data are: processes are told this. */
export type StoreLocation =
  | { readonly kind: 'SQLite'; readonly file: string }
  | { readonly kind: 'Postgres'; readonly url: string; readonly schema: string }
  | { readonly kind: 'MySQL'; readonly url: string }
  | { readonly kind: 'Redis'; readonly port: number };

export type Kind = StoreLocation['kind'];

/** A connection of one process. */
export interface OpenStore {
  readonly store: Store & { readonly inbox: StoreInbox };
  /** The handler's write in `ctx.transaction`; absent where the backend has none. */
  readonly writeEffect?: (tx: unknown, key: string, copy: string) => unknown;
  /** After the store was closed. */
  readonly end: () => Promise<void>;
}

/** Connections of a process to Postgres, and to MySQL. */
const POOL = 6;

type Open<K extends Kind> = (place: Extract<StoreLocation, { kind: K }>, build: Build) => OpenStore;

const OPEN: { readonly [K in Kind]: Open<K> } = {
  SQLite: ({ file }, { sqliteStore }) => ({
    store: sqliteStore(file),
    writeEffect: (tx, key, copy) =>
      (tx as SqliteHandle).prepare('INSERT INTO effect (key, copy) VALUES (?, ?)').run(key, copy),
    end: async () => undefined,
  }),
  Postgres: ({ url, schema }, { postgresStore }) => {
    const pool = new Pool({ connectionString: url, max: POOL });
    pool.on('error', () => undefined);
    return {
      store: postgresStore({ pool, schema }),
      writeEffect: (tx, key, copy) =>
        (tx as PgClient).query(`INSERT INTO ${schema}.effect (key, copy) VALUES ($1, $2)`, [key, copy]),
      end: () => pool.end(),
    };
  },
  MySQL: ({ url }, { mysqlStore }) => {
    const pool = createPool({ uri: url, connectionLimit: POOL });
    return {
      store: mysqlStore({ pool }),
      writeEffect: (tx, key, copy) =>
        (tx as MysqlConnection).query('INSERT INTO effect (event, copy) VALUES (?, ?)', [key, copy]),
      end: () => pool.end(),
    };
  },
  Redis: ({ port }, { redisStore }) => {
    const client = new Redis({ host: '127.0.0.1', port });
    client.on('error', () => undefined);
    return { store: redisStore({ client }), end: async () => client.disconnect() };
  },
};

export function openStore(place: StoreLocation, build: Build = OWN): OpenStore {
  return (OPEN[place.kind] as (place: StoreLocation, build: Build) => OpenStore)(place, build);
}
