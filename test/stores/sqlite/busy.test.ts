import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SqliteStoreOptions } from '../../../src/stores/sqlite.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { acceptRequest } from '../requests.ts';
import type { TempFile } from '../sqlite-files.ts';
import { tempFile } from '../sqlite-files.ts';
import type { Watched } from './wrapped.ts';
import { busyError, times, watched } from './wrapped.ts';

let temp: TempFile;
let handle: Watched;
let other: DatabaseSync;

beforeEach(() => {
  temp = tempFile();
  handle = watched(temp.file);
  other = new DatabaseSync(temp.file);
});

afterEach(() => {
  handle.close();
  other.close();
  temp.remove();
});

async function opened(options: SqliteStoreOptions = {}): Promise<ReturnType<typeof sqliteStore>> {
  const store = sqliteStore(handle, options);
  await store.open();
  handle.log.length = 0;
  return store;
}

function many(count: number): ReturnType<typeof acceptRequest>[] {
  return Array.from({ length: count }, (_, n) => acceptRequest({ key: `event-${n}-of-the-seller` }));
}

describe('BUSY', () => {
  it('is retried until the other connection releases the lock', async () => {
    const waits: number[] = [];
    const store = await opened({
      random: () => 0,
      delay: async (ms) => {
        waits.push(ms);
        if (waits.length === 3) other.exec('COMMIT');
      },
    });
    other.exec('BEGIN IMMEDIATE');
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    expect(waits).toEqual([1, 2, 4]);
  });

  it('is retried after waits that `random` spreads', async () => {
    const waits: number[] = [];
    const store = await opened({
      random: () => 0.5,
      delay: async (ms) => {
        waits.push(ms);
        other.exec('COMMIT');
      },
    });
    other.exec('BEGIN IMMEDIATE');
    await store.accept(acceptRequest());
    expect(waits).toEqual([1.5]);
  });

  it('becomes store_unavailable after 2 s, and the store works afterwards', async () => {
    let waited = 0;
    const store = await opened({
      delay: async (ms) => {
        waited += ms;
      },
    });
    other.exec('BEGIN IMMEDIATE');
    const request = acceptRequest();
    await expect(store.accept(request)).rejects.toMatchObject({ name: 'Fault', code: 'store_unavailable' });
    expect(waited).toBeGreaterThanOrEqual(2000);
    expect(waited).toBeLessThan(2000 + 64);
    other.exec('ROLLBACK');
    expect((await store.accept(request)).kind).toBe('won');
  });

  it('is waited for 2 s from the beginning of each call', async () => {
    let late: Promise<unknown> | undefined;
    let waits = 0;
    const store = await opened({
      busyMs: 100,
      random: () => 0,
      delay: async () => {
        waits += 1;
        if (waits === 6) late = store.accept(acceptRequest({ key: 'event-late-of-the-seller' }));
        if (late && waits === 9) other.exec('COMMIT');
      },
    });
    other.exec('BEGIN IMMEDIATE');
    await expect(store.accept(acceptRequest())).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(late).resolves.toMatchObject({ kind: 'won' });
  });

  it('at COMMIT rolls back and repeats the steps', async () => {
    const store = await opened({ delay: async () => {} });
    let refusals = 2;
    handle.before = (sql) => {
      if (sql === 'COMMIT' && refusals > 0) {
        refusals -= 1;
        throw busyError();
      }
    };
    const results = await Promise.all(many(3).map((request) => store.accept(request)));
    expect(results.map(({ kind }) => kind)).toEqual(['won', 'won', 'won']);
    expect(times(handle, 'ROLLBACK')).toBe(2);
    const count = other.prepare('SELECT rows FROM webhook_scope WHERE within = 0').get();
    expect(count).toMatchObject({ rows: 3 });
  });

  it('includes a transaction that other code has open on the handle', async () => {
    const store = await opened({ delay: async () => handle.db.exec('COMMIT') });
    handle.db.exec('CREATE TABLE mine (n INTEGER)');
    handle.db.exec('BEGIN');
    handle.db.exec('INSERT INTO mine VALUES (1)');
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    expect(other.prepare('SELECT n FROM mine').get()).toMatchObject({ n: 1 });
  });

  it('is not caused by an idle store', async () => {
    const store = await opened();
    await store.accept(acceptRequest());
    other.exec('BEGIN IMMEDIATE');
    other.exec('COMMIT');
    expect((await store.accept(acceptRequest())).kind).toBe('in-flight');
  });
});

describe('a full disk', () => {
  it('fails the call with store_unavailable and rolls it back', async () => {
    const store = await opened();
    await store.accept(acceptRequest());
    const pages = Number(handle.db.prepare('PRAGMA page_count').get()?.['page_count']);
    handle.db.exec(`PRAGMA max_page_count = ${pages}`);
    const large = acceptRequest({ key: 'event-large-of-the-seller', body: 'x'.repeat(1_000_000) });
    const full = { name: 'Fault', code: 'store_unavailable' };
    await expect(store.accept(large)).rejects.toMatchObject(full);
    handle.db.exec('PRAGMA max_page_count = 1000000');
    expect(await store.peek(large.sender, 'event-large-of-the-seller')).toBe('absent');
    expect((await store.accept(large)).kind).toBe('won');
  });
});

describe('close', () => {
  it('finishes calls that wait for a lock and leaves the caller’s handle open', async () => {
    const store = await opened({ delay: async () => other.exec('COMMIT') });
    other.exec('BEGIN IMMEDIATE');
    const running = store.accept(acceptRequest());
    await store.close();
    expect((await running).kind).toBe('won');
    expect(handle.db.isOpen).toBe(true);
  });
});
