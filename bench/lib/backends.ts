import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import { createPool, type RowDataPacket } from 'mysql2/promise';
import { Pool } from 'pg';
import type { Store } from '../../dist/index.js';
import { migrate as migrateMysql, mysqlStore } from '../../dist/mysql.js';
import { migrate, postgresStore } from '../../dist/postgres.js';
import { redisStore } from '../../dist/redis.js';
import { sqliteStore } from '../../dist/sqlite.js';
import { startServer as startMariadb } from '../../test/support/mariadb.ts';
import { startServer as startPostgres } from '../../test/support/postgres.ts';
import { startServer as startRedis } from '../../test/support/redis-server.ts';
import {
  bareWrites,
  POOL,
  SQLITE_BARE,
  type BackendName,
  type BareWrite,
  type StoreLocation,
} from './places.ts';

/** A store of its own on a backend, open and empty. */
export interface Opened {
  readonly store: Store;
  /** For another process to open it too. */
  readonly place: StoreLocation;
  /**
   * What it takes on disk or, Redis, in memory, once the backend has tidied up.
   * @param packed without the room that Postgres and MySQL keep for other rows.
   */
  readonly bytes: (packed?: boolean) => Promise<number>;
  readonly close: () => Promise<void>;
}

/** A backend at durability `disk`, and the cheapest write it has at the same durability. */
export interface Backend {
  readonly bareName: string;
  readonly open: () => Promise<Opened>;
  readonly bare: BareWrite;
  /**
   * What its server has spent on commands so far, µs: `INFO commandstats`, `pg_stat_statements` (of a backend that is timed), processor
   * time in `USER_STATISTICS` (likewise). Undefined: there is no server.
   */
  readonly serverMicros: () => Promise<number | undefined>;
  readonly stop: () => Promise<void>;
}

/** @param isTimed whether the server counts what it spends, which costs some per cent. */
type Start = (isTimed?: boolean) => Promise<Backend>;

async function redis(): Promise<Backend> {
  const server = await startRedis({
    appendonly: 'yes',
    appendfsync: 'always',
    // A rewrite would run beside whatever is measured then.
    'auto-aof-rewrite-percentage': '0',
  });
  const client = new Redis({ port: server.port, host: '127.0.0.1' });
  const url = `redis://127.0.0.1:${server.port}`;
  let stores = 0;
  return {
    bareName: 'SET NX PX',
    bare: bareWrites.redis(client),
    open: async () => {
      stores += 1;
      const prefix = `bench-${stores}:`;
      const store = redisStore({ client, prefix });
      await store.open();
      const used = async (): Promise<number> =>
        Number(/used_memory_dataset:(\d+)/.exec(await client.info('memory'))?.[1]);
      const before = await used();
      return {
        store,
        place: { backend: 'redis', server: url, name: prefix },
        bytes: async () => (await used()) - before,
        close: () => store.close(),
      };
    },
    serverMicros: async () => {
      const stats = await client.info('commandstats');
      // What a script runs is counted by itself too, and in the script.
      const [, micros = '0'] = /^cmdstat_evalsha:.*?usec=(\d+)/m.exec(stats) ?? [];
      const [, bare = '0'] = /^cmdstat_set:.*?usec=(\d+)/m.exec(stats) ?? [];
      return Number(micros === '0' ? bare : micros);
    },
    stop: async () => {
      client.disconnect();
      await server.remove();
    },
  };
}

