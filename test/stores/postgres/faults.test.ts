import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:net';
import { Pool } from 'pg';
import { beforeEach, describe, expect, it } from 'vitest';
import { Fault } from '../../../src/index.ts';
import { migrate, postgresStore } from '../../../src/stores/postgres.ts';
import { inTime } from '../../support/in-time.ts';
import { startServer } from '../../support/postgres.ts';
import { ownSchema } from '../postgres-schemas.ts';
import { acceptRequest, key, leaseOf, RETENTION_MS } from '../requests.ts';
import { acceptDuringCrashes } from '../sql/crash-load.ts';
import { notingPool, wrappedPool } from './wrapped-pool.ts';

const UNAVAILABLE = { code: 'store_unavailable' };

const at = ownSchema();
beforeEach(() => at.clear());

describe('a server that crashes under load', () => {
  it('keeps every answered event, fails other calls with store_unavailable, and needs no restart of the store', async () => {
    const server = await startServer();
    const pool = new Pool({ connectionString: server.url, max: 4 });
    await migrate(pool);
    const store = postgresStore({ pool });
    await store.open();
    const crash = (): void => {
      server.crash();
      server.start();
    };
    const answered = await acceptDuringCrashes(store, crash, { accepts: 100, timeoutMs: 30_000 });
    const { rows } = await pool.query<{ key: string }>(
      "SELECT id AS key FROM proto_webhooks.webhook_row WHERE kind = 'r'",
    );
    const kept = new Set(rows.map(({ key }) => key));
    expect(answered.filter((key) => !kept.has(key))).toEqual([]);
    await store.close();
    await pool.end();
    server.remove();
  });
});

/** `Z`, ready for query, idle: the last of what a server says to a new connection. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

/** What a server says that an administrator shuts down. */
function goodbye(): Buffer {
  const fields = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0';
  const head = Buffer.from([0x45, 0, 0, 0, fields.length + 4]);
  return Buffer.concat([head, Buffer.from(fields, 'latin1')]);
}

/** A proxy that says goodbye in the packet in which the server says that the connection is ready. */
async function rudeProxy(port: number): Promise<{ port: number; said: () => number; close: () => void }> {
  let said = 0;
  const proxy = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    for (const socket of [near, far]) socket.on('error', () => undefined);
    near.on('data', (bytes) => far.write(bytes));
    near.on('close', () => far.destroy());
    far.on('data', (bytes) => {
      if (!bytes.includes(READY)) return void near.write(bytes);
      said += 1;
      near.end(Buffer.concat([bytes, goodbye()]));
      far.destroy();
    });
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  return { port: (proxy.address() as AddressInfo).port, said: () => said, close: () => proxy.close() };
}

describe('a server that shuts down as a new connection is ready', () => {
  it('fails open, migrate and calls with faults and does not end the process', async () => {
    const uncaught: unknown[] = [];
    const others = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.on('uncaughtException', (error) => uncaught.push(error));
    const { hostname, port, username, pathname } = new URL(at.url);
    expect(hostname).toMatch(/127\.0\.0\.1|localhost/);
    const proxy = await rudeProxy(Number(port));
    const pool = new Pool({
      host: '127.0.0.1',
      port: proxy.port,
      user: username,
      database: pathname.slice(1),
    });
    try {
      const store = at.store(pool, { timeoutMs: 2000 });
      await expect(store.open()).rejects.toMatchObject(UNAVAILABLE);
      await expect(migrate(pool, { schema: at.schema })).rejects.toBeInstanceOf(Error);
      await expect(store.open()).rejects.toMatchObject(UNAVAILABLE);
      expect(proxy.said()).toBe(3);
      await store.close();
      expect(pool.listenerCount('connect') + pool.listenerCount('error')).toBe(0);
    } finally {
      await pool.end();
      proxy.close();
      process.removeAllListeners('uncaughtException');
      for (const other of others) process.on('uncaughtException', other);
    }
    expect(uncaught).toEqual([]);
  });
});

