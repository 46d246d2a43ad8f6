import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { KNOWN, migrate, STEPS } from '../../../src/stores/sqlite/for-tests.ts';
import { acceptRequest } from '../requests.ts';
import { hashOf } from '../sql/migration-files.ts';
import type { TempFile } from '../sqlite-files.ts';
import { tempFile } from '../sqlite-files.ts';

let temp: TempFile;
let db: DatabaseSync;
beforeEach(() => {
  temp = tempFile();
  db = new DatabaseSync(temp.file);
});
afterEach(() => {
  db.close();
  temp.remove();
});

/** Each CREATE as it was given. */
const madeBy = (of: DatabaseSync): unknown[] =>
  of.prepare('SELECT type, name, sql FROM sqlite_master ORDER BY name').all();

function versionOf(of: DatabaseSync): unknown[] {
  return of.prepare('SELECT version FROM webhook_schema').all();
}

const LATER = [...STEPS, 'ALTER TABLE webhook_row ADD COLUMN later TEXT;'];

function step(run: () => void): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    run();
    db.exec('COMMIT');
  } catch (error) {
    db.exec('ROLLBACK');
    throw error;
  }
}

it('makes the first version by the statements whose hash is noted here', () => {
  // Until 0.1.0 is published it is edited in place, with its hash; from then on a line is added for each new version.
  expect(STEPS.map(hashOf)).toEqual(['63cfa1d038626852f435d7a9087a070714060081dee0c33d58ea0e13101308a3']);
  expect(KNOWN).toBe(4);
});

describe('a file', () => {
  beforeEach(async () => {
    const store = sqliteStore(temp.file);
    await store.open();
    await store.accept(acceptRequest());
    await store.close();
  });

  const RECORDS = "SELECT count(*) AS n FROM webhook_row WHERE kind = 'record'";

  it('is migrated by a later version with its rows, and then refused by this one', async () => {
    step(() => migrate(db, LATER));
    expect(versionOf(db)).toEqual([{ version: KNOWN + 1 }]);
    expect(db.prepare(`${RECORDS} AND later IS NULL`).get()).toEqual({ n: 1 });
    step(() => migrate(db, LATER));
    await expect(sqliteStore(temp.file).open()).rejects.toThrow(
      `version ${KNOWN + 1}, this package knows ${KNOWN}. Upgrade`,
    );
  });

  it('is by all missing steps what a new one becomes', () => {
    step(() => migrate(db, LATER));
    const fresh = new DatabaseSync(':memory:');
    expect(migrate(fresh, LATER)).toBe(0);
    expect(madeBy(db)).toEqual(madeBy(fresh));
    fresh.close();
  });

  it('stays complete and working when a later migration fails halfway', async () => {
    const before = madeBy(db);
    const last = 'CREATE TABLE webhook_last (n); SELECT nothing';
    expect(() => step(() => migrate(db, [...LATER, last]))).toThrow(/nothing/);
    expect(madeBy(db)).toEqual(before);
    expect(versionOf(db)).toEqual([{ version: KNOWN }]);
    const store = sqliteStore(temp.file);
    await store.open();
    expect((await store.accept(acceptRequest())).kind).toBe('in-flight');
    await store.close();
  });

  it.each([
    [KNOWN + 1, 'this package knows 4. Upgrade'],
    [1000, 'this package knows 4. Upgrade'],
    [-1, 'this package knows 4. Upgrade'],
    [1, 'this package needs 4, and nothing upgrades it'],
    [2, 'this package needs 4, and nothing upgrades it'],
    [3, 'this package needs 4, and nothing upgrades it'],
  ])('of version %i is refused and left unchanged', async (version, message) => {
    const before = madeBy(db);
    db.exec(`UPDATE webhook_schema SET version = ${version}`);
    await expect(sqliteStore(temp.file).open()).rejects.toMatchObject({
      code: 'config_error',
      message: expect.stringContaining(`schema version ${version}, ${message}`) as string,
    });
    expect(versionOf(db)).toEqual([{ version }]);
    expect(madeBy(db)).toEqual(before);
    expect(db.prepare(RECORDS).get()).toEqual({ n: 1 });
  });
});

describe('a file that changes while it is open', () => {
  it('is refused by the next transaction after a later version migrated it', async () => {
    const store = sqliteStore(temp.file);
    await store.open();
    await store.accept(acceptRequest());
    step(() => migrate(db, LATER));
    await expect(store.accept(acceptRequest({ key: 'event-2-of-the-seller' }))).rejects.toMatchObject({
      code: 'misconfigured',
    });
    const records = "SELECT count(*) AS n FROM webhook_row WHERE kind = 'record'";
    expect(db.prepare(records).get()).toEqual({ n: 1 });
    await store.close();
  });

  it('is misconfigured when another file replaces it, and the error says to restart', async () => {
    const store = sqliteStore(temp.file);
    await store.open();
    db.exec('UPDATE webhook_schema SET version = 0');
    await expect(store.accept(acceptRequest())).rejects.toMatchObject({
      code: 'misconfigured',
      message: expect.stringContaining('Restart') as string,
    });
    await store.close();
  });
});
