import type { PoolClient } from 'pg';
import { Pool } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { migrate, postgresStore } from '../../../src/stores/postgres.ts';
import type { PostgresServer } from '../../support/postgres.ts';
import { startServer, startStandby } from '../../support/postgres.ts';
import type { TcpProxy } from '../../support/tcp-proxy.ts';
import { startProxy } from '../../support/tcp-proxy.ts';
import type { TestReceiver, TestReceiverOptions } from '../../receiver/setup.ts';
import { AGENT, said } from '../../receiver/setup.ts';
import { until } from '../../support/redis.ts';
import { delivered, doorOf, expectUnavailable, LEASE_MS, newEvent, refusal } from './at-door.ts';
import { COUNTING, LONG_MS } from './backends.ts';
import { loadOf } from './load.ts';

/** Where it takes the time-out to know. */
const SHORT_MS = 300;

let server: PostgresServer;
let proxy: TcpProxy;
const pools: Pool[] = [];
const receivers: TestReceiver[] = [];
let offsetMs = 0;

beforeAll(async () => {
  server = await startServer();
  proxy = await startProxy(server.port);
  const owner = poolOf(server.url);
  await migrate(owner);
  await owner.query(`SET search_path TO proto_webhooks; ${COUNTING}`);
  await endAll();
});

afterEach(endAll);

afterAll(async () => {
  await proxy.close();
  server.remove();
});

async function endAll(): Promise<void> {
  offsetMs = 0;
  for (const { receiver } of receivers.splice(0)) await receiver.stop();
  for (const pool of pools.splice(0)) await pool.end();
}

function poolOf(url: string, max = 3): Pool {
  const pool = new Pool({ connectionString: url, max, connectionTimeoutMillis: LONG_MS });
  pool.on('error', () => undefined);
  pools.push(pool);
  return pool;
}

const throughProxy = (): string => server.url.replace(`:${server.port}/`, `:${proxy.port}/`);

async function doorOn(
  pool: Pool,
  options: TestReceiverOptions = {},
  timeoutMs = LONG_MS,
): Promise<TestReceiver> {
  const store = postgresStore({ pool, timeoutMs, clockOffsetMs: () => offsetMs });
  const at = await doorOf(store, options);
  receivers.push(at);
  return at;
}

/** As the server's owner; `ALTER SYSTEM` and a reload are seen by connections that are there already. */
async function set(...statements: string[]): Promise<void> {
  const owner = poolOf(server.url, 1);
  for (const sql of [...statements, 'SELECT pg_reload_conf()']) await owner.query(sql);
}

describe('the pool is exhausted by others', () => {
  const takeAll = (pool: Pool): Promise<PoolClient[]> =>
    Promise.all(Array.from({ length: 3 }, () => pool.connect()));

  it('when an event comes: 503, and 200 when a connection is free', async () => {
    const pool = poolOf(server.url);
    const at = await doorOn(pool, {}, SHORT_MS);
    await delivered(at, newEvent());
    at.seen.length = 0;
    const taken = await takeAll(pool);
    const event = newEvent();
    await expectUnavailable(at, event, 'store_unavailable', /./);
    expect(at.seen).toEqual([]);
    for (const client of taken) client.release();
    expect(await delivered(at, event)).toBe('accepted 200');
    expect(at.seen.length).toBe(1);
  });

  it('when its handler has returned: 503, it is completed as soon as it can be, and the retry is a duplicate', async () => {
    const pool = poolOf(server.url);
    const taken: PoolClient[] = [];
    const handler = async (): Promise<void> => {
      if (at.seen.length === 1) taken.push(...(await takeAll(pool)));
    };
    const at = await doorOn(pool, { handler }, SHORT_MS);
    const event = newEvent();
    await until('it is handled', async () => {
      await expectUnavailable(at, event, 'store_unavailable', /./);
      return at.seen.length > 0;
    });
    for (const client of taken) client.release();
    await until('it is completed', async () => said(await at.deliver(event)) === 'duplicate 200');
    expect(at.seen.length).toBe(1);
  });
});

describe('connections that are never answered', () => {
  it('fill a pool without connectionTimeoutMillis: 503 names it', async () => {
    const pool = new Pool({ connectionString: throughProxy(), max: 2 });
    pool.on('error', () => undefined);
    const at = await doorOn(pool, {}, SHORT_MS);
    await delivered(at, newEvent());
    proxy.arm('mute', 'webhook_commit');
    await expectUnavailable(at, newEvent(), 'store_unavailable', /./);
    await until('it is told', async () =>
      /no connectionTimeoutMillis: set it/.test(
        String(((await at.deliver(newEvent())) as { detail?: string }).detail),
      ),
    );
    proxy.retarget(server.port);
    expect(await delivered(at, newEvent())).toBe('accepted 200');
    pools.push(pool);
  });
});

