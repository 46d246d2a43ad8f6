import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Alarm } from '../../../src/index.ts';
import { createForwarder, httpSink, type Sink, type SinkAttempt } from '../../../src/serve/sink/for-tests.ts';
import { createMemoryState, type MemoryState } from '../../../src/stores/for-tests.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import { loadOnDemand } from '../../../src/for-tests.ts';
import { testReceiver } from '../../receiver/setup.ts';
import { SILENT_LOGGER } from '../../support/silent-logger.ts';
import { payloads, SECRET } from './kit.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const CONCURRENCY = 16;
const BEGAN = Date.UTC(2026, 0, 1);

/** Requests that real sockets carry, which no virtual time ends. */
let underWay = 0;

beforeEach(async () => {
  await loadOnDemand();
  underWay = 0;
  const toFake = [
    'setTimeout',
    'clearTimeout',
    'setInterval',
    'clearInterval',
    'Date',
    'performance',
  ] as const;
  vi.useFakeTimers({ toFake: [...toFake], now: BEGAN });
});
/** Receivers that the test made. */
const receivers: { readonly stop: () => Promise<void> }[] = [];

afterEach(async () => {
  const stopped = Promise.all(receivers.splice(0).map((receiver) => receiver.stop()));
  await pass(MINUTE);
  await stopped;
  vi.useRealTimers();
});

/** Everything that can happen without time has happened. */
async function settled(): Promise<void> {
  for (let left = 10; left > 0; left -= 1) {
    await turn();
    if (underWay > 0) left = 10;
  }
}

/** Lets so much time pass, one timer after the other. Ms. */
async function pass(ms: number): Promise<void> {
  const time = { isOver: false };
  setTimeout(() => {
    time.isOver = true;
  }, ms);
  while (!time.isOver) {
    await settled();
    vi.advanceTimersToNextTimer();
  }
  await settled();
}

interface Try {
  readonly at: number;
  readonly id: string;
  readonly how: 'done' | 'fault';
  readonly key: string;
  readonly charged: number;
}

interface World {
  readonly receiver: Awaited<ReturnType<typeof testReceiver>>['receiver'];
  /** Delivers an event, which its key names. */
  readonly deliver: (key: string, members?: object) => Promise<void>;
  readonly tries: Try[];
  /** Events that the forwarder has at once, at most. */
  readonly most: () => number;
  readonly alarms: Alarm[];
  /** What the receiver has stored. */
  readonly state: MemoryState;
  /** Events by their state. */
  readonly states: () => Promise<Record<string, number>>;
}

/** A receiver in mode inbox on a memory store, which forwards to a sink. */
async function world(
  sink: Sink,
  options: { readonly attempts?: number; readonly leaseMs?: number } = {},
): Promise<World> {
  const tries: Try[] = [];
  const alarms: Alarm[] = [];
  const chargedOf = new Map<string, number>();
  let held = 0;
  let most = 0;
  const send = async (attempt: SinkAttempt): Promise<void> => {
    const { event, id } = attempt;
    const one = { at: Date.now() - BEGAN, id, key: event.idempotencyKey, charged: chargedOf.get(id) ?? 0 };
    underWay += 1;
    try {
      await sink.send(attempt);
      tries.push({ ...one, how: 'done' });
    } catch (error) {
      tries.push({ ...one, how: 'fault' });
      throw error;
    } finally {
      underWay -= 1;
    }
  };
  const forwarder = createForwarder(
    { ...sink, send },
    {
      onAlarm: (alarm) => void alarms.push(alarm),
      logger: SILENT_LOGGER,
      concurrency: CONCURRENCY,
      clock: {
        now: () => Date.now(),
        sleep: (ms, signal) =>
          new Promise((resolve) => {
            const timer = setTimeout(resolve, ms);
            signal.addEventListener('abort', () => {
              clearTimeout(timer);
              resolve();
            });
          }),
      },
    },
  );
  const state = createMemoryState();
  const store = memoryStore({ state });
  const made = await testReceiver({
    store,
    mode: 'inbox',
    leaseMs: options.leaseMs ?? 10 * MINUTE,
    worker: { concurrency: CONCURRENCY },
    retry: { attempts: options.attempts ?? 12 },
    onAlarm: (alarm) => void alarms.push(alarm),
    handler: async (event, ctx) => {
      held += 1;
      most = Math.max(most, held);
      chargedOf.set(ctx.deliveryId, ctx.chargedAttempts);
      try {
        await forwarder.handle(event, ctx);
      } finally {
        held -= 1;
      }
    },
  });
  receivers.push(made.receiver);
  return {
    receiver: made.receiver,
    tries,
    alarms,
    state,
    most: () => most,
    deliver: async (key, members = {}) => {
      const timestamp = new Date(Date.now()).toISOString();
      const body = payloads.tool('working', {
        idempotency_key: named(key),
        task_id: key,
        timestamp,
        ...members,
      });
      const { response } = await made.deliver(body);
      expect(response.status).toBe(200);
    },
    states: async () => {
      const { queued, leased, dead } = await made.receiver.inbox.stats();
      return { queued, leased, dead };
    },
  };
}

