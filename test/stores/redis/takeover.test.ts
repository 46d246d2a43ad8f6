import { beforeEach, describe, expect, it } from 'vitest';
import { keysOf, nodeDigests, scriptsOf } from '../../../src/stores/redis/for-tests.ts';
import { type RedisStore, redisStore } from '../../../src/stores/redis.ts';
import { clientOf, newPrefix, ownRedis } from '../redis-harness.ts';
import { acceptRequest, key, leaseOf, RETENTION_MS } from '../requests.ts';
import { redisStore as olderStore } from '../versions/1/redis-store.js';

const SENDER = 'https://seller.example/mcp';

describe('rows of schema version 1', () => {
  const server = ownRedis();
  let prefix: string;
  beforeEach(() => {
    prefix = newPrefix();
  });

  async function opened(make: typeof redisStore): Promise<RedisStore> {
    const store = make({ client: clientOf.url(server.url), prefix });
    await store.open();
    return store;
  }

  /** Of the older store, in mode inbox: `count` events of three tasks. */
  async function filled(store: RedisStore, count: number): Promise<void> {
    const requests = Array.from({ length: count }, (_, n) =>
      acceptRequest({ key: key(n), task: `task-${n % 3}` }),
    );
    await Promise.all(requests.map((request) => store.accept({ ...request, mode: 'inbox' })));
  }

  async function queued(store: RedisStore): Promise<string[]> {
    const { records } = await store.inbox.list({ state: 'queued', limit: 1000 });
    return records.map((record) => record.key);
  }

  const OLD_KEYS = /\}(:2:|:[xd]$)/;

  it('are moved in their order, and of the old names only those that lock out old processes remain', async () => {
    const older = await opened(olderStore);
    await filled(older, 450);
    await older.close();
    const store = await opened(redisStore);
    expect(await queued(store)).toEqual(Array.from({ length: 450 }, (_, n) => key(n)));
    const keys = (await server.redis.keys(`${prefix}*`)).map((name) => name.slice(prefix.length));
    expect(
      keys
        .filter((name) => !OLD_KEYS.test(name) && !name.startsWith('{registry}'))
        .map((name) => name.slice(24)),
    ).toEqual([]);
    expect(keys.filter((name) => name.startsWith('{registry}')).toSorted()).toEqual([
      '{registry}:2:s',
      '{registry}:id',
      '{registry}:s',
      '{registry}:v',
    ]);
    await store.close();
  });

  it('are moved once when two processes do it at once', async () => {
    const older = await opened(olderStore);
    await filled(older, 450);
    await older.close();
    const [first, second] = await Promise.all([opened(redisStore), opened(redisStore)]);
    expect(await queued(first)).toHaveLength(450);
    const base = keysOf(prefix, nodeDigests()).of(SENDER)[0];
    // Records and tasks, and the bodies of all.
    expect(await server.redis.zcard(`${base}x`)).toBe(453);
    const { records } = await second.inbox.list({ state: 'queued', limit: 1000 });
    expect(Number(await server.redis.get(`${base}s`))).toBe(
      records.reduce((sum, record) => sum + record.bodyBytes, 0),
    );
    await Promise.all([first.close(), second.close()]);
  });

  it('are moved although a process died halfway', async () => {
    const older = await opened(olderStore);
    await filled(older, 450);
    await older.close();
    const keys = keysOf(prefix, nodeDigests());
    const { source } = scriptsOf(nodeDigests()).takeover;
    // It read the first ones, and wrote none.
    await server.redis.eval(
      source,
      2,
      ...keys.of(SENDER),
      JSON.stringify({ offset: 0, from: 0, kinds: 'r', done: [] }),
    );
    const store = await opened(redisStore);
    expect(await queued(store)).toEqual(Array.from({ length: 450 }, (_, n) => key(n)));
    await store.close();
  });

  it('are no longer begun by an older process, whose running events stay leased until their time', async () => {
    const older = await opened(olderStore);
    const running = { ...acceptRequest({ key: key(1), task: 'task-1' }), leaseMs: 600_000 };
    expect((await older.accept(running)).kind).toBe('won');
    const store = await opened(redisStore);
    const unavailable = { code: 'store_unavailable' };
    await expect(older.accept(acceptRequest({ key: key(2) }))).rejects.toMatchObject(unavailable);
    await expect(older.accept(running)).rejects.toMatchObject(unavailable);
    await expect(older.accept(acceptRequest({ sender: 'https://new.example/mcp' }))).rejects.toMatchObject(
      unavailable,
    );
    const worker = {
      owner: 'worker',
      max: 1,
      leaseMs: 8000,
      retry: running.retry,
      retentionMs: RETENTION_MS,
    };
    await expect(older.inbox.lease({ ...worker, senders: [SENDER] })).rejects.toMatchObject(unavailable);
    expect(await older.complete({ ...leaseOf(running), retentionMs: RETENTION_MS })).toBe('lost');
    expect(await older.renew({ ...leaseOf(running), leaseMs: 8000 })).toBe('lost');
    expect((await store.accept(acceptRequest({ key: key(1), task: 'task-1' }))).kind).toBe('in-flight');
    expect((await store.accept(acceptRequest({ key: key(3), task: 'task-1' }))).kind).toBe('task-busy');
    expect(await store.complete({ ...leaseOf(running), retentionMs: RETENTION_MS })).toBe('done');
    await older.close();
    await store.close();
  });

  it('are moved under load without loss or repetition', async () => {
    const older = await opened(olderStore);
    const ran: string[] = [];
    const answered = new Map<string, 'won' | 'done'>();
    const isBarred = { now: false };
    const loads = Array.from({ length: 8 }, async (_, load) => {
      for (let n = load; !isBarred.now; n += 8) {
        const request = { ...acceptRequest({ key: key(n), task: `task-${n % 50}` }), leaseMs: 600_000 };
        const kind = await older.accept(request).then(
          (result) => result.kind,
          () => 'fault' as const,
        );
        if (kind === 'fault') isBarred.now = true;
        if (kind !== 'won') continue;
        ran.push(key(n));
        answered.set(key(n), 'won');
        const done = await older
          .complete({ ...leaseOf(request), retentionMs: RETENTION_MS })
          .catch(() => 'fault');
        if (done === 'done') answered.set(key(n), 'done');
      }
    });
    while (answered.size < 300) await new Promise((resolve) => setImmediate(resolve));
    const store = await opened(redisStore);
    await Promise.all(loads);
    for (const [name, said] of answered) {
      const { kind } = await store.accept(acceptRequest({ key: name }));
      expect(said === 'done' ? ['done'] : ['in-flight', 'done'], name).toContain(kind);
    }
    expect(new Set(ran).size).toBe(ran.length);
    await older.close();
    await store.close();
  });
});
