import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Store } from '../../../src/index.ts';
import type { AcceptRequest, AcceptResult } from '../../../src/stores/index.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { PATIENT_MS } from '../../support/patient.ts';
import type { RedisServer } from '../../support/redis.ts';
import { ask, ON_DISK, startServer } from '../../support/redis.ts';
import { startProxy } from '../../support/tcp-proxy.ts';
import { clientOf, newPrefix } from '../redis-harness.ts';
import { acceptRequest, key, leaseOf } from '../requests.ts';

const of = (n: number): AcceptRequest => acceptRequest({ key: key(n), task: `task-${n}` });
const many = (count: number): AcceptRequest[] => Array.from({ length: count }, (_, n) => of(n));
const limited = (request: AcceptRequest, limits: Partial<AcceptRequest['limits']>): AcceptRequest => ({
  ...request,
  limits: { ...request.limits, ...limits },
});

const together = (store: Store, requests: readonly AcceptRequest[]): Promise<AcceptResult[]> =>
  Promise.all(requests.map((request) => store.accept(request)));
/** Another delivery of the same event. */
const again = (): Pick<AcceptRequest, 'acceptId' | 'nonce'> => {
  const { acceptId, nonce } = acceptRequest();
  return { acceptId, ...(nonce && { nonce }) };
};
const kinds = (results: readonly AcceptResult[]): string[] => results.map(({ kind }) => kind);

describe('concurrent accepts of one sender', () => {
  let server: RedisServer;
  let redis: Redis;
  let store: Store;
  beforeAll(async () => {
    server = await startServer(ON_DISK);
    redis = clientOf.port(server.port);
  });
  beforeEach(async () => {
    // After one accept in 64 what has expired is swept.
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    store = redisStore({ client: redis, prefix: newPrefix(), timeoutMs: PATIENT_MS });
    await store.open();
    // The first of a sender registers it.
    expect((await store.accept(acceptRequest({ key: 'first-event-of-the-seller' }))).kind).toBe('won');
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await store.close();
  });
  afterAll(async () => {
    redis.disconnect();
    await server.remove();
  });

  async function scripts(run: () => Promise<unknown>): Promise<number> {
    await redis.call('CONFIG', 'RESETSTAT');
    await run();
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1]);
  }

  it('share one script', async () => {
    expect(await scripts(() => together(store, many(32)))).toBe(1);
    expect(await scripts(() => store.accept(of(40)))).toBe(1);
  });

  it('run one script for each of two senders', async () => {
    const others = [1, 2].map((n) => acceptRequest({ key: key(n), sender: 'https://other.example/mcp' }));
    await together(store, others.slice(1));
    const requests = [of(1), ...others.slice(0, 1), of(2)];
    expect(
      await scripts(async () =>
        expect(kinds(await together(store, requests))).toEqual(['won', 'won', 'won']),
      ),
    ).toBe(2);
  });

  it('keep every body byte for byte', async () => {
    const large = acceptRequest({ key: key(2), body: 'x'.repeat(300_000) });
    const requests = [of(1), large, of(3)];
    expect(kinds(await together(store, requests))).toEqual(['won', 'won', 'won']);
    for (const { event, sender } of requests) {
      const record = await store.inbox?.inspect(sender, event?.key ?? '');
      expect(record?.body).toEqual(event?.body);
    }
  });

  it('are listed in the order of their calls', async () => {
    const requests = many(8).toReversed();
    await together(store, requests);
    const page = await store.inbox?.list({ state: 'leased', limit: 100 });
    expect(page?.records.slice(1).map((record) => record.key)).toEqual(
      requests.map(({ event }) => event?.key),
    );
  });

  it('handle repeated keys, nonces and tasks one after the other', async () => {
    const first = of(1);
    const copy = { ...acceptRequest({ key: key(1), task: 'task-1' }) };
    const sameNonce = { ...of(2), nonce: first.nonce };
    const sameTask = acceptRequest({ key: key(3), task: 'task-1' });
    const results = await together(store, [first, copy, first, sameNonce as AcceptRequest, sameTask, of(4)]);
    expect(kinds(results)).toEqual(['won', 'in-flight', 'won', 'replayed', 'task-busy', 'won']);
    expect(results.map((result) => 'lease' in result && result.lease.run)).toEqual([
      1,
      false,
      1,
      false,
      false,
      1,
    ]);
  });

  it('may exceed a cap together, and never once it is reached', async () => {
    // The first event is there already; each brings a record.
    const records = many(5).map((request) => limited(request, { maxRecordsPerSender: 6 }));
    expect(kinds(await together(store, records))).toEqual(Array(5).fill('won'));
    const over = many(5).map((_, n) => limited(of(10 + n), { maxRecordsPerSender: 6 }));
    expect(kinds(await together(store, over))).toEqual(Array(5).fill('over-cap'));
    const nonces = many(5).map((_, n) => limited(of(20 + n), { maxNoncesPerKey: 6 }));
    expect(kinds(await together(store, nonces))).toEqual(Array(5).fill('rate-abuse'));
  });

  it('over a cap do not affect the others', async () => {
    const much = limited(acceptRequest({ key: key(2), body: 'x'.repeat(5000) }), {
      maxPendingBytesPerSender: 4000,
    });
    expect(kinds(await together(store, [of(1), much, of(3)]))).toEqual(['won', 'over-cap', 'won']);
  });

  it('are answered when the server has lost the script', async () => {
    await redis.script('FLUSH');
    expect(kinds(await together(store, many(4)))).toEqual(['won', 'won', 'won', 'won']);
  });

  it('are written whole or not at all when memory is short', async () => {
    const before = await redis.dbsize();
    await redis.config('SET', 'maxmemory', '1');
    const answers = await Promise.allSettled(many(4).map((request) => store.accept(request)));
    const left = await redis.dbsize();
    await redis.config('SET', 'maxmemory', '0');
    for (const answer of answers) expect(answer).toMatchObject({ reason: { code: 'store_unavailable' } });
    expect(left).toBe(before);
    expect(kinds(await together(store, many(4)))).toEqual(['won', 'won', 'won', 'won']);
  });
});

