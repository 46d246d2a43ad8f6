import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { acceptRequest } from '../requests.ts';
import type { TempFile } from '../sqlite-files.ts';
import { CONNECTIONS, tempFile } from '../sqlite-files.ts';
import { watched } from './wrapped.ts';

let temp: TempFile;

beforeEach(() => {
  temp = tempFile();
});

afterEach(() => {
  temp.remove();
});

function pragma(db: DatabaseSync, name: string): unknown {
  return Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0];
}

describe('settings', () => {
  it('are WAL and synchronous=FULL for a new database, with durability disk', async () => {
    const db = new DatabaseSync(temp.file);
    const store = sqliteStore(db);
    await store.open();
    expect(pragma(db, 'journal_mode')).toBe('wal');
    expect(pragma(db, 'synchronous')).toBe(2);
    expect(await store.durability()).toBe('disk');
    db.close();
  });

  it('are raised on a handle that comes with less or with a busy timeout', async () => {
    const db = new DatabaseSync(temp.file, { timeout: 5000 });
    db.exec('PRAGMA synchronous = OFF');
    const store = sqliteStore(db);
    await store.open();
    expect(pragma(db, 'synchronous')).toBe(2);
    expect(pragma(db, 'busy_timeout')).toBe(0);
    expect(await store.durability()).toBe('disk');
    db.close();
  });

  it('do not follow those of another connection', async () => {
    const store = sqliteStore(temp.file);
    await store.open();
    const other = new DatabaseSync(temp.file);
    other.exec('PRAGMA synchronous = OFF');
    expect(() => other.exec('PRAGMA journal_mode = MEMORY')).toThrow(/locked/);
    expect(await store.durability()).toBe('disk');
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    other.close();
    await store.close();
  });

  it('are read anew for durability(), and restored by the next call', async () => {
    const db = new DatabaseSync(temp.file);
    const store = sqliteStore(db);
    await store.open();
    for (const lowered of ['OFF', 'NORMAL']) {
      db.exec(`PRAGMA synchronous = ${lowered}`);
      expect(await store.durability()).toBe('process');
    }
    await store.accept(acceptRequest());
    expect(pragma(db, 'synchronous')).toBe(2);
    expect(await store.durability()).toBe('disk');
    db.close();
  });

  it('fail calls with not_durable when they cannot be restored', async () => {
    const handle = watched(temp.file);
    const store = sqliteStore(handle);
    await store.open();
    handle.instead = (sql) => sql.replace('synchronous = FULL', 'synchronous = NORMAL');
    handle.db.exec('PRAGMA synchronous = NORMAL');
    await expect(store.accept(acceptRequest())).rejects.toMatchObject({ name: 'Fault', code: 'not_durable' });
    handle.close();
  });

  it('give durability process with a driver that never reaches FULL', async () => {
    const handle = watched(temp.file);
    handle.instead = (sql) => sql.replace('synchronous = FULL', 'synchronous = NORMAL');
    const store = sqliteStore(handle);
    await store.open();
    expect(await store.durability()).toBe('process');
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    handle.close();
  });

  it('give durability disk for a rollback journal only with EXTRA', async () => {
    const handle = watched(temp.file);
    handle.instead = (sql) => sql.replace('journal_mode = WAL', 'journal_mode = DELETE');
    const store = sqliteStore(handle);
    await store.open();
    expect(pragma(handle.db, 'synchronous')).toBe(3);
    expect(await store.durability()).toBe('disk');
    handle.db.exec('PRAGMA synchronous = FULL');
    expect(await store.durability()).toBe('process');
    handle.close();
  });

  it('give durability process for a journal in memory', async () => {
    const handle = watched(temp.file);
    handle.instead = (sql) => sql.replace('journal_mode = WAL', 'journal_mode = MEMORY');
    const store = sqliteStore(handle);
    await store.open();
    expect(await store.durability()).toBe('process');
    handle.close();
  });

  it.each(Object.keys(CONNECTIONS))('give durability process for :memory: on %s', async (name) => {
    const connection = CONNECTIONS[name]?.(':memory:') ?? '';
    const store = sqliteStore(connection);
    await store.open();
    expect(await store.durability()).toBe('process');
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    await store.close();
    if (typeof connection !== 'string') connection.close();
  });
});

describe('a temporary database', () => {
  it('has durability process, as it has no file', async () => {
    const store = sqliteStore('');
    await store.open();
    expect(await store.durability()).toBe('process');
    await store.close();
  });
});
