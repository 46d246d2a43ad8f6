import { randomBytes } from 'node:crypto';
import { Pool } from 'pg';
import { afterAll, beforeAll, expect, inject } from 'vitest';
import type { PgClient, PostgresStore, PostgresStoreOptions } from '../../src/stores/postgres.ts';
import { migrate, postgresStore } from '../../src/stores/postgres.ts';
import type { StoreHarness } from '../../src/testing/store-contract.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';

/** A schema of its own on a server, and two pools that have it, as two processes do. */
export interface TestSchema {
  readonly url: string;
  readonly schema: string;
  readonly pools: readonly [Pool, Pool];
  /** A statement on the schema, whose tables need no qualification. */
  readonly sql: (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>;
  readonly store: (pool?: Pool, more?: Partial<PostgresStoreOptions>) => PostgresStore;
  /** Deletes every row. */
  readonly clear: () => Promise<void>;
  readonly drop: () => Promise<void>;
}

const TABLES = ['sender', 'keyid', 'count', 'nonce', 'record', 'task', 'notification'];

/** @param max connections of each pool. */
export async function testSchema(url: string, max = 5): Promise<TestSchema> {
  const schema = `test_${randomBytes(8).toString('hex')}`;
  const pools: [Pool, Pool] = [
    new Pool({ connectionString: url, max }),
    new Pool({ connectionString: url, max }),
  ];
  const owner = new Pool({ connectionString: url, max: 1, options: `-c search_path=${schema}` });
  for (const pool of [...pools, owner]) pool.on('error', () => undefined);
  await migrate(owner, { schema });
  const sql: TestSchema['sql'] = async (text, values = []) =>
    (await owner.query<Record<string, unknown>>(text, values)).rows;
  await sql('CREATE TABLE note (line text)');
  return {
    url,
    schema,
    pools,
    sql,
    store: (pool = pools[0], more = {}) => postgresStore({ pool, schema, ...more }),
    clear: async () => {
      await sql(
        [...TABLES.map((name) => `webhook_${name}`), 'note'].map((name) => `DELETE FROM ${name}`).join(';'),
      );
    },
    drop: async () => {
      await sql(`DROP SCHEMA ${schema} CASCADE`);
      await Promise.all([...pools, owner].map((pool) => pool.end()));
    },
  };
}

/**
 * One for the tests of a file, or of the `describe` around: made before the first of them, dropped after the last.
 * @param max connections of each pool.
 */
export function ownSchema(max?: number): TestSchema {
  const at = {} as TestSchema;
  beforeAll(async () => {
    Object.assign(at, await testSchema(await sharedPostgres(inject('shared')), max));
  });
  afterAll(() => at.drop());
  return at;
}

/** For `describeStoreContract`: the schema is emptied for each test. */
export async function postgresHarness({
  schema,
  pools,
  sql,
  store,
  clear,
}: TestSchema): Promise<StoreHarness> {
  await clear();
  let offsetMs = 0;
  const clockOffsetMs = (): number => offsetMs;
  const [a, b] = [store(pools[0], { clockOffsetMs }), store(pools[1], { clockOffsetMs })];
  const stores = [a, b];
  return {
    a,
    b,
    setClockOffsetMs: (ms) => {
      offsetMs = ms;
    },
    reopen: async () => {
      const again = store(pools[0], { clockOffsetMs });
      stores.push(again);
      await again.open();
      return again;
    },
    effects: {
      synchronous: false,
      write: (tx) => (tx as PgClient).query(`INSERT INTO ${schema}.note VALUES ($1)`, ['by the handler']),
      count: async () => Number((await sql('SELECT count(*) AS n FROM note'))[0]?.['n']),
    },
    cleanup: async () => {
      for (const each of stores) await each.close();
    },
  };
}

const COUNTED = `SELECT
  (SELECT count(*) FROM webhook_record) + (SELECT count(*) FROM webhook_task)
    + (SELECT count(*) FROM webhook_notification) AS entries,
  (SELECT coalesce(sum(length(body)), 0) FROM webhook_record) AS bytes,
  (SELECT count(*) FROM webhook_nonce) AS nonces, (SELECT count(*) FROM webhook_nonce) AS by_keyid`;

const NOTED = `SELECT
  coalesce(sum(entries), 0) AS entries, coalesce(sum(pending_bytes), 0) AS bytes,
  coalesce(sum(nonces) FILTER (WHERE sender_id = 0), 0) AS nonces,
  coalesce(sum(nonces) FILTER (WHERE sender_id > 0), 0) AS by_keyid FROM webhook_count`;

const MISKEPT = `SELECT key FROM webhook_record
  WHERE (body IS NULL) <> (state IN ('applied', 'stale')) OR length(body) <> body_bytes`;

/** The counts that are kept against the rows themselves; and bodies are there just as long as they count. */
export async function expectCountsRight({ sql }: TestSchema): Promise<void> {
  expect(await sql(NOTED)).toEqual(await sql(COUNTED));
  expect(await sql(MISKEPT)).toEqual([]);
}
