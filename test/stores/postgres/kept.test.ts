import { Pool } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { PostgresStore } from '../../../src/stores/postgres.ts';
import { migrate, postgresStore } from '../../../src/stores/postgres.ts';
import type { PostgresServer } from '../../support/postgres.ts';
import { startServer, startStandby } from '../../support/postgres.ts';
import type { Pooler } from '../../support/pgbouncer.ts';
import { startPooler } from '../../support/pgbouncer.ts';
import { acceptRequest, leaseOf, RETENTION_MS } from '../requests.ts';

let primary: PostgresServer;
let standby: PostgresServer;
let pooler: Pooler;
let owner: Pool;
const pools: Pool[] = [];
const stores: PostgresStore[] = [];

function poolAt(url: string, options = ''): Pool {
  const pool = new Pool({ connectionString: url, max: 4, ...(options !== '' && { options }) });
  pool.on('error', () => undefined);
  pools.push(pool);
  return pool;
}

const set = async (sql: string): Promise<void> => {
  await owner.query(sql);
  await owner.query('SELECT pg_reload_conf()');
};
const NAMED = "ALTER SYSTEM SET synchronous_standby_names = '*'";
const EMPTIED = "ALTER SYSTEM SET synchronous_standby_names = ''";

beforeAll(async () => {
  primary = await startServer();
  standby = await startStandby(primary);
  pooler = await startPooler(primary);
  owner = new Pool({ connectionString: primary.url, max: 2 });
  owner.on('error', () => undefined);
  await migrate(owner);
});
beforeEach(() => set(NAMED));
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  for (const pool of pools.splice(0)) await pool.end();
});
afterAll(async () => {
  await owner.end();
  await pooler.stop();
  standby.remove();
  primary.remove();
});

/** One that a receiver has found to keep `failover`. */
async function opened(pool: Pool): Promise<PostgresStore> {
  const store = postgresStore({ pool, timeoutMs: 30_000 });
  stores.push(store);
  await store.open();
  await expect.poll(() => store.durability(), { timeout: 30_000 }).toBe('failover');
  return store;
}

let count = 0;
const request = (): ReturnType<typeof acceptRequest> =>
  acceptRequest({ key: `event-${String((count += 1)).padStart(4, '0')}-of-the-seller` });
const answerOf = (store: PostgresStore): Promise<string> =>
  store.accept(request()).then(
    ({ kind }) => kind,
    (error: unknown) => (error as { code: string }).code,
  );

describe('durability settings at each commit', () => {
  it('fail calls with not_durable below the requirement, until they are restored', async () => {
    const store = await opened(poolAt(primary.url));
    const told: string[] = [];
    store.keepDurability?.('failover', (message) => told.push(message));
    expect(await answerOf(store)).toBe('won');
    await set(EMPTIED);
    // A connection reads them before its next statement.
    await expect.poll(() => answerOf(store)).toBe('not_durable');
    for (let n = 0; n < 10; n += 1) expect(await answerOf(store)).toBe('not_durable');
    await set(NAMED);
    await expect.poll(() => answerOf(store)).toBe('won');
    await set('ALTER SYSTEM SET synchronous_commit = local');
    // Raised to what it was in each transaction.
    for (let n = 0; n < 10; n += 1) expect(await answerOf(store)).toBe('won');
    await set('ALTER SYSTEM RESET synchronous_commit');
    await set('ALTER SYSTEM SET fsync = off');
    await expect.poll(() => answerOf(store)).toBe('not_durable');
    await set('ALTER SYSTEM RESET fsync');
    await expect.poll(() => answerOf(store)).toBe('won');
    expect(told).toEqual([]);
  });

  it('are reported, and calls answered, when lowered to no less than the requirement', async () => {
    const store = await opened(poolAt(primary.url));
    const told: string[] = [];
    store.keepDurability?.('disk', (message) => told.push(message));
    expect(await answerOf(store)).toBe('won');
    expect(told).toEqual([]);
    await set(EMPTIED);
    await expect
      .poll(async () => {
        expect(await answerOf(store)).toBe('won');
        return told[0];
      })
      .toMatch(/survives no more than 'disk': synchronous_standby_names = ''/);
  });

  it('stay as found at open() without a requirement', async () => {
    const store = await opened(poolAt(primary.url));
    await set(EMPTIED);
    for (let n = 0; n < 5; n += 1) expect(await answerOf(store)).toBe('won');
  });
});

describe('a wait for the standby that was cancelled fails its call with not_durable', () => {
  /** Ends the standby, so that each commit waits; cancels the one that waits, and starts it again. */
  async function cancelled<T>(run: () => Promise<T>): Promise<PromiseSettledResult<T>> {
    standby.crash();
    try {
      const running = Promise.allSettled([run()]);
      await expect
        .poll(
          async () =>
            (
              await owner.query(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid <> pg_backend_pid()",
              )
            ).rowCount,
          { timeout: 30_000 },
        )
        .toBeGreaterThan(0);
      const [result] = await running;
      return result;
    } finally {
      standby.start();
    }
  }

  it.each([
    ['directly', () => poolAt(primary.url)],
    ['where the role keeps warnings to itself', () => poolAt(primary.url, '-c client_min_messages=error')],
    ['through PgBouncer', () => poolAt(pooler.url)],
  ])('%s; the repeated call waits again and is answered', async (_, pool) => {
    const store = await opened(pool());
    const asked = request();
    expect(await answerOf(store)).toBe('won');
    const result = await cancelled(() => store.accept(asked));
    expect(result).toMatchObject({ status: 'rejected', reason: { code: 'not_durable' } });
    expect((await store.accept(asked)).kind).toBe('won');
  });

  it('at the commit of ctx.transaction', async () => {
    const store = await opened(poolAt(primary.url));
    const asked = request();
    expect((await store.accept(asked)).kind).toBe('won');
    const lease = { ...leaseOf(asked), retentionMs: RETENTION_MS };
    const result = await cancelled(() => store.transaction(lease, (tx) => tx.query('SELECT 1')));
    expect(result).toMatchObject({ status: 'rejected', reason: { code: 'not_durable' } });
    // It is committed, and its owner is told so when it asks again.
    expect(await store.complete(lease)).toBe('done');
  });
});
