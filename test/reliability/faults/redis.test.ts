import { appendFileSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Cluster, Redis } from 'ioredis';
import { redisStore } from '../../../src/stores/redis.ts';
import type { RedisServer } from '../../support/redis.ts';
import { ask, ON_DISK, startRedisCluster, startServer, until } from '../../support/redis.ts';
import type { TestReceiver, TestReceiverOptions } from '../../receiver/setup.ts';
import { AGENT } from '../../receiver/setup.ts';
import { delivered, doorOf, expectUnavailable, newEvent, refusal } from './at-door.ts';
import { LONG_MS } from './backends.ts';
import { loadOf } from './load.ts';

/** Where it takes the time-out to know. */
const SHORT_MS = 500;

const clientOf = (port: number): Redis => new Redis({ port, host: '127.0.0.1', lazyConnect: true });

const receivers: TestReceiver[] = [];

async function doorOn(
  client: Redis | Cluster,
  options: TestReceiverOptions = {},
  timeoutMs = LONG_MS,
): Promise<TestReceiver> {
  const at = await doorOf(redisStore({ client, timeoutMs }), options);
  receivers.push(at);
  return at;
}

async function stopAll(): Promise<void> {
  for (const { receiver } of receivers.splice(0)) await receiver.stop();
}

describe('one server', () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await startServer(ON_DISK);
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await stopAll();
    await server.remove();
  });

  const set = (name: string, value: string): Promise<unknown> =>
    ask(server.port, (redis) => redis.config('SET', name, value));

  it('is out of memory: 503, nothing half written, duplicates too; 200 when there is memory', async () => {
    const at = await doorOn(clientOf(server.port));
    const [first, second] = [newEvent(), newEvent()];
    expect(await delivered(at, first)).toBe('accepted 200');
    const before = await ask(server.port, (redis) => redis.dbsize());
    await set('maxmemory', '1');
    await expectUnavailable(at, second, 'store_unavailable', /out of memory: raise maxmemory/);
    expect(await ask(server.port, (redis) => redis.dbsize())).toBe(before);
    await set('maxmemory', '0');
    expect(await delivered(at, second)).toBe('accepted 200');
    expect(await delivered(at, first)).toBe('duplicate 200');
  });

  it('loses its scripts before each step: no effect', async () => {
    const flush = (): Promise<unknown> => ask(server.port, (redis) => redis.script('FLUSH'));
    const at = await doorOn(clientOf(server.port), { handler: flush });
    await at.receiver.ready();
    await flush();
    const event = newEvent();
    expect(await delivered(at, event)).toBe('accepted 200');
    await flush();
    expect(await delivered(at, event)).toBe('duplicate 200');
    expect(at.seen.length).toBe(1);
  });

  it('cannot write to its disk: 503 with the fix; 200 when it can', async () => {
    const at = await doorOn(clientOf(server.port));
    const event = newEvent();
    expect(await delivered(at, newEvent())).toBe('accepted 200');
    await set('save', '3600 1');
    // Where the snapshot is to be there is a folder.
    const inTheWay = join(server.folder, 'dump.rdb');
    mkdirSync(join(inTheWay, 'full'), { recursive: true });
    const saved = (status: string): Promise<void> =>
      until(`the last save is ${status}`, () =>
        ask(server.port, async (redis) => {
          const info = await redis.info('persistence');
          if (/rdb_bgsave_in_progress:1/.test(info)) return false;
          if (info.includes(`rdb_last_bgsave_status:${status}`)) return true;
          await redis.bgsave().catch(() => undefined);
          return false;
        }),
      );
    await saved('err');
    await expectUnavailable(at, event, 'store_unavailable', /refuses writes because it cannot write/);
    rmSync(inTheWay, { recursive: true });
    await saved('ok');
    expect(await delivered(at, event)).toBe('accepted 200');
  });

  it('is loading its data after a start: 503, and 200 when loaded', async () => {
    const at = await doorOn(clientOf(server.port), {}, SHORT_MS);
    const first = newEvent();
    expect(await delivered(at, first)).toBe('accepted 200');
    await ask(server.port, async (redis) => {
      const large = Array.from({ length: 100 }, (_, n) => [`filler:${n}`, 'x'.repeat(10_000)]);
      await redis.mset(large.flat());
      await redis.bgrewriteaof();
    });
    await until('the file is a snapshot', async () =>
      (await ask(server.port, (redis) => redis.info('persistence'))).includes('aof_rewrite_in_progress:0'),
    );
    await server.kill();
    const slow = ['key-load-delay 200000', 'loading-process-events-interval-bytes 1024', 'rdbcompression no'];
    appendFileSync(join(server.folder, 'redis.conf'), `${slow.join('\n')}\n`);
    const started = server.start();
    // It does not wait until the server has loaded.
    const eager = new Redis({ port: server.port, host: '127.0.0.1', enableReadyCheck: false });
    eager.on('error', () => undefined);
    await until('it is loading', async () => {
      const reply: unknown = await eager.ping().catch((error: unknown) => error);
      return reply instanceof Error && reply.message.startsWith('LOADING');
    });
    await expectUnavailable(at, first, 'store_unavailable', /./);
    await eager.config('SET', 'key-load-delay', '0');
    eager.disconnect();
    await started;
    expect(await delivered(at, first)).toBe('duplicate 200');
    expect(at.seen.length).toBe(1);
  });

  const WEAKER = [
    ['maxmemory-policy', 'allkeys-lru', 'noeviction', /maxmemory-policy is allkeys-lru.*Set .* noeviction/],
    ['appendonly', 'no', 'yes', /were on disk when the store was opened.*appendonly yes/],
    ['appendfsync', 'everysec', 'always', /were on disk when the store was opened.*appendfsync always/],
  ] as const;

  it.each(WEAKER)(
    '%s %s at the start: refused, with the setting to change',
    async (name, bad, good, says) => {
      await set(name, bad);
      const at = await doorOn(clientOf(server.port));
      const event = newEvent();
      const message = await refusal(at);
      expect(message).toContain(
        name === 'maxmemory-policy' ? 'Set maxmemory-policy noeviction' : `${name} ${good}`,
      );
      if (name === 'maxmemory-policy') expect(message).toMatch(says);
      await expectUnavailable(at, event, 'misconfigured', new RegExp(name));
      await set(name, good);
      expect(await delivered(at, event)).toBe('accepted 200');
    },
  );

  it.each(WEAKER)(
    '%s %s after a restart: 503 not_durable, until it is fixed',
    async (name, bad, good, says) => {
      const at = await doorOn(clientOf(server.port));
      const [first, second] = [newEvent(), newEvent()];
      expect(await delivered(at, first)).toBe('accepted 200');
      await server.kill();
      // The last line for a setting counts.
      appendFileSync(join(server.folder, 'redis.conf'), `${name} ${bad}\n`);
      await server.start();
      await until('it is noticed', async () => {
        const outcome = await at.deliver(second);
        expect(outcome.response.status).toBe(503);
        return 'code' in outcome && outcome.code === 'not_durable';
      });
      await expectUnavailable(at, second, 'not_durable', says);
      expect(at.seen.length).toBe(1);
      await set(name, good);
      expect(await delivered(at, second)).toBe('accepted 200');
    },
  );

  it.each(WEAKER)('%s %s at run time: noticed within 10 s', async (name, bad, good, says) => {
    const at = await doorOn(clientOf(server.port));
    expect(await delivered(at, newEvent())).toBe('accepted 200');
    await set(name, bad);
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 10_001);
    const event = newEvent();
    await expectUnavailable(at, event, 'not_durable', says);
    await set(name, good);
    expect(await delivered(at, event)).toBe('accepted 200');
  });

  it.each(['inline', 'inbox'] as const)(
    'restarts under load, mode %s: 200 only for stored events; every event is answered 200 in the end',
    async (mode) => {
      const at = await doorOn(clientOf(server.port), { mode, leaseMs: 1000, worker: { pollMs: 100 } });
      if (mode === 'inbox') await at.receiver.start();
      const load = loadOf(at, 6);
      const judge = redisStore({ client: clientOf(server.port) });
      await judge.open();
      for (let crash = 0; crash < 2; crash += 1) {
        await load.more(30);
        const told = [...load.told];
        await server.kill();
        await server.start();
        await until('it can be read', () =>
          judge.durability().then(
            () => true,
            () => false,
          ),
        );
        const kept = await Promise.all(told.map((key) => judge.inbox.inspect(AGENT, key)));
        expect(kept.filter((record) => record?.acked !== true)).toEqual([]);
      }
      await load.more(30);
      await load.end();
      expect(load.other).toEqual([]);
      await until('all of them are completed', async () => {
        const states = await Promise.all(load.told.map((key) => judge.peek(AGENT, key)));
        return states.every((state) => state === 'applied');
      });
      await judge.close();
    },
  );
});