describe('concurrent completions of one sender', () => {
  let server: RedisServer;
  let redis: Redis;
  let store: Store;
  beforeAll(async () => {
    server = await startServer(ON_DISK);
    redis = clientOf.port(server.port);
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    store = redisStore({ client: redis, timeoutMs: PATIENT_MS });
    await store.open();
  });
  afterAll(async () => {
    vi.restoreAllMocks();
    await store.close();
    redis.disconnect();
    await server.remove();
  });

  const completed = (request: AcceptRequest): Promise<string> =>
    store.complete({ ...leaseOf(request), retentionMs: 60_000 });

  it('share one script and have an answer each', async () => {
    const requests = many(5);
    await together(store, requests);
    const parked = acceptRequest({ key: key(9), task: 'task-3' });
    expect((await store.accept(parked)).kind).toBe('task-busy');
    const [first = of(0), second = of(1), ...rest] = requests;
    const strangers = { ...second, acceptId: 'somebody-else' };
    await redis.call('CONFIG', 'RESETSTAT');
    const answers = await Promise.all([first, strangers, second, first, of(7), ...rest].map(completed));
    // And one that reads, for those who have nothing to complete.
    expect(await redis.info('commandstats')).toContain('cmdstat_evalsha:calls=2,');
    expect(answers).toEqual(['done', 'lost', 'done', 'done', 'lost', 'done', 'done', 'done']);
    for (const { sender, event } of requests)
      expect(await store.peek(sender, event?.key ?? '')).toBe('applied');
    // Whom the task kept waiting has its turn.
    expect((await store.accept({ ...parked, ...again() })).kind).toBe('won');
  });
});

describe('a connection that is lost during several accepts', () => {
  it.each(['drop', 'tear', 'cut'] as const)('(%s) does not change any of their answers', async (mishap) => {
    const server = await startServer(ON_DISK);
    const proxy = await startProxy(server.port);
    const store = redisStore({ client: clientOf.port(proxy.port) });
    await store.open();
    await store.accept(acceptRequest({ key: 'first-event-of-the-seller' }));
    const met = proxy.arm(mishap, 'evalsha');
    const [results] = await Promise.all([together(store, many(6)), met.struck]);
    for (const result of results)
      expect(result).toMatchObject({ kind: 'won', lease: { run: 1, chargedAttempts: 1 } });
    const entries = await ask(server.port, async (redis) => {
      const [index = ''] = await redis.keys('*:4:x');
      return redis.zcard(index);
    });
    expect(entries).toBe(13);
    await store.close();
    await proxy.close();
    await server.remove();
  });
});
