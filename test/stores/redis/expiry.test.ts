import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { keysOf, nodeDigests } from '../../../src/stores/redis/for-tests.ts';
import { redisStore, type RedisStore } from '../../../src/stores/redis.ts';
import { newPrefix, ownRedis } from '../redis-harness.ts';
import { acceptRequest, key } from '../requests.ts';
import { PATIENT_MS } from '../../support/patient.ts';

const DAY_MS = 86_400_000;

describe('memory of a sender that stopped sending', () => {
  const server = ownRedis();
  afterEach(() => {
    vi.useRealTimers();
  });

  /** What is left without an expiry, by name without the prefix; the longest that the rest is left, ms. */
  async function kept(prefix: string): Promise<{ lasting: string[]; longestMs: number }> {
    const keys = (await server.redis.keys(`${prefix}*:4:*`)).filter((name) => !name.includes('{registry}'));
    const lives = await Promise.all(keys.map(async (name) => ({ name, ms: await server.redis.pttl(name) })));
    const lasting = lives.filter(({ ms }) => ms === -1).map(({ name }) => name.replace(/^.*?\}:4:/, ''));
    return { lasting: lasting.toSorted(), longestMs: Math.max(...lives.map(({ ms }) => ms)) };
  }

  async function withStore(run: (store: RedisStore, prefix: string) => Promise<void>): Promise<void> {
    const prefix = newPrefix();
    const store = redisStore({ client: server.redis, prefix, timeoutMs: PATIENT_MS });
    await store.open();
    await run(store, prefix);
    await store.close();
  }

  async function apply(store: RedisStore, n: number, task?: string): Promise<void> {
    const request = acceptRequest({ key: key(n), ...(task !== undefined && { task }) });
    await store.accept(request);
    const of = { sender: request.sender, key: key(n), owner: request.acceptId };
    await store.complete({ ...of, retentionMs: DAY_MS });
  }

  it('is freed by the next accept, also of an event without a body', async () => {
    let offsetMs = 0;
    const store = redisStore({
      client: server.redis,
      prefix: newPrefix(),
      clockOffsetMs: () => offsetMs,
      timeoutMs: PATIENT_MS,
    });
    await store.open();
    await store.accept(acceptRequest({ key: key(1), body: '' }));
    offsetMs = 2 * DAY_MS;
    expect((await store.accept(acceptRequest({ key: key(2) }))).kind).toBe('won');
    await store.close();
  });

  it('is freed by Redis shortly after the retention, except indexes and unfinished events', () =>
    withStore(async (store, prefix) => {
      await apply(store, 1);
      await store.accept(acceptRequest({ key: key(2) }));
      const { lasting, longestMs } = await kept(prefix);
      expect(lasting).toEqual([`b:${key(2)}`, 'i', 'l', `r:${key(2)}`, 's', 'x', 'z:seller-2026']);
      expect(longestMs).toBeGreaterThan(DAY_MS);
      expect(longestMs).toBeLessThan(DAY_MS * 1.2);
    }));

  it('is kept for 30 days for the marks of its tasks', () =>
    withStore(async (store, prefix) => {
      await apply(store, 1);
      await apply(store, 2, 'task-1');
      const { longestMs } = await kept(prefix);
      expect(longestMs).toBeGreaterThan(DAY_MS * 30);
      expect(longestMs).toBeLessThan(DAY_MS * 31);
    }));

  it('is kept for acknowledged unfinished events, and expires after they are done', () =>
    withStore(async (store, prefix) => {
      await store.accept({ ...acceptRequest({ key: key(2) }), mode: 'inbox' });
      expect((await kept(prefix)).lasting).toContain(`r:${key(2)}`);
      const worker = { owner: randomUUID(), max: 1, leaseMs: 8000, retry: { attempts: 2, crashes: 2 } };
      const { events } = await store.inbox.lease({ ...worker, retentionMs: DAY_MS, senders: [] });
      for (const { sender, key, lease } of events) {
        await store.complete({ sender, key, owner: lease.owner, retentionMs: DAY_MS });
      }
      const { lasting, longestMs } = await kept(prefix);
      expect(lasting).toEqual(['i', 's', 'x', 'z:seller-2026']);
      expect(longestMs).toBeLessThan(DAY_MS * 1.2);
    }));

  it('is swept with its indexes by a process that accepts other senders’ events, one sender each 10 s', async () => {
    let offsetMs = 0;
    vi.useFakeTimers({ toFake: ['performance'] });
    const prefix = newPrefix();
    const store = redisStore({
      client: server.redis,
      prefix,
      clockOffsetMs: () => offsetMs,
      timeoutMs: PATIENT_MS,
    });
    await store.open();
    const silent = 'https://silent.example/mcp';
    await store.accept(acceptRequest({ key: key(1), task: 'task-1', sender: silent }));
    const { of } = keysOf(prefix, nodeDigests());
    const [base] = of(silent);
    offsetMs = 40 * DAY_MS;
    await expect
      .poll(async () => {
        vi.advanceTimersByTime(10_001);
        await store.accept(acceptRequest({ key: randomUUID() }));
        return (await server.redis.keys(`${base}*`)).length;
      })
      .toBe(0);
    await store.close();
  });
});
