import { afterAll, beforeAll } from 'vitest';
import { clientOf, ownRedis, redisHarness } from '../../stores/redis-harness.ts';
import type { RedisCluster } from '../../support/redis.ts';
import { startRedisCluster } from '../../support/redis.ts';
import { inThisForm, LONG, ROWS } from '../form.ts';
import { describeRandomCalls, type Histories } from './random-calls.ts';
import { expectIndexesRight } from './redis-indexes.ts';
import type { Subject } from './subject.ts';

function onOneServer(): Subject {
  const own = ownRedis();
  return {
    name: 'Redis on one server',
    clock: 'goes on',
    mostAtOnce: 8,
    open: async () => {
      let offsetMs = 0;
      const harness = await redisHarness(() => clientOf.url(own.url));
      return {
        ...harness,
        setClockOffsetMs: (ms) => {
          offsetMs = ms;
          harness.setClockOffsetMs(ms);
        },
        expectKeptRight: () => expectIndexesRight(own.redis, harness.prefix, offsetMs),
      };
    },
  };
}

function onCluster(): Subject {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster.stop());
  return {
    name: 'Redis Cluster',
    clock: 'goes on',
    open: () => redisHarness(() => clientOf.cluster(cluster)),
  };
}

/** `npm test` has those one after the other and in any order. */
const KINDS: readonly Histories[] = [{ events: 40, registrations: 16, anyOrder: 24 }, { atOnce: 20 }];

for (const histories of inThisForm(KINDS, (_, index) => index === 0)) {
  describeRandomCalls(onOneServer(), histories);
}
if (ROWS || LONG) describeRandomCalls(onCluster(), { anyOrder: 40 });
