import { Pool, type PoolClient } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { ConfigError, createReceiver, Fault } from '../../../src/index.ts';
import { migrate, type PostgresStore, postgresStore } from '../../../src/stores/postgres.ts';
import { SCHEMA_VERSION } from '../../../src/stores/postgres/for-tests.ts';
import { freePort } from '../../support/free-port.ts';
import { PATIENT_MS } from '../../support/patient.ts';
import type { PostgresServer } from '../../support/postgres.ts';
import { startServer, startStandby } from '../../support/postgres.ts';
import { startPooler } from '../../support/pgbouncer.ts';
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import { ownSchema } from '../postgres-schemas.ts';
import { acceptRequest, leaseOf, RETENTION_MS } from '../requests.ts';
import { wrappedPool } from './wrapped-pool.ts';

const at = ownSchema();
const pools: Pool[] = [];
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
});

/** A pool whose sessions have the setting, as ALTER ROLE … SET gives it. */
function poolWith(setting: string): Pool {
  const pool = new Pool({ connectionString: at.url, max: 2, options: `-c ${setting}` });
  pools.push(pool);
  return pool;
}

async function refusal(opening: Promise<unknown>): Promise<string> {
  const error = await opening.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ConfigError);
  return (error as ConfigError).message;
}

/** What a receiver that needs `disk` says of the store. */
async function atReceiver(store: PostgresStore): Promise<string> {
  const receiver = createReceiver({
    publicUrl: 'https://buyer.example/webhooks',
    senders: [{ agentUrl: 'https://seller.example/mcp' }],
    store,
    handlers: { other: () => undefined },
  });
  const message = await refusal(receiver.ready());
  await receiver.stop();
  return message;
}

