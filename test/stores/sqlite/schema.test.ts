import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MIGRATIONS, migrate } from '../../../src/stores/sqlite/schema.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import type { TempFile } from '../sqlite-files.ts';
import { tempFile } from '../sqlite-files.ts';
import { clockOf, dumped } from '../versions/dumps.ts';
import { expectHistory } from '../versions/expect-history.ts';
import { acceptRequest } from '../requests.ts';

/** SHA-256 of each step that was ever released. A line is added with the release of a new one; none is ever changed. */
const RELEASED = ['c267282f8b3833d0d642776a324faf42c4a7ca56efbcbf080b0b0e29dc4b3010'];

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

/** The version that this package knows. */
const KNOWN = MIGRATIONS.length;

/** Each CREATE as it was given. */
const madeBy = (of: DatabaseSync): unknown[] =>
  of.prepare('SELECT type, name, sql FROM sqlite_master ORDER BY name').all();

function versionOf(of: DatabaseSync): unknown[] {
  return of.prepare('SELECT version FROM webhook_schema').all();
}

const LATER = [...MIGRATIONS, 'ALTER TABLE webhook_record ADD COLUMN later TEXT'];

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

describe('the steps', () => {
  it('are as they were released', () => {
    const released = MIGRATIONS.slice(0, RELEASED.length);
    expect(released.map((text) => createHash('sha256').update(text).digest('hex'))).toEqual(RELEASED);
  });

  it('the first makes what the release before made', () => {
    const before = new DatabaseSync(':memory:');
    before.exec(dumped(1, 'sqlite.sql'));
    step(() => migrate(db, MIGRATIONS.slice(0, 1)));
    expect(madeBy(db)).toEqual(madeBy(before));
    before.close();
  });
});

describe('a file of version 1', () => {
  beforeEach(() => db.exec(dumped(1, 'sqlite.sql')));

  it('is opened, and all that is in it means what it meant', async () => {
    const store = sqliteStore(temp.file, { clockOffsetMs: clockOf(1) });
    await store.open();
    await expectHistory(store);
    await store.close();
  });

  it('is brought up to date by a later version, and its rows stay; then it is refused here', async () => {
    step(() => migrate(db, LATER));
    expect(versionOf(db)).toEqual([{ version: KNOWN + 1 }]);
    expect(db.prepare('SELECT count(*) AS n FROM webhook_record WHERE later IS NULL').get()).toEqual({
      n: 7,
    });
    step(() => migrate(db, LATER));
    await expect(sqliteStore(temp.file).open()).rejects.toThrow(
      `version ${KNOWN + 1}, this package knows ${KNOWN}. Upgrade`,
    );
  });

  it('is whole, and at work, where a later version fails in the middle', async () => {
    const before = madeBy(db);
    expect(() =>
      step(() => migrate(db, [...LATER, 'CREATE TABLE webhook_last (n); SELECT nothing'])),
    ).toThrow(/nothing/);
    expect(madeBy(db)).toEqual(before);
    expect(versionOf(db)).toEqual([{ version: 1 }]);
    const store = sqliteStore(temp.file, { clockOffsetMs: clockOf(1) });
    await store.open();
    await expectHistory(store);
    await store.close();
  });

  it.each([KNOWN + 1, 7, -1])('version %i is refused, and left as it is', (version) => {
    db.exec(`UPDATE webhook_schema SET version = ${version}`);
    expect(() => step(() => migrate(db))).toThrow(`schema version ${version}, this package knows ${KNOWN}`);
    expect(versionOf(db)).toEqual([{ version }]);
  });
});

describe('while it is open', () => {
  it('a later version that migrates between two of its transactions is seen by the next', async () => {
    const store = sqliteStore(temp.file);
    await store.open();
    await store.accept(acceptRequest());
    step(() => migrate(db, LATER));
    await expect(store.accept(acceptRequest({ key: 'event-2-of-the-seller' }))).rejects.toMatchObject({
      code: 'misconfigured',
    });
    expect(db.prepare('SELECT count(*) AS n FROM webhook_record').get()).toEqual({ n: 1 });
    await store.close();
  });

  it('a file of an older version in its place is misconfigured too, and says to restart', async () => {
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
