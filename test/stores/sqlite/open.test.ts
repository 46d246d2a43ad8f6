import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError } from '../../../src/errors.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { acceptRequest } from '../requests.ts';
import type { TempFile } from '../sqlite-files.ts';
import { DRIVERS, tempFile } from '../sqlite-files.ts';
import { watched } from './wrapped.ts';

const CHILD = fileURLToPath(new URL('../fixtures/accept-and-wait.ts', import.meta.url));

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
  it('a new database has WAL and synchronous=FULL, durability disk', async () => {
    const db = new DatabaseSync(temp.file);
    const store = sqliteStore(db);
    await store.open();
    expect(pragma(db, 'journal_mode')).toBe('wal');
    expect(pragma(db, 'synchronous')).toBe(2);
    expect(await store.durability()).toBe('disk');
    db.close();
  });

  it('a handle that comes with less, and with a busy timeout, is set', async () => {
    const db = new DatabaseSync(temp.file, { timeout: 5000 });
    db.exec('PRAGMA synchronous = OFF');
    const store = sqliteStore(db);
    await store.open();
    expect(pragma(db, 'synchronous')).toBe(2);
    expect(pragma(db, 'busy_timeout')).toBe(0);
    expect(await store.durability()).toBe('disk');
    db.close();
  });

  it('what another connection does to its own settings, or tries to do to the file, changes nothing', async () => {
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

  it('durability is read anew, and the next operation restores what was lowered on its handle', async () => {
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

  it('a handle that was lowered and cannot be restored answers not_durable', async () => {
    const handle = watched(temp.file);
    const store = sqliteStore(handle);
    await store.open();
    handle.instead = (sql) => sql.replace('synchronous = FULL', 'synchronous = NORMAL');
    handle.db.exec('PRAGMA synchronous = NORMAL');
    await expect(store.accept(acceptRequest())).rejects.toMatchObject({ name: 'Fault', code: 'not_durable' });
    handle.close();
  });

  it('a driver that never reaches FULL works, and says process', async () => {
    const handle = watched(temp.file);
    handle.instead = (sql) => sql.replace('synchronous = FULL', 'synchronous = NORMAL');
    const store = sqliteStore(handle);
    await store.open();
    expect(await store.durability()).toBe('process');
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    handle.close();
  });

  it('where WAL cannot be had a rollback journal needs EXTRA, and is disk with it', async () => {
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

  it('a journal in memory is no more than process', async () => {
    const handle = watched(temp.file);
    handle.instead = (sql) => sql.replace('journal_mode = WAL', 'journal_mode = MEMORY');
    const store = sqliteStore(handle);
    await store.open();
    expect(await store.durability()).toBe('process');
    handle.close();
  });

  it.each(Object.keys(DRIVERS))(':memory: on %s works, and is no more than process', async (name) => {
    const connection = DRIVERS[name]?.(':memory:') ?? '';
    const store = sqliteStore(connection);
    await store.open();
    expect(await store.durability()).toBe('process');
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    await store.close();
    if (typeof connection !== 'string') connection.close();
  });
});

describe('a temporary database', () => {
  it('is no more than process, for it has no file', async () => {
    const store = sqliteStore('');
    await store.open();
    expect(await store.durability()).toBe('process');
    await store.close();
  });
});

describe('schema', () => {
  it('a newer one is refused, with the fix, and left as it is', async () => {
    const db = new DatabaseSync(temp.file);
    await sqliteStore(db).open();
    db.exec('UPDATE webhook_schema SET version = 2');
    await expect(sqliteStore(temp.file).open()).rejects.toThrow(ConfigError);
    await expect(sqliteStore(temp.file).open()).rejects.toThrow(/version 2.*Upgrade proto-webhooks/);
    expect(db.prepare('SELECT version FROM webhook_schema').get()).toMatchObject({ version: 2 });
    db.close();
    expect(existsSync(`${temp.file}-wal`)).toBe(false);
  });

  it('the owner’s user_version and tables are the owner’s', async () => {
    const db = new DatabaseSync(temp.file);
    db.exec('PRAGMA user_version = 7; CREATE TABLE mine (n INTEGER)');
    await sqliteStore(db).open();
    expect(pragma(db, 'user_version')).toBe(7);
    const tables = db.prepare("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'").all();
    const foreign = tables.map(({ name }) => String(name)).filter((name) => !name.startsWith('webhook_'));
    expect(foreign).toEqual(['mine']);
    db.close();
  });

  it('opened by two at once it is made once', async () => {
    const stores = [sqliteStore(temp.file), sqliteStore(temp.file)];
    await Promise.all(stores.map((store) => store.open()));
    const db = new DatabaseSync(temp.file);
    expect(db.prepare('SELECT count(*) AS n FROM webhook_schema').get()).toMatchObject({ n: 1 });
    db.close();
    for (const store of stores) await store.close();
  });
});

describe('open', () => {
  it('of what is no database is a ConfigError', async () => {
    writeFileSync(temp.file, 'this is no database, '.repeat(200));
    await expect(sqliteStore(temp.file).open()).rejects.toThrow(ConfigError);
  });

  it('in a folder that is not there is a ConfigError with the fix, and may be tried again', async () => {
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

  it('waits for another connection’s lock, and is store_unavailable where that stays', async () => {
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

  it('of a path is undone by close: the last connection takes the WAL with it', async () => {
    const store = sqliteStore(temp.file);
    await store.open();
    await store.accept(acceptRequest());
    expect(existsSync(`${temp.file}-wal`)).toBe(true);
    await store.close();
    expect(existsSync(`${temp.file}-wal`)).toBe(false);
  });

  it('comes before anything else', async () => {
    const store = sqliteStore(temp.file);
    await expect(store.accept(acceptRequest())).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(store.durability()).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});

describe('a process that is killed', () => {
  it('right after its answer has left what it answered', async () => {
    const child = spawn(process.execPath, [CHILD, temp.file], { stdio: ['ignore', 'pipe', 'inherit'] });
    const gone = once(child, 'exit');
    const [said] = await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await gone;
    expect(String(said)).toBe('won\n');
    const store = sqliteStore(temp.file);
    await store.open();
    expect((await store.accept(acceptRequest())).kind).toBe('in-flight');
    await store.close();
  });
});
