import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { redisStore } from '../../src/stores/redis.ts';
import { describeStoreContract } from '../../src/testing/store-contract.ts';
import { inThisForm, ROWS } from '../reliability/form.ts';
import type { RedisSentinel } from '../support/redis.ts';
import { startSentinel, until } from '../support/redis.ts';
import { canDiffer, suitesOfContract } from './contract-suites.ts';
import { clientOf, newPrefix, redisHarness } from './redis-harness.ts';
import { acceptRequest } from './requests.ts';

let sentinel: RedisSentinel;

beforeAll(async () => {
  sentinel = await startSentinel();
});

afterAll(() => sentinel.stop());

const CLAIMS = { persistent: true, inbox: true, registrations: true } as const;
const SUITES = suitesOfContract(CLAIMS);

/** What a primary that a Sentinel names can do otherwise than one server, which passes the whole contract (`redis.test.ts`). */
const CAN_DIFFER = canDiffer(SUITES, {
  'opening and closing': 'the client asks a Sentinel where the primary is, and so does its duplicate',
  '64 concurrent calls': 'each answer waits for the replica',
  'identity of the store': 'it outlives the primary',
  'what survives a restart': 'a new client asks the Sentinel again',
});

describe('redisStore on a primary with a replica, found by a Sentinel', () => {
  const here = inThisForm([...SUITES.keys()], CAN_DIFFER);
  describeStoreContract(() => redisHarness(() => clientOf.sentinel(sentinel)), {
    ...CLAIMS,
    describe: (suite, body) => here.includes(suite) && describe(suite, body),
    it,
  });
});

// The last one of this file: it leaves no replica.
if (!ROWS)
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
