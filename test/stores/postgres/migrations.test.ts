import { randomBytes } from 'node:crypto';
import { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { migrate, postgresStore } from '../../../src/stores/postgres.ts';
import { migrateBy, MIGRATIONS, SCHEMA_VERSION } from '../../../src/stores/postgres/for-tests.ts';
import { PATIENT_MS } from '../../support/patient.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';
import { acceptRequest } from '../requests.ts';
import { describeMigrationFiles } from '../sql/migration-files.ts';

const HASHES: Readonly<Record<string, string>> = {
  '0004.sql': '0fbda88676722ed32da88d68f5c0c80de1b1c6ebd20ab7dc80587e87bfed5823',
};

/** A fix of a rule, and a table: what a later version may bring. */
const FIX = `
CREATE TABLE webhook_later (n integer);
CREATE OR REPLACE FUNCTION webhook_clock(p_offset bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT 42::bigint $$;
`;
const LATER = [...MIGRATIONS, FIX];
const NEXT = SCHEMA_VERSION + 1;

describeMigrationFiles('postgres', MIGRATIONS, SCHEMA_VERSION, HASHES);

describe('migrate()', () => {
  let url: string;
  let pool: Pool;
  const made: string[] = [];
  beforeAll(async () => {
    url = await sharedPostgres(inject('shared'));
    pool = new Pool({ connectionString: url, max: 8 });
    pool.on('error', () => undefined);
  });
  afterAll(async () => {
    for (const schema of made) await pool.query(`DROP SCHEMA ${schema} CASCADE`);
    await pool.end();
  });

  const fresh = (): string => {
    const schema = `test_${randomBytes(6).toString('hex')}`;
    made.push(schema);
    return schema;
  };

  /** A schema of this version with one record in it. */
  async function filled(): Promise<string> {
    const schema = fresh();
    await migrate(pool, { schema });
    const store = postgresStore({ pool, schema, timeoutMs: PATIENT_MS });
    await store.open();
    await store.accept(acceptRequest());
    await store.close();
    return schema;
  }

  async function expectVersion(schema: string, version: number): Promise<void> {
    const { rows } = await pool.query(`SELECT version FROM ${schema}.webhook_schema`);
    expect(rows).toEqual([{ version }]);
  }

  async function recordsOf(schema: string): Promise<number> {
    const { rows } = await pool.query<{ n: number }>(
      `SELECT count(*)::integer AS n FROM ${schema}.webhook_row WHERE kind = 'r'`,
    );
    return rows[0]?.n ?? expect.fail();
  }

  /** Tables with their columns, indexes, and functions with their source. */
  async function madeIn(schema: string): Promise<readonly unknown[]> {
    const { rows } = await pool.query(
      `SELECT c.relname AS name, a.attname AS part, format_type(a.atttypid, a.atttypmod) AS is
         FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = to_regnamespace($1) AND a.attnum > 0
       UNION ALL SELECT p.proname, pg_get_function_arguments(p.oid), p.prosrc
         FROM pg_proc p WHERE p.pronamespace = to_regnamespace($1) ORDER BY 1, 2`,
      [schema],
    );
    expect(rows.length).toBeGreaterThan(50);
    return rows;
  }

  it('installs a changed function and keeps the rows', async () => {
    const schema = await filled();
    expect(await migrateBy(LATER, pool, { schema })).toEqual({ from: SCHEMA_VERSION, to: NEXT });
    const { rows } = await pool.query(`SELECT ${schema}.webhook_clock(0)::integer AS now`);
    expect(rows).toEqual([{ now: 42 }]);
    expect(await recordsOf(schema)).toBe(1);
    await expectVersion(schema, NEXT);
    // Done already.
    expect(await migrateBy(LATER, pool, { schema })).toEqual({ from: NEXT, to: NEXT });
  });

  it('runs all missing migrations in order', async () => {
    const later = [...LATER, 'INSERT INTO webhook_later VALUES (3)', 'UPDATE webhook_later SET n = n + 1'];
    const [old, none] = [await filled(), fresh()];
    expect(await migrateBy(later, pool, { schema: old })).toEqual({ from: SCHEMA_VERSION, to: NEXT + 2 });
    expect(await migrateBy(later, pool, { schema: none })).toEqual({ from: 0, to: NEXT + 2 });
    for (const schema of [old, none]) {
      expect((await pool.query(`SELECT n FROM ${schema}.webhook_later`)).rows).toEqual([{ n: 4 }]);
      await expectVersion(schema, NEXT + 2);
    }
    expect(await madeIn(old)).toEqual(await madeIn(none));
  });

  it('runs once when two processes call it at once', async () => {
    const schema = await filled();
    const other = new Pool({ connectionString: url, max: 1 });
    const results = await Promise.all([
      migrateBy(LATER, pool, { schema }),
      migrateBy(LATER, other, { schema }),
    ]);
    expect(results.map(({ from }) => from).toSorted((a, b) => a - b)).toEqual([SCHEMA_VERSION, NEXT]);
    await expectVersion(schema, NEXT);
    await other.end();
  });

  it('leaves the previous version complete and working when it fails halfway', async () => {
    const schema = await filled();
    const before = await madeIn(schema);
    const broken = [...LATER, 'CREATE TABLE webhook_last (n integer); SELECT 1 / 0'];
    await expect(migrateBy(broken, pool, { schema })).rejects.toThrow(/division by zero/);
    expect(await madeIn(schema)).toEqual(before);
    await expectVersion(schema, SCHEMA_VERSION);
    const store = postgresStore({ pool, schema, timeoutMs: PATIENT_MS });
    await store.open();
    expect((await store.accept(acceptRequest({ key: 'event-b-of-the-seller' }))).kind).toBe('won');
    await store.close();
    expect(await recordsOf(schema)).toBe(2);
    expect(await migrateBy(LATER, pool, { schema })).toEqual({ from: SCHEMA_VERSION, to: NEXT });
  });

  it('leaves the previous version and no lock when its process dies halfway', async () => {
    const schema = await filled();
    const before = await madeIn(schema);
    const gate = await pool.connect();
    await gate.query('BEGIN');
    await gate.query(`SELECT pg_advisory_xact_lock(hashtext('${schema}'))`);
    const held = [...LATER, `SELECT pg_advisory_xact_lock(hashtext('${schema}'))`];
    const dying = new Pool({ connectionString: url, max: 1, application_name: schema });
    dying.on('error', () => undefined);
    const died = expect(migrateBy(held, dying, { schema })).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    const kill = `SELECT pg_terminate_backend(pid) AS killed FROM pg_stat_activity
      WHERE application_name = $1 AND wait_event_type = 'Lock'`;
    await expect.poll(async () => (await pool.query(kill, [schema])).rows).toEqual([{ killed: true }]);
    await died;
    await gate.query('COMMIT');
    gate.release();
    await dying.end();
    expect(await madeIn(schema)).toEqual(before);
    await expectVersion(schema, SCHEMA_VERSION);
    expect(await migrateBy(LATER, pool, { schema })).toEqual({ from: SCHEMA_VERSION, to: NEXT });
  });

  it('makes a running process of the previous version stop within 10 s', async () => {
    const schema = await filled();
    let offsetMs = 0;
    const store = postgresStore({ pool, schema, clockOffsetMs: () => offsetMs, timeoutMs: PATIENT_MS });
    await store.open();
    await migrateBy(LATER, pool, { schema });
    offsetMs += 10_000;
    await expect(store.accept(acceptRequest({ key: 'event-b-of-the-seller' }))).rejects.toMatchObject({
      code: 'misconfigured',
    });
    expect(await recordsOf(schema)).toBe(1);
    await store.close();
  });

  it.each([
    [NEXT, 'this package knows 4. Upgrade'],
    [1000, 'this package knows 4. Upgrade'],
    [-1, 'this package knows 4. Upgrade'],
    [1, 'this package needs 4, and nothing upgrades it'],
    [2, 'this package needs 4, and nothing upgrades it'],
    [3, 'this package needs 4, and nothing upgrades it'],
  ])('refuses version %i and leaves it unchanged', async (version, message) => {
    const schema = await filled();
    await pool.query(`UPDATE ${schema}.webhook_schema SET version = $1`, [version]);
    const before = await madeIn(schema);
    await expect(migrate(pool, { schema })).rejects.toMatchObject({
      name: 'ConfigError',
      message: expect.stringContaining(`schema version ${version}, ${message}`) as string,
    });
    await expectVersion(schema, version);
    expect(await madeIn(schema)).toEqual(before);
    expect(await recordsOf(schema)).toBe(1);
  });
});
