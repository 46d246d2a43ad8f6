import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AcceptRequest } from '../../../src/stores/index.ts';
import { type SqliteStore, sqliteStore } from '../../../src/stores/sqlite.ts';
import { acceptRequest, leaseOf, RETENTION_MS } from '../requests.ts';
import type { TempFile } from '../sqlite-files.ts';
import { tempFile } from '../sqlite-files.ts';

/** What a page takes in the WAL: itself and its head. */
const FRAME_BYTES = 4096 + 24;

let temp: TempFile;
let db: DatabaseSync;
let store: SqliteStore;
let made = 0;

beforeEach(async () => {
  temp = tempFile();
  db = new DatabaseSync(temp.file);
  store = sqliteStore(db);
  await store.open();
  db.exec('PRAGMA wal_autocheckpoint = 0');
});

afterEach(() => {
  db.close();
  temp.remove();
});

function fresh(count: number): AcceptRequest[] {
  return Array.from({ length: count }, () => {
    made += 1;
    const name = String(made).padStart(6, '0');
    return acceptRequest({
      key: `event-${name}-of-the-seller`,
      task: `task-${name}`,
      body: 'x'.repeat(1024),
    });
  });
}

function pages(): number {
  return statSync(`${temp.file}-wal`).size / FRAME_BYTES;
}

async function acceptAll(requests: readonly AcceptRequest[]): Promise<void> {
  await Promise.all(requests.map((request) => store.accept(request)));
}

async function completeAll(requests: readonly AcceptRequest[]): Promise<void> {
  await Promise.all(
    requests.map((request) => store.complete({ ...leaseOf(request), retentionMs: RETENTION_MS })),
  );
}

describe('pages that an accept writes', () => {
  it('are one or two of each tree and the counts, for a single accept', async () => {
    const held = fresh(500);
    await acceptAll(held);
    await completeAll(held);
    const before = pages();
    for (const request of fresh(100)) await store.accept(request);
    expect((pages() - before) / 100).toBeLessThan(14);
  });

  it('are shared by 64 concurrent accepts', async () => {
    const held = fresh(500);
    await acceptAll(held);
    await completeAll(held);
    const before = pages();
    for (let round = 0; round < 10; round += 1) await acceptAll(fresh(64));
    expect((pages() - before) / 640).toBeLessThan(2.5);
  });
});

describe('counts', () => {
  it('are written once per commit, however many accepts share it', async () => {
    await acceptAll(fresh(1));
    db.exec(`CREATE TEMP TABLE written (id INTEGER);
      CREATE TEMP TRIGGER noted AFTER UPDATE ON webhook_scope BEGIN INSERT INTO written VALUES (new.id); END`);
    await acceptAll(fresh(64));
    // The sender, its key id, all.
    expect(db.prepare('SELECT count(*) AS n FROM written').get()).toEqual({ n: 3 });
    expect(db.prepare('SELECT rows AS n FROM webhook_scope WHERE within = 0').get()).toEqual({ n: 130 });
  });

  it('of a failing step are not kept', async () => {
    db.exec(`CREATE TEMP TRIGGER breaks BEFORE INSERT ON webhook_row WHEN new.name LIKE 'broken-%'
      BEGIN SELECT RAISE(ABORT, 'broken'); END`);
    const broken = acceptRequest({ key: 'broken-1-of-the-seller' });
    const [first] = fresh(1);
    const answers = await Promise.allSettled([store.accept(broken), store.accept(first ?? acceptRequest())]);
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect(db.prepare('SELECT rows AS n, bytes FROM webhook_scope WHERE within = 0').get()).toEqual({
      n: 2,
      bytes: 1024,
    });
  });
});
