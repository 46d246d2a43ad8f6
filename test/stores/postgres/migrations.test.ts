import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { migrate, postgresStore } from '../../../src/stores/postgres.ts';
import { migrateBy, MIGRATIONS, SCHEMA_VERSION } from '../../../src/stores/postgres/for-tests.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';
import { COUNTED, TOLD } from '../postgres-schemas.ts';
import { acceptRequest } from '../requests.ts';
import { describeMigrationFiles } from '../sql/migration-files.ts';
import { catalogueOf } from '../versions/catalogue.ts';
import { clockOf, dumped } from '../versions/dumps.ts';
import { expectHistory, finishHistory } from '../versions/expect-history.ts';

/**
 * What 0001.sql made is in `fixtures/postgres-0001.sql`: no database needs it any more, for 0002.sql replaces all of it.
 */
const RELEASED: Readonly<Record<string, string>> = {
  '0001.sql': '5054629278ac63a00b9a7a85e18f22160f75580fdd38ac27ecfaf5c73ae36ba0',
  '0002.sql': 'f9ad4ee717c3c0e0aa6e098fe3c348b1440dc62f5ec33fd8285dadbbf47aa824',
  '0003.sql': '4a6110fcdcb7a09d815eb06a03f1e9d0b4e45a60b419c5ec6b435a437bb38001',
};

/** The whole of version 1, as it was released. */
const FIRST = readFileSync(join(import.meta.dirname, '../fixtures/postgres-0001.sql'), 'utf8');
const FIRST_HASH = '42ca5376d24d93a13e2e53f60920db524572633de33508b0b52c9f68e2416dd3';

/** A fix of a rule, and a table: what a later version may bring. */
const FIX = `
CREATE TABLE webhook_later (n integer);
CREATE OR REPLACE FUNCTION webhook_clock(p_offset bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT 42::bigint $$;
`;
const LATER = [...MIGRATIONS, FIX];
const NEXT = SCHEMA_VERSION + 1;