describe('a server that does not answer in time', () => {
  it('fails calls with store_unavailable while the pool is exhausted and serves them when a connection is free', async () => {
    const pool = new Pool({ connectionString: at.url, max: 2 });
    const store = at.store(pool, { timeoutMs: 150 });
    await inTime(() => store.open());
    const others = [await pool.connect(), await pool.connect()];
    await expect(store.accept(acceptRequest())).rejects.toMatchObject(UNAVAILABLE);
    await expect(store.inbox.inspect('s', 'k')).rejects.toMatchObject(UNAVAILABLE);
    for (const other of others) other.release();
    expect(await inTime(() => store.accept(acceptRequest()))).toMatchObject({ kind: 'won' });
    expect(pool.waitingCount).toBe(0);
    await store.close();
    await pool.end();
  });

  it('fails the accept of a locked record with store_unavailable, writes nothing, and accepts it later', async () => {
    const store = at.store(at.pools[0], { timeoutMs: 200 });
    await inTime(() => store.open());
    const first = acceptRequest();
    await inTime(() => store.accept(first));
    const other = await at.pools[1].connect();
    await other.query('BEGIN');
    await other.query(`SELECT FROM ${at.schema}.webhook_row WHERE kind = 'r' FOR UPDATE`);
    const again = acceptRequest();
    await expect(store.accept(again)).rejects.toMatchObject(UNAVAILABLE);
    const lease = leaseOf(first);
    await expect(store.complete({ ...lease, retentionMs: RETENTION_MS })).rejects.toMatchObject(UNAVAILABLE);
    await other.query('ROLLBACK');
    other.release();
    expect(await inTime(() => store.accept(again))).toMatchObject({ kind: 'in-flight' });
    expect(await inTime(() => store.complete({ ...lease, retentionMs: RETENTION_MS }))).toBe('done');
    await store.close();
  });

  it('fails the call whose reply was lost with store_unavailable, and answers its repetition as the first', async () => {
    let lose = true;
    const pool = wrappedPool(at.pools[0], async (run, text, client) => {
      const result = await run();
      if (!text.includes('webhook_commit') || !lose) return result;
      lose = false;
      client.release(true);
      throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
    });
    const store = at.store(at.pools[0], {
      pool: {
        ...pool,
        connect: async () => {
          const client = await pool.connect();
          let released = false;
          return {
            ...client,
            release: (error) => {
              if (!released && lose) client.release(error);
              released = true;
            },
          };
        },
      },
    });
    await store.open();
    const request = acceptRequest();
    await expect(store.accept(request)).rejects.toMatchObject(UNAVAILABLE);
    lose = true;
    expect(await at.sql('SELECT state FROM record')).toEqual([{ state: 'leased' }]);
    await store.close();
    const next = at.store();
    await next.open();
    const answer = await next.accept(request);
    expect(answer).toMatchObject({
      kind: 'won',
      lease: { owner: request.acceptId, run: 1, chargedAttempts: 1 },
    });
    await next.close();
  });
});

describe('a transaction that the server rolled back', () => {
  it('is repeated after a deadlock', async () => {
    const rolledBack: string[] = [];
    // A look at who waits for whom is taken once, so long after the wait began: the other one has to wait by then.
    const patient = new Pool({ connectionString: at.url, max: 3, options: '-c deadlock_timeout=4s' });
    const pool = notingPool(patient, rolledBack);
    const store = at.store(patient, { pool, random: () => 0, timeoutMs: 60_000 });
    await store.open();
    for (const n of [1, 2]) await store.accept(acceptRequest({ key: key(n) }));
    const other = await at.pools[1].connect();
    await other.query("BEGIN; SET LOCAL deadlock_timeout = '60s'");
    const { rows } = await other.query<{ pid: number }>(
      `SELECT pg_backend_pid() AS pid FROM ${at.schema}.webhook_row WHERE id = '${key(2)}' FOR UPDATE`,
    );
    const accepting = Promise.all([1, 2].map((n) => store.accept(acceptRequest({ key: key(n) }))));
    const blocked = async (): Promise<boolean> =>
      (await at.sql('SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))', [rows[0]?.pid]))
        .length > 0;
    await expect.poll(blocked).toBe(true);
    // Now the other way round: a row that the accept has locked already, which waits for this one.
    await other.query(`SELECT FROM ${at.schema}.webhook_row WHERE id = '${key(1)}' FOR UPDATE`);
    // Where the repetition is faster than this one, which waits, the server ends it again.
    await expect.poll(() => rolledBack[0]).toBe('40P01');
    await other.query('ROLLBACK');
    other.release();
    expect(new Set(rolledBack)).toEqual(new Set(['40P01']));
    expect((await accepting).map(({ kind }) => kind)).toEqual(['in-flight', 'in-flight']);
    await store.close();
    await patient.end();
  });

  it('is repeated after a serialization failure, a bounded number of times', async () => {
    let left = 2;
    const failing = wrappedPool(at.pools[0], (run, text) => {
      if (!text.includes('webhook_commit') || left === 0) return run();
      left -= 1;
      return Promise.reject(
        Object.assign(new Error('could not serialize'), { code: '40001', severity: 'ERROR' }),
      );
    });
    const store = at.store(at.pools[0], { pool: failing, random: () => 0 });
    await store.open();
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    left = Infinity;
    const given = store.accept(acceptRequest());
    await expect(given).rejects.toBeInstanceOf(Fault);
    await expect(given).rejects.toMatchObject(UNAVAILABLE);
    await store.close();
  });
});

describe('a statement that the server refuses', () => {
  it.each([
    ['25006', 'cannot execute INSERT in a read-only transaction', /connect the pool to the primary/],
    ['53100', 'could not extend file: No space left on device', /No space left/],
    ['42P01', 'relation "webhook_row" does not exist', /Run migrate\(pool\)/],
    ['57014', 'canceling statement due to statement timeout', /statement timeout/],
  ])('fails with store_unavailable and the fix: %s', async (code, message, says) => {
    let refuse = true;
    const refusing = wrappedPool(at.pools[0], (run, text) =>
      refuse && text.includes('webhook_')
        ? Promise.reject(Object.assign(new Error(message), { code, severity: 'ERROR' }))
        : run(),
    );
    refuse = false;
    const store = at.store(at.pools[0], { pool: refusing });
    await store.open();
    refuse = true;
    for (const call of [
      () => store.accept(acceptRequest()),
      () => store.peek('s', 'k'),
      () => store.sweep(),
      () => store.inbox.list({ state: 'dead', limit: 1 }),
    ]) {
      const error = await call().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(Fault);
      expect(error).toMatchObject(UNAVAILABLE);
      expect((error as Fault).message).toMatch(says);
    }
    refuse = false;
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    await store.close();
  });
});
