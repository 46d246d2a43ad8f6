import { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError } from '../../../src/index.ts';
import { type SqliteStore, sqliteStore } from '../../../src/stores/sqlite.ts';
import { acceptRequest } from '../requests.ts';
import type { TempFile } from '../sqlite-files.ts';
import { tempFile } from '../sqlite-files.ts';
import type { Watched } from './wrapped.ts';
import { busyError, times, watched } from './wrapped.ts';

const SCHEMA = `
CREATE TABLE parent (id INTEGER PRIMARY KEY);
CREATE TABLE child (parent_id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);`;

let temp: TempFile;
let handle: Watched;
let other: DatabaseSync;
let store: SqliteStore;
let lease: { sender: string; key: string; owner: string; retentionMs: number };

beforeEach(async () => {
  temp = tempFile();
  handle = watched(temp.file);
  handle.db.exec(SCHEMA);
  other = new DatabaseSync(temp.file);
  store = sqliteStore(handle, { delay: async () => {} });
  await store.open();
  const request = acceptRequest();
  await store.accept(request);
  const { sender, acceptId: owner } = request;
  lease = { sender, key: 'event-0001-of-the-seller', owner, retentionMs: 86_400_000 };
});

afterEach(() => {
  handle.close();
  other.close();
  temp.remove();
});

const insert = (): void => handle.db.exec('INSERT INTO parent DEFAULT VALUES');
const rows = (): unknown => other.prepare('SELECT count(*) AS n FROM parent').get()?.['n'];
const state = (): Promise<string> => store.peek(lease.sender, lease.key);

describe('transaction()', () => {
  it('gives the function the store’s own connection', async () => {
    expect(await store.transaction(lease, (tx) => tx === handle)).toBe(true);
  });

  it.each(['COMMIT', 'ROLLBACK', 'COMMIT; BEGIN', 'ROLLBACK; BEGIN'])(
    'rejects a function that runs %s with ConfigError and completes nothing',
    async (sql) => {
      const ended = store.transaction(lease, () => {
        insert();
        handle.db.exec(sql);
      });
      await expect(ended).rejects.toThrow(ConfigError);
      expect(await state()).toBe('busy');
      expect((await store.accept(acceptRequest())).kind).toBe('in-flight');
    },
  );

  it('allows savepoints in the function', async () => {
    await store.transaction(lease, () => {
      insert();
      handle.db.exec('SAVEPOINT mine');
      insert();
      handle.db.exec('ROLLBACK TO mine');
      handle.db.exec('SAVEPOINT left_open');
    });
    expect(rows()).toBe(1);
    expect(await state()).toBe('applied');
  });

  it('rolls back and throws the constraint’s error when it fails at COMMIT', async () => {
    const broken = store.transaction(lease, () => {
      insert();
      handle.db.exec('INSERT INTO child VALUES (42)');
    });
    await expect(broken).rejects.toThrow(/FOREIGN KEY/);
    await expect(broken).rejects.not.toMatchObject({ name: 'Fault' });
    expect(rows()).toBe(0);
    expect(await state()).toBe('busy');
  });

  it('fails with store_unavailable when COMMIT finds a lock, without running the function again', async () => {
    let runs = 0;
    handle.before = (sql) => {
      if (sql === 'COMMIT' && runs > 0) throw busyError();
    };
    const refused = store.transaction(lease, () => {
      runs += 1;
      insert();
    });
    await expect(refused).rejects.toMatchObject({ name: 'Fault', code: 'store_unavailable' });
    handle.before = () => {};
    expect(runs).toBe(1);
    expect(rows()).toBe(0);
    expect(await state()).toBe('busy');
  });

  it('waits when BEGIN finds a lock, as the function has not run', async () => {
    let runs = 0;
    other.exec('BEGIN IMMEDIATE');
    const waiting = store.transaction(lease, () => {
      runs += 1;
      insert();
    });
    await turn();
    expect(runs).toBe(0);
    other.exec('COMMIT');
    await waiting;
    expect(runs).toBe(1);
    expect(rows()).toBe(1);
  });

  it('rolls back an async function and ignores its rejection', async () => {
    const given = store.transaction(lease, async () => {
      insert();
      await turn();
      throw new Error('nobody waits for this');
    });
    await expect(given).rejects.toThrow(ConfigError);
    await turn();
    await turn();
    expect(rows()).toBe(0);
  });

  it('shares its commit with no other call', async () => {
    handle.log.length = 0;
    const others = [1, 2, 3].map((n) => store.accept(acceptRequest({ key: `event-${n}-of-the-seller` })));
    const mine = store.transaction(lease, insert);
    const after = store.accept(acceptRequest({ key: 'event-4-of-the-seller' }));
    await Promise.all([...others, mine, after]);
    expect(times(handle, 'COMMIT')).toBe(3);
  });
});
