import { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ownSchema } from '../postgres-schemas.ts';
import { openingRefusal } from '../sql/opening-refusal.ts';

const at = ownSchema();
let role: string;
let pool: Pool;

beforeAll(async () => {
  role = `${at.schema}_role`;
  // As docs/operations.md says.
  await at.sql(`
    CREATE ROLE ${role};
    GRANT USAGE ON SCHEMA ${at.schema} TO ${role};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${at.schema} TO ${role};
    REVOKE ALL ON note, record, task, nonce FROM ${role};
    REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA ${at.schema} FROM PUBLIC;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${at.schema} TO ${role}`);
  pool = new Pool({ connectionString: at.url, max: 2, options: `-c role=${role}` });
});
afterAll(async () => {
  await pool.end();
  await at.sql(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
});

const refusal = (): Promise<string | undefined> => openingRefusal(at.store(pool));

/** Takes the right away: the store is refused with exactly the statements that give it back, and open after them. */
async function expectGranted(revoke: string, ...grants: readonly string[]): Promise<void> {
  expect(await refusal()).toBeUndefined();
  await at.sql(`REVOKE ${revoke} FROM ${role}`);
  const statements = grants.map((grant) => `GRANT ${grant} TO ${role};`).join(' ');
  expect(await refusal()).toBe(`postgresStore: the role lacks rights. Run: ${statements}`);
  await at.sql(statements);
  expect(await refusal()).toBeUndefined();
}

const TABLES = ['row', 'scope', 'tally'];
const RIGHTS = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];

describe('a role that lacks one right', () => {
  it.each(TABLES.flatMap((table) => RIGHTS.map((right) => [right, table])))(
    '%s on webhook_%s',
    (right, table) =>
      expectGranted(`${right} ON webhook_${table}`, `${right} ON ${at.schema}.webhook_${table}`),
  );

  it('SELECT on the version', () =>
    expectGranted('SELECT ON webhook_schema', `SELECT ON ${at.schema}.webhook_schema`));

  it('USAGE on the schema', () =>
    expectGranted(`USAGE ON SCHEMA ${at.schema}`, `USAGE ON SCHEMA ${at.schema}`));

  it.each(['webhook_commit', 'webhook_clock'])('EXECUTE on %s', (name) =>
    expectGranted(`EXECUTE ON FUNCTION ${name}`, `EXECUTE ON FUNCTION ${at.schema}.${name}`),
  );
});

describe('a role that lacks several', () => {
  it('gets all missing rights in one error, grouped by object', () =>
    expectGranted(
      'DELETE, INSERT ON webhook_row, webhook_tally, webhook_schema',
      `INSERT, DELETE ON ${at.schema}.webhook_row, ${at.schema}.webhook_tally`,
    ));

  it('gets each function named when EXECUTE lacks on all', async () => {
    const functions = await at.sql(
      "SELECT proname FROM pg_proc WHERE pronamespace = $1::regnamespace AND proname LIKE 'webhook%' ORDER BY 1",
      [at.schema],
    );
    const names = functions.map(({ proname }) => `${at.schema}.${String(proname)}`);
    expect(names.length).toBeGreaterThan(8);
    await expectGranted(
      `EXECUTE ON ALL FUNCTIONS IN SCHEMA ${at.schema}`,
      `EXECUTE ON FUNCTION ${names.join(', ')}`,
    );
  });

  it('needs no right on other tables of the schema', async () => {
    expect(await at.sql(`SELECT has_table_privilege('${role}', 'note', 'SELECT') AS may`)).toEqual([
      { may: false },
    ]);
    expect(await refusal()).toBeUndefined();
  });

  it('reports a right that is revoked at run time as a fault, and durability() names the statement', async () => {
    const store = at.store(pool);
    await store.open();
    await at.sql(`REVOKE DELETE ON webhook_row FROM ${role}`);
    await expect(store.durability()).rejects.toThrow(`GRANT DELETE ON ${at.schema}.webhook_row TO ${role};`);
    await at.sql(`GRANT DELETE ON webhook_row TO ${role}`);
    expect(await store.durability()).toBe('disk');
    await store.close();
  });
});
