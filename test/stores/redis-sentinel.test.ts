import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { redisStore } from '../../src/stores/redis.ts';
import { describeStoreContract } from '../../src/testing/store-contract.ts';
import type { RedisSentinel } from '../support/redis.ts';
import { startSentinel, until } from '../support/redis.ts';
import { clientOf, newPrefix, redisHarness } from './redis-harness.ts';
import { acceptRequest } from './requests.ts';

let sentinel: RedisSentinel;

beforeAll(async () => {
  sentinel = await startSentinel();
});

afterAll(() => sentinel.stop());

describe('redisStore on a primary with a replica, found by a Sentinel', () => {
  describeStoreContract(() => redisHarness(() => clientOf.sentinel(sentinel)), {
    describe,
    it,
    persistent: true,
    inbox: true,
    registrations: true,
  });
});

// The last one of this file: it leaves no replica.
describe('a failover by the Sentinel', () => {
  it('keeps answered events without a restart of the store', async () => {
    const prefix = newPrefix();
    const store = redisStore({ client: clientOf.sentinel(sentinel), prefix, waitReplicas: 1 });
    await store.open();
    expect(await store.durability()).toBe('failover');
    const first = acceptRequest();
    expect((await store.accept(first)).kind).toBe('won');
    await sentinel.primary.kill();
    await expect(store.accept(acceptRequest())).rejects.toMatchObject({ code: 'store_unavailable' });
    // Alone, the new primary has what was answered, but nobody to confirm it.
    let seen: unknown;
    await until('the replica is the primary', async () => {
      seen = await store.accept(acceptRequest()).catch((error: unknown) => error);
      return (seen as { code?: string }).code === 'not_durable';
    });
    await store.close();
    const alone = redisStore({ client: clientOf.sentinel(sentinel), prefix, waitReplicas: 0 });
    await alone.open();
    expect((await alone.accept(acceptRequest())).kind).toBe('in-flight');
    expect(
      await alone.complete({
        sender: first.sender,
        key: 'event-0001-of-the-seller',
        owner: first.acceptId,
        retentionMs: 1000,
      }),
    ).toBe('done');
    await alone.close();
  });
});