describeMigrationFiles('postgres', MIGRATIONS, SCHEMA_VERSION, RELEASED);

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

  /** A schema as the package had made it before there were files, with a history in it. */
  const versionOne = (): Promise<string> => dumpOf(1);

  async function dumpOf(version: number): Promise<string> {
    const schema = fresh();
    // Its settings are the session's.
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query(dumped(version, 'postgres.sql').replaceAll(`version_${version}`, schema));
    await client.end();
    return schema;
  }

  const stored = JSON.parse(dumped(1, 'postgres-catalogue.json')) as Record<string, unknown>;
  const clockOffsetMs = clockOf(1);

  const CLOCKS: Readonly<Record<number, () => number>> = {
    1: clockOffsetMs,
    2: clockOf(2, 'postgres-made.json'),
    3: clockOf(3, 'postgres-made.json'),
  };

  /** The counts that are kept against the rows themselves. */
  async function expectCounted(schema: string): Promise<void> {
    const [told, counted] = [TOLD, COUNTED].map((text) => text.replaceAll('webhook_', `${schema}.webhook_`));
    expect((await pool.query(told ?? '')).rows).toEqual((await pool.query(counted ?? '')).rows);
  }

  async function expectVersion(schema: string, version: number): Promise<void> {
    const { rows } = await pool.query(`SELECT version FROM ${schema}.webhook_schema`);
    expect(rows).toEqual([{ version }]);
  }

  async function nowOf(schema: string): Promise<number> {
    const { rows } = await pool.query<{ now: string }>(`SELECT ${schema}.webhook_clock(0) AS now`);
    return Number(rows[0]?.now);
  }

  async function expectUntouched(schema: string): Promise<void> {
    expect(await catalogueOf(pool, schema)).toEqual(stored);
    await expectVersion(schema, 1);
    const { rows } = await pool.query(`SELECT count(*)::integer AS n FROM ${schema}.webhook_record`);
    expect(rows).toEqual([{ n: 7 }]);
  }

  it('starts from a fixture that equals version 1 as released', async () => {
    const schema = fresh();
    expect(createHash('sha256').update(FIRST).digest('hex')).toBe(FIRST_HASH);
    await migrateBy([FIRST], pool, { schema });
    const catalogue = await catalogueOf(pool, schema);
    for (const [kind, list] of Object.entries(stored)) expect(catalogue[kind], kind).toEqual(list);
    expect(Object.keys(catalogue)).toEqual(Object.keys(stored));
    // It bites: what a query left out could differ.
    expect(catalogue['functions']).toHaveLength(64);
  });

  it.each([1, 2, 3])('keeps every state, mark and nonce of a database of version %i', async (version) => {
    const schema = await dumpOf(version);
    expect(await migrate(pool, { schema })).toEqual({ from: version, to: SCHEMA_VERSION });
    const store = postgresStore({ pool, schema, clockOffsetMs: CLOCKS[version] ?? expect.fail() });
    await store.open();
    await expectHistory(store);
    await finishHistory(store);
    await expectCounted(schema);
    await store.close();
  });

  it('leaves no table, function or type of version 1', async () => {
    const [upgraded, made] = [await versionOne(), fresh()];
    await migrate(pool, { schema: upgraded });
    await migrate(pool, { schema: made });
    expect(await catalogueOf(pool, upgraded)).toEqual(await catalogueOf(pool, made));
  });

  it.each([2, 3])('makes version %i as it was released', async (version) => {
    const schema = fresh();
    await migrateBy(MIGRATIONS.slice(0, version), pool, { schema });
    expect(await catalogueOf(pool, schema)).toEqual(JSON.parse(dumped(version, 'postgres-catalogue.json')));
  });

  it('keeps the functions that a process of version 2 calls until it checks the version again', () => {
    const callsOf = (catalogue: string): readonly unknown[] =>
      (JSON.parse(catalogue) as { functions: readonly Record<string, unknown>[] }).functions.map(
        ({ name, arguments: taken, result }) => [name, taken, result],
      );
    const [before, after] = [2, 3].map((version) => callsOf(dumped(version, 'postgres-catalogue.json')));
    expect(after).toEqual(before);
    expect(before).toHaveLength(13);
  });

  it('installs a changed function and keeps the rows', async () => {
    const schema = await versionOne();
    expect(await migrateBy(LATER, pool, { schema })).toEqual({ from: 1, to: NEXT });
    expect(await nowOf(schema)).toBe(42);
    const { rows } = await pool.query(
      `SELECT count(*)::integer AS n FROM ${schema}.webhook_row WHERE kind = 'r'`,
    );
    expect(rows).toEqual([{ n: 7 }]);
    await expectVersion(schema, NEXT);
    // Done already.
    expect(await migrateBy(LATER, pool, { schema })).toEqual({ from: NEXT, to: NEXT });
  });

  it('runs all missing migrations in order', async () => {
    const later = [...LATER, 'INSERT INTO webhook_later VALUES (3)', 'UPDATE webhook_later SET n = n + 1'];
    const [old, none] = [await versionOne(), fresh()];
    expect(await migrateBy(later, pool, { schema: old })).toEqual({ from: 1, to: NEXT + 2 });
    expect(await migrateBy(later, pool, { schema: none })).toEqual({ from: 0, to: NEXT + 2 });
    for (const schema of [old, none]) {
      expect((await pool.query(`SELECT n FROM ${schema}.webhook_later`)).rows).toEqual([{ n: 4 }]);
      await expectVersion(schema, NEXT + 2);
    }
  });

  it('runs once when two processes call it at once', async () => {
    const schema = await versionOne();
    const other = new Pool({ connectionString: url, max: 1 });
    const results = await Promise.all([
      migrateBy(LATER, pool, { schema }),
      migrateBy(LATER, other, { schema }),
    ]);
    expect(results.map(({ from }) => from).toSorted((a, b) => a - b)).toEqual([1, NEXT]);
    await expectVersion(schema, NEXT);
    await other.end();
  });

  it('leaves the previous version complete and working when it fails halfway', async () => {
    const schema = await versionOne();
    const broken = [...LATER, 'CREATE TABLE webhook_last (n integer); SELECT 1 / 0'];
    await expect(migrateBy(broken, pool, { schema })).rejects.toThrow(/division by zero/);
    await expectUntouched(schema);
    expect(await migrateBy(LATER, pool, { schema })).toEqual({ from: 1, to: NEXT });
  });

  it('leaves the previous version and no lock when its process dies halfway', async () => {
    const schema = await versionOne();
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
    await expectUntouched(schema);
    expect(await migrateBy(LATER, pool, { schema })).toEqual({ from: 1, to: NEXT });
  });

  it('makes a running process of the previous version stop within 10 s', async () => {
    const schema = await dumpOf(SCHEMA_VERSION);
    let offsetMs = (CLOCKS[SCHEMA_VERSION] ?? expect.fail())();
    const store = postgresStore({ pool, schema, clockOffsetMs: () => offsetMs });
    await store.open();
    await store.accept(acceptRequest());
    await migrateBy(LATER, pool, { schema });
    offsetMs += 10_000;
    await expect(store.accept(acceptRequest({ key: 'event-b-of-the-seller' }))).rejects.toMatchObject({
      code: 'misconfigured',
    });
    const keys = await pool.query(`SELECT FROM ${schema}.webhook_row WHERE id LIKE 'event-b%'`);
    expect(keys.rows).toEqual([]);
    await store.close();
  });

  it('does not deadlock with a transaction of version 1 that locks tables in another order', async () => {
    const schema = await versionOne();
    const other = await pool.connect();
    await other.query(`BEGIN; SELECT FROM ${schema}.webhook_count`);
    const migrating = migrate(pool, { schema });
    const waits =
      "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%LOCK TABLE webhook_head%'";
    await expect.poll(async () => (await pool.query(waits)).rows).toHaveLength(1);
    // Locked by the migration, which waits for the other table.
    const { rows } = await other
      .query(`SELECT FROM ${schema}.webhook_record; SELECT 1 AS one; COMMIT`)
      .then((results) => ([results].flat() as { rows: unknown[] }[])[1] ?? expect.fail());
    expect(rows).toEqual([{ one: 1 }]);
    other.release();
    expect(await migrating).toEqual({ from: 1, to: SCHEMA_VERSION });
  });

  it('waits for an open transaction on rows of version 2 without blocking others', async () => {
    const schema = await dumpOf(2);
    const other = await pool.connect();
    await other.query(`BEGIN; LOCK TABLE ${schema}.webhook_row IN ROW EXCLUSIVE MODE`);
    const own = new Pool({ connectionString: url, max: 1, application_name: schema });
    const migrating = migrate(own, { schema });
    const waits = "SELECT FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'";
    await expect.poll(async () => (await pool.query(waits, [schema])).rows).toHaveLength(1);
    // Between two of its tries: the lock that it waits for would keep this out.
    await pool.query(`UPDATE ${schema}.webhook_row SET version = version`);
    await other.query('COMMIT');
    other.release();
    expect(await migrating).toEqual({ from: 2, to: SCHEMA_VERSION });
    await own.end();
  });

  it.each([[NEXT], [NEXT + 1], [1000], [-1]])(
    'refuses unknown version %i and leaves it unchanged',
    async (version) => {
      const schema = await versionOne();
      await pool.query(`UPDATE ${schema}.webhook_schema SET version = $1`, [version]);
      const refused = migrateBy(MIGRATIONS, pool, { schema });
      await expect(refused).rejects.toMatchObject({ name: 'ConfigError' });
      await expect(refused).rejects.toThrow(
        `schema version ${version}, this package knows ${SCHEMA_VERSION}. Upgrade`,
      );
      await expectVersion(schema, version);
      expect(await catalogueOf(pool, schema)).toEqual(stored);
    },
  );
});
