import { randomBytes } from 'node:crypto';
import type { Pool } from 'mysql2/promise';
import { createConnection, createPool } from 'mysql2/promise';
import { afterAll, beforeAll, expect, inject } from 'vitest';
import {
  migrate,
  type MysqlConnection,
  type MysqlStore,
  mysqlStore,
  type MysqlStoreOptions,
} from '../../src/stores/mysql.ts';
import type { StoreHarness } from '../../src/testing/index.ts';
import { sharedMariadb } from '../support/shared-mariadb.ts';
import { PATIENT_MS } from '../support/patient.ts';
import { twoHandles } from './fixtures/two-handles.ts';

/** A database of its own on a server, and two pools that have it, as two processes do. */
export interface TestDatabase {
  /** With the database. */
  readonly url: string;
  readonly database: string;
  readonly pools: readonly [Pool, Pool];
  readonly sql: (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>;
  readonly store: (pool?: Pool, more?: Partial<MysqlStoreOptions>) => MysqlStore;
  /** Deletes every row. */
  readonly clear: () => Promise<void>;
  readonly drop: () => Promise<void>;
}

export const newName = (): string => `test_${randomBytes(8).toString('hex')}`;

/**
 * @param connectionLimit connections of each pool.
 * @param first a statement that each of them begins with.
 */
export async function testDatabase(
  server: string,
  connectionLimit = 5,
  first?: string,
): Promise<TestDatabase> {
  const database = newName();
  const url = `${server}/${database}`;
  const maker = await createConnection(server);
  await maker.query(`CREATE DATABASE ${database}`);
  await maker.end();
  const owner = createPool({ uri: url, connectionLimit: 1, multipleStatements: true });
  await owner.query('CREATE TABLE note (line text)');
  const pools: [Pool, Pool] = [
    createPool({ uri: url, connectionLimit }),
    createPool({ uri: url, connectionLimit }),
  ];
  if (first !== undefined) {
    for (const { pool } of pools) pool.on('connection', (connection) => connection.query(first));
  }
  await migrate(pools[0]);
  const sql: TestDatabase['sql'] = async (text, values = []) =>
    (await owner.query(text, values))[0] as Record<string, unknown>[];
  return {
    url,
    database,
    pools,
    sql,
    store: (pool = pools[0], more = {}) => mysqlStore({ pool, timeoutMs: PATIENT_MS, ...more }),
    clear: async () => {
      await sql(['webhook_row', 'webhook_tally', 'note'].map((name) => `DELETE FROM ${name}`).join(';'));
    },
    drop: async () => {
      await sql(`DROP DATABASE ${database}`);
      await Promise.all([...pools, owner].map((pool) => pool.end()));
    },
  };
}

/** Another owner has the lease of each record from now on. */
export const TAKE_OVER = `UPDATE webhook_row SET version = version + 1,
  data = JSON_SET(CONVERT(data USING utf8mb4), '$.owner', 'somebody else') WHERE kind = 'r'`;

/**
 * One for the tests of a file, or of the `describe` around: made before the first of them, dropped after the last.
 * @param of connections of each pool, and a statement that each begins with.
 */
export function ownDatabase(
  of: { readonly connectionLimit?: number; readonly first?: string } = {},
): TestDatabase {
  const at = {} as TestDatabase;
  beforeAll(async () => {
    const server = await sharedMariadb(inject('shared'));
    Object.assign(at, await testDatabase(server, of.connectionLimit, of.first));
  });
  afterAll(() => at.drop());
  return at;
}

/** For `describeStoreContract`: the tables are emptied for each test. */
export async function mysqlHarness({ pools, sql, store, clear }: TestDatabase): Promise<StoreHarness> {
  await clear();
  // By turns on the two pools: the handles are two processes.
  let opened = 0;
  return {
    ...twoHandles((clockOffsetMs) => store(pools[opened++ % 2], { clockOffsetMs })),
    effects: {
      synchronous: false,
      write: (tx) => (tx as MysqlConnection).query('INSERT INTO note VALUES (?)', ['by the handler']),
      count: async () => Number((await sql('SELECT count(*) AS n FROM note'))[0]?.['n']),
    },
  };
}

/** Of each scope, from the rows themselves. */
export const COUNTED = `SELECT scope_id, COUNT(*) AS entries, CAST(SUM(bytes) AS SIGNED) AS bytes FROM webhook_row GROUP BY 1
  UNION ALL SELECT 0, COUNT(*), 0 FROM webhook_row WHERE kind = 'n' HAVING COUNT(*) > 0 ORDER BY 1`;

/** As they are kept. */
export const TOLD = `SELECT scope_id, CAST(SUM(entries) AS SIGNED) AS entries, CAST(SUM(bytes) AS SIGNED) AS bytes
  FROM webhook_tally GROUP BY 1 HAVING SUM(entries) <> 0 OR SUM(bytes) <> 0 ORDER BY 1`;

const MISKEPT = `SELECT id FROM webhook_row
  WHERE kind = 'r' AND (body IS NULL AND bytes > 0 OR COALESCE(LENGTH(body), 0) <> bytes)`;

/** The counts that are kept against the rows themselves; and bodies are there just as long as they count. */
export async function expectCountsRight({ sql }: TestDatabase): Promise<void> {
  // In one look: what has expired may be cleared away meanwhile.
  const [, told, counted] = await sql(
    `START TRANSACTION WITH CONSISTENT SNAPSHOT; ${TOLD}; ${COUNTED}; COMMIT`,
  );
  expect(told).toEqual(counted);
  expect(await sql(MISKEPT)).toEqual([]);
}
