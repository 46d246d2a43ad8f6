import type { Pool, PoolConnection } from 'mysql2/promise';
import { createPool } from 'mysql2/promise';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { mysqlStore } from '../../../src/stores/mysql.ts';
import type { TestReceiver, TestReceiverOptions } from '../../receiver/setup.ts';
import type { TestDatabase } from '../../stores/mysql-databases.ts';
import { testDatabase } from '../../stores/mysql-databases.ts';
import type { MariadbServer } from '../../support/mariadb.ts';
import { startServer } from '../../support/mariadb.ts';
import { until } from '../../support/redis.ts';
import { delivered, doorOf, expectUnavailable, newEvent, refusal } from './at-door.ts';
import { COUNTING_MYSQL, LONG_MS } from './backends.ts';
import { loadOf } from './load.ts';

/** Where it takes the time-out to know. */
const SHORT_MS = 300;

const CONNECTIONS = 3;

let server: MariadbServer;
let at: TestDatabase;
const pools: Pool[] = [];
const receivers: TestReceiver[] = [];

beforeAll(async () => {
  server = await startServer();
  at = await testDatabase(server.url);
  for (const text of COUNTING_MYSQL) await at.sql(text);
  // The store's own user: root may write to a server that is read-only.
  await at.sql(
    "CREATE USER store@'127.0.0.1' IDENTIFIED BY 'x'; GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON *.* TO store@'127.0.0.1'",
  );
});

afterEach(async () => {
  for (const { receiver } of receivers.splice(0)) await receiver.stop();
  for (const pool of pools.splice(0)) await pool.end();
});

afterAll(async () => {
  await at.drop();
  await server.remove();
});

function poolOf(): Pool {
  const pool = createPool({ uri: at.url.replace('root@', 'store:x@'), connectionLimit: CONNECTIONS });
  pools.push(pool);
  return pool;
}

async function doorOn(
  pool: Pool,
  options: TestReceiverOptions = {},
  timeoutMs = LONG_MS,
): Promise<TestReceiver> {
  const door = await doorOf(mysqlStore({ pool, timeoutMs }), options);
  receivers.push(door);
  return door;
}

describe('the pool is exhausted by others', () => {
  it('when an event comes: 503, and 200 when a connection is free', async () => {
    const pool = poolOf();
    const door = await doorOn(pool, {}, SHORT_MS);
    await delivered(door, newEvent());
    door.seen.length = 0;
    const taken: PoolConnection[] = await Promise.all(
      Array.from({ length: CONNECTIONS }, () => pool.getConnection()),
    );
    const event = newEvent();
    await expectUnavailable(door, event, 'store_unavailable', /waiting for a connection of the pool/);
    expect(door.seen).toEqual([]);
    for (const connection of taken) connection.release();
    expect(await delivered(door, event)).toBe('accepted 200');
    expect(door.seen.length).toBe(1);
  });
});

describe('settings', () => {
  it.each([
    ['innodb_flush_log_at_trx_commit = 2', 'innodb_flush_log_at_trx_commit = 1', /set innodb_flush_log/],
    ['read_only = 1', 'read_only = 0', /the server is read-only/],
  ])('%s is refused at the start; once fixed, the same receiver starts', async (weak, mended, says) => {
    await at.sql(`SET GLOBAL ${weak}`);
    const door = await doorOn(poolOf());
    const event = newEvent();
    expect(await refusal(door)).toMatch(says);
    await expectUnavailable(door, event, 'misconfigured', says);
    await at.sql(`SET GLOBAL ${mended}`);
    expect(await delivered(door, event)).toBe('accepted 200');
  });

  it('a server that becomes read-only: 503 with the fix; 200 when it is writable', async () => {
    const door = await doorOn(poolOf());
    const [first, second] = [newEvent(), newEvent()];
    expect(await delivered(door, first)).toBe('accepted 200');
    await at.sql('SET GLOBAL read_only = 1');
    await expectUnavailable(door, second, 'store_unavailable', /The server is read-only/);
    await at.sql('SET GLOBAL read_only = 0');
    expect(await delivered(door, second)).toBe('accepted 200');
    expect(await delivered(door, first)).toBe('duplicate 200');
    expect(door.seen.length).toBe(2);
  });
});

