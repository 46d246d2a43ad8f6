import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError } from '../../../src/index.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { acceptRequest } from '../requests.ts';
import type { TempFile } from '../sqlite-files.ts';
import { tempFile } from '../sqlite-files.ts';

let temp: TempFile;

beforeEach(() => {
  temp = tempFile();
});

afterEach(() => {
  temp.remove();
});

describe('schema', () => {
  it('of a newer version is refused with the fix and left unchanged', async () => {
    const db = new DatabaseSync(temp.file);
    await sqliteStore(db).open();
    db.exec('UPDATE webhook_schema SET version = 5');
    await expect(sqliteStore(temp.file).open()).rejects.toThrow(ConfigError);
    await expect(sqliteStore(temp.file).open()).rejects.toThrow(/version 5.*Upgrade proto-webhooks/);
    expect(db.prepare('SELECT version FROM webhook_schema').get()).toMatchObject({ version: 5 });
    db.close();
    expect(existsSync(`${temp.file}-wal`)).toBe(false);
  });

  it('leaves user_version and other tables unchanged', async () => {
    const db = new DatabaseSync(temp.file);
    db.exec('PRAGMA user_version = 7; CREATE TABLE mine (n INTEGER)');
    await sqliteStore(db).open();
    expect(db.prepare('PRAGMA user_version').get()).toMatchObject({ user_version: 7 });
    const tables = db.prepare("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'").all();
    const foreign = tables.map(({ name }) => String(name)).filter((name) => !name.startsWith('webhook_'));
    expect(foreign).toEqual(['mine']);
    db.close();
  });

  it('is made once when two open it at once', async () => {
    const stores = [sqliteStore(temp.file), sqliteStore(temp.file)];
    await Promise.all(stores.map((store) => store.open()));
    const db = new DatabaseSync(temp.file);
    expect(db.prepare('SELECT count(*) AS n FROM webhook_schema').get()).toMatchObject({ n: 1 });
    db.close();
    for (const store of stores) await store.close();
  });
});

describe('open', () => {
  it('of a file that is no database is a ConfigError', async () => {
    writeFileSync(temp.file, 'this is no database, '.repeat(200));
    await expect(sqliteStore(temp.file).open()).rejects.toThrow(ConfigError);
  });

  it('in a missing folder is a ConfigError with the fix, and may be repeated', async () => {
    const store = sqliteStore(join(temp.file, 'webhooks.db'));
    await expect(store.open()).rejects.toThrow(/folder that exists and is writable/);
    await expect(store.open()).rejects.toThrow(ConfigError);
  });

  it('of a read-only handle is a ConfigError', async () => {
    new DatabaseSync(temp.file).close();
    const db = new DatabaseSync(temp.file, { readOnly: true });
    await expect(sqliteStore(db).open()).rejects.toThrow(ConfigError);
    db.close();
  });

  it('waits for another connection’s lock, and fails with store_unavailable if it stays', async () => {
    const other = new DatabaseSync(temp.file);
    other.exec('BEGIN EXCLUSIVE');
    const patient = sqliteStore(temp.file, { delay: async () => other.exec('COMMIT') });
    await patient.open();
    other.exec('BEGIN EXCLUSIVE');
    let waitedMs = 0;
    const store = sqliteStore(temp.file, {
      delay: async (ms) => {
        waitedMs += ms;
      },
    });
    await expect(store.open()).rejects.toMatchObject({ name: 'Fault', code: 'store_unavailable' });
    expect(waitedMs).toBeGreaterThanOrEqual(2000);
    other.exec('COMMIT');
    await store.open();
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    other.close();
    await store.close();
    await patient.close();
  });

  it('of a path is undone by close(): the last connection removes the WAL', async () => {
    const store = sqliteStore(temp.file);
    await store.open();
    await store.accept(acceptRequest());
    expect(existsSync(`${temp.file}-wal`)).toBe(true);
    await store.close();
    expect(existsSync(`${temp.file}-wal`)).toBe(false);
  });

  it('is required before any other call', async () => {
    const store = sqliteStore(temp.file);
    await expect(store.accept(acceptRequest())).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(store.durability()).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});
