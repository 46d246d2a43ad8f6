import { afterAll, beforeAll, describe, it } from 'vitest';
import { clientOf, redisHarness } from '../../stores/redis-harness.ts';
import type { RedisCluster, RedisUrl } from '../../support/redis.ts';
import { startRedis, startRedisCluster } from '../../support/redis.ts';
import { expectInvariants, SEED } from './explore.ts';

describe('calls of several processes in any order', () => {
  let server: RedisUrl;
  let cluster: RedisCluster;
  beforeAll(async () => {
    server = await startRedis();
    cluster = await startRedisCluster();
  });
  afterAll(async () => {
    await server.stop();
    await cluster.stop();
  });

  it(
    `Redis on one server keeps the invariants (seed ${SEED})`,
    () => expectInvariants(() => redisHarness(() => clientOf.url(server.url)), 100),
    3_600_000,
  );

  it(
    `Redis Cluster keeps the invariants (seed ${SEED})`,
    () => expectInvariants(() => redisHarness(() => clientOf.cluster(cluster)), 40),
    3_600_000,
  );
});