describe('open() and the server', () => {
  it('refuses a role that is read-only, with the setting to change', async () => {
    const store = at.store(poolWith('default_transaction_read_only=on'));
    expect(await refusal(store.open())).toMatch(/default_transaction_read_only = off/);
  });

  it('refuses a default isolation other than READ COMMITTED, with the setting to change', async () => {
    const store = at.store(poolWith('default_transaction_isolation=serializable'));
    expect(await refusal(store.open())).toMatch(
      /default_transaction_isolation is serializable.*read committed/,
    );
  });

  it('fails with store_unavailable when it cannot be reached, and a later open() may succeed', async () => {
    const pool = new Pool({ host: '127.0.0.1', port: await freePort(), user: 'postgres' });
    pools.push(pool);
    const store = at.store(pool);
    await expect(store.open()).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(store.accept(acceptRequest())).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  it.each([
    [
      'database',
      (url: URL) => (url.pathname = '/nobody_made_this_one'),
      /"nobody_made_this_one" does not exist \(3D000\)\. Give the pool the name/,
    ],
    [
      'role',
      (url: URL) => (url.username = 'nobody'),
      /"nobody" does not exist \(28000\)\. Give the pool a role/,
    ],
  ])('refuses a %s that is not there, and so does migrate', async (_, change, message) => {
    const url = new URL(at.url);
    change(url);
    const pool = new Pool({ connectionString: url.href });
    pools.push(pool);
    expect(await refusal(at.store(pool).open())).toMatch(message);
    expect(await refusal(migrate(pool))).toMatch(message);
  });

  it('refuses a version that is too old', async () => {
    const old = wrappedPool(at.pools[0], async (run, text) => {
      const result = await run();
      if (!text.includes('server_version_num')) return result;
      const [{ answer }] = result.rows as [{ answer: string }];
      return { rows: [{ answer: answer.replace(/"version" ?: ?\d+/, '"version": 110022') }] };
    });
    expect(await refusal(at.store(at.pools[0], { pool: old }).open())).toMatch(/Use 12 or newer/);
  });
});

describe('open() and the schema', () => {
  it('refuses a missing schema and says to migrate', async () => {
    const store = postgresStore({ pool: at.pools[0], schema: 'nobody_made_this_one' });
    expect(await refusal(store.open())).toMatch(/"nobody_made_this_one" has no tables.*Run migrate\(pool\)/);
  });

  it.each([
    [0, /Run migrate\(pool\) when you deploy/],
    [3, /schema version 3, this package needs 4, .* a schema of its own/],
    [7, /schema version 7, this package knows 4\. Upgrade proto-webhooks/],
  ])('refuses another version: %s', async (version, message) => {
    await at.sql('UPDATE webhook_schema SET version = $1', [version]);
    try {
      expect(await refusal(at.store().open())).toMatch(message);
    } finally {
      await at.sql('UPDATE webhook_schema SET version = $1', [SCHEMA_VERSION]);
    }
  });

  it('refuses an unusable schema name at construction', () => {
    for (const schema of ['', 'x'.repeat(64), 'a\0b']) {
      expect(() => postgresStore({ pool: at.pools[0], schema })).toThrow(ConfigError);
    }
  });
});

describe('durability(), read from the server’s settings', () => {
  it('is disk with PostgreSQL’s defaults', async () => {
    const store = at.store();
    await store.open();
    expect(await store.durability()).toBe('disk');
    await store.close();
  });

  it('is process with synchronous_commit off; the receiver names the setting', async () => {
    const store = at.store(poolWith('synchronous_commit=off'));
    await store.open();
    expect(await store.durability()).toBe('process');
    expect(await atReceiver(store)).toMatch(
      /durability: \{ require: 'disk' \}.*'process'.*synchronous_commit is off: set it to on/,
    );
  });

  it('is process with an unlogged table; the receiver names it', async () => {
    await at.sql('ALTER TABLE webhook_row SET UNLOGGED');
    try {
      const store = at.store();
      await store.open();
      expect(await store.durability()).toBe('process');
      expect(await atReceiver(store)).toMatch(/ALTER TABLE webhook_row SET LOGGED/);
    } finally {
      await at.sql('ALTER TABLE webhook_row SET LOGGED');
    }
  });

  it('is read anew each time', async () => {
    const store = at.store();
    await store.open();
    await at.sql('ALTER TABLE webhook_tally SET UNLOGGED');
    expect(await store.durability()).toBe('process');
    await at.sql('ALTER TABLE webhook_tally SET LOGGED');
    expect(await store.durability()).toBe('disk');
    await store.close();
  });

  it('raises a lowered synchronous_commit again in each transaction of the store', async () => {
    const commits: string[] = [];
    const weak = wrappedPool(at.pools[0], async (run, text, client) => {
      if (!text.includes('webhook_commit')) return run();
      await client.query('BEGIN; SET LOCAL synchronous_commit = off');
      const result = await run();
      const { rows } = await client.query('SHOW synchronous_commit');
      await client.query('COMMIT');
      commits.push((rows as [{ synchronous_commit: string }])[0].synchronous_commit);
      return result;
    });
    const store = at.store(at.pools[0], { pool: weak });
    await store.open();
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    expect(commits).toEqual(['on']);
    await store.close();
  });

  it('refuses another isolation inside a transaction when the pool changed after open()', async () => {
    const other = wrappedPool(at.pools[0], async (run, text, client) => {
      if (!text.includes('webhook_commit')) return run();
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      try {
        return await run();
      } finally {
        await client.query('ROLLBACK');
      }
    });
    const store = at.store(at.pools[0], { pool: other });
    await store.open();
    const error = await store
      .accept(acceptRequest({ key: 'event-9999-of-the-seller' }))
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Fault);
    expect((error as Fault).message).toMatch(/default_transaction_isolation/);
    await store.close();
  });
});

describe('with a standby', () => {
  let primary: PostgresServer;
  let standby: PostgresServer;
  beforeAll(async () => {
    primary = await startServer({ fsync: 'on' });
    const owner = new Pool({ connectionString: primary.url, max: 1 });
    await migrate(owner);
    await owner.end();
    standby = await startStandby(primary);
  });
  afterAll(() => {
    standby.remove();
    primary.remove();
  });

  /** Connections that a pool makes now, all of them. */
  const fill = async (pool: Pool): Promise<PoolClient[]> => {
    const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
    for (const client of clients) client.release();
    return clients;
  };

  describe('behind an address that leads to it for a while', () => {
    let proxy: TcpProxy;
    let pool: Pool;
    beforeAll(async () => {
      proxy = await startProxy(primary.port);
    });
    beforeEach(() => {
      const url = new URL(primary.url);
      url.port = String(proxy.port);
      pool = new Pool({ connectionString: url.href, max: 4 });
      pool.on('error', () => undefined);
      pools.push(pool);
      proxy.lead(primary.port);
    });
    /** Without the sweep that one accept in 64 is followed by: it has a connection of its own. */
    const storeOn = (on: Pool): PostgresStore =>
      postgresStore({ pool: on, random: () => 0.5, timeoutMs: PATIENT_MS });
    afterAll(() => proxy.close());

    it('closes the connections that were made meanwhile, at the first call after it', async () => {
      const store = storeOn(pool);
      await store.open();
      for (const client of await Promise.all([1, 2, 3, 4].map(() => pool.connect()))) client.release(true);
      proxy.lead(standby.port);
      await fill(pool);
      const refused = store.accept(acceptRequest({ key: 'event-1-of-the-failover' }));
      await expect(refused).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringMatching(
          /\(25006\).*The server is read-only: connect the pool to the primary\. Set its host/,
        ),
      });
      expect(pool.totalCount).toBe(0);
      // The owner's own queries may leave such connections too.
      await fill(pool);
      proxy.lead(primary.port);
      expect((await store.accept(acceptRequest({ key: 'event-1-of-the-failover' }))).kind).toBe('won');
      expect(pool.totalCount).toBe(1);
      await store.close();
    });

    it('asks no more than one new connection a call while it lasts', async () => {
      const store = storeOn(pool);
      await store.open();
      for (const client of await Promise.all([1, 2, 3, 4].map(() => pool.connect()))) client.release(true);
      let made = 0;
      pool.on('connect', () => (made += 1));
      proxy.lead(standby.port);
      for (let call = 0; call < 5; call += 1) {
        await expect(store.accept(acceptRequest())).rejects.toMatchObject({ code: 'store_unavailable' });
      }
      expect(made).toBe(5);
      proxy.lead(primary.port);
      await store.close();
    });

    it('opens at the first try after it, on a pool that has such connections', async () => {
      proxy.lead(standby.port);
      const store = storeOn(pool);
      expect(await refusal(store.open())).toMatch(/the server is a standby/);
      await fill(pool);
      proxy.lead(primary.port);
      await store.open();
      await store.close();
    });

    it('ctx.transaction closes one too, and says that it is the store', async () => {
      const store = storeOn(pool);
      await store.open();
      const request = acceptRequest({ key: 'event-2-of-the-failover' });
      expect((await store.accept(request)).kind).toBe('won');
      const lease = { ...leaseOf(request), retentionMs: RETENTION_MS };
      for (const client of await Promise.all([1, 2, 3, 4].map(() => pool.connect()))) client.release(true);
      proxy.lead(standby.port);
      const clients = await fill(pool);
      const closed: PoolClient[] = [];
      pool.on('remove', (client) => closed.push(client));
      proxy.lead(primary.port);
      let pid: number | undefined;
      const wrapping = store.transaction(lease, async (tx) => {
        const [row] = (await tx.query('SELECT pg_backend_pid() AS pid')).rows as { readonly pid: number }[];
        pid = row?.pid;
        try {
          await tx.query('CREATE TABLE written ()');
        } catch (error) {
          throw new Error('not written', { cause: error });
        }
      });
      await expect(wrapping).rejects.toMatchObject({ code: 'store_unavailable' });
      // The store's own work between events may meet such a connection meanwhile, and closes that one.
      const own = clients.find((client) => (client as { readonly processID?: number }).processID === pid);
      expect(own).toBeDefined();
      await vi.waitFor(() => expect(closed).toContain(own), { timeout: 10_000 });
      expect((await store.accept(acceptRequest({ key: 'event-3-of-the-failover' }))).kind).toBe('won');
      expect(await store.transaction(lease, () => 'done')).toBe('done');
      await store.close();
    });
  });

  it('behind PgBouncer in statement mode is refused, with the mode to set', async () => {
    const pooler = await startPooler(primary, 'statement');
    const pool = new Pool({ connectionString: pooler.url, max: 2 });
    pool.on('error', () => undefined);
    expect(await atReceiver(postgresStore({ pool }))).toMatch(/statement mode.*Set pool_mode = transaction/);
    await pool.end();
    const wrong = new Pool({ connectionString: pooler.url.replace(/postgres$/, 'nowhere') });
    const refused = await refusal(postgresStore({ pool: wrong }).open());
    expect(refused).toMatch(/"nobody_made_this_one" does not exist \(08P01\)\. Give the pool the name/);
    await wrong.end();
    await pooler.stop();
  });

  const openAt = async (to: string): Promise<PostgresStore> => {
    const pool = new Pool({ connectionString: to, max: 2 });
    pools.push(pool);
    pool.on('error', () => undefined);
    const store = postgresStore({ pool });
    await store.open();
    return store;
  };

  it('refuses the read-only standby, and gives failover only when commits wait for a connected standby', async () => {
    const owner = new Pool({ connectionString: primary.url, max: 1 });
    pools.push(owner);
    const set = async (sql: string): Promise<void> => {
      await owner.query(sql);
      await owner.query('SELECT pg_reload_conf()');
    };
    const store = await openAt(primary.url);
    expect(await store.durability()).toBe('disk');
    expect(store.durabilityAdvice).toMatch(/synchronous_standby_names/);

    await set("ALTER SYSTEM SET synchronous_standby_names = '*'");
    await expect.poll(() => store.durability(), { timeout: 30_000 }).toBe('failover');
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    await expect.poll(() => refusal(openAt(standby.url))).toMatch(/standby.*Connect the pool to the primary/);

    await set('ALTER SYSTEM SET synchronous_commit = local');
    await expect.poll(() => store.durability(), { timeout: 30_000 }).toBe('disk');
    await store.close();
  });
});

describe('fsync', () => {
  it('gives process when off', async () => {
    const server = await startServer({ fsync: 'off' });
    try {
      const pool = new Pool({ connectionString: server.url, max: 2 });
      pool.on('error', () => undefined);
      await migrate(pool);
      const store = postgresStore({ pool });
      await store.open();
      expect(await store.durability()).toBe('process');
      expect(store.durabilityAdvice).toMatch(/set fsync = on/);
      await store.close();
      await pool.end();
    } finally {
      server.remove();
    }
  });
});
