import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Fault, type Store } from '../../src/index.ts';
import type { LeaseDueRequest, LeaseDueResult } from '../../src/stores/index.ts';
import { createRegistrations } from '../../src/registrations/index.ts';
import { AGENT, gate, type TestReceiver, type TestReceiverOptions } from '../receiver/setup.ts';
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
import { NEWEST } from '../registrations/kit.ts';

const [A, B, C] = [eventKey(1), eventKey(2), eventKey(3)];

/** A worker on the memory store, whose `lease` and `alive` are the test's. */
let backend: Backend;
let started: Channel<string>;
let asked: Channel<LeaseDueRequest>;
let receivers: TestReceiver[];

type Lease = (
  request: LeaseDueRequest,
  real: (more?: object) => Promise<LeaseDueResult>,
) => Promise<LeaseDueResult>;

beforeEach(() => {
  backend = (BACKENDS['memory'] ?? expect.fail('memory'))();
  started = channel();
  asked = channel();
  receivers = [];
});

afterEach(async () => {
  for (const { receiver } of receivers) await receiver.stop();
  backend.remove();
});

async function open(
  lease: Lease,
  options: TestReceiverOptions,
  more: Partial<Store> = {},
): Promise<TestReceiver> {
  const store = backend.open();
  const inbox = inboxOf(store);
  const own = {
    ...store,
    ...more,
    inbox: {
      ...inbox,
      lease: (request: LeaseDueRequest) => {
        asked.push(request);
        return lease(request, (change = {}) => inbox.lease({ ...request, ...change }));
      },
    },
  };
  const setup = await inboxSetup(backend, { ...options, store: own });
  receivers.push(setup);
  return setup;
}

const suspects = ({ events, ...rest }: LeaseDueResult): LeaseDueResult => ({
  ...rest,
  events: events.map((event) => ({ ...event, lease: { ...event.lease, suspect: true } })),
});

/** As many turns as a worker would need to ask, were it to. */
async function turns(): Promise<void> {
  for (let n = 0; n < 50; n += 1) await turn();
}

describe('a worker with a suspect event', () => {
  it('lets running handlers finish, then leases the suspect alone until it has ended', async () => {
    const gates = new Map([A, B, C].map((key) => [key, gate()]));
    const calls: boolean[] = [];
    const setup = await open(
      async ({ alone = false }, real) => {
        calls.push(alone);
        // C is left for after the suspect.
        if (alone) return suspects(await real({ alone: false, max: 1 }));
        const result = await real({ max: 1 });
        return { ...result, suspectDue: calls.length === 1 };
      },
      {
        handler: async ({ idempotencyKey }) => {
          started.push(idempotencyKey);
          await gates.get(idempotencyKey)?.opened;
        },
        worker: { concurrency: 2, pollMs: 1 },
      },
    );
    for (const [n, key] of [A, B, C].entries()) await setup.deliver(status(key, `task-${n}`));
    await setup.receiver.start();
    expect(await started.next()).toBe(A);
    await turns();
    expect(calls).toEqual([false]);
    gates.get(A)?.open();
    expect(await started.next()).toBe(B);
    await turns();
    expect(calls).toEqual([false, true]);
    gates.get(B)?.open();
    expect(await started.next()).toBe(C);
    expect(calls.slice(0, 3)).toEqual([false, true, false]);
    gates.get(C)?.open();
    const [first, second] = [await asked.next(), await asked.next()];
    expect([first.max, first.alone, second.max, second.alone]).toEqual([2, undefined, 1, true]);
    expect(second.process).toBe(first.process);
  });

  it('goes on with other events when another worker has taken it', async () => {
    const calls: boolean[] = [];
    const setup = await open(
      async ({ alone = false }, real) => {
        calls.push(alone);
        if (alone) return { events: [], died: [], suspectDue: true };
        return calls.length === 1 ? { events: [], died: [], suspectDue: true } : real();
      },
      { handler: ({ idempotencyKey }) => started.push(idempotencyKey), worker: { pollMs: 1 } },
    );
    await setup.deliver(status(A, 'task-1'));
    await setup.receiver.start();
    expect(await started.next()).toBe(A);
    expect(calls.slice(0, 3)).toEqual([false, true, false]);
  });
});

