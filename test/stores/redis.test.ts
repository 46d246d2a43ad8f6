import { afterAll, beforeAll, describe, it } from 'vitest';
import { describeStoreContract } from '../../src/testing/index.ts';
import type { RedisUrl } from '../support/redis.ts';
import { startRedis } from '../support/redis.ts';
import { clientOf, redisHarness } from './redis-harness.ts';

describe('redisStore on one server', () => {
  let server: RedisUrl;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  describeStoreContract(() => redisHarness(() => clientOf.url(server.url)), {
    describe,
    it,
    persistent: true,
    inbox: true,
    registrations: true,
  });
});
