import { randomUUID } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll } from 'vitest';
import { redisStore, type RedisStoreOptions } from '../../src/stores/redis.ts';
import type { StoreHarness } from '../../src/testing/index.ts';
import type { RedisCluster, RedisSentinel } from '../support/redis.ts';
import { startRedis } from '../support/redis.ts';
import { PATIENT_MS } from '../support/patient.ts';
import { twoHandles } from './fixtures/two-handles.ts';

type Client = Redis | Cluster;

/** Clients that never connect themselves: the store works on duplicates. */
export const clientOf = {
  url: (url: string): Redis => new Redis(url, { lazyConnect: true }),
  port: (port: number): Redis => new Redis({ port, host: '127.0.0.1', lazyConnect: true }),
  cluster: ({ nodes }: RedisCluster): Cluster =>
    new Cluster(
      nodes.map(({ port }) => ({ port, host: '127.0.0.1' })),
      { lazyConnect: true },
    ),
  sentinel: ({ name, sentinel }: RedisSentinel): Redis =>
    new Redis({ sentinels: [{ host: '127.0.0.1', port: sentinel.port }], name, lazyConnect: true }),
};

/** A prefix of one test's own: servers are shared. */
export const newPrefix = (): string => `test:${randomUUID()}:`;

/** A server and a client of it for the tests of the `describe` around: `redis` and `url` are there before the first of them. */
export function ownRedis(): { readonly redis: Redis; readonly url: string } {
  const own = {} as { redis: Redis; url: string };
  let stop: () => Promise<void>;
  beforeAll(async () => {
    const server = await startRedis();
    stop = server.stop;
    Object.assign(own, { redis: clientOf.url(server.url), url: server.url });
  });
  afterAll(async () => {
    own.redis.disconnect();
    await stop();
  });
  return own;
}

/** Two handles, each on a client of its own, over one prefix; what they leave of it is removed. */
export async function redisHarness(
  connect: () => Client,
  options: Omit<RedisStoreOptions, 'client'> = {},
): Promise<StoreHarness & { readonly prefix: string }> {
  const prefix = newPrefix();
  const stores = twoHandles((clockOffsetMs) =>
    redisStore({ client: connect(), prefix, clockOffsetMs, timeoutMs: PATIENT_MS, ...options }),
  );
  return {
    ...stores,
    prefix,
    cleanup: async () => {
      await stores.cleanup();
      await removeKeys(connect(), prefix);
    },
  };
}

/** A server that was lent is given back as it was. */
async function removeKeys(client: Client, prefix: string): Promise<void> {
  const nodes = client instanceof Cluster ? (await client.connect(), client.nodes('master')) : [client];
  for (const node of nodes) {
    for await (const keys of node.scanStream({ match: `${prefix}*`, count: 1000 })) {
      // One by one, for each key of a Cluster has a slot of its own; and all of them in one round trip.
      const removing = node.pipeline();
      for (const key of keys as string[]) removing.unlink(key);
      await removing.exec();
    }
  }
  client.disconnect();
}
