import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { redisStore } from '../../../src/stores/redis.ts';
import type { Store } from '../../../src/stores/index.ts';
import type { RedisConnection } from '../../../src/stores/redis/for-tests.ts';
import { newPrefix, ownRedis } from '../redis-harness.ts';
import { acceptRequest, key, RETENTION_MS } from '../requests.ts';
import { PATIENT_MS } from '../../support/patient.ts';

const own = ownRedis();
const senderOf = (n: number): string => `https://seller-${String(n).padStart(4, '0')}.example`;

/** Of each sender an event and a watched task, both due. */
async function fill(store: Store, senders: number): Promise<void> {
  await store.open();
  const all = Array.from({ length: senders }, (_, n) => senderOf(n));
  await Promise.all(
    all.map(async (sender, n) => {
      await store.accept({ ...acceptRequest({ key: key(n) }), sender, mode: 'inbox' });
      await store.registrations?.run(sender, (rows) =>
        rows.save({ kind: 'watch', sender, id: 'task', value: '', dueAt: 1, list: null, expiresAt: null }),
      );
    }),
  );
}

interface Looks {
  readonly worker: (max: number) => Promise<readonly string[]>;
  readonly poller: (max: number) => Promise<readonly string[]>;
}

/** @returns whose rows each look has found, in their order. */
function looksOf({ inbox, registrations }: Store): Looks {
  if (!inbox || !registrations) return expect.fail();
  const { retry } = acceptRequest();
  return {
    worker: async (max) => {
      const asked = { owner: 'worker', max, leaseMs: 600_000, retry, retentionMs: RETENTION_MS, senders: [] };
      return (await inbox.lease(asked)).events.map(({ sender }) => sender);
    },
    poller: async (max) => {
      const asked = { kind: 'watch', max, holdMs: 600_000, senders: [] } as const;
      return (await registrations.due(asked)).rows.map(({ sender }) => sender);
    },
  };
}

it('a look asks senders many at a time, and no more of them than it needs', async () => {
  const SENDERS = 1_100;
  const store = redisStore({ client: own.redis, prefix: newPrefix(), timeoutMs: PATIENT_MS });
  await fill(store, SENDERS);
  const calls = async (look: () => Promise<unknown>): Promise<{ scripts: number; reads: number }> => {
    await own.redis.call('CONFIG', 'RESETSTAT');
    await look();
    const stats = await own.redis.info('commandstats');
    const of = (name: string): number =>
      Number(new RegExp(`cmdstat_${name}:calls=([0-9]+)`).exec(stats)?.[1] ?? 0);
    return { scripts: of('evalsha'), reads: of('zrange') + of('zcount') + of('zrangebyscore') };
  };
  for (const look of Object.values(looksOf(store)) as Looks['worker'][]) {
    const some = await calls(async () => expect(await look(4)).toEqual([0, 1, 2, 3].map(senderOf)));
    // The senders, four groups of them, four that have some, and what is done with these.
    expect(some.scripts).toBeGreaterThan(8);
    expect(some.scripts).toBeLessThan(20);
    expect(some.reads).toBeLessThan(5 * 1_024 + 100);
    const seen: string[] = [];
    for (let found = [''], n = 0; found.length > 0 && n < 100; n += 1)
      seen.push(...(found = [...(await look(250))]));
    expect(seen.toSorted()).toEqual(Array.from({ length: SENDERS - 4 }, (_, n) => senderOf(n + 4)));
    const none = await calls(async () => expect(await look(4)).toEqual([]));
    expect(none.scripts).toBe(1 + Math.ceil(SENDERS / 256));
    expect(none.reads).toBeGreaterThanOrEqual(SENDERS);
    expect(none.reads).toBeLessThan(4 * SENDERS);
  }
  await store.close();
});

/** A client of servers that share the keys out by their hash tags, behind one address. */
function sharded(): Redis {
  const client = new Redis(own.url, { lazyConnect: true });
  const connection = client as unknown as RedisConnection;
  const send = connection.evalshaBuffer.bind(connection);
  const evalshaBuffer: typeof send = (sha, count, ...rest) => {
    const tags = rest.slice(0, count).map((name) => /\{.*\}/.exec(String(name))?.[0]);
    if (new Set(tags).size === 1) return send(sha, count, ...rest);
    return Promise.reject(new Error("CROSSSLOT Keys in request don't hash to the same slot"));
  };
  return Object.assign(client, { evalshaBuffer, duplicate: sharded });
}

it('a look asks each sender alone where a script may have keys of one slot only', async () => {
  const client = sharded();
  const store = redisStore({ client, prefix: newPrefix(), timeoutMs: PATIENT_MS });
  await fill(store, 70);
  for (const look of Object.values(looksOf(store)) as Looks['worker'][]) {
    expect(await look(4)).toEqual([0, 1, 2, 3].map(senderOf));
    expect(await look(100)).toEqual(Array.from({ length: 66 }, (_, n) => senderOf(n + 4)));
    expect(await look(4)).toEqual([]);
  }
  await store.close();
  client.disconnect();
});
