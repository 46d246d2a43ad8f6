import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SqliteHandle } from '../../../src/stores/sqlite.ts';
import { type DatabaseFile, fileOf, openDatabase, placeOf } from '../../../src/stores/sqlite/for-tests.ts';
import type { TempFile } from '../sqlite-files.ts';
import { CONNECTIONS, tempFile } from '../sqlite-files.ts';

let temp: TempFile;
let db: DatabaseSync;

beforeEach(() => {
  temp = tempFile();
  db = new DatabaseSync(temp.file);
});

afterEach(() => {
  if (db.isOpen) db.close();
  temp.remove();
});

const OTHER = fileURLToPath(new URL('../fixtures/hold-lock.ts', import.meta.url));

/** Another process that has run this; it closes the database and ends when called. */
async function otherProcess(sql: string): Promise<() => Promise<void>> {
  const child = spawn(process.execPath, [OTHER, temp.file, sql], { stdio: ['pipe', 'pipe', 'inherit'] });
  const gone = once(child, 'exit');
  const [said] = (await Promise.race([once(child.stdout, 'data'), gone])) as [unknown];
  expect(String(said)).toBe('held\n');
  return async () => {
    child.stdin.end();
    await gone;
  };
}

const GONE = { name: 'Fault', code: 'store_unavailable' };

describe('the location of a database', () => {
  it('is its file, and undefined in memory', () => {
    expect(fileOf(db)).toBe(temp.file);
    const memory = new DatabaseSync(':memory:');
    expect(fileOf(memory)).toBe('');
    expect(() => placeOf(memory).check()).not.toThrow();
    memory.close();
  });

  it('is lost while the file is moved away, and found when it is back', () => {
    const place = placeOf(db);
    expect(() => place.check()).not.toThrow();
    renameSync(temp.file, `${temp.file}.away`);
    expect(() => place.check()).toThrow(expect.objectContaining(GONE) as Error);
    renameSync(`${temp.file}.away`, temp.file);
    expect(() => place.check()).not.toThrow();
  });

  it('is lost when another file has its name', () => {
    const place = placeOf(db);
    writeFileSync(`${temp.file}.new`, '');
    renameSync(`${temp.file}.new`, temp.file);
    expect(() => place.check()).toThrow(expect.objectContaining(GONE) as Error);
    rmSync(temp.file);
    expect(() => place.check()).toThrow(/was deleted, moved or replaced/);
  });
});

describe.each(Object.keys(CONNECTIONS))('the location of a database in WAL mode, %s', (driver) => {
  /** Opened as the store opens it. */
  async function opened(): Promise<{ readonly handle: SqliteHandle; readonly place: DatabaseFile }> {
    const connected = CONNECTIONS[driver]?.(temp.file) ?? temp.file;
    const handle = typeof connected === 'string' ? new DatabaseSync(connected) : connected;
    const options = { busyMs: 0, delay: async () => {}, random: () => 0 };
    const { db: its } = await openDatabase(
      () => handle,
      () => undefined,
      options,
    );
    return { handle, place: placeOf(its) };
  }

  it.each(['-wal', '-shm'])('is lost while its %s is moved away, and found when it is back', async (end) => {
    const { handle, place } = await opened();
    const path = `${temp.file}${end}`;
    place.check();
    renameSync(path, `${path}.away`);
    expect(() => place.check()).toThrow(expect.objectContaining(GONE) as Error);
    expect(() => place.check()).toThrow(`${path} was deleted, moved or replaced`);
    writeFileSync(path, '');
    expect(() => place.check()).toThrow(expect.objectContaining(GONE) as Error);
    renameSync(`${path}.away`, path);
    expect(() => place.check()).not.toThrow();
    handle.close();
  });

  it('is not lost when other processes write, checkpoint and close', async () => {
    const { handle, place } = await opened();
    for (const mode of ['PASSIVE', 'FULL', 'RESTART', 'TRUNCATE']) {
      const leave = await otherProcess(
        `CREATE TABLE its_${mode} (n INTEGER); PRAGMA wal_checkpoint(${mode})`,
      );
      place.check();
      handle.exec(`INSERT INTO its_${mode} VALUES (1); PRAGMA wal_checkpoint(${mode})`);
      await leave();
      place.check();
    }
    handle.exec('VACUUM');
    place.check();
    handle.close();
  });

  it('is the file alone after this handle has left WAL', async () => {
    const { handle, place } = await opened();
    handle.exec('PRAGMA journal_mode = DELETE');
    expect(() => place.check()).not.toThrow();
    handle.close();
  });
});
