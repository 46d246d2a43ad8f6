import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { acceptRequest } from '../requests.ts';

const KINDS = ['nonce', 'record', 'task', 'notification'];

let db: DatabaseSync;

beforeEach(() => {
  db = new DatabaseSync(':memory:');
});

afterEach(() => {
  db.close();
});

function sizes(): number[] {
  const of = db.prepare('SELECT count(*) AS n FROM webhook_row WHERE kind = ?');
  const bodies = db.prepare('SELECT count(*) AS n FROM webhook_copy').get();
  return [...KINDS.map((kind) => of.get(kind)), bodies].map((row) => Number(row?.['n']));
}

describe('purge', () => {
  it('deletes expired rows of every kind in small batches, faster than accepts add them', async () => {
    let offsetMs = 0;
    const store = sqliteStore(db, { clockOffsetMs: () => offsetMs });
    await store.open();
    for (let n = 0; n < 40; n += 1) {
      const request = acceptRequest({ key: `event-${n}-of-the-seller`, task: `task-${n}` });
      const event = request.event && { ...request.event, notificationId: `notification-${n}` };
      await store.accept({ ...request, ...(event && { event }) });
    }
    expect(sizes()).toEqual([40, 40, 40, 40, 40]);
    offsetMs = 31 * 86_400_000;
    const again = acceptRequest({ key: 'event-again-of-the-seller' });
    // One turn of each kind, one of which has no rows here.
    for (let n = 0; n < 5; n += 1) await store.accept(again);
    expect(sizes()).toEqual([25, 25, 24, 24, 25]);
    for (let n = 0; n < 10; n += 1) await store.accept(again);
    expect(sizes()).toEqual([1, 1, 0, 0, 1]);
  });

  it('deletes only one sender’s expired rows when that sender needs room', async () => {
    let offsetMs = 0;
    const store = sqliteStore(db, { clockOffsetMs: () => offsetMs });
    await store.open();
    const [one, other] = ['https://one.example/mcp', 'https://other.example/mcp'];
    for (const sender of [one, other]) {
      for (let n = 0; n < 40; n += 1) {
        await store.accept(acceptRequest({ sender, key: `event-${n}-of-the-seller`, task: `task-${n}` }));
      }
    }
    offsetMs = 31 * 86_400_000;
    const next = acceptRequest({ sender: one, key: 'event-next-of-the-seller' });
    await store.accept({ ...next, limits: { ...next.limits, maxRecordsPerSender: 70 } });
    const rows =
      db.prepare(`SELECT s.name, count(*) AS n FROM webhook_row r JOIN webhook_scope s ON s.id = r.scope
      WHERE r.kind IN ('record', 'task') GROUP BY r.scope ORDER BY r.scope`);
    // Sixteen were in their turn, of whichever sender they were.
    const counted = db.prepare('SELECT name, rows AS n FROM webhook_scope WHERE within = 0 ORDER BY id');
    expect(rows.all()).toEqual(counted.all());
    expect(counted.all()).toMatchObject([
      { name: one, n: 1 },
      { name: other, n: 80 },
    ]);
  });
});
