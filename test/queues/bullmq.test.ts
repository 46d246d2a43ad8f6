import { randomUUID } from 'node:crypto';
import { Queue as Queue6, Worker as Worker6, type JobsOptions, type WorkerOptions } from 'bullmq';
import { Queue as Queue5, Worker as Worker5 } from 'bullmq5';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/index.ts';
import type { DeliveryReportEvent } from '../../src/events/index.ts';
import { type BullQueue, enqueue } from '../../src/queues/bullmq.ts';
import { testReceiver, payloads, said } from '../receiver/setup.ts';
import { ask, ON_DISK, startServer, type RedisServer } from '../support/redis.ts';
import { connection } from './kinds.ts';

const QUEUES = {
  'BullMQ 6': Queue6,
  'BullMQ 5': Queue5 as unknown as typeof Queue6,
} as const;

const WORKERS = {
  'BullMQ 6': Worker6,
  'BullMQ 5': Worker5 as unknown as typeof Worker6,
} as const;

/** Who removes a job. */
interface Removal {
  readonly own?: JobsOptions;
  readonly worker?: Partial<WorkerOptions>;
  readonly other?: JobsOptions;
  readonly fails?: boolean;
}

let server: RedisServer;
const opened: Queue6[] = [];
beforeAll(async () => {
  server = await startServer(ON_DISK);
});
afterEach(async () => {
  for (const queue of opened.splice(0)) await queue.close();
});
afterAll(() => server.remove());

