import { randomBytes } from 'node:crypto';
import { Pool } from 'pg';
import { afterAll, beforeAll, expect, inject } from 'vitest';
import {
  migrate,
  type PgClient,
  type PostgresStore,
  postgresStore,
  type PostgresStoreOptions,
} from '../../src/stores/postgres.ts';
import type { StoreHarness } from '../../src/testing/index.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
import { PATIENT_MS } from '../support/patient.ts';
import { twoHandles } from './fixtures/two-handles.ts';

/** From here on the offset alone is the clock of a schema: how slow the machine is changes no answer. */
export const HANDED_CLOCK =
  "CREATE OR REPLACE FUNCTION webhook_clock(p_offset bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT p_offset'";

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

const TABLES = ['row', 'tally'];

/**
 * What rows say, for tests to read: ids as they are unless an index could not take them. The state is read from the text,
 * for a sender's words may be none that PostgreSQL's JSON takes.
 */
const VIEWS = `
CREATE VIEW record AS SELECT r.scope_id, s.sender, r.id AS key, substring(r.data FROM '"state":"([a-z]+)"') AS state, d ->> 'owner' AS owner,
  coalesce((d ->> 'acked')::boolean, false) AS acked, coalesce((d ->> 'parkedUntil')::bigint, 0) AS parked_until,
  r.due_at, r.bytes, r.body
  FROM webhook_row r JOIN webhook_scope s ON s.id = r.scope_id CROSS JOIN LATERAL (SELECT r.data::json) j (d) WHERE r.kind = 'r';
CREATE VIEW task AS SELECT r.scope_id, r.id AS task_id, r.link AS holder, r.data::json ->> 'mark' AS mark
  FROM webhook_row r WHERE r.kind = 't';
CREATE VIEW nonce AS SELECT r.scope_id, s.sender, substr(s.key, 2) AS keyid, r.id AS nonce, r.data::json ->> 'key' AS record_key
  FROM webhook_row r JOIN webhook_scope s ON s.id = r.scope_id WHERE r.kind = 'n'`;

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
  await sql(`CREATE TABLE note (line text); ${VIEWS}`);
  return {
    url,
    schema,
    pools,
    sql,
    store: (pool = pools[0], more = {}) => postgresStore({ pool, schema, timeoutMs: PATIENT_MS, ...more }),
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

/** Another owner has the lease of each record from now on. */
export const TAKE_OVER = `UPDATE webhook_row SET version = version + 1,
  data = (data::jsonb || '{"owner":"somebody else"}')::text WHERE kind = 'r'`;

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
  // By turns on the two pools: the handles are two processes.
  let opened = 0;
  return {
    ...twoHandles((clockOffsetMs) => store(pools[opened++ % 2], { clockOffsetMs })),
    effects: {
      synchronous: false,
      write: (tx) => (tx as PgClient).query(`INSERT INTO ${schema}.note VALUES ($1)`, ['by the handler']),
      count: async () => Number((await sql('SELECT count(*) AS n FROM note'))[0]?.['n']),
    },
  };
}

/** Of each scope, from the rows themselves. */
const COUNTED = `SELECT scope_id, count(*)::integer AS rows, sum(bytes)::integer AS bytes FROM webhook_row GROUP BY 1
  UNION ALL SELECT 0, count(*)::integer, 0 FROM webhook_row WHERE kind = 'n' HAVING count(*) > 0 ORDER BY 1`;

/** As they are kept. */
const TOLD = `SELECT scope_id, sum(rows)::integer AS rows, sum(bytes)::integer AS bytes FROM webhook_tally GROUP BY 1
  HAVING sum(rows) <> 0 OR sum(bytes) <> 0 ORDER BY 1`;

const MISKEPT = `SELECT key FROM record
  WHERE (body IS NULL) <> (state IN ('applied', 'stale')) OR coalesce(length(body), 0) <> bytes`;

/** The counts that are kept against the rows themselves; and bodies are there just as long as they count. */
export async function expectCountsRight({ sql }: TestSchema): Promise<void> {
  // In one look: what has expired may be cleared away meanwhile.
  const [both] = await sql(`SELECT (SELECT json_agg(t) FROM (${TOLD}) t) AS told,
    (SELECT json_agg(c) FROM (${COUNTED}) c) AS counted`);
  expect(both?.['told']).toEqual(both?.['counted']);
  expect(await sql(MISKEPT)).toEqual([]);
}
