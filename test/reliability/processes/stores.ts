import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import type { Store } from '../../../src/index.ts';
import type { StoreInbox, StoreOptions } from '../../../src/stores/index.ts';
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

/** Of the store's clock. */
type Clock = Pick<StoreOptions, 'clockOffsetMs'>;

type Open<K extends Kind> = (
  place: Extract<StoreLocation, { kind: K }>,
  build: Build,
  clock: Clock,
) => OpenStore;

const OPEN: { readonly [K in Kind]: Open<K> } = {
  SQLite: ({ file }, { sqliteStore }, clock) => ({
    store: sqliteStore(file, clock),
    writeEffect: (tx, key, copy) =>
      (tx as SqliteHandle).prepare('INSERT INTO effect (key, copy) VALUES (?, ?)').run(key, copy),
    end: async () => undefined,
  }),
  Postgres: ({ url, schema }, { postgresStore }, clock) => {
    const pool = new Pool({ connectionString: url, max: POOL });
    pool.on('error', () => undefined);
    return {
      store: postgresStore({ pool, schema, ...clock }),
      writeEffect: (tx, key, copy) =>
        (tx as PgClient).query(`INSERT INTO ${schema}.effect (key, copy) VALUES ($1, $2)`, [key, copy]),
      end: () => pool.end(),
    };
  },
  MySQL: ({ url }, { mysqlStore }, clock) => {
    const pool = createPool({ uri: url, connectionLimit: POOL });
    return {
      store: mysqlStore({ pool, ...clock }),
      writeEffect: (tx, key, copy) =>
        (tx as MysqlConnection).query('INSERT INTO effect (event, copy) VALUES (?, ?)', [key, copy]),
      end: () => pool.end(),
    };
  },
  Redis: ({ port }, { redisStore }, clock) => {
    const client = new Redis({ host: '127.0.0.1', port });
    client.on('error', () => undefined);
    return { store: redisStore({ client, ...clock }), end: async () => client.disconnect() };
  },
};

export function openStore(place: StoreLocation, build: Build = OWN, clock: Clock = {}): OpenStore {
  return (OPEN[place.kind] as (...given: [StoreLocation, Build, Clock]) => OpenStore)(place, build, clock);
}
