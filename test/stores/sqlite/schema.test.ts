import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { KNOWN, migrate, STEPS } from '../../../src/stores/sqlite/for-tests.ts';
import { columnText } from '../../../src/stores/for-tests.ts';
import { acceptRequest } from '../requests.ts';
import type { TempFile } from '../sqlite-files.ts';
import { countsOf, tempFile } from '../sqlite-files.ts';
import { clockOf, dumped } from '../versions/dumps.ts';
import { expectHistory, finishHistory } from '../versions/expect-history.ts';
import { SENDER } from '../versions/history.ts';

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
  of
    .prepare("SELECT type, name, sql FROM sqlite_master WHERE name <> 'webhook_identity' ORDER BY name")
    .all();

function versionOf(of: DatabaseSync): unknown[] {
  return of.prepare('SELECT version FROM webhook_schema').all();
}

const LATER = [
  ...STEPS,
  { from: KNOWN, to: KNOWN + 1, sql: 'ALTER TABLE webhook_row ADD COLUMN later TEXT;' },
];

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

describe('a file of version 1', () => {
  beforeEach(() => db.exec(dumped(1, 'sqlite.sql')));

  it('is opened with the meaning of all rows kept, and unfinished work completes', async () => {
    const store = sqliteStore(temp.file, { clockOffsetMs: clockOf(1) });
    await store.open();
    const { noted, counted } = countsOf(db);
    expect(noted).toEqual(counted);
    expect(counted).toHaveLength(3);
    await expectHistory(store);
    await finishHistory(store);
    await store.close();
  });

  it('becomes identical to a new one', () => {
    step(() => migrate(db));
    const fresh = new DatabaseSync(':memory:');
    migrate(fresh);
    expect(madeBy(db)).toEqual(madeBy(fresh));
    fresh.close();
  });

  it('keeps names with any characters', async () => {
    const odd = ['nul \0 in it', 'lone \uD800 surrogate', '\u0001 first', 'quote " and \\', 'é\u2028'];
    const [senders, records] = ['SELECT id FROM webhook_sender', 'SELECT * FROM webhook_record LIMIT 1'];
    const [sender, record] = [db.prepare(senders).get()?.['id'], db.prepare(records).get()];
    const insert = db.prepare(
      `INSERT INTO webhook_record (${Object.keys(record ?? {}).join(', ')}) VALUES (${Object.keys(
        record ?? {},
      )
        .map(() => '?')
        .join(', ')})`,
    );
    const task = db.prepare(
      'INSERT INTO webhook_task (sender_id, task_id, holder, mark, mark_terminal, expires_at) VALUES (?, ?, ?, NULL, 0, 9e15)',
    );
    for (const [at, text] of odd.entries()) {
      const of = { key: columnText(text), task_id: columnText(text), last_error: columnText(text) };
      const held = {
        state: 'leased',
        owner: text,
        lease_until: 8e15,
        acked: 1,
        expires_at: null,
        due_at: 8e15,
      };
      const place = { sender_id: sender, place: 1000 + at };
      insert.run(...(Object.values({ ...record, ...of, ...held, ...place }) as (string | number | null)[]));
      task.run(Number(sender), of.task_id, of.key);
    }
    const store = sqliteStore(temp.file, { clockOffsetMs: clockOf(1) });
    await store.open();
    for (const text of odd) {
      expect(await store.inbox.inspect(SENDER, text)).toMatchObject({
        key: text,
        taskId: text,
        lastError: text,
        state: 'leased',
      });
      // It holds its task.
      const other = { ...acceptRequest({ sender: SENDER, key: `other of ${text}`, task: text }) };
      expect(await store.accept(other)).toMatchObject({ kind: 'task-busy' });
    }
    const { records: listed } = await store.inbox.list({ state: 'leased', limit: 10, sender: SENDER });
    expect(listed.slice(-odd.length).map(({ key }) => key)).toEqual(odd);
    await store.close();
  });

  it('is migrated by a later version with its rows, and then refused by this one', async () => {
    step(() => migrate(db, LATER));
    expect(versionOf(db)).toEqual([{ version: KNOWN + 1 }]);
    const records = "SELECT count(*) AS n FROM webhook_row WHERE kind = 'record' AND later IS NULL";
    expect(db.prepare(records).get()).toEqual({ n: 7 });
    step(() => migrate(db, LATER));
    await expect(sqliteStore(temp.file).open()).rejects.toThrow(
      `version ${KNOWN + 1}, this package knows ${KNOWN}. Upgrade`,
    );
  });

  it('stays complete and working when a later migration fails halfway', async () => {
    const before = madeBy(db);
    const last = { from: KNOWN + 1, to: KNOWN + 2, sql: 'CREATE TABLE webhook_last (n); SELECT nothing' };
    expect(() => step(() => migrate(db, [...LATER, last]))).toThrow(/nothing/);
    expect(madeBy(db)).toEqual(before);
    expect(versionOf(db)).toEqual([{ version: 1 }]);
    const store = sqliteStore(temp.file, { clockOffsetMs: clockOf(1) });
    await store.open();
    await expectHistory(store);
    await store.close();
  });

  it.each([KNOWN + 1, 7, -1])('of version %i is refused and left unchanged', (version) => {
    db.exec(`UPDATE webhook_schema SET version = ${version}`);
    expect(() => step(() => migrate(db))).toThrow(`schema version ${version}, this package knows ${KNOWN}`);
    expect(versionOf(db)).toEqual([{ version }]);
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

  it('is misconfigured when a file of an older version replaces it, and the error says to restart', async () => {
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