describe('a worker and the deliveries of its process', () => {
  const NONE: LeaseDueResult = { events: [], died: [] };
  const SUSPECT = { kind: 'in-flight', changed: false, suspect: true, pressure: [] } as const;

  /** An inline door with a worker, for a store whose events are all suspects. */
  function both(lease: Lease, alone: Store['accept']): Promise<TestReceiver> {
    const store = backend.open();
    const registrations = createRegistrations({
      store,
      baseUrl: 'https://buyer.example',
      secrets: [NEWEST],
    });
    const accept: Store['accept'] = async (request) => (request.alone ? alone(request) : SUSPECT);
    return open(lease, { mode: 'inline', registrations, worker: { pollMs: 1 } }, { ...store, accept });
  }

  it('have one place for a suspect: the worker asks for none while a delivery does', async () => {
    const asks = gate();
    const answered = gate();
    const setup = await both(
      async () => ({ ...NONE, suspectDue: true }),
      async () => {
        asks.open();
        await answered.opened;
        return SUSPECT;
      },
    );
    const delivered = setup.deliver(status(A, 'task-1'));
    await asks.opened;
    await setup.receiver.start();
    const looks: (boolean | undefined)[] = [];
    for (let look = 0; look < 3; look += 1) looks.push((await asked.next()).alone);
    answered.open();
    expect(looks).toEqual([undefined, undefined, undefined]);
    expect(await delivered).toMatchObject({ kind: 'unavailable', code: 'in_flight' });
    while (!(await asked.next()).alone);
  });

  it('a delivery asks for none while the worker does, nor for a lease after that got no answer', async () => {
    const asks = gate();
    const failed = gate();
    const setup = await both(
      async ({ alone }) => {
        if (!alone) return { ...NONE, suspectDue: true };
        asks.open();
        await failed.opened;
        throw new Fault('store_unavailable', 'the answer did not arrive');
      },
      () => expect.fail('a delivery has asked'),
    );
    await setup.receiver.start();
    await asks.opened;
    expect(await setup.deliver(status(A, 'task-1'))).toMatchObject({ code: 'in_flight' });
    failed.open();
    while ((await asked.next()).alone !== true);
    // The look after that which failed.
    await asked.next();
    expect(await setup.deliver(status(B, 'task-2'))).toMatchObject({ code: 'in_flight' });
  });
});

describe('events that run in this process', () => {
  it('are excluded from the lease request', async () => {
    const { opened, open: release } = gate();
    const setup = await open((_, real) => real(), {
      handler: async ({ idempotencyKey }) => {
        started.push(idempotencyKey);
        await opened;
      },
    });
    await setup.deliver(status(A, 'task-1'));
    await setup.receiver.start();
    await started.next();
    expect((await asked.next()).except).toBeUndefined();
    expect((await asked.next()).except).toEqual([{ sender: AGENT, key: A }]);
    release();
  });

  it('are not started a second time, even when a store returns them', async () => {
    const { opened, open: release } = gate();
    const back = gate<unknown>();
    const store = backend.open();
    const setup = await open(
      // A store that knows no `except`.
      async ({ except: _except, ...request }) => inboxOf(store).lease(request),
      {
        handler: async ({ idempotencyKey }) => {
          started.push(idempotencyKey);
          await opened;
        },
        leaseMs: 60_000,
        worker: { pollMs: 5 },
      },
      {
        fail: async (request) => {
          back.open(request);
          return store.fail(request);
        },
      },
    );
    await setup.deliver(status(A, 'task-1'));
    await setup.receiver.start();
    await started.next();
    backend.advance(61_000);
    expect(await back.opened).toMatchObject({ key: A, unstarted: true });
    expect(setup.seen).toHaveLength(1);
    release();
  });
});

