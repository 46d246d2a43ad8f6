import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { acceptRequest } from '../requests.ts';

const TABLES = ['webhook_nonce', 'webhook_record', 'webhook_body', 'webhook_task', 'webhook_notification'];

let db: DatabaseSync;

beforeEach(() => {
  db = new DatabaseSync(':memory:');
});

afterEach(() => {
  db.close();
});

function sizes(): number[] {
  return TABLES.map((table) => Number(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n']));
}

describe('purge', () => {
  it('takes expired rows from every table, more than accepts add, a few at a time', async () => {
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
    for (let n = 0; n < 4; n += 1) await store.accept(again);
    expect(sizes()).toEqual([25, 25, 25, 24, 24]);
    for (let n = 0; n < 8; n += 1) await store.accept(again);
    expect(sizes()).toEqual([1, 1, 1, 0, 0]);
  });

  it('looks for them by index only', async () => {
    const store = sqliteStore(db);
    await store.open();
    for (const table of TABLES.filter((name) => name !== 'webhook_body')) {
      const plan = db
        .prepare(`EXPLAIN QUERY PLAN SELECT 1 FROM ${table} WHERE expires_at <= ? LIMIT 1`)
        .all(0);
      expect(plan.map(({ detail }) => String(detail)).join()).toMatch(/^SEARCH .* USING .*INDEX/);
    }
  });
});
