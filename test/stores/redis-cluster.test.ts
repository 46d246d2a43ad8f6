import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { redisStore } from '../../src/stores/redis.ts';
import { describeStoreContract } from '../../src/testing/index.ts';
import { inThisForm, ROWS } from '../reliability/form.ts';
import { PATIENT_MS } from '../support/patient.ts';
import type { RedisCluster } from '../support/redis.ts';
import { ask, startRedisCluster } from '../support/redis.ts';
import { canDiffer, suitesOfContract } from './contract-suites.ts';
import { clientOf, newPrefix, redisHarness } from './redis-harness.ts';
import { acceptRequest } from './requests.ts';

const CLAIMS = { persistent: true, inbox: true, registrations: true } as const;
const SUITES = suitesOfContract(CLAIMS);

/** What several primaries can do otherwise than one server, which passes the whole contract (`redis.test.ts`). */
const CAN_DIFFER = canDiffer(SUITES, {
  'opening and closing': 'the client is a Cluster’s, and so is its duplicate',
  'accept, rule 1: nonces': 'those of all senders are counted over several slots',
  'the store’s clock': 'each node has its own',
  keyspaces: 'a sender’s keys have to be in one slot, whatever its name is',
  '64 concurrent calls': 'each node is sent the scripts, and runs them for its slots',
  'identity of the store': 'it is in a slot of its own',
  'inbox: leases of workers': 'senders are on several nodes, and take turns',
  'inbox: overdue events': 'the earliest is on one of the nodes',
  'inbox: list and inspect': 'pages go over several slots',
  'inbox: crashes and suspects': 'the first suspect is on one of the nodes',
  'registrations: due rows': 'rows of several senders are on several nodes',
  'registrations: pages': 'pages go over several slots',
  'what survives a restart': 'a new client learns the slots again',
});

/** Of these, the longest that one server has too: rows. */
const LONGEST: ReadonlySet<string> = new Set([
  'accept, rule 1: nonces',
  'inbox: crashes and suspects',
  'inbox: leases of workers',
  'registrations: due rows',
]);

describe('redisStore on a Cluster of three primaries', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster.stop());

  const here = inThisForm([...SUITES.keys()], (suite) => CAN_DIFFER(suite) && !LONGEST.has(suite));
  describeStoreContract(() => redisHarness(() => clientOf.cluster(cluster)), {
    ...CLAIMS,
    describe: (suite, body) => here.includes(suite) && describe(suite, body),
    it,
  });
});

const slotOf = ({ nodes }: RedisCluster, key: string): Promise<number> =>
  ask(nodes[0]?.port ?? 0, (redis) => redis.cluster('KEYSLOT', key));

async function allKeys({ nodes }: RedisCluster, pattern: string): Promise<string[]> {
  return (await Promise.all(nodes.map(({ port }) => ask(port, (redis) => redis.keys(pattern))))).flat();
}

/** Moves one slot from its node to another, key by key, as `redis-cli --cluster reshard` does. */
async function slotMove(
  { nodes }: RedisCluster,
  slot: number,
): Promise<{ begin: () => Promise<void>; finish: () => Promise<void> }> {
  const ids = await Promise.all(nodes.map(({ port }) => ask(port, (redis) => redis.cluster('MYID'))));
  const fromAt = Math.floor(slot / Math.ceil(16_384 / nodes.length));
  const toAt = (fromAt + 1) % nodes.length;
  const [from, to] = [nodes[fromAt], nodes[toAt]];
  const [fromId, toId] = [ids[fromAt] ?? '', ids[toAt] ?? ''];
  if (!from || !to) throw new Error('no such slot');
  const move = (count: number): Promise<void> =>
    ask(from.port, async (redis) => {
      for (const key of await redis.cluster('GETKEYSINSLOT', slot, count)) {
        await redis.migrate('127.0.0.1', to.port, key, 0, 5000);
      }
    });
  return {
    begin: async () => {
      await ask(to.port, (redis) => redis.cluster('SETSLOT', slot, 'IMPORTING', fromId));
      await ask(from.port, (redis) => redis.cluster('SETSLOT', slot, 'MIGRATING', toId));
      // A part of them: from here on neither node has all of the sender's keys.
      await move(3);
    },
    finish: async () => {
      await move(10_000);
      for (const { port } of [to, from, ...nodes]) {
        await ask(port, (redis) => redis.cluster('SETSLOT', slot, 'NODE', toId));
      }
    },
  };
}

if (!ROWS)
  describe('redisStore on a Cluster of three primaries with a replica each', () => {
    let cluster: RedisCluster;
    beforeAll(async () => {
      cluster = await startRedisCluster({ replicas: true });
    });
    afterAll(() => cluster.stop());

    it('keeps all keys of a sender in one slot and waits for that slot’s replica', async () => {
      const prefix = newPrefix();
      const store = redisStore({ client: clientOf.cluster(cluster), prefix, timeoutMs: PATIENT_MS });
      await store.open();
      expect(await store.durability()).toBe('failover');
      const senders = ['https://a.example/mcp', 'https://b.example/mcp', 'https://{c}.example/mcp'];
      const answers = senders.map((sender) => store.accept(acceptRequest({ sender, task: 'task-1' })));
      expect((await Promise.all(answers)).map(({ kind }) => kind)).toEqual(['won', 'won', 'won']);
      await store.close();
      const keys = await allKeys(cluster, `${prefix}*`);
      const slots = new Set(await Promise.all(keys.map((key) => slotOf(cluster, key))));
      // One more for the registry.
      expect(slots.size).toBe(senders.length + 1);
    });

    it.each([0, 1])(
      'fails with store_unavailable while a slot moves, and repeats nothing (waitReplicas %i)',
      async (waitReplicas) => {
        const prefix = newPrefix();
        const sender = `https://moved-${waitReplicas}.example/mcp`;
        const store = redisStore({
          client: clientOf.cluster(cluster),
          prefix,
          waitReplicas,
          timeoutMs: PATIENT_MS,
        });
        await store.open();
        const first = acceptRequest({ sender });
        expect((await store.accept(first)).kind).toBe('won');
        const [key = ''] = await allKeys(cluster, `${prefix}*:r:*`);
        const { begin, finish } = await slotMove(cluster, await slotOf(cluster, key));
        await begin();
        const during = store.accept(acceptRequest({ sender }));
        // Before the script began: in its middle it would leave half of what it writes.
        await expect(during).rejects.toMatchObject({
          code: 'store_unavailable',
          message: 'Redis Cluster does not serve the slot now.',
        });
        await finish();
        expect((await store.accept(acceptRequest({ sender }))).kind).toBe('in-flight');
        const of = { sender, key: 'event-0001-of-the-seller', owner: first.acceptId };
        expect(await store.complete({ ...of, retentionMs: 1000 })).toBe('done');
        await store.close();
      },
    );

    it('fails with not_durable for a primary without its replica', async () => {
      const store = redisStore({
        client: clientOf.cluster(cluster),
        prefix: newPrefix(),
        waitReplicas: 2,
        waitTimeoutMs: 50,
      });
      await store.open();
      expect(await store.durability()).toBe('disk');
      await expect(store.accept(acceptRequest())).rejects.toMatchObject({ code: 'not_durable' });
      await store.close();
    });
  });