async function postgres(isTimed = false): Promise<Backend> {
  const server = await startPostgres(
    isTimed ? { shared_preload_libraries: 'pg_stat_statements', 'pg_stat_statements.track': 'top' } : {},
  );
  // It is not a child of this process, and would stay.
  process.once('exit', server.remove);
  const pool = new Pool({ connectionString: server.url, max: POOL });
  // Dropped with the server, and then nobody asks.
  pool.on('error', () => undefined);
  await pool.query('CREATE TABLE bare (key text PRIMARY KEY, hash text NOT NULL)');
  if (isTimed) await pool.query('CREATE EXTENSION pg_stat_statements');
  let stores = 0;
  return {
    bareName: 'single-row INSERT',
    bare: bareWrites.postgres(pool),
    open: async () => {
      stores += 1;
      const schema = `bench_${stores}`;
      await migrate(pool, { schema });
      const store = postgresStore({ pool, schema });
      await store.open();
      return {
        store,
        place: { backend: 'postgres', server: server.url, name: schema },
        bytes: async (packed = false) => {
          await pool.query(packed ? 'VACUUM FULL' : 'VACUUM ANALYZE');
          const { rows } = await pool.query<{ bytes: string }>(
            `SELECT sum(pg_total_relation_size(c.oid)) AS bytes FROM pg_class c
              JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`,
            [schema],
          );
          return Number(rows[0]?.bytes);
        },
        close: () => store.close(),
      };
    },
    serverMicros: async () => {
      if (!isTimed) return undefined;
      const { rows } = await pool.query<{ micros: number }>(
        'SELECT 1000 * sum(total_exec_time + total_plan_time) AS micros FROM pg_stat_statements',
      );
      return rows[0]?.micros;
    },
    stop: async () => {
      await pool.end();
      process.off('exit', server.remove);
      server.remove();
    },
  };
}

async function mysql(isTimed = false): Promise<Backend> {
  const server = await startMariadb();
  const pool = createPool({ uri: server.url, connectionLimit: POOL });
  await pool.query('CREATE DATABASE bare');
  if (isTimed) await pool.query('SET GLOBAL userstat = 1');
  await pool.query('CREATE TABLE bare.bare (name VARCHAR(200) PRIMARY KEY, hash VARCHAR(64) NOT NULL)');
  let stores = 0;
  return {
    bareName: 'single-row INSERT',
    bare: bareWrites.mysql(pool),
    open: async () => {
      stores += 1;
      const name = `bench_${stores}`;
      await pool.query(`CREATE DATABASE ${name}`);
      const own = createPool({ uri: `${server.url}/${name}`, connectionLimit: POOL });
      await migrateMysql(own);
      const store = mysqlStore({ pool: own });
      await store.open();
      return {
        store,
        place: { backend: 'mysql', server: server.url, name },
        bytes: async (packed = false) => {
          const tables = ['webhook_row', 'webhook_tally', 'webhook_scope'];
          if (packed) for (const table of tables) await own.query(`OPTIMIZE TABLE ${table}`);
          return tables.reduce(
            (sum, table) => sum + statSync(join(server.data, name, `${table}.ibd`)).size,
            0,
          );
        },
        close: async () => {
          await store.close();
          await own.end();
        },
      };
    },
    serverMicros: async () => {
      if (!isTimed) return undefined;
      const [rows] = await pool.query<RowDataPacket[]>(
        'SELECT 1000000 * SUM(CPU_TIME) AS micros FROM information_schema.USER_STATISTICS',
      );
      return Number(rows[0]?.['micros']);
    },
    stop: async () => {
      await pool.end();
      await server.remove();
    },
  };
}

async function sqlite(): Promise<Backend> {
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-bench-'));
  const db = new DatabaseSync(join(folder, SQLITE_BARE));
  db.exec('CREATE TABLE bare (key TEXT PRIMARY KEY, hash TEXT NOT NULL)');
  let stores = 0;
  return {
    bareName: 'single-row INSERT',
    bare: bareWrites.sqlite(db),
    open: async () => {
      stores += 1;
      const file = join(folder, `store-${stores}.db`);
      const handle = new DatabaseSync(file);
      const store = sqliteStore(handle);
      await store.open();
      return {
        store,
        place: { backend: 'sqlite', name: file },
        bytes: async () => {
          handle.exec('PRAGMA wal_checkpoint(TRUNCATE)');
          return statSync(file).size;
        },
        close: async () => {
          await store.close();
          handle.close();
        },
      };
    },
    serverMicros: async () => undefined,
    stop: async () => {
      db.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export const BACKENDS: Readonly<Record<BackendName, Start>> = {
  redis,
  postgres,
  mysql,
  sqlite,
};
