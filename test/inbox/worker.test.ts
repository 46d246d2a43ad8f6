import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Fault, type HandlerContext, PermanentError, type Store } from '../../src/index.ts';
import type { InboxRecord, LeaseDueRequest, LeaseDueResult } from '../../src/stores/index.ts';
import { gate, type TestReceiver, type TestReceiverOptions } from '../receiver/setup.ts';
import {
  BACKENDS,
  channel,
  eventKey,
  inboxSetup,
  inboxOf,
  seenRecord,
  status,
  type Backend,
  type Channel,
} from './setup.ts';

const KEY = eventKey(1);

/** A store whose `inbox.lease` is the test's. */
function withLease(
  store: Store,
  lease: (request: LeaseDueRequest, real: () => Promise<LeaseDueResult>) => Promise<LeaseDueResult>,
): Store {
  const inbox = inboxOf(store);
  return { ...store, inbox: { ...inbox, lease: (request) => lease(request, () => inbox.lease(request)) } };
}

describe.each(Object.keys(BACKENDS))('worker on %s', (name) => {
  let backend: Backend;
  /** Looks at what is stored, beside the receivers. */
  let observer: Store;
  let started: Channel<HandlerContext>;
  const receivers: TestReceiver[] = [];

  beforeEach(async () => {
    backend = (BACKENDS[name] ?? expect.fail(name))();
    observer = backend.open();
    await observer.open();
    started = channel();
  });

  afterEach(async () => {
    for (const { receiver } of receivers.splice(0)) await receiver.stop();
    await observer.close();
    backend.remove();
  });

  const open = async (options: TestReceiverOptions): Promise<TestReceiver> => {
    const made = await inboxSetup(backend, options);
    receivers.push(made);
    return made;
  };
  /** A setup whose handlers say that they have started, and then do as told. */
  const working = (
    handler: (ctx: HandlerContext) => unknown,
    options: TestReceiverOptions = {},
  ): Promise<TestReceiver> =>
    open({
      handler: (_, ctx) => {
        started.push(ctx);
        return handler(ctx);
      },
      ...options,
    });
  const listed = async (state: 'queued' | 'leased'): Promise<readonly InboxRecord[]> =>
    (await inboxOf(observer).list({ state, limit: 1000 })).records;
  const record = async (key: string): Promise<InboxRecord> =>
    (await inboxOf(observer).inspect('https://seller.example/mcp', key)) ?? expect.fail(`${key} is unknown`);

  it('runs handlers of one task one after the other, of different tasks at once', async () => {
    const running = new Map<string, number>();
    let most = 0;
    const done = channel<string>();
    const { deliver, receiver } = await open({
      handler: async (event) => {
        const task = event.taskId ?? '';
        const beside = (running.get(task) ?? 0) + 1;
        running.set(task, beside);
        const all = [...running.values()].reduce((sum, n) => sum + n, 0);
        most = Math.max(most, all);
        for (let n = 0; n < 10; n += 1) await turn();
        running.set(task, (running.get(task) ?? 0) - 1);
        done.push(beside === 1 ? 'alone' : `${task} overlaps`);
      },
      worker: { concurrency: 10, pollMs: 60_000 },
    });
    for (let n = 0; n < 40; n += 1) await deliver(status(eventKey(n), `task-${n % 4}`));
    await receiver.start();
    for (let n = 0; n < 40; n += 1) expect(await done.next()).toBe('alone');
    expect(most).toBe(4);
  });

  it('runs what was queued before the store’s clock was set back, and raises an alarm', async () => {
    backend.advance(7_200_000);
    const { deliver, receiver, alarms } = await working(() => undefined);
    await deliver(status(eventKey(1), 'task-1'));
    backend.advance(-7_200_000);
    await receiver.start();
    await started.next();
    expect(alarms.filter(({ code }) => code === 'clock_stepped')).toEqual([
      {
        code: 'clock_stepped',
        steppedMs: expect.any(Number),
        message: expect.stringMatching(/^the store's clock was set back by \d+ s: waiting events/),
      },
    ]);
  });

  it('leases no more than it can run', async () => {
    const gates = Array.from({ length: 6 }, () => gate());
    let runs = 0;
    const asked: number[] = [];
    const store = withLease(backend.open(), (request, real) => {
      asked.push(request.max);
      return real();
    });
    const { deliver, receiver } = await working(() => gates[runs++]?.opened, {
      store,
      worker: { concurrency: 3, batch: 2, pollMs: 60_000 },
    });
    for (let n = 0; n < 6; n += 1) await deliver(status(eventKey(n), `task-${n}`));
    await receiver.start();
    for (let n = 0; n < 3; n += 1) await started.next();
    expect([(await listed('leased')).length, (await listed('queued')).length]).toEqual([3, 3]);
    expect(asked).toEqual([2, 1]);
    gates[1]?.open();
    await started.next();
    expect([(await listed('leased')).length, (await listed('queued')).length]).toEqual([3, 2]);
    for (const { open } of gates) open();
    for (let n = 0; n < 2; n += 1) await started.next();
    expect(Math.max(...asked)).toBe(2);
  });

  it('renews the lease of a handler that runs longer', async () => {
    const renewed = channel<string>();
    const store = backend.open();
    const { opened, open: release } = gate();
    const setup = await working(() => opened, {
      store: {
        ...store,
        renew: async (request) => {
          const answer = await store.renew(request);
          renewed.push(answer);
          return answer;
        },
      },
      leaseMs: 60_000,
      advanced: { renewMs: 5 },
    });
    await setup.deliver(status(KEY, 'task-1'));
    await setup.receiver.start();
    await started.next();
    const { leaseUntil } = await record(KEY);
    // Beyond the first lease by the store's clock, in steps that a renewal comes between.
    for (let n = 0; n < 4; n += 1) {
      backend.advance(50_000);
      expect([await renewed.next(), await renewed.next()]).toEqual(['renewed', 'renewed']);
    }
    expect((await record(KEY)).leaseUntil).toBeGreaterThan(leaseUntil + 190_000);
    release();
    await setup.receiver.stop();
    expect(await record(KEY)).toMatchObject({ state: 'applied', attempts: 1, crashes: 0 });
  });

  it('aborts the signal of a handler whose lease another process took, and completes nothing', async () => {
    const aborted = channel<unknown>();
    const store = backend.open();
    const { opened: hasTaken, open: taken } = gate();
    const logged: unknown[] = [];
    const log = (fields: object, message: string): void => void logged.push({ ...fields, message });
    const here = await working(
      ({ signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            aborted.push(signal.reason);
            resolve(undefined);
          });
        }),
      {
        store: {
          ...store,
          // A process that cannot reach the store while its lease runs out.
          renew: async (request) => {
            await hasTaken;
            return store.renew(request);
          },
        },
        logger: { debug: log, info: log, warn: log, error: log },
        leaseMs: 5000,
        advanced: { renewMs: 20 },
      },
    );
    await here.deliver(status(KEY, 'task-1'));
    await here.receiver.start();
    await started.next();
    backend.advance(10_000);
    const there = await working(() => {});
    await there.receiver.start();
    await started.next();
    await there.receiver.stop();
    expect(await record(KEY)).toMatchObject({ state: 'applied' });
    taken();
    expect(await aborted.next()).toMatchObject({ code: 'lease_lost' });
    await here.receiver.stop();
    expect([here.seen.length, there.seen.length]).toEqual([1, 1]);
    expect(logged).toContainEqual(
      expect.objectContaining({ code: 'lease_lost', message: 'event not settled' }),
    );
  });

  it('aborts the signal of a handler past its deadline, keeps its lease, and applies it when it returns', async () => {
    const { opened, open: release } = gate();
    const fired = channel<unknown>();
    const setup = await working(
      async ({ signal }) => {
        signal.addEventListener('abort', () => fired.push(signal.reason));
        await opened;
      },
      { handlerDeadlineMs: 10 },
    );
    await setup.deliver(status(KEY, 'task-1'));
    await setup.receiver.start();
    await started.next();
    expect(await fired.next()).toMatchObject({ code: 'handler_timeout' });
    expect(await record(KEY)).toMatchObject({ state: 'leased' });
    release();
    await setup.receiver.stop();
    expect(await record(KEY)).toMatchObject({ state: 'applied', attempts: 1 });
  });

  it('stop() waits for running handlers and leases nothing more', async () => {
    const { opened, open: release } = gate();
    const setup = await working(() => opened, { worker: { concurrency: 1 } });
    await setup.deliver(status(eventKey(1), 'task-1'));
    await setup.deliver(status(eventKey(2), 'task-2'));
    await setup.receiver.start();
    await started.next();
    const stopped = setup.receiver.stop();
    release();
    await stopped;
    expect(await record(eventKey(1))).toMatchObject({ state: 'applied' });
    expect(await record(eventKey(2))).toMatchObject({ state: 'queued', attempts: 0 });
    expect(setup.seen).toHaveLength(1);
  });

  it('stop() releases leased events that have not begun, without counting an attempt', async () => {
    const asked = gate();
    const answer = gate();
    const store = withLease(backend.open(), async (_, real) => {
      const result = await real();
      asked.open();
      await answer.opened;
      return result;
    });
    const setup = await working(() => {}, { store, retry: { attempts: 1 } });
    await setup.deliver(status(eventKey(1), 'task-1'));
    await setup.deliver(status(eventKey(2), 'task-2'));
    await setup.receiver.start();
    await asked.opened;
    expect(await listed('leased')).toHaveLength(2);
    const stopped = setup.receiver.stop();
    answer.open();
    await stopped;
    expect(setup.seen).toEqual([]);
    expect(await listed('leased')).toEqual([]);
    const back = await listed('queued');
    expect(back.map(({ attempts, crashes }) => [attempts, crashes])).toEqual([
      [0, 0],
      [0, 0],
    ]);
    const next = await working(() => {});
    await next.receiver.start();
    expect([(await started.next()).chargedAttempts, (await started.next()).chargedAttempts]).toEqual([1, 1]);
  });

  it('stop() aborts handlers that do not finish: the next worker gets their events without a counted attempt', async () => {
    const setup = await working(
      ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        }),
      { leaseMs: 1000, retry: { attempts: 1, baseMs: 300_000, maxMs: 300_000 } },
    );
    await setup.deliver(status(KEY, 'task-1'));
    await setup.receiver.start();
    await started.next();
    await setup.receiver.stop();
    expect(await record(KEY)).toMatchObject({ state: 'queued', attempts: 0, crashes: 0 });
    const next = await working(() => {});
    await next.receiver.start();
    expect((await started.next()).chargedAttempts).toBe(1);
  });

  it('an aborted handler that throws PermanentError makes its event DEAD', async () => {
    const setup = await working(
      ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new PermanentError('no such media buy')));
        }),
      { leaseMs: 1000 },
    );
    await setup.deliver(status(KEY, 'task-1'));
    await setup.receiver.start();
    await started.next();
    await setup.receiver.stop();
    expect(await record(KEY)).toMatchObject({ state: 'dead', lastError: 'no such media buy' });
  });

  it('leases whose answers are lost count no attempt: no handler ran', async () => {
    let lost = 0;
    const store = withLease(backend.open(), async (_, real) => {
      const result = await real();
      if (lost === 3 || result.events.length === 0) return result;
      lost += 1;
      backend.advance(10_000);
      throw new Fault('store_unavailable', 'the answer was lost');
    });
    const setup = await working(() => {}, {
      store,
      leaseMs: 5000,
      retry: { attempts: 1, crashes: 1 },
      worker: { pollMs: 5 },
    });
    await setup.deliver(status(KEY, 'task-1'));
    await setup.receiver.start();
    expect((await started.next()).chargedAttempts).toBe(1);
    await setup.receiver.stop();
    expect(lost).toBe(3);
    expect(await record(KEY)).toMatchObject({ state: 'applied', attempts: 1, crashes: 0 });
    expect(setup.alarms).toEqual([]);
  });

  it('stop() leaves a handler that ignores its signal: another worker gets the event when the lease expires', async () => {
    const { opened, open: release } = gate();
    const setup = await working(() => opened, { leaseMs: 40 });
    await setup.deliver(status(KEY, 'task-1'));
    await setup.receiver.start();
    await started.next();
    await setup.receiver.stop();
    expect(await record(KEY)).toMatchObject({ state: 'leased', attempts: 1 });
    backend.advance(1000);
    const next = await working(() => {});
    await next.receiver.start();
    await started.next();
    await next.receiver.stop();
    expect(await record(KEY)).toMatchObject({ state: 'applied' });
    expect([setup.seen.length, next.seen.length]).toEqual([1, 1]);
    release();
  });

  it('a run that ends after stop() does not keep calling a closed store', async () => {
    const { opened, open: release } = gate();
    const logged = channel<string>();
    const log = (_: object, message: string): void => logged.push(message);
    const store = backend.open();
    let calls = 0;
    const closed: Store = {
      ...store,
      complete: async (request) => {
        calls += 1;
        return store.complete(request);
      },
    };
    const logger = { debug: log, info: log, warn: log, error: log };
    const setup = await working(() => opened, { store: closed, leaseMs: 400, logger });
    await setup.deliver(status(KEY, 'task-1'));
    await setup.receiver.start();
    await started.next();
    await setup.receiver.stop();
    release();
    while (!(await logged.next()).startsWith('the end of a run could not be stored'));
    expect(calls).toBe(1);
  });

  it('an unavailable store is asked again until it answers', async () => {
    let failures = 3;
    const store = withLease(backend.open(), (_, real) => {
      failures -= 1;
      return failures >= 0 ? Promise.reject(new Fault('store_unavailable', 'away')) : real();
    });
    const { deliver, receiver } = await working(() => {}, { store, worker: { pollMs: 1 } });
    await deliver(status(KEY, 'task-1'));
    await receiver.start();
    expect((await started.next()).chargedAttempts).toBe(1);
  });

  it('a completion that the store fails is sent again, without running the handler again', async () => {
    let failures = 2;
    const store = backend.open();
    const setup = await working(() => {}, {
      store: {
        ...store,
        complete: (request) => {
          failures -= 1;
          return failures >= 0
            ? Promise.reject(new Fault('store_unavailable', 'away'))
            : store.complete(request);
        },
      },
    });
    await setup.deliver(status(KEY, 'task-1'));
    await setup.receiver.start();
    await started.next();
    await setup.receiver.stop();
    expect(await record(KEY)).toMatchObject({ state: 'applied', attempts: 1 });
  });

  it('a thrown value that only looks like an error does not stop it', async () => {
    const thrown: unknown[] = [undefined, 'text', { toString: undefined }, new Error('', { cause: 1 })];
    const { deliver, receiver } = await working(() => {
      if (thrown.length > 0) throw thrown.shift();
    });
    await deliver(status(KEY, 'task-1'));
    await receiver.start();
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      expect((await started.next()).chargedAttempts).toBe(attempt);
    }
  });

  it('a stored body that is no longer readable fails like a handler and ends DEAD', async () => {
    const alarms = channel<string>();
    const store = withLease(backend.open(), async (_, real) => {
      const result = await real();
      return { ...result, events: result.events.map((event) => ({ ...event, body: new Uint8Array([123]) })) };
    });
    const setup = await working(() => {}, {
      store,
      retry: { attempts: 2, baseMs: 1, maxMs: 1 },
      onAlarm: ({ code }) => alarms.push(code),
    });
    await setup.deliver(status(KEY, 'task-1'));
    await setup.receiver.start();
    expect(await alarms.next()).toBe('dead');
    const dead = await seenRecord(setup, KEY);
    expect(dead).toMatchObject({ state: 'dead', attempts: 2 });
    expect(dead.lastError).toMatch(/cannot be read any more/);
    expect(setup.seen).toEqual([]);
  });
});
