import { randomBytes } from 'node:crypto';
import { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ConfigError } from '../../../src/index.ts';
import { migrate, postgresStore } from '../../../src/stores/postgres.ts';
import { SCHEMA_VERSION } from '../../../src/stores/postgres/for-tests.ts';
import { PATIENT_MS } from '../../support/patient.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';
import { acceptRequest } from '../requests.ts';

describe('migrate', () => {
  let pool: Pool;
  const made: string[] = [];
  beforeAll(async () => {
    pool = new Pool({ connectionString: await sharedPostgres(inject('shared')), max: 8 });
  });
  afterAll(async () => {
    for (const schema of made) await pool.query(`DROP SCHEMA "${schema.replaceAll('"', '""')}" CASCADE`);
    await pool.end();
  });
  const fresh = (prefix = 'test'): string => {
    const schema = `${prefix}_${randomBytes(6).toString('hex')}`;
    made.push(schema);
    return schema;
  };

  it('makes the schema, returns both versions, and does nothing when repeated', async () => {
    const schema = fresh();
    expect(await migrate(pool, { schema })).toEqual({ from: 0, to: SCHEMA_VERSION });
    expect(await migrate(pool, { schema })).toEqual({ from: SCHEMA_VERSION, to: SCHEMA_VERSION });
  });

  it('runs once when several call it at once', async () => {
    const schema = fresh();
    const results = await Promise.all(Array.from({ length: 6 }, () => migrate(pool, { schema })));
    expect(results.filter(({ from }) => from === 0)).toHaveLength(1);
    expect(results.filter(({ from }) => from === SCHEMA_VERSION)).toHaveLength(5);
  });

  it('keeps existing records', async () => {
    const schema = fresh();
    await migrate(pool, { schema });
    const store = postgresStore({ pool, schema, timeoutMs: PATIENT_MS });
    await store.open();
    await store.accept(acceptRequest());
    await migrate(pool, { schema });
    expect((await store.accept(acceptRequest())).kind).toBe('in-flight');
    await store.close();
  });

  it('refuses a newer schema and leaves it unchanged', async () => {
    const schema = fresh();
    await migrate(pool, { schema });
    const version = SCHEMA_VERSION + 1;
    await pool.query(`UPDATE ${schema}.webhook_schema SET version = ${version}`);
    await expect(migrate(pool, { schema })).rejects.toThrow(
      `version ${version}, this package knows ${SCHEMA_VERSION}. Upgrade`,
    );
    expect((await pool.query(`SELECT version FROM ${schema}.webhook_schema`)).rows).toEqual([{ version }]);
  });

  it('takes a schema of any name', async () => {
    const schema = fresh(`o"ne; DROP TABLE x; -- é`);
    await migrate(pool, { schema });
    const store = postgresStore({ pool, schema, timeoutMs: PATIENT_MS });
    await store.open();
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    await store.close();
  });

  it('leaves a role with the grants of docs/operations.md all it needs', async () => {
    const schema = fresh();
    await migrate(pool, { schema });
    const role = `${schema}_role`;
    await pool.query(`
      CREATE ROLE ${role};
      GRANT USAGE ON SCHEMA ${schema} TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role}`);
    const other = new Pool({ ...pool.options, max: 2, options: `-c role=${role}` });
    const store = postgresStore({ pool: other, schema, timeoutMs: PATIENT_MS });
    await store.open();
    expect(await store.durability()).toBe('disk');
    const request = acceptRequest({ task: 't' });
    const lease = { sender: request.sender, key: request.event?.key ?? '', retentionMs: 86_400_000 };
    expect((await store.accept(request)).kind).toBe('won');
    await store.transaction({ ...lease, owner: request.acceptId }, (tx) => tx.query('SELECT 1'));
    expect(
      (await store.accept({ ...acceptRequest({ key: 'event-2-of-the-seller' }), mode: 'inbox' })).kind,
    ).toBe('queued');
    const { retry, leaseMs } = request;
    const asked = { owner: 'worker', max: 1, leaseMs, retry, retentionMs: 86_400_000, senders: [] };
    expect((await store.inbox.lease(asked)).events).toHaveLength(1);
    expect((await store.inbox.list({ state: 'leased', limit: 1 })).records).toHaveLength(1);
    expect(await store.sweep()).toBe(0);
    await store.close();
    await other.end();
    await pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  });

  it('leaves nothing behind when it fails, and says which right the role needs', async () => {
    const readOnly = new Pool({ ...pool.options, max: 1, options: '-c default_transaction_read_only=on' });
    const schema = `test_${randomBytes(6).toString('hex')}`;
    const failing = migrate(readOnly, { schema });
    await expect(failing).rejects.toBeInstanceOf(ConfigError);
    await expect(failing).rejects.toThrow(/Run it as a role that may write/);
    expect((await pool.query('SELECT FROM pg_namespace WHERE nspname = $1', [schema])).rows).toEqual([]);
    await readOnly.end();
  });

  it('fails with store_unavailable when the server cannot be reached', async () => {
    const nobody = new Pool({ host: '127.0.0.1', port: 1, user: 'nobody' });
    await expect(migrate(nobody)).rejects.toMatchObject({ code: 'store_unavailable' });
    await nobody.end();
  });
});