describe('a Cluster', () => {
  it('loses a primary: its senders 503, and 200 when it is back', async () => {
    const cluster = await startRedisCluster();
    const nodes = cluster.nodes.map(({ port }) => ({ port, host: '127.0.0.1' }));
    const at = await doorOn(new Cluster(nodes, { lazyConnect: true }), {}, SHORT_MS);
    const [first, second] = [newEvent(), newEvent()];
    expect(await delivered(at, first)).toBe('accepted 200');
    const sizes = await Promise.all(cluster.nodes.map(({ port }) => ask(port, (redis) => redis.dbsize())));
    const home = cluster.nodes[sizes.indexOf(Math.max(...sizes))];
    if (!home) throw new Error('no node has keys');
    await home.kill();
    const another = cluster.nodes.find((node) => node !== home);
    await until('the others call the cluster down', async () =>
      (await ask(another?.port ?? 0, (redis) => redis.cluster('INFO'))).includes('cluster_state:fail'),
    );
    await expectUnavailable(at, second, 'store_unavailable', /./);
    await home.start();
    expect(await delivered(at, first)).toBe('duplicate 200');
    expect(await delivered(at, second)).toBe('accepted 200');
    expect(at.seen.length).toBe(2);
    await stopAll();
    await cluster.stop();
  });
});
