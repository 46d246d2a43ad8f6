import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SqliteHandle, SqliteStatement } from '../../../src/stores/sqlite.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';

let db: DatabaseSync;

beforeEach(() => {
  db = new DatabaseSync(':memory:');
});

afterEach(() => {
  db.close();
});

describe('queries of workers and operators', () => {
  it('use an index: no statement scans or sorts records', async () => {
    const statements: string[] = [];
    const handle: SqliteHandle = {
      exec: (sql) => db.exec(sql),
      prepare: (sql) => {
        statements.push(sql);
        return db.prepare(sql);
      },
      close: () => db.close(),
    };
    await sqliteStore(handle).open();
    const selects = statements.filter((sql) => /^SELECT .*webhook_row/s.test(sql));
    expect(selects.length).toBeGreaterThan(6);
    const used: string[] = [];
    for (const sql of selects) {
      const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
      const details = plan.map(({ detail }) => String(detail));
      used.push(...details.flatMap((detail) => /webhook_row_[a-z]+/.exec(detail) ?? []));
      // The earliest of an index read from its end is no scan of the table, nor are all suspects, nor what is counted: `g` are the counts.
      const scans = details.filter((detail) => /^SCAN|TEMP B-TREE/.test(detail));
      expect(
        scans.filter((detail) => !/webhook_row_(?:due|suspect|list)|^SCAN g$/.test(detail)),
        `${sql}: ${details.join('; ')}`,
      ).toEqual([]);
    }
    expect(used.toSorted()).toEqual([
      'webhook_row_due',
      'webhook_row_due',
      'webhook_row_due',
      'webhook_row_due',
      'webhook_row_expiry',
      'webhook_row_list',
      'webhook_row_list',
      ...Array.from({ length: 5 }, () => 'webhook_row_parked'),
      'webhook_row_suspect',
      'webhook_row_suspect',
    ]);
  });
});

it('a poller’s look runs as many statements as it has rows to give, however many senders have some', async () => {
  let runs = 0;
  const counted = (statement: SqliteStatement): SqliteStatement => ({
    run: (...values) => statement.run(...values),
    get: (...values) => {
      runs += 1;
      return statement.get(...values);
    },
    all: (...values) => {
      runs += 1;
      return statement.all(...values);
    },
  });
  const store = sqliteStore({
    exec: (sql) => db.exec(sql),
    prepare: (sql) => counted(db.prepare(sql)),
    close: () => db.close(),
  });
  await store.open();
  const { registrations } = store;
  for (let n = 0; n < 300; n += 1) {
    const sender = `https://seller-${n}.example`;
    await registrations.run(sender, (rows) =>
      rows.save({ kind: 'watch', sender, id: 'task', value: '', dueAt: 1, list: null, expiresAt: null }),
    );
  }
  const look = async (max: number): Promise<number> => {
    const before = runs;
    const { rows } = await registrations.due({ kind: 'watch', max, holdMs: 600_000, senders: [] });
    expect(rows).toHaveLength(max);
    return (runs - before) / max;
  };
  expect(await look(20)).toBeLessThan(8);
  expect(await look(280)).toBeLessThan(8);
});
