import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AcceptRequest } from '../../../src/stores/contract.ts';
import type { RedisStore } from '../../../src/stores/redis.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { batchesOf } from '../../../src/stores/redis/batches.ts';
import type { RedisServer } from '../../support/redis.ts';
import { ON_DISK, startServer } from '../../support/redis.ts';
import { clientOf, newPrefix } from '../redis-harness.ts';
import { acceptRequest, key, leaseOf } from '../requests.ts';

const DAY_MS = 86_400_000;
const of = (n: number): AcceptRequest => acceptRequest({ key: key(n), task: `task-${n}` });

function withEvent(
  request: AcceptRequest,
  change: Partial<NonNullable<AcceptRequest['event']>>,
): AcceptRequest {
  if (!request.event) throw new Error('an event');
  return { ...request, event: { ...request.event, ...change } };
}

const withInstant = (n: number): AcceptRequest =>
  withEvent(of(n), { task: { id: `task-${n}`, instant: '1.', instantMs: 1000, terminal: false } });

describe('requests of one sender that share a script', () => {
  let server: RedisServer;
  let redis: Redis;
  let prefix: string;
  let offsetMs = 0;
  let store: RedisStore;
  beforeAll(async () => {
    server = await startServer(ON_DISK);
    redis = clientOf.port(server.port);
  });
  beforeEach(async () => {
    prefix = newPrefix();
    offsetMs = 0;
    store = redisStore({ client: redis, prefix, clockOffsetMs: () => offsetMs });
    await store.open();
    await store.accept(acceptRequest({ key: 'first-event-of-the-seller' }));
  });
  afterEach(() => store.close());
  afterAll(async () => {
    redis.disconnect();
    await server.remove();
  });

  /** The sender's key that every other one begins with. */
  const base = async (): Promise<string> => {
    const [index = ''] = await redis.keys(`${prefix}*:x`);
    return index.slice(0, -2);
  };
  const completed = (request: AcceptRequest): Promise<string> =>
    store.complete({ ...leaseOf(request), retentionMs: DAY_MS });

  it('completions: where the rows of one are at fault, all of the others is done, indexes and bytes too', async () => {
    const requests = [0, 1, 2].map(withInstant);
    await Promise.all(requests.map((request) => store.accept(request)));
    const name = await base();
    // No MessagePack begins so.
    await redis.set(`${name}:t:task-1`, Buffer.of(0xc1));
    const answers = await Promise.allSettled(requests.map(completed));
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await redis.zrange(`${name}:l`, '0', '-1')).toEqual(['first-event-of-the-seller', key(1)]);
    const bodies = await redis.keys(`${name}:b:*`);
    const lengths = await Promise.all(bodies.map((body) => redis.strlen(body)));
    expect(bodies).toHaveLength(2);
    expect(Number(await redis.hget(`${name}:s`, 'sum'))).toBe(lengths.reduce((sum, length) => sum + length));
    // It does not count as done: its mark is not raised.
    await expect(completed(requests[1] ?? of(1))).rejects.toMatchObject({ code: 'store_unavailable' });
    await redis.del(`${name}:t:task-1`);
    expect(await completed(requests[1] ?? of(1))).toBe('done');
  });

  it('accepts: one that cannot be packed fails alone', async () => {
    const body = new Uint8Array(20);
    structuredClone(body.buffer, { transfer: [body.buffer] });
    const answers = await Promise.allSettled(
      [of(1), withEvent(of(2), { body }), of(3)].map((request) => store.accept(request)),
    );
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  it('accepts: reports of many media buys, each of which is a row, share one with few others', async () => {
    const mediaBuyIds = Array.from({ length: 100 }, (_, n) => `media-buy-${n}`);
    const reports = [1, 2, 3, 4, 5].map((n) => withEvent(of(n), { report: { mediaBuyIds, final: true } }));
    await redis.call('CONFIG', 'RESETSTAT');
    const answers = await Promise.all(reports.map((request) => store.accept(request)));
    expect(answers.map(({ kind }) => kind)).toEqual(['won', 'won', 'won', 'won', 'won']);
    expect(answers.map((answer) => 'afterFinal' in answer && answer.afterFinal)).toEqual([
      false,
      true,
      true,
      true,
      true,
    ]);
    expect(await redis.info('commandstats')).toContain('cmdstat_evalsha:calls=3,');
  });

  it('accepts near the cap of bodies clear 4,096 expired rows away between them, and 16 each', async () => {
    const rows = 5000;
    const numbers = Array.from({ length: rows }, (_, n) => n);
    await Promise.all(numbers.map((n) => store.accept(acceptRequest({ key: key(n), body: 'x' }))));
    const name = await base();
    offsetMs = 2 * DAY_MS;
    const full = numbers.slice(0, 8).map((n) => {
      const request = acceptRequest({ key: key(rows + n), body: 'x' });
      return { ...request, limits: { ...request.limits, maxPendingBytesPerSender: 900 } };
    });
    const answers = await Promise.all(full.map((request) => store.accept(request)));
    expect(answers.map(({ kind }) => kind)).toContain('won');
    const left = await redis.zcount(`${name}:x`, '-inf', Date.now() + offsetMs);
    expect(left).toBeGreaterThanOrEqual(rows - 4096 - 16 * full.length);
  });
});

describe('the turn that a batch waits for', () => {
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });
  const answering = (): ReturnType<typeof batchesOf<number>> =>
    batchesOf<number>({ send: async (_sender, items) => items.map((n) => n * 2), bytesOf: () => 1 });

  it('comes where the runtime has no setImmediate', async () => {
    vi.stubGlobal('setImmediate', undefined);
    const batches = answering();
    expect(await Promise.all([1, 2].map((n) => batches.run('a', n)))).toEqual([2, 4]);
  });

  it('comes under a fake clock that was put in later', async () => {
    const batches = answering();
    vi.useFakeTimers({ toFake: ['setImmediate'] });
    expect(await Promise.all([1, 2].map((n) => batches.run('a', n)))).toEqual([2, 4]);
  });
});