it('a full disk: 503 with the fix; answered events are kept, and 200 when there is space', async () => {
  const door = await doorOn(poolOf());
  const [first, second] = [newEvent(), newEvent()];
  expect(await delivered(door, first)).toBe('accepted 200');
  // As InnoDB says it, at the first row for which there is no room.
  await at.sql(`CREATE TRIGGER full BEFORE INSERT ON webhook_row FOR EACH ROW
    SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = "The table 'webhook_row' is full"`);
  const says = /'webhook_row' is full \(1114\)\. The disk, or the table space, is full/;
  await expectUnavailable(door, second, 'store_unavailable', says);
  await at.sql('DROP TRIGGER full');
  expect(await delivered(door, second)).toBe('accepted 200');
  expect(await delivered(door, first)).toBe('duplicate 200');
  expect(door.seen.length).toBe(2);
});

it('others lock its rows in any order: each answer is correct, and all calls end', async () => {
  const door = await doorOn(poolOf(), {}, LONG_MS);
  const load = loadOf(door, 6);
  await load.more(10);
  const [, pool] = at.pools;
  const locked = async (...statements: readonly string[]): Promise<void> => {
    const connection = await pool.getConnection();
    for (const sql of ['BEGIN', ...statements]) await connection.query(sql).catch(() => undefined);
    await connection.query('ROLLBACK');
    connection.release();
  };
  const up = 'SELECT id FROM webhook_row ORDER BY scope_id, kind, id FOR UPDATE';
  const down = 'SELECT id FROM webhook_row ORDER BY scope_id DESC, kind DESC, id DESC FOR UPDATE';
  const tally = 'SELECT scope_id FROM webhook_tally FOR UPDATE';
  for (let storm = 0; storm < 20; storm += 1) {
    await Promise.all([locked(up, tally), locked(tally, down), locked(down, up)]);
  }
  await load.more(10);
  await load.end();
  expect(load.other).toEqual([]);
  const completed = await at.sql(
    'SELECT event FROM completed WHERE event IN (?) GROUP BY event HAVING COUNT(*) = 1',
    [load.told],
  );
  expect(completed).toHaveLength(load.told.length);
});

describe('the server crashes under load', () => {
  it.each(['inline', 'inbox'] as const)(
    'mode %s: 200 only for stored events; every event is answered 200 in the end and completed once',
    async (mode) => {
      const door = await doorOn(poolOf(), { mode, leaseMs: 1000, worker: { pollMs: 100 } });
      if (mode === 'inbox') await door.receiver.start();
      const load = loadOf(door, 6);
      for (let crash = 0; crash < 2; crash += 1) {
        await load.more(30);
        const told = [...load.told];
        const refused = load.refused();
        await server.kill();
        await until('somebody was told 503', async () => load.refused() > refused);
        await server.start();
        const look = createPool({ uri: at.url, connectionLimit: 1 });
        const [rows] = await look.query(
          `SELECT CONVERT(id USING utf8mb4) AS id FROM webhook_row WHERE kind = 'r' AND
            (JSON_VALUE(CONVERT(data USING utf8mb4), '$.acked') = '1'
              OR JSON_VALUE(CONVERT(data USING utf8mb4), '$.state') = 'applied')`,
        );
        await look.end();
        const kept = new Set((rows as { id: string }[]).map(({ id }) => id));
        expect(told.filter((key) => !kept.has(key))).toEqual([]);
      }
      await load.more(30);
      await load.end();
      expect(load.other).toEqual([]);
      const completed = async (): Promise<readonly unknown[]> =>
        at.sql('SELECT event, COUNT(*) AS n FROM completed WHERE event IN (?) GROUP BY event', [load.told]);
      await expect.poll(async () => (await completed().catch(() => [])).length).toBe(load.told.length);
      expect((await completed()).filter((row) => (row as { n: number }).n !== 1)).toEqual([]);
    },
  );
});
