import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import { createPool, type RowDataPacket } from 'mysql2/promise';
import { Pool } from 'pg';
import type { Store } from '../../../src/index.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import { migrate as migrateMysql, mysqlStore } from '../../../src/stores/mysql.ts';
import { migrate, postgresStore } from '../../../src/stores/postgres.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { type RedisUrl, startRedis } from '../../support/redis.ts';
import { sharedMariadb } from '../../support/shared-mariadb.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';

/** A busy machine is no fault. */
const TIMEOUT_MS = 30_000;

/** A store, and how much it holds. */
export interface Sized {
  readonly store: Store;
  /** Bytes in the database; 0 where the process's own memory is all there is. */
  readonly size: () => Promise<number>;
  readonly end: () => Promise<void>;
}

export type StoreName = 'memory' | 'SQLite' | 'Postgres' | 'MySQL' | 'Redis';

/** By name; `url` of the server, where there is one. */
export const STORES: Readonly<Record<StoreName, (url: string) => Promise<Sized>>> = {
  memory: async () => ({ store: memoryStore(), size: async () => 0, end: async () => undefined }),
  SQLite: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-'));
    const db = new DatabaseSync(join(folder, 'webhooks.db'));
    return {
      store: sqliteStore(db),
      size: async () => {
        const { pages = 0, bytes = 0 } = db
          .prepare('SELECT page_count AS pages, page_size AS bytes FROM pragma_page_count, pragma_page_size')
          .get() as { pages?: number; bytes?: number };
        return pages * bytes;
      },
      end: async () => {
        db.close();
        rmSync(folder, { recursive: true });
      },
    };
  },
  Postgres: async (url) => {
    const schema = `test_${randomBytes(8).toString('hex')}`;
    const pool = new Pool({ connectionString: url, max: 5 });
    await migrate(pool, { schema });
    const sum = `SELECT sum(pg_total_relation_size(c.oid))::bigint AS bytes
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`;
    return {
      store: postgresStore({ pool, schema, timeoutMs: TIMEOUT_MS }),
      size: async () => Number((await pool.query<{ bytes: string }>(sum, [schema])).rows[0]?.bytes),
      end: async () => {
        await pool.query(`DROP SCHEMA ${schema} CASCADE`);
        await pool.end();
      },
    };
  },
  MySQL: async (url) => {
    const database = `test_${randomBytes(8).toString('hex')}`;
    const owner = createPool({ uri: url, connectionLimit: 1 });
    await owner.query(`CREATE DATABASE ${database}`);
    const pool = createPool({ uri: `${url}/${database}`, connectionLimit: 5 });
    await migrateMysql(pool);
    const sum =
      'SELECT SUM(data_length + index_length) AS bytes FROM information_schema.tables WHERE table_schema = ?';
    return {
      store: mysqlStore({ pool, timeoutMs: TIMEOUT_MS }),
      size: async () => {
        await pool.query('ANALYZE TABLE webhook_row, webhook_tally');
        const [[row]] = await owner.query<RowDataPacket[]>(sum, [database]);
        return Number(row?.['bytes']);
      },
      end: async () => {
        await owner.query(`DROP DATABASE ${database}`);
        await Promise.all([owner.end(), pool.end()]);
      },
    };
  },
  Redis: async (url) => {
    const prefix = `test-${randomBytes(8).toString('hex')}:`;
    const client = new Redis(url);
    const keys = async (): Promise<string[]> => client.keys(`${prefix}*`);
    return {
      store: redisStore({ client, prefix, timeoutMs: TIMEOUT_MS }),
      size: async () => {
        const sizes = (await keys()).map((key) => client.memory('USAGE', key, 'SAMPLES', 0));
        return (await Promise.all(sizes)).reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0);
      },
      end: async () => {
        const all = await keys();
        if (all.length > 0) await client.del(all);
        client.disconnect();
      },
    };
  },
};

/** Servers of the stores that have one. */
export interface Servers {
  /** What `STORES[name]` is given. */
  readonly urlOf: (name: StoreName) => Promise<string>;
  readonly stop: () => Promise<void>;
}

/** Each server is started when it is asked for first. @param shared `inject('shared')`. */
export function serversOf(shared: string): Servers {
  let redis: Promise<RedisUrl> | undefined;
  const urls: Readonly<Record<StoreName, () => Promise<string>>> = {
    memory: async () => '',
    SQLite: async () => '',
    Postgres: () => sharedPostgres(shared),
    MySQL: () => sharedMariadb(shared),
    Redis: async () => (await (redis ??= startRedis())).url,
  };
  return { urlOf: (name) => urls[name](), stop: async () => (await redis)?.stop() };
}
