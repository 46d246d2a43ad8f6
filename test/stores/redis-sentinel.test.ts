import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { redisStore } from '../../src/stores/redis.ts';
import { describeStoreContract } from '../../src/testing/index.ts';
import { AGENT, testReceiver } from '../receiver/setup.ts';
import { loadOf } from '../reliability/faults/load.ts';
import { inThisForm, LONG, ROWS } from '../reliability/form.ts';
import type { RedisSentinel } from '../support/redis.ts';
import { ask, hasReplica, startSentinel, until } from '../support/redis.ts';
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

if (ROWS || LONG)
  describe('planned failovers of three nodes under load', () => {
    it('lose no event that was answered 200', { timeout: 600_000 }, async () => {
      const three = await startSentinel(2);
      const prefix = newPrefix();
      const store = redisStore({ client: clientOf.sentinel(three), prefix });
      const at = await testReceiver({
        store,
        durability: { require: 'failover' },
        leaseMs: 1000,
        advanced: { waitMs: 100 },
      });
      await at.receiver.ready();
      const load = loadOf(at, 8);
      const primary = async (): Promise<number> => {
        const where = await ask(three.sentinel.port, (redis) =>
          redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', three.name),
        );
        return Number((where as readonly string[])[1]);
      };
      for (let failover = 0; failover < (LONG ? 20 : 3); failover += 1) {
        await load.more(40);
        const before = await primary();
        const refused = load.refused();
        await until('the Sentinel begins', async () => {
          const said: unknown = await ask(three.sentinel.port, (redis) =>
            redis.call('SENTINEL', 'FAILOVER', three.name).catch(() => 'not yet'),
          );
          return said === 'OK';
        });
        await until('another one is the primary', async () => (await primary()) !== before);
        await until('somebody was told 503', async () => load.refused() > refused);
        await until('both others replicate it', async () => hasReplica(await primary(), 2));
      }
      await load.more(40);
      await load.end();
      expect(load.other).toEqual([]);
      const judge = redisStore({ client: clientOf.port(await primary()), prefix, waitReplicas: 0 });
      await judge.open();
      const states = await Promise.all(load.told.map((one) => judge.peek(AGENT, one)));
      expect(states.filter((state) => state !== 'applied')).toEqual([]);
      console.log(`planned failovers: ${load.told.length} events answered 200, 0 lost`);
      await judge.close();
      await at.receiver.stop();
      await three.stop();
    });
  });