describe('settings', () => {
  it.each([
    ['ALTER ROLE postgres SET default_transaction_read_only = on', /default_transaction_read_only = off/],
    ['ALTER DATABASE postgres SET synchronous_commit = off', /synchronous_commit is off: set it to on/],
    ['ALTER TABLE proto_webhooks.webhook_row SET UNLOGGED', /unlogged: ALTER TABLE webhook_row SET LOGGED/],
  ])('%s is refused at the start; once fixed, the same receiver starts', async (weaken, says) => {
    await set(weaken);
    const at = await doorOn(poolOf(server.url));
    const event = newEvent();
    expect(await refusal(at)).toMatch(says);
    await expectUnavailable(at, event, 'misconfigured', says);
    const owner = poolOf(server.url, 1);
    await owner.query('SET default_transaction_read_only = off');
    await owner.query('ALTER ROLE postgres RESET ALL; ALTER DATABASE postgres RESET ALL');
    await owner.query('ALTER TABLE proto_webhooks.webhook_row SET LOGGED');
    // Settings of a role are those of new connections.
    await owner.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()');
    expect(await delivered(at, event)).toBe('accepted 200');
  });

  it('a server that becomes read-only: 503 with the fix; 200 when it is writable', async () => {
    const at = await doorOn(poolOf(server.url));
    const [first, second] = [newEvent(), newEvent()];
    expect(await delivered(at, first)).toBe('accepted 200');
    await set('ALTER SYSTEM SET default_transaction_read_only = on');
    await expect.poll(async () => (await at.deliver(first)).response.status).toBe(503);
    await expectUnavailable(at, second, 'store_unavailable', /The server is read-only/);
    await set('SET default_transaction_read_only = off', 'ALTER SYSTEM RESET default_transaction_read_only');
    expect(await delivered(at, second)).toBe('accepted 200');
    expect(await delivered(at, first)).toBe('duplicate 200');
    expect(at.seen.length).toBe(2);
  });
});

it('a worker that is started without the server begins when it is back', async () => {
  const queued = newEvent();
  const door = await doorOn(poolOf(throughProxy()), { mode: 'inbox' });
  expect(await delivered(door, queued)).toBe('accepted 200');
  server.crash();
  const failures: string[] = [];
  const none = (): void => undefined;
  const error = (_: object, message: string): number => failures.push(message);
  const worker = await doorOn(poolOf(throughProxy()), {
    mode: 'inbox',
    worker: { pollMs: 50 },
    logger: { debug: none, info: none, warn: none, error },
  });
  const starting = worker.receiver.start();
  await until('it has tried twice', async () => failures.length >= 2);
  expect(new Set(failures)).toEqual(new Set(['the worker could not start yet']));
  server.start();
  await starting;
  await until('the event is handled', async () => worker.seen.length === 1);
  expect(door.seen).toEqual([]);
});

describe('the server crashes under load', () => {
  it.each(['inline', 'inbox'] as const)(
    'mode %s: 200 only for stored events; every event is answered 200 in the end and completed once',
    async (mode) => {
      const pool = poolOf(throughProxy());
      const at = await doorOn(pool, { mode, leaseMs: 1000, worker: { pollMs: 100 } });
      if (mode === 'inbox') await at.receiver.start();
      const load = loadOf(at, 6);
      for (let crash = 0; crash < 2; crash += 1) {
        await load.more(30);
        const told = [...load.told];
        const refused = load.refused();
        server.crash();
        await until('somebody was told 503', async () => load.refused() > refused);
        server.start();
        const look = poolOf(server.url, 1);
        const { rows } = await look.query<{ key: string }>(
          `SELECT id AS key FROM proto_webhooks.webhook_row WHERE kind = 'r'
            AND (data::json ->> 'acked' = 'true' OR data::json ->> 'state' = 'applied')`,
        );
        const kept = new Set(rows.map(({ key }) => key));
        expect(told.filter((key) => !kept.has(key))).toEqual([]);
      }
      await load.more(30);
      await load.end();
      expect(load.other).toEqual([]);
      const look = poolOf(server.url, 1);
      const completed = async (): Promise<unknown[]> =>
        (
          await look.query<{ key: string; n: number }>(
            'SELECT key, count(*)::integer AS n FROM proto_webhooks.completed WHERE key = ANY ($1) GROUP BY key',
            [load.told],
          )
        ).rows;
      await expect.poll(async () => (await completed()).length).toBe(load.told.length);
      expect((await completed()).filter((row) => (row as { n: number }).n !== 1)).toEqual([]);
    },
  );
});

// The last one: it leaves another primary.
describe('a failover that leaves the pool at a standby', () => {
  it('503 until it is promoted, then 200, and no answered event is lost', async () => {
    const standby = await startStandby(server);
    await set("ALTER SYSTEM SET synchronous_standby_names = '*'");
    const at = await doorOn(poolOf(throughProxy()), { durability: { require: 'failover' } });
    const [first, second] = [newEvent(), newEvent()];
    await expect.poll(async () => (await at.deliver(first)).response.status).toBe(200);
    server.crash();
    proxy.retarget(standby.port);
    await expect.poll(async () => (await at.deliver(second)).response.status).toBe(503);
    await expect
      .poll(async () => ((await at.deliver(second)) as { detail?: string }).detail)
      .toMatch(/The server is read-only: connect the pool to the primary/);
    await refused(standby.url);
    const owner = poolOf(standby.url, 1);
    await owner.query('SELECT pg_promote()');
    // The old primary is gone, and nobody stands by the new one: it keeps less than the receiver requires.
    await owner.query('ALTER SYSTEM RESET synchronous_standby_names');
    await owner.query('SELECT pg_reload_conf()');
    await expect.poll(async () => said(await at.deliver(first))).toBe('unavailable not_durable 503');
    // A new one stands by.
    const another = await startStandby(standby);
    await owner.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
    await owner.query('SELECT pg_reload_conf()');
    expect(await delivered(at, first)).toBe('duplicate 200');
    // What came while too little was kept is leased to a delivery that was answered 503.
    offsetMs = LEASE_MS + 1;
    expect(await delivered(at, second)).toBe('accepted 200');
    expect(at.seen.map(({ event }) => [event.sender, event.idempotencyKey])).toEqual([
      [AGENT, first.idempotency_key],
      [AGENT, second.idempotency_key],
    ]);
    await endAll();
    another.remove();
    standby.remove();
  });

  async function refused(url: string): Promise<void> {
    const at = await doorOn(poolOf(url));
    expect(await refusal(at)).toMatch(/the server is a standby.*Connect the pool to the primary/);
  }
});