describe('after the store was unavailable for longer than a lease', () => {
  const TIMES = { leaseMs: 80, advanced: { renewMs: 60 }, worker: { pollMs: 5 } } as const;

  it('a worker renews first and waits one renewMs before it leases', async () => {
    const steps: { readonly what: string; readonly at: number }[] = [];
    const note = (what: string): number => steps.push({ what, at: performance.now() });
    // The gap begins with the first call, and ends with one that is refused when it was long enough: whatever this
    // process takes for the rest, the worker has seen all of it when the store is back.
    let firstAt: number | undefined;
    let isAway = true;
    const reach = (): void => {
      if (!isAway) return;
      firstAt ??= performance.now();
      isAway = performance.now() - firstAt < 2 * TIMES.leaseMs;
      throw new Fault('store_unavailable', 'away');
    };
    const setup = await open(
      async (_, real) => {
        reach();
        note('lease');
        return real();
      },
      { ...TIMES, handler: ({ idempotencyKey }) => started.push(idempotencyKey) },
      {
        alive: async () => {
          reach();
          note('alive');
        },
      },
    );
    await setup.deliver(status(A, 'task-1'));
    await setup.receiver.start();
    await started.next();
    const first = steps.findIndex(({ what }) => what === 'lease');
    // More than once where this process then stood still for another lease.
    const [alive, lease] = [steps[first - 1], steps[first]];
    expect([alive?.what, lease?.what]).toEqual(['alive', 'lease']);
    expect((lease?.at ?? 0) - (alive?.at ?? 0)).toBeGreaterThanOrEqual(TIMES.advanced.renewMs - 1);
  });

  it('an idle worker leases at once when notified, however long it would have slept', async () => {
    let beats = 0;
    const setup = await open(
      (_, real) => real(),
      { leaseMs: 1_000, handler: ({ idempotencyKey }) => started.push(idempotencyKey) },
      {
        alive: async () => {
          beats += 1;
        },
      },
    );
    await setup.receiver.start();
    await asked.next();
    await new Promise((resolve) => {
      setTimeout(resolve, 1_100);
    });
    await setup.deliver(status(A, 'task-1'));
    await started.next();
    expect(beats).toBe(0);
    await setup.receiver.stop();
    expect(await seenRecord(await open((_, real) => real(), {}), A)).toMatchObject({ state: 'applied' });
  });
});

