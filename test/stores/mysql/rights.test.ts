import type { Pool } from 'mysql2/promise';
import { createPool } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ownDatabase } from '../mysql-databases.ts';
import { acceptRequest } from '../requests.ts';
import { openingRefusal } from '../sql/opening-refusal.ts';

const at = ownDatabase();
let user: string;
let pool: Pool;
let url: URL;

beforeAll(async () => {
  user = `\`${at.database.slice(0, 20)}\`@\`127.0.0.1\``;
  // As docs/operations.md says.
  await at.sql(`CREATE USER ${user} IDENTIFIED BY 'secret';
    GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON ${at.database}.* TO ${user}`);
  url = new URL(at.url);
  url.username = at.database.slice(0, 20);
  url.password = 'secret';
  pool = createPool({ uri: url.href, connectionLimit: 2 });
});
afterAll(async () => {
  await pool.end();
  await at.sql(`DROP USER ${user}`);
});

/** By new connections: one that is open goes on with what it had in its database. */
async function refusal(): Promise<string | undefined> {
  await pool.end();
  pool = createPool({ uri: url.href, connectionLimit: 2 });
  return openingRefusal(at.store(pool));
}

const TABLES = ['row', 'scope', 'tally', 'turn', 'identity'];

/** Each table and procedure by itself, and nothing else. */
async function grantEach(): Promise<void> {
  const procedures = ['begin', 'clear', 'commit', 'counts', 'due', 'load', 'look'];
  const grants = [
    ...TABLES.map(
      (name) => `GRANT SELECT, INSERT, UPDATE, DELETE ON ${at.database}.webhook_${name} TO ${user}`,
    ),
    ...procedures.map((name) => `GRANT EXECUTE ON PROCEDURE ${at.database}.webhook_${name} TO ${user}`),
    `GRANT SELECT ON ${at.database}.webhook_schema TO ${user}`,
  ];
  await at.sql(`REVOKE ALL PRIVILEGES, GRANT OPTION FROM ${user}; ${grants.join(';')}`);
}

describe('the rights of the database user', () => {
  it('suffice as docs/operations.md lists them', async () => {
    const store = at.store(pool);
    await store.open();
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    await store.close();
  });

  it('are named in the error with the GRANT statements that add the missing ones', async () => {
    await grantEach();
    expect(await refusal()).toBeUndefined();
    const lacks = [
      ['DELETE', `\`${at.database}\`.webhook_row`],
      ['UPDATE', `\`${at.database}\`.webhook_tally`],
      ['EXECUTE', `PROCEDURE \`${at.database}\`.webhook_commit`],
    ];
    for (const [right, of] of lacks) await at.sql(`REVOKE ${right} ON ${of} FROM ${user}`);
    const statements = lacks.map(([right, of]) => `GRANT ${right} ON ${of} TO ${user};`).join(' ');
    expect(await refusal()).toBe(`mysqlStore: the user lacks rights. Run: ${statements}`);
    await at.sql(statements);
    expect(await refusal()).toBeUndefined();
  });

  // One statement tries an UPDATE of all tables, and one a DELETE.
  it('are missed one by one, and nothing else is named', async () => {
    await grantEach();
    const rights = TABLES.flatMap((name) => [['UPDATE', name] as const, ['DELETE', name] as const]);
    for (const [right, name] of [...rights, ['SELECT', 'row'], ['INSERT', 'row']]) {
      const table = `\`${at.database}\`.webhook_${name}`;
      await at.sql(`REVOKE ${right} ON ${table} FROM ${user}`);
      const grant = `GRANT ${right} ON ${table} TO ${user};`;
      expect(await refusal()).toBe(`mysqlStore: the user lacks rights. Run: ${grant}`);
      await at.sql(grant);
    }
  });

  it('that are revoked at run time cause a fault that says what to grant', async () => {
    await grantEach();
    expect(await refusal()).toBeUndefined();
    const store = at.store(pool);
    await store.open();
    await at.sql(`REVOKE DELETE ON ${at.database}.webhook_turn FROM ${user}`);
    const refused = store.accept(acceptRequest({ key: 'event-c-of-the-seller' }));
    await expect(refused).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(refused).rejects.toThrow(/Grant the user the rights that docs\/operations\.md#mysql lists/);
    await store.close();
  });
});