/** An idempotency key has 16 characters at least. */
const named = (key: string): string => `${key}-of-the-sellers-events`;

/** A sink that does what `fails` says: undefined where it takes the event. */
const scripted = (fails: (key: string) => Error | undefined): Sink => ({
  name: 'sink',
  send: async ({ event }) => {
    const fault = fails(event.idempotencyKey);
    if (fault) throw fault;
  },
  check: async () => {},
  close: async () => {},
});

const REFUSED = new Error('connect ECONNREFUSED 127.0.0.1:3000');

/** Whether attempts at a paused sink are a second apart, each with another event. */
function expectProbes(tries: readonly Try[]): void {
  for (const [n, one] of tries.entries()) {
    const before = tries[n - 1];
    if (!before) continue;
    expect(one.at - before.at).toBeGreaterThanOrEqual(SECOND);
    expect(one.id).not.toBe(before.id);
  }
}

describe('a sink that is away', () => {
  it('for an hour: nothing is lost, DEAD or charged, and the first event is out within a second of its return', async () => {
    let isUp = false;
    const { receiver, deliver, tries, most, alarms, states } = await world(
      scripted(() => (isUp ? undefined : REFUSED)),
    );
    for (let n = 0; n < 200; n += 1) await deliver(`task-${n}`);
    await receiver.start();
    for (let minute = 0; minute < 60; minute += 1) {
      for (let n = 0; n < 5; n += 1) await deliver(`late-${minute}-${n}`);
      await pass(MINUTE - (minute === 59 ? 300 : 0));
    }
    expect(await states()).toMatchObject({ dead: 0 });
    // Those at once, the first behind them, and one each second.
    expect(tries.slice(0, CONCURRENCY + 1).every(({ at }) => at < SECOND)).toBe(true);
    expectProbes(tries.slice(CONCURRENCY + 1));
    expect(tries.length).toBeGreaterThan(3_550);
    expect(tries.length).toBeLessThan(3_640);
    // Everything that waited had its turns, what came late too.
    expect(new Set(tries.map(({ id }) => id)).size).toBeGreaterThan(350);
    const returnedAt = Date.now() - BEGAN;
    isUp = true;
    await pass(5 * SECOND);
    const out = tries.filter(({ how }) => how === 'done');
    expect((out[0]?.at ?? Infinity) - returnedAt).toBeLessThanOrEqual(SECOND);
    await pass(MINUTE);
    expect(await states()).toEqual({ queued: 0, leased: 0, dead: 0 });
    expect(new Set(tries.filter(({ how }) => how === 'done').map(({ id }) => id)).size).toBe(500);
    expect(tries.filter(({ how }) => how === 'done')).toHaveLength(500);
    expect(new Set(tries.map(({ charged }) => charged))).toEqual(new Set([1]));
    expect(most()).toBeLessThanOrEqual(CONCURRENCY);
    const codes = alarms.map(({ code }) => code);
    expect(codes.filter((code) => code === 'sink_unavailable').length).toBe(1);
    expect(codes.filter((code) => !/^(sink_unavailable|queue_unattended)$/.test(code))).toEqual([]);
  });

  it('for an hour, with the only event there is: it is charged nothing', async () => {
    let isUp = false;
    const { receiver, deliver, tries, states } = await world(
      scripted(() => (isUp ? undefined : REFUSED)),
      {
        attempts: 1,
      },
    );
    await receiver.start();
    await deliver('task-1');
    await pass(60 * MINUTE);
    expect(await states()).toMatchObject({ dead: 0 });
    const gaps = tries.map(({ at }, n) => at - (tries[n - 1]?.at ?? at));
    // It is tried once a second, also where it is given back between.
    expect(Math.max(...gaps)).toBeLessThanOrEqual(1_050);
    isUp = true;
    await pass(2 * SECOND);
    expect(await states()).toEqual({ queued: 0, leased: 0, dead: 0 });
    expect(tries.at(-1)).toMatchObject({ how: 'done', charged: 1 });
  });

  it('gives what was held back uncharged where the process ends, due at once', async () => {
    const { receiver, deliver, tries, state } = await world(
      scripted(() => REFUSED),
      { attempts: 1, leaseMs: 10 * SECOND },
    );
    await receiver.start();
    for (let n = 0; n < 40; n += 1) await deliver(`task-${n}`);
    await pass(5 * SECOND);
    expect(await receiver.inbox.stats()).toMatchObject({ leased: CONCURRENCY, queued: 40 - CONCURRENCY });
    const stopped = receiver.stop();
    await pass(10 * SECOND);
    await stopped;
    const observer = memoryStore({ state });
    const { records = [] } = (await observer.inbox?.list({ state: 'queued', limit: 100 })) ?? {};
    expect(records).toHaveLength(40);
    expect(
      records.filter(({ attempts, crashes, notBefore }) => attempts + crashes > 0 || notBefore > Date.now()),
    ).toEqual([]);
    expect(records.filter(({ lastError }) => lastError?.includes(REFUSED.message))).toHaveLength(CONCURRENCY);
    expect(tries.filter(({ charged }) => charged !== 1)).toEqual([]);
  });
});

