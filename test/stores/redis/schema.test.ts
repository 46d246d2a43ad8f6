import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keysOf, nodeDigests } from '../../../src/stores/redis/for-tests.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import type { RedisCluster, RedisServer } from '../../support/redis.ts';
import { ask, ON_DISK, startRedisCluster, startServer } from '../../support/redis.ts';
import { clientOf, newPrefix } from '../redis-harness.ts';
import { acceptRequest, leaseOf } from '../requests.ts';
import { clockOf, dumped } from '../versions/dumps.ts';
import { expectHistory } from '../versions/expect-history.ts';
import type { Keys } from '../versions/keys.ts';
import { loadKeys } from '../versions/keys.ts';

const KEYS = JSON.parse(dumped(1, 'redis.json')) as Keys;
const NEWER = /the keys have schema version 3, this package knows 2\. Upgrade .* a prefix of its own/;

describe('one server', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startServer(ON_DISK);
  });
  afterAll(() => server.remove());

  it.each([
    ['without a version', undefined],
    ['that say version 1', '1'],
  ])('reads keys of version 1, %s, with their meaning', async (_name, version) => {
    const prefix = newPrefix();
    await ask(server.port, async (redis) => {
      await loadKeys(redis, prefix, KEYS);
      if (version !== undefined) await redis.set(`${prefix}{registry}:v`, version);
    });
    const store = redisStore({ client: clientOf.port(server.port), prefix, clockOffsetMs: clockOf(1) });
    await store.open();
    await expectHistory(store);
    await store.close();
  });

  it('looks for the version behind the client’s keyPrefix', async () => {
    const client = new Redis({ port: server.port, keyPrefix: 'mine:', lazyConnect: true });
    const prefix = newPrefix();
    await ask(server.port, (redis) => redis.set(`mine:${prefix}{registry}:v`, '3'));
    await expect(redisStore({ client, prefix }).open()).rejects.toThrow(NEWER);
  });

  it.each(['0', '1.0', 'two', ''])('treats %j as an unknown version', async (version) => {
    const prefix = newPrefix();
    await ask(server.port, (redis) => redis.set(`${prefix}{registry}:v`, version));
    const opening = redisStore({ client: clientOf.port(server.port), prefix }).open();
    await expect(opening).rejects.toMatchObject({ name: 'ConfigError' });
  });
});

describe('a Cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster.stop());

  it('keeps the version on one node', async () => {
    const prefix = newPrefix();
    const other = clientOf.cluster(cluster);
    let offsetMs = 0;
    const make = (): ReturnType<typeof redisStore> =>
      redisStore({ client: clientOf.cluster(cluster), prefix, clockOffsetMs: () => offsetMs });
    const store = make();
    await store.open();
    await other.set(`${prefix}{registry}:v`, '3');
    await expect(make().open()).rejects.toThrow(NEWER);
    offsetMs = 10_000;
    await expect(store.peek('https://seller.example/mcp', 'event')).rejects.toMatchObject({
      code: 'misconfigured',
    });
    await store.close();
    other.disconnect();
  });

  async function portOf(key: string): Promise<number> {
    const slot = await ask(cluster.nodes[0]?.port ?? 0, (redis) => redis.cluster('KEYSLOT', key));
    return cluster.nodes[Math.floor(slot / Math.ceil(16_384 / cluster.nodes.length))]?.port ?? 0;
  }

  it('serves senders of other nodes while the node with the version does not answer', async () => {
    const prefix = newPrefix();
    let offsetMs = 0;
    const options = { client: clientOf.cluster(cluster), prefix, clockOffsetMs: () => offsetMs };
    const store = redisStore({ ...options, timeoutMs: 2000 });
    await store.open();
    const keys = keysOf(prefix, nodeDigests());
    const hanging = await portOf(keys.version);
    const senders = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `https://${name}.example/mcp`);
    const ports = await Promise.all(senders.map((sender) => portOf(keys.of(sender)[0])));
    const sender = senders[ports.findIndex((port) => port !== hanging)] ?? '';
    const request = { ...acceptRequest({ sender }), leaseMs: 600_000 };
    expect((await store.accept(request)).kind).toBe('won');
    await ask(hanging, (redis) => redis.client('PAUSE', 600_000, 'ALL'));
    offsetMs = 10_000;
    expect(await store.peek(sender, leaseOf(request).key)).toBe('busy');
    await store.close();
  });
});
