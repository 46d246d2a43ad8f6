import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import type { Store } from '../../../src/index.ts';
import type { StoreInbox, StoreOptions } from '../../../src/stores/index.ts';
import type { MysqlConnection } from '../../../src/stores/mysql.ts';
import type { PgClient, PostgresStoreOptions } from '../../../src/stores/postgres.ts';
import type { SqliteHandle } from '../../../src/stores/sqlite.ts';
import { PATIENT_MS } from '../../support/patient.ts';
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

interface Options extends Pick<StoreOptions, 'clockOffsetMs'> {
  /** The longest wait for the database, ms; absent: the store's own. */
  readonly waitMs?: number;
}

type Open<K extends Kind> = (
  place: Extract<StoreLocation, { kind: K }>,
  build: Build,
  options: Options,
) => OpenStore;

/** As stores that have a server name it. */
const limited = ({
  waitMs: timeoutMs,
  ...clock
}: Options): Pick<PostgresStoreOptions, 'clockOffsetMs' | 'timeoutMs'> => ({
  ...clock,
  ...(timeoutMs !== undefined && { timeoutMs }),
});

const OPEN: { readonly [K in Kind]: Open<K> } = {
  SQLite: ({ file }, { sqliteStore }, { waitMs: busyMs, ...clock }) => ({
    store: sqliteStore(file, { ...clock, ...(busyMs !== undefined && { busyMs }) }),
    writeEffect: (tx, key, copy) =>
      (tx as SqliteHandle).prepare('INSERT INTO effect (key, copy) VALUES (?, ?)').run(key, copy),
    end: async () => undefined,
  }),
  Postgres: ({ url, schema }, { postgresStore }, options) => {
    const pool = new Pool({ connectionString: url, max: POOL });
    pool.on('error', () => undefined);
    return {
      store: postgresStore({ pool, schema, ...limited(options) }),
      writeEffect: (tx, key, copy) =>
        (tx as PgClient).query(`INSERT INTO ${schema}.effect (key, copy) VALUES ($1, $2)`, [key, copy]),
      end: () => pool.end(),
    };
  },
  MySQL: ({ url }, { mysqlStore }, options) => {
    const pool = createPool({ uri: url, connectionLimit: POOL });
    return {
      store: mysqlStore({ pool, ...limited(options) }),
      writeEffect: (tx, key, copy) =>
        (tx as MysqlConnection).query('INSERT INTO effect (event, copy) VALUES (?, ?)', [key, copy]),
      end: () => pool.end(),
    };
  },
  Redis: ({ port }, { redisStore }, options) => {
    const client = new Redis({ host: '127.0.0.1', port });
    client.on('error', () => undefined);
    return { store: redisStore({ client, ...limited(options) }), end: async () => client.disconnect() };
  },
};

export function openStore(place: StoreLocation, build: Build = OWN, options: Options = {}): OpenStore {
  return (OPEN[place.kind] as (...given: [StoreLocation, Build, Options]) => OpenStore)(
    place,
    build,
    options,
  );
}

/** For what is looked at beside the processes: however busy the machine is, a look waits. */
export const openForJudge = (place: StoreLocation, options: Options = {}): OpenStore =>
  openStore(place, OWN, { waitMs: PATIENT_MS, ...options });