describe('a deploy of the sink', () => {
  it.each([
    ['404 and 401', [404, 401]],
    ['502, 503 and 403', [502, 503, 403]],
  ])('that answers %s for ten minutes makes nothing DEAD, on a real server', async (_, statuses) => {
    let asked = 0;
    let isUp = false;
    const taken: string[] = [];
    const server = createServer((request, response) => {
      request.resume().on('end', () => {
        asked += 1;
        if (isUp) taken.push(String(request.headers['webhook-id']));
        response.writeHead(isUp ? 204 : (statuses[asked % statuses.length] ?? 500)).end();
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/events`;
    const sink = httpSink({ url, secrets: [SECRET], timeoutMs: 15 * SECOND });
    onTestFinished(sink.close);
    const { receiver, deliver, tries, states, alarms } = await world(sink, { attempts: 1 });
    await receiver.start();
    for (let n = 0; n < 60; n += 1) await deliver(`task-${n}`);
    await pass(10 * MINUTE);
    expect(await states()).toMatchObject({ dead: 0 });
    expect(asked).toBeGreaterThan(590);
    expect(asked).toBe(tries.length);
    isUp = true;
    await pass(MINUTE);
    expect(await states()).toEqual({ queued: 0, leased: 0, dead: 0 });
    expect(taken).toHaveLength(60);
    expect(new Set(taken).size).toBe(60);
    expect(alarms.filter(({ code }) => code === 'dead')).toEqual([]);
  });
});

describe('an event that the sink fails while it takes others', () => {
  it('is DEAD after 12 charged runs, and the others flow', async () => {
    const poison = named('poison');
    const fault = new Error('the sink answered 500: no such column');
    const { receiver, deliver, tries, states, alarms } = await world(
      scripted((key) => (key === poison ? fault : undefined)),
    );
    await receiver.start();
    await deliver('poison');
    const delivered: number[] = [];
    while (alarms.every(({ code }) => code !== 'dead')) {
      delivered.push(Date.now() - BEGAN);
      await deliver(`task-${delivered.length}`);
      await pass(5 * SECOND);
      expect(delivered.length).toBeLessThan(600);
    }
    const [dead] = alarms.filter(({ code }) => code === 'dead');
    expect(dead).toMatchObject({ lastError: fault.message });
    const runs = tries.filter(({ key }) => key === poison).map(({ charged }) => charged);
    expect([...new Set(runs)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    await pass(5 * SECOND);
    expect(await states()).toEqual({ queued: 0, leased: 0, dead: 1 });
    const done = tries.filter(({ how }) => how === 'done');
    expect(done).toHaveLength(delivered.length);
    // The poison's pauses put nothing off by more than the second until the next attempt.
    for (const [n, { at }] of done.entries())
      expect(at - (delivered[n] ?? 0)).toBeLessThanOrEqual(2 * SECOND);
    expect(tries.filter(({ how, charged }) => how === 'done' && charged !== 1)).toEqual([]);
  });

  it('is DEAD beside another such, and neither takes others with it', async () => {
    const { receiver, deliver, tries, states, alarms } = await world(
      scripted((key) => (key.startsWith('poison') ? new Error(`500 for ${key}`) : undefined)),
      { attempts: 3 },
    );
    await receiver.start();
    await deliver('poison-1');
    await deliver('poison-2');
    let count = 0;
    while (alarms.filter(({ code }) => code === 'dead').length < 2) {
      count += 1;
      await deliver(`task-${count}`);
      await pass(2 * SECOND);
      expect(count).toBeLessThan(100);
    }
    await pass(10 * SECOND);
    expect(await states()).toEqual({ queued: 0, leased: 0, dead: 2 });
    expect(tries.filter(({ how }) => how === 'done')).toHaveLength(count);
    const errors = alarms.filter(({ code }) => code === 'dead').map(({ lastError }) => lastError);
    expect(new Set(errors)).toEqual(
      new Set([`500 for ${named('poison-1')}`, `500 for ${named('poison-2')}`]),
    );
  });
});

describe('events of one task', () => {
  it('reach the sink in their order, and what was overtaken does not', async () => {
    let isUp = false;
    const { receiver, deliver, tries, states } = await world(scripted(() => (isUp ? undefined : REFUSED)));
    await receiver.start();
    const STEPS = ['submitted', 'working', 'completed'];
    for (const [step, status] of STEPS.entries()) {
      for (let task = 0; task < 30; task += 1)
        await deliver(`${step}-task-${task}`, { status, task_id: `task-${task}` });
      await pass(90 * SECOND);
    }
    // A flapping sink, so that some are out and some are not.
    for (let n = 0; n < 20; n += 1) {
      isUp = n % 2 === 0;
      await pass(700);
    }
    isUp = true;
    await pass(2 * MINUTE);
    expect(await states()).toEqual({ queued: 0, leased: 0, dead: 0 });
    for (let task = 0; task < 30; task += 1) {
      const steps = tries
        .filter(({ key }) => key.includes(`-task-${task}-`))
        .map(({ key, how }) => ({ step: Number(key[0]), how }));
      const done = steps.filter(({ how }) => how === 'done').map(({ step }) => step);
      expect(done.at(-1)).toBe(2);
      expect(done).toEqual(done.toSorted((a, b) => a - b));
      expect(new Set(done).size).toBe(done.length);
      // Nothing is tried behind what has overtaken it.
      for (const [n, { step, how }] of steps.entries()) {
        if (how === 'done') expect(steps.slice(n + 1).every((later) => later.step > step)).toBe(true);
      }
    }
  });
});
