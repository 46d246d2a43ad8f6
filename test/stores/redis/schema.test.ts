import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keysOf, nodeDigests } from '../../../src/stores/redis/for-tests.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { PATIENT_MS } from '../../support/patient.ts';
import type { RedisCluster, RedisServer } from '../../support/redis.ts';
import { ask, ON_DISK, startRedisCluster, startServer } from '../../support/redis.ts';
import { clientOf, newPrefix } from '../redis-harness.ts';
import { acceptRequest, leaseOf } from '../requests.ts';

const NEWER = /the keys have schema version 5, this package knows 4\. Upgrade .* a prefix of its own/;

describe('one server', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startServer(ON_DISK);
  });
  afterAll(() => server.remove());

  it.each([
    ['1, which has a registry and no number', 1, ['SADD', 's', 'https://seller.example/mcp']],
    ['1', 1, ['SET', 'v', '1']],
    ['2', 2, ['SET', 'v', '2']],
    ['3', 3, ['SET', 'v', '3']],
  ] as const)(
    'refuses keys of version %s, and writes nothing',
    async (_name, version, [command, at, value]) => {
      const prefix = newPrefix();
      const keys = (): Promise<string[]> => ask(server.port, (redis) => redis.keys(`${prefix}*`));
      await ask(server.port, (redis) => redis.call(command, `${prefix}{registry}:${at}`, value));
      await expect(redisStore({ client: clientOf.port(server.port), prefix }).open()).rejects.toMatchObject({
        code: 'config_error',
        message: expect.stringMatching(
          new RegExp(`schema version ${version}, this package needs 4, .* a prefix of its own`),
        ) as string,
      });
      expect(await keys()).toEqual([`${prefix}{registry}:${at}`]);
    },
  );

  it('refuses what somebody else keeps under the key of its version, and prints nothing of what it holds', async () => {
    const prefix = newPrefix();
    await ask(server.port, (redis) => redis.set(`${prefix}{registry}:v`, '\u001b[2Jgone\u202e'));
    await expect(redisStore({ client: clientOf.port(server.port), prefix }).open()).rejects.toMatchObject({
      code: 'config_error',
      message: expect.stringMatching(/^[\x20-\x7e]+$/) as string,
    });
  });

  it('names its version, and gives it to the names of all keys but those that say which store it is', async () => {
    const prefix = newPrefix();
    const store = redisStore({ client: clientOf.port(server.port), prefix, timeoutMs: PATIENT_MS });
    await store.open();
    await store.accept(acceptRequest());
    await store.close();
    const keys = await ask(server.port, (redis) => redis.keys(`${prefix}*`));
    const others = keys.filter((key) => !key.startsWith(`${prefix}{`) || !/\}:4:/.test(key)).toSorted();
    expect(others).toEqual([`${prefix}{registry}:id`, `${prefix}{registry}:v`]);
    expect(keys.length).toBeGreaterThan(4);
    const said = await ask(server.port, async (redis) => [
      await redis.get(`${prefix}{registry}:v`),
      await redis.ttl(`${prefix}{registry}:v`),
    ]);
    expect(said).toEqual(['4', -1]);
  });

  it('looks for the version behind the client’s keyPrefix', async () => {
    const client = new Redis({ port: server.port, keyPrefix: 'mine:', lazyConnect: true });
    const prefix = newPrefix();
    await ask(server.port, (redis) => redis.set(`mine:${prefix}{registry}:v`, '5'));
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
      redisStore({
        client: clientOf.cluster(cluster),
        prefix,
        clockOffsetMs: () => offsetMs,
        timeoutMs: PATIENT_MS,
      });
    const store = make();
    await store.open();
    await other.set(`${prefix}{registry}:v`, '5');
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