describe('on a clock that is moved, at default settings', () => {
  const [LEASE_MS, RENEW_MS, CONCURRENCY, STEP_MS] = [30_000, 7_500, 10, 250];
  const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000];
  const RETRY = { attempts: 12, crashes: 5, maxMs: 300_000 };

  interface World {
    /** How long its handler takes; of a poison, until it ends its process. Ms. */
    readonly events: ReadonlyMap<string, number>;
    readonly poison?: string;
    /** A process ends after so long, whatever it runs. */
    readonly livesMs: (at: number) => number;
    readonly untilMs: number;
  }

  interface Run {
    readonly owner: string;
    readonly endsAt: number;
    readonly suspect: boolean;
  }

  /** A worker of one process after the other, as `createWorker` and `createRunning` are, but that its time is given. */
  async function work({ events, poison, livesMs, untilMs }: World) {
    const store = backend.open();
    const inbox = inboxOf(store);
    const dead = new Map<string, number>();
    const done = new Map<string, number>();
    const poisoned: number[] = [];
    let [process, diesAt, beatenAt, leases] = [0, livesMs(0), 0, 0];
    let next: 'any' | 'alone' = 'any';
    let runs = new Map<string, Run>();

    function ends(at: number): boolean {
      const ended = poison !== undefined && (runs.get(poison)?.endsAt ?? Infinity) <= at;
      if (ended) poisoned.push(runs.size);
      return ended || at >= diesAt;
    }

    async function settle(at: number): Promise<void> {
      for (const [key, { owner, endsAt }] of runs) {
        if (endsAt > at) continue;
        expect(await store.complete({ sender: AGENT, key, owner, retentionMs: 24 * HOUR_MS })).toBe('done');
        runs.delete(key);
        done.set(key, at);
      }
      if (runs.size === 0 || at - beatenAt < RENEW_MS) return;
      beatenAt = at;
      await store.alive?.({ process: `process ${process}`, forMs: LEASE_MS - RENEW_MS });
      for (const [key, { owner }] of runs)
        await store.renew({ sender: AGENT, key, owner, leaseMs: LEASE_MS });
    }

    async function look(at: number): Promise<void> {
      const alone = next === 'alone';
      const isFree = alone ? runs.size === 0 : ![...runs.values()].some(({ suspect }) => suspect);
      const max = isFree ? (alone ? 1 : CONCURRENCY - runs.size) : 0;
      if (max === 0) return;
      const owner = `lease ${(leases += 1)}`;
      const result = await inbox.lease({
        owner,
        max,
        leaseMs: LEASE_MS,
        process: `process ${process}`,
        except: [...runs.keys()].map((key) => ({ sender: AGENT, key })),
        ...(alone && { alone }),
        retry: RETRY,
        retentionMs: 24 * HOUR_MS,
        senders: [AGENT],
      });
      for (const { key } of result.died) dead.set(key, at);
      for (const { key, lease } of result.events) {
        const endsAt = at + (events.get(key) ?? expect.fail(key));
        runs.set(key, { owner, endsAt, suspect: lease.suspect === true });
      }
      next = result.suspectDue && !alone ? 'alone' : 'any';
    }

    for (let at = 0; at < untilMs && done.size + dead.size < events.size; at += STEP_MS) {
      backend.advance(STEP_MS);
      if (ends(at)) {
        runs = new Map();
        [process, diesAt, beatenAt, next] = [process + 1, at + livesMs(at), at, 'any'];
      }
      await settle(at);
      await look(at);
    }
    return { dead, done, poisoned };
  }

  async function queued(count: number, handlerMs: number): Promise<Map<string, number>> {
    const setup = await inboxSetup(backend);
    receivers.push(setup);
    const keys = Array.from({ length: count }, (_, n) => eventKey(n));
    for (const key of keys) await setup.deliver(status(key, `task of ${key}`));
    return new Map(keys.map((key) => [key, handlerMs]));
  }

  it.each([
    ['2.5 s, handlers take 4 s', 2_500, 4_000],
    ['7 s, handlers take 12 s', 7_000, 12_000],
    ['20 s, handlers take 25 s', 20_000, 25_000],
    ['35 s, longer than a lease, handlers take 50 s', 35_000, 50_000],
  ])(
    'a process that is killed every %s, for an hour: no event is DEAD, and all are handled after it',
    async (_, everyMs, handlerMs) => {
      const events = await queued(12, handlerMs);
      const livesMs = (at: number): number => (at < HOUR_MS ? everyMs : Infinity);
      const { dead, done } = await work({ events, livesMs, untilMs: 3 * HOUR_MS });
      expect([...dead]).toEqual([]);
      expect([...done.keys()].toSorted()).toEqual([...events.keys()]);
      expect(Math.min(...done.values())).toBeGreaterThan(HOUR_MS);
    },
  );

  it('an event that ends its process is DEAD within two hours, and no other is charged, or waits for it', async () => {
    const events = await queued(12, 4_000);
    const poison = eventKey(3);
    const { dead, done, poisoned } = await work({
      events: events.set(poison, 1_000),
      poison,
      livesMs: () => Infinity,
      untilMs: 3 * HOUR_MS,
    });
    expect([...dead.keys()]).toEqual([poison]);
    expect(dead.get(poison)).toBeLessThan(2 * HOUR_MS);
    // Beside others the first time alone.
    expect(poisoned).toEqual([CONCURRENCY, 1, 1, 1, 1, 1]);
    expect(Math.max(...done.values())).toBeLessThan(5 * MINUTE_MS);
    for (const key of done.keys())
      expect(await inboxOf(backend.open()).inspect(AGENT, key)).toMatchObject({
        state: 'applied',
        crashes: 0,
      });
  });
});