describe.each(Object.keys(QUEUES) as (keyof typeof QUEUES)[])('enqueue, %s', (major) => {
  function open(options: { enableOfflineQueue?: boolean } = {}): Queue6 {
    const to = { ...connection(`redis://127.0.0.1:${server.port}`), ...options };
    const queue = new QUEUES[major](`events-${randomUUID()}`, { connection: to });
    queue.on('error', () => undefined);
    opened.push(queue);
    return queue;
  }

  it('a job has the deliveryId as its id, and the event as its data', async () => {
    const queue = open();
    const here = await testReceiver({ handler: enqueue(queue) });
    const payload = payloads.tool('completed', { operation_id: 'op-1', not_known_yet: [1, { a: null }] });
    expect(said(await here.deliver(payload))).toBe('accepted 200');
    const [seen] = here.seen;
    const job = await queue.getJob(String(seen?.ctx.deliveryId));
    expect(job).toMatchObject({ name: 'task', id: seen?.ctx.deliveryId });
    expect(job?.data).toEqual(JSON.parse(JSON.stringify(seen?.event)));
    expect(job?.data).toMatchObject({ kind: 'task', operationId: 'op-1', envelope: payload });
  });

  it('a member named __proto__ is a member, and reaches no prototype', async () => {
    const queue = open();
    const here = await testReceiver({ handler: enqueue(queue) });
    const text = JSON.stringify(payloads.tool('completed', { context: { a: 1 } })).replace(
      '"context":{',
      '"context":{"__proto__":{"polluted":true},',
    );
    expect(said(await here.deliver(text))).toBe('accepted 200');
    const job = await queue.getJob(String(here.seen[0]?.ctx.deliveryId));
    const { context } = (job?.data ?? {}) as { context: object };
    expect(Object.keys(context)).toEqual(['__proto__', 'a']);
    expect('polluted' in context).toBe(false);
  });

  it('jobOptions may be a function that returns nothing', async () => {
    const queue = open();
    const here = await testReceiver({
      handler: enqueue(queue, { jobOptions: (() => undefined) as unknown as () => object }),
    });
    expect(said(await here.deliver(payloads.tool('completed')))).toBe('accepted 200');
    expect(await queue.getJob(String(here.seen[0]?.ctx.deliveryId))).toBeDefined();
  });

  it('name, data and options can be set by event', async () => {
    const queue = open();
    const handler = enqueue(queue, {
      jobName: (event: DeliveryReportEvent) => `report ${event.report.notification_type}`,
      data: (event, ctx) => ({ buys: event.report.media_buy_deliveries?.length, sender: ctx.sender }),
      jobOptions: (event) => ({ attempts: 5, priority: event.report.notification_type === 'final' ? 1 : 2 }),
    });
    const here = await testReceiver({
      handler: async (event, ctx) => {
        if (event.kind === 'delivery-report') await handler(event, ctx);
      },
    });
    expect(said(await here.deliver(payloads.report('final')))).toBe('accepted 200');
    const { ctx } = here.seen[0] ?? {};
    expect(await queue.getJob(String(ctx?.deliveryId))).toMatchObject({
      name: 'report final',
      data: { buys: 1, sender: ctx?.sender },
      opts: { attempts: 5, priority: 1 },
    });
  });

  it('Redis keeps the id for 7 days, whether the job still exists or not', async () => {
    const queue = open();
    const here = await testReceiver({ handler: enqueue(queue) });
    await here.deliver(payloads.tool('completed'));
    const id = String(here.seen[0]?.ctx.deliveryId);
    const ms = await ask(server.port, (redis) => redis.pttl(`bull:${queue.name}:de:${id}`));
    expect(ms).toBeGreaterThan(6.99 * 86_400_000);
    expect(ms).toBeLessThanOrEqual(7 * 86_400_000);
  });

  it.each([
    ['its own removeOnComplete: true', { own: { removeOnComplete: true } }],
    ['its own removeOnComplete: 1, when another one is done', { own: { removeOnComplete: 1 } }],
    ['the worker’s removeOnComplete: { count: 0 }', { worker: { removeOnComplete: { count: 0 } } }],
    ['another producer’s job that keeps one', { other: { removeOnComplete: 1 } }],
    ['removeOnFail: true', { own: { removeOnFail: true }, fails: true }],
  ])(
    'a job that was removed by %s is not added again',
    async (_, { own = {}, worker = {}, other, fails }: Removal) => {
      const queue = open();
      const handler = enqueue(queue, { jobOptions: own });
      const here = await testReceiver({ handler });
      await here.deliver(payloads.tool('completed'));
      const [seen] = here.seen;
      const id = String(seen?.ctx.deliveryId);
      expect(await queue.getJob(id)).toBeDefined();
      await queue.add('other', {}, other ?? own);
      const running = new WORKERS[major](
        queue.name,
        async () => {
          if (fails) throw new Error('broken');
        },
        { connection: connection(`redis://127.0.0.1:${server.port}`), ...worker },
      );
      // Of two that are done in one millisecond BullMQ keeps either: another one is done later.
      const removed = async (): Promise<unknown> => {
        const job = await queue.getJob(id);
        if (job) await queue.add('other', {}, other ?? own);
        return job;
      };
      await expect.poll(removed).toBeUndefined();
      await expect
        .poll(() => queue.getJobCounts('waiting', 'active'))
        .toMatchObject({ waiting: 0, active: 0 });
      await running.close();
      if (seen) await handler(seen.event, seen.ctx);
      expect(await queue.count()).toBe(0);
      expect(await queue.getJob(id)).toBeUndefined();
    },
  );

  it.each(['waiting', 'delayed', 'prioritized'] as const)('a %s job is not added twice', async (state) => {
    const queue = open();
    const jobOptions = { waiting: {}, delayed: { delay: 3_600_000 }, prioritized: { priority: 3 } }[state];
    const handler = enqueue(queue, { jobOptions });
    const here = await testReceiver({
      handler: async (event, ctx) => {
        await handler(event, ctx);
        await handler(event, ctx);
      },
    });
    expect(said(await here.deliver(payloads.tool('completed')))).toBe('accepted 200');
    expect(await queue.getJobCounts()).toMatchObject({ [state]: 1 });
    expect(await queue.count()).toBe(1);
  });

  it('Redis is unavailable and the client fails fast: 503 handler_failed; the retry enqueues', async () => {
    const queue = open({ enableOfflineQueue: false });
    await queue.waitUntilReady();
    const here = await testReceiver({ handler: enqueue(queue) });
    const payload = payloads.tool('completed');
    await server.kill();
    expect(said(await here.deliver(payload))).toBe('unavailable handler_failed 503');
    await server.start();
    await expect.poll(() => queue.count().catch(() => undefined)).toBe(0);
    expect(await here.deliver(payload)).toMatchObject({ kind: 'accepted', state: 'applied' });
    expect(await queue.count()).toBe(1);
  });

  it('Redis is unavailable and the client waits: 503 at the deadline; the retry enqueues, once', async () => {
    const queue = open();
    await queue.waitUntilReady();
    const handler = enqueue(queue);
    const here = await testReceiver({ handler, handlerDeadlineMs: 100 });
    const patient = await testReceiver({ handler, state: here.state });
    const payload = payloads.tool('completed');
    await server.kill();
    expect(said(await here.deliver(payload))).toBe('unavailable handler_timeout 503');
    await server.start();
    // The first one's command is sent when the connection is back; this one comes behind it.
    await queue.count();
    expect(await patient.deliver(payload)).toMatchObject({ kind: 'accepted', state: 'applied' });
    expect(await queue.count()).toBe(1);
  });
});

