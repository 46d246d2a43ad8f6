import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import type { TestReceiver } from '../../receiver/setup.ts';
import { said } from '../../receiver/setup.ts';
import type { TempFile } from '../../stores/sqlite-files.ts';
import { tempFile } from '../../stores/sqlite-files.ts';
import { delivered, doorOf, expectUnavailable, newEvent } from './at-door.ts';

const OTHER = fileURLToPath(new URL('../../stores/fixtures/hold-lock.ts', import.meta.url));
const LOCK = 'BEGIN IMMEDIATE';

let temp: TempFile;
let at: TestReceiver;
let offsetMs = 0;
const others: ChildProcess[] = [];

beforeEach(async () => {
  temp = tempFile();
  offsetMs = 0;
});

afterEach(async () => {
  await at.receiver.stop();
  for (const child of others.splice(0)) child.kill('SIGKILL');
  temp.remove();
});

const storeOn = (on: string | DatabaseSync) =>
  sqliteStore(on, { busyMs: 100, clockOffsetMs: () => offsetMs });

/** Another process that has run these statements; ends its transaction and itself when called. */
async function otherProcess(...statements: string[]): Promise<() => Promise<void>> {
  const child = spawn(process.execPath, [OTHER, temp.file, ...statements], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  others.push(child);
  await once(child.stdout, 'data');
  return async () => {
    const gone = once(child, 'exit');
    child.stdin.end();
    await gone;
  };
}

describe('another process holds the write lock', () => {
  it('when an event comes: 503, and 200 when it is released', async () => {
    at = await doorOf(storeOn(temp.file));
    await at.receiver.ready();
    const letGo = await otherProcess(LOCK);
    const event = newEvent();
    await expectUnavailable(at, event, 'store_unavailable', /database is locked/);
    expect(at.seen).toEqual([]);
    await letGo();
    expect(await delivered(at, event)).toBe('accepted 200');
    expect(at.seen.length).toBe(1);
  });

  it('when its handler has returned: 503, it is completed as soon as it can be, and the retry is a duplicate', async () => {
    let letGo = async (): Promise<void> => undefined;
    let first = true;
    at = await doorOf(storeOn(temp.file), {
      handler: async () => {
        if (first) letGo = await otherProcess(LOCK);
        first = false;
      },
    });
    const event = newEvent();
    await expectUnavailable(at, event, 'store_unavailable', /database is locked/);
    await letGo();
    await vi.waitFor(async () => expect(said(await at.deliver(event))).toBe('duplicate 200'), 20_000);
    expect(at.seen.length).toBe(1);
  });

  it('with weaker settings: they do not apply to the store', async () => {
    at = await doorOf(storeOn(temp.file));
    await at.receiver.ready();
    const letGo = await otherProcess('PRAGMA synchronous = OFF', 'CREATE TABLE its (n INTEGER)');
    expect(said(await at.deliver(newEvent()))).toBe('accepted 200');
    await letGo();
    await at.receiver.ready();
    expect(said(await at.deliver(newEvent()))).toBe('accepted 200');
  });

  it('that switched the file from WAL while it was closed: WAL is set again', async () => {
    const letGo = await otherProcess('PRAGMA journal_mode = DELETE', 'CREATE TABLE its (n INTEGER)');
    await letGo();
    at = await doorOf(storeOn(temp.file));
    await at.receiver.ready();
    expect(said(await at.deliver(newEvent()))).toBe('accepted 200');
    const look = new DatabaseSync(temp.file);
    expect(look.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' });
    look.close();
  });
});

describe('the disk', () => {
  let db: DatabaseSync;
  beforeEach(async () => {
    db = new DatabaseSync(temp.file);
    at = await doorOf(storeOn(db));
    await at.receiver.ready();
  });
  afterEach(() => db.close());

  it('is full: 503, nothing is written, duplicates go on; 200 when there is space', async () => {
    const before = newEvent();
    expect(await delivered(at, before)).toBe('accepted 200');
    const pages = Number(db.prepare('PRAGMA page_count').get()?.['page_count']);
    db.exec(`PRAGMA max_page_count = ${pages}`);
    const large = { ...newEvent(), message: 'x'.repeat(500_000) };
    await expectUnavailable(at, large, 'store_unavailable', /full/);
    expect(db.prepare("SELECT count(*) AS n FROM webhook_row WHERE kind = 'record'").get()).toEqual({ n: 1 });
    expect(await delivered(at, before)).toBe('duplicate 200');
    db.exec('PRAGMA max_page_count = 1000000');
    expect(await delivered(at, large)).toBe('accepted 200');
    expect(at.seen.length).toBe(2);
  });

  it('becomes read-only: 503, and 200 when it is writable', async () => {
    const event = newEvent();
    db.exec('PRAGMA query_only = ON');
    await expectUnavailable(at, event, 'store_unavailable', /readonly/);
    db.exec('PRAGMA query_only = OFF');
    expect(await delivered(at, event)).toBe('accepted 200');
  });
});

describe('the file', () => {
  it('is moved away: 503, and 200 when it is back', async () => {
    at = await doorOf(storeOn(temp.file));
    const [first, second] = [newEvent(), newEvent()];
    expect(await delivered(at, first)).toBe('accepted 200');
    renameSync(temp.file, `${temp.file}.away`);
    await expectUnavailable(at, second, 'store_unavailable', /was deleted, moved or replaced/);
    await expectUnavailable(at, first, 'store_unavailable', /Put it back/);
    renameSync(`${temp.file}.away`, temp.file);
    expect(await delivered(at, first)).toBe('duplicate 200');
    expect(await delivered(at, second)).toBe('accepted 200');
  });

  it('is deleted, or replaced by a copy: 503 until a restart, which takes what is there', async () => {
    at = await doorOf(storeOn(temp.file));
    const [first, second] = [newEvent(), newEvent()];
    expect(await delivered(at, first)).toBe('accepted 200');
    const copier = new DatabaseSync(temp.file);
    copier.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    copier.close();
    copyFileSync(temp.file, `${temp.file}.copy`);
    rmSync(temp.file);
    await expectUnavailable(at, second, 'store_unavailable', /was deleted/);
    renameSync(`${temp.file}.copy`, temp.file);
    await expectUnavailable(at, second, 'store_unavailable', /or replaced/);
    await at.receiver.stop();
    for (const left of ['-wal', '-shm']) rmSync(`${temp.file}${left}`, { force: true });
    at = await doorOf(storeOn(temp.file));
    expect(await delivered(at, second)).toBe('accepted 200');
    expect(await delivered(at, first)).toBe('duplicate 200');
  });

  it.each(['-wal', '-shm'])(
    'has lost its %s: 503 until a restart, and no answered event is lost',
    async (end) => {
      at = await doorOf(storeOn(temp.file));
      const [first, second] = [newEvent(), newEvent()];
      expect(await delivered(at, first)).toBe('accepted 200');
      rmSync(`${temp.file}${end}`);
      await expectUnavailable(at, second, 'store_unavailable', /-(wal|shm) was deleted/);
      await at.receiver.stop();
      at = await doorOf(storeOn(temp.file));
      expect(await delivered(at, second)).toBe('accepted 200');
      expect(await delivered(at, first)).toBe('duplicate 200');
    },
  );
});
