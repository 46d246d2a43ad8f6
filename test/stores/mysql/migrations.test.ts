import { createPool } from 'mysql2/promise';
import { describe, expect, it } from 'vitest';
import { migrate } from '../../../src/stores/mysql.ts';
import { migrateBy, MIGRATIONS, SCHEMA_VERSION } from '../../../src/stores/mysql/for-tests.ts';
import { newName, ownDatabase } from '../mysql-databases.ts';
import { acceptRequest } from '../requests.ts';
import { describeMigrationFiles } from '../sql/migration-files.ts';

const HASHES: Readonly<Record<string, string>> = {
  '0004.sql': 'bc6caa7bf75c1eb5cf01c053683be5c4b330ccc2e463b6de1f28d2e555665eff',
};

/** What a later version may bring. */
const LATER = [...MIGRATIONS, 'CREATE TABLE IF NOT EXISTS webhook_later (n INT) ENGINE=InnoDB;;\n'];

describeMigrationFiles('mysql', MIGRATIONS, SCHEMA_VERSION, HASHES);

describe('migrate()', () => {
  const at = ownDatabase();

  /** An empty database, with what is done to it. */
  async function fresh<T>(
    work: (pool: ReturnType<typeof createPool>, name: string) => Promise<T>,
  ): Promise<T> {
    const name = newName();
    await at.sql(`CREATE DATABASE ${name}`);
    const pool = createPool({ uri: at.url.replace(at.database, name), connectionLimit: 4 });
    try {
      return await work(pool, name);
    } finally {
      await pool.end();
      await at.sql(`DROP DATABASE ${name}`);
    }
  }

  it('runs once when several processes call it at once', () =>
    fresh(async (pool) => {
      const done = await Promise.all([migrate(pool), migrate(pool), migrate(pool)]);
      expect(done.map(({ from }) => from).toSorted((a, b) => a - b)).toEqual([
        0,
        SCHEMA_VERSION,
        SCHEMA_VERSION,
      ]);
      expect(await migrate(pool)).toEqual({ from: SCHEMA_VERSION, to: SCHEMA_VERSION });
    }));

  it('repeats a migration that was interrupted without making anything twice', () =>
    fresh(async (pool, name) => {
      const broken = MIGRATIONS.map((step) =>
        step.replace('CREATE PROCEDURE webhook_due', 'CREATE NONSENSE webhook_due'),
      );
      await expect(migrateBy(broken, pool)).rejects.toThrow(/^migrate: .*CREATE ROUTINE/);
      const store = at.store(pool);
      await expect(store.open()).rejects.toThrow(
        `the database "${name}" has no tables of the store. Run migrate(pool)`,
      );
      const identity = async (): Promise<unknown> => (await pool.query('SELECT id FROM webhook_identity'))[0];
      const before = await identity();
      expect(await migrate(pool)).toEqual({ from: 0, to: SCHEMA_VERSION });
      expect(await identity()).toEqual(before);
      await store.open();
      expect((await store.accept(acceptRequest())).kind).toBe('won');
      await store.close();
    }));

  it('runs only the missing steps, and a process of the previous version stops within 10 s', () =>
    fresh(async (pool) => {
      await migrate(pool);
      let offsetMs = 0;
      const store = at.store(pool, { clockOffsetMs: () => offsetMs });
      await store.open();
      await store.accept(acceptRequest());
      expect(await migrateBy(LATER, pool)).toEqual({ from: SCHEMA_VERSION, to: SCHEMA_VERSION + 1 });
      offsetMs += 10_000;
      await expect(store.accept(acceptRequest({ key: 'event-b-of-the-seller' }))).rejects.toMatchObject({
        code: 'misconfigured',
      });
      expect((await pool.query("SELECT id FROM webhook_row WHERE id LIKE 'event-b%'"))[0]).toEqual([]);
      await store.close();
    }));

  it('refuses a newer version and one from before the first release, and leaves both as they are', () =>
    fresh(async (pool) => {
      await migrate(pool);
      let offsetMs = 0;
      const running = at.store(pool, { clockOffsetMs: () => offsetMs });
      await running.open();
      const made = async (): Promise<unknown> =>
        (
          await pool.query(
            'SELECT ROUTINE_NAME, LAST_ALTERED FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()',
          )
        )[0];
      const before = await made();
      for (const version of [5, 1000, -1, 1, 2, 3]) {
        await pool.query('UPDATE webhook_schema SET version = ?', [version]);
        const isBefore = version > 0 && version < 4;
        const message = expect.stringMatching(
          isBefore
            ? new RegExp(`schema version ${version}, this package needs 4, .* a database of its own`)
            : new RegExp(`schema version ${version}, this package knows 4\\. Upgrade`),
        ) as string;
        await expect(migrate(pool)).rejects.toMatchObject({ code: 'config_error', message });
        await expect(at.store(pool).open()).rejects.toMatchObject({ code: 'config_error', message });
        offsetMs += 10_000;
        const late = running.accept(acceptRequest({ key: 'event-b-of-the-seller' }));
        await expect(late).rejects.toMatchObject({ code: 'misconfigured', message });
        expect((await pool.query('SELECT version FROM webhook_schema'))[0]).toEqual([{ version }]);
      }
      expect(await made()).toEqual(before);
      expect((await pool.query('SELECT id FROM webhook_row'))[0]).toEqual([]);
      await running.close();
    }));

  it('rejects a pool without a database with ConfigError', async () => {
    const pool = createPool({ uri: at.url.replace(`/${at.database}`, '') });
    await expect(migrate(pool)).rejects.toThrow(/names no database/);
    await expect(at.store(pool).open()).rejects.toThrow(/names no database/);
    await pool.end();
  });
});
