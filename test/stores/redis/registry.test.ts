import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { AcceptRequest } from '../../../src/stores/index.ts';
import { type RedisStore, redisStore } from '../../../src/stores/redis.ts';
import { clientOf, newPrefix, ownRedis } from '../redis-harness.ts';
import { acceptRequest } from '../requests.ts';
import { PATIENT_MS } from '../../support/patient.ts';

const limited = (sender: string, maxNonces: number): AcceptRequest => {
  const request = acceptRequest({ sender, key: randomUUID() });
  return { ...request, limits: { ...request.limits, maxNonces } };
};

describe('what processes share', () => {
  const server = ownRedis();
  afterEach(() => {
    vi.useRealTimers();
  });

  async function open(prefix: string): Promise<RedisStore> {
    const store = redisStore({ client: clientOf.url(server.url), prefix, timeoutMs: PATIENT_MS });
    await store.open();
    return store;
  }

  it('counts live nonces of every process within 10 s', async () => {
    const prefix = newPrefix();
    vi.useFakeTimers({ toFake: ['performance'] });
    const [first, early] = [await open(prefix), await open(prefix)];
    for (let n = 0; n < 5; n += 1) await first.accept(limited('https://a.example/mcp', 100));
    expect((await early.accept(limited('https://b.example/mcp', 3))).kind).toBe('won');
    vi.advanceTimersByTime(10_001);
    await first.accept(limited('https://a.example/mcp', 100));
    await first.close();
    const late = await open(prefix);
    expect((await late.accept(limited('https://c.example/mcp', 3))).kind).toBe('rate-abuse');
    expect((await late.accept(limited('https://c.example/mcp', 100))).kind).toBe('won');
    await early.close();
    await late.close();
  });

  it('refuses nobody by a sum that is old: all senders are counted first', async () => {
    const prefix = newPrefix();
    vi.useFakeTimers({ toFake: ['performance'] });
    let offsetMs = 0;
    const handles = [0, 1].map(() =>
      redisStore({
        client: clientOf.url(server.url),
        prefix,
        clockOffsetMs: () => offsetMs,
        timeoutMs: PATIENT_MS,
      }),
    );
    const [first, other] = handles as [RedisStore, RedisStore];
    for (const store of handles) await store.open();
    for (let n = 0; n < 5; n += 1) await first.accept(limited('https://a.example/mcp', 100));
    vi.advanceTimersByTime(10_001);
    await first.accept(limited('https://a.example/mcp', 100));
    expect((await other.accept(limited('https://b.example/mcp', 5))).kind).toBe('rate-abuse');
    // They expire, and the process that stored them deletes them: the other one is not told for 10 s.
    offsetMs += 3_600_000;
    expect((await first.accept(limited('https://a.example/mcp', 1))).kind).toBe('won');
    expect((await other.accept(limited('https://b.example/mcp', 5))).kind).toBe('won');
    for (const store of handles) await store.close();
  });

  it('tells a process all counts once, not with each sender that it registers', async () => {
    // All within the 10 s after which it is told again.
    vi.useFakeTimers({ toFake: ['performance'] });
    const store = await open(newPrefix());
    const tellings = async (): Promise<number> =>
      Number(/cmdstat_hgetall:calls=([0-9]+)/.exec(await server.redis.info('commandstats'))?.[1] ?? 0);
    const before = await tellings();
    for (let n = 0; n < 20; n += 1) await store.accept(acceptRequest({ sender: `https://${n}.example/mcp` }));
    expect((await tellings()) - before).toBe(1);
    await store.close();
  });

  it('registers senders before their first accept and again with each exchange', async () => {
    const prefix = newPrefix();
    vi.useFakeTimers({ toFake: ['performance'] });
    const [door, worker] = [await open(prefix), await open(prefix)];
    const sender = 'https://seller.example/mcp?\ud800';
    await door.accept({ ...acceptRequest({ sender }), mode: 'inbox' });
    const registered = async (): Promise<readonly string[]> =>
      (await worker.inbox.list({ state: 'queued', limit: 10 })).records.map((record) => record.sender);
    expect(await registered()).toEqual([sender]);
    // As after a failover to a replica that had not heard of it.
    await server.redis.del(`${prefix}{registry}:4:s`);
    expect(await registered()).toEqual([]);
    vi.advanceTimersByTime(10_001);
    await door.accept({ ...acceptRequest({ sender }), mode: 'inbox' });
    await door.close();
    expect(await registered()).toEqual([sender]);
    await worker.close();
  });
});