describe('enqueue: what would lose or double an event is refused', () => {
  const unused = (): Promise<never> => Promise.reject(new Error('unused'));
  const queue: BullQueue<unknown, object> = { name: 'events', add: unused, removeDeduplicationKey: unused };

  it('rememberMs as a text', () => {
    const rememberMs = '604800000' as unknown as number;
    expect(() => enqueue(queue, { rememberMs })).toThrow(
      'bullmq enqueue: rememberMs: "604800000" is a string, not a whole number of ms of at least 86400000',
    );
  });

  it.each([0, 1000, 86_399_999, Number.NaN, Infinity])('rememberMs %d', (rememberMs) => {
    expect(() => enqueue(queue, { rememberMs })).toThrow(ConfigError);
    expect(() => enqueue(queue, { rememberMs })).toThrow(/rememberMs.*24 h/);
  });

  it.each(['jobId', 'deduplication', 'debounce', 'repeat', 'parent'])('jobOptions.%s', async (name) => {
    expect(() => enqueue(queue, { jobOptions: { [name]: 'x' } })).toThrow(ConfigError);
    let error: unknown;
    const late = enqueue(queue, { jobOptions: () => ({ [name]: 'x' }) });
    const here = await testReceiver({
      handler: (event, ctx) =>
        late(event, ctx).catch((thrown: unknown) => {
          error = thrown;
          throw thrown;
        }),
    });
    expect(said(await here.deliver(payloads.tool('completed')))).toBe('unavailable handler_failed 503');
    expect(error).toBeInstanceOf(ConfigError);
    expect(String(error)).toContain(`jobOptions.${name}`);
  });

  it.each([[undefined], ['events'], [{ connection: {} }]])('%j for a queue', (given) => {
    const make = () => enqueue(given as unknown as typeof queue);
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(/not a queue\. Write enqueue\(new Queue/);
  });

  it('an unknown option', () => {
    const make = () => enqueue(queue, { remeberMs: 1 } as object);
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(/remeberMs is not known.*rememberMs/);
  });

  it('a BullMQ without deduplication (before 5.17.1), before it takes a job', () => {
    const old = { name: 'old', add: unused } as unknown as typeof queue;
    expect(() => enqueue(old)).toThrow(ConfigError);
    expect(() => enqueue(old)).toThrow(/knows no deduplication.*Update bullmq to 5\.17\.1/);
  });

  it('a queue that ignores the option', async () => {
    const deaf = {
      ...queue,
      add: async (_n: string, _d: unknown, o?: object) => ({ id: (o as { jobId: string }).jobId }),
    };
    const here = await testReceiver({ handler: enqueue(deaf) });
    expect(said(await here.deliver(payloads.tool('completed')))).toBe('unavailable handler_failed 503');
  });

  it('another job took the event’s place', async () => {
    const other = {
      ...queue,
      add: async (_name: string, _data: unknown, o?: object) => ({
        id: 'another',
        deduplicationId: (o as { jobId: string }).jobId,
      }),
    };
    const here = await testReceiver({ handler: enqueue(other) });
    expect(said(await here.deliver(payloads.tool('completed')))).toBe('unavailable handler_failed 503');
  });
});
