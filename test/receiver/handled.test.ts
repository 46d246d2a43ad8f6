import { afterEach, describe, expect, it } from 'vitest';
import { type Handled, PermanentError, type Receiver } from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { BACKENDS, channel, eventKey, inboxSetup, status } from '../inbox/setup.ts';
import {
  AGENT,
  gate,
  testReceiver,
  payloads,
  said,
  type TestReceiver,
  type TestReceiverOptions,
  URL_GIVEN,
} from './setup.ts';

const receivers: Receiver[] = [];

afterEach(async () => {
  for (const receiver of receivers.splice(0)) await receiver.stop();
});

/** A receiver, and what its hook is told, in order. */
async function watched(
  options: TestReceiverOptions = {},
  make: (with_: TestReceiverOptions) => Promise<TestReceiver> = testReceiver,
) {
  const told = channel<Handled>();
  const all: Handled[] = [];
  const onHandled = (handled: Handled): void => {
    all.push(handled);
    told.push(handled);
  };
  const made = await make({ onHandled, ...options });
  receivers.push(made.receiver);
  return { ...made, all, told };
}

const payload = (key: string, more: object = {}): object =>
  payloads.tool('completed', {
    idempotency_key: key,
    task_id: 'task-1',
    operation_id: 'operation-1',
    ...more,
  });

const KEY = eventKey(1);

describe('onHandled, inline', () => {
  it('is called for an applied run, with the ids of its event, and not for a duplicate', async () => {
    const { deliver, seen, all } = await watched();
    await deliver(payload(KEY));
    expect(said(await deliver(payload(KEY)))).toBe('duplicate 200');
    expect(all).toEqual([
      {
        url: URL_GIVEN,
        sender: AGENT,
        key: KEY,
        deliveryId: seen[0]?.ctx.deliveryId,
        taskId: 'task-1',
        operationId: 'operation-1',
        kind: 'task',
        status: 'completed',
        state: 'applied',
        run: 1,
        chargedAttempts: 1,
        waitedMs: expect.any(Number) as number,
        durationMs: expect.any(Number) as number,
      },
    ]);
    expect(Object.isFrozen(all[0])).toBe(true);
    expect(Math.min(all[0]?.waitedMs ?? -1, all[0]?.durationMs ?? -1)).toBeGreaterThanOrEqual(0);
  });

  it('measures by the receiver’s clock how long the delivery waited', async () => {
    const start = Date.now();
    let now = start;
    const store = memoryStore();
    const later: typeof store.accept = (request) => {
      now = start + 250;
      return store.accept(request);
    };
    const { deliver, all } = await watched({ store: { ...store, accept: later }, now: () => now });
    await deliver(payload(KEY), { now: () => start });
    expect(all[0]?.waitedMs).toBe(250);
  });

  it('counts a thrown error whose code cannot be read as any other', async () => {
    const unreadable = Object.defineProperty(new Error('the database is away'), 'code', {
      get: () => {
        throw new Error('no code');
      },
    });
    const { deliver, all } = await watched({
      handler: () => {
        throw unreadable;
      },
    });
    expect(said(await deliver(payload(KEY)))).toBe('unavailable handler_failed 503');
    expect(all).toMatchObject([{ state: 'failed', error: 'the database is away', chargedAttempts: 1 }]);
  });

  it('reports failed with the error, then dead, as the alarm, inspect and list do', async () => {
    const thrown = [new Error('the database is away'), new PermanentError('no such order')];
    const { deliver, all, alarms, receiver } = await watched({
      handler: () => {
        throw thrown.shift() ?? new Error('called too often');
      },
    });
    await deliver(payload(KEY));
    expect(await deliver(payload(KEY))).toMatchObject({ kind: 'accepted', state: 'dead' });
    expect(all).toMatchObject([
      { state: 'failed', error: 'the database is away', run: 1, chargedAttempts: 1 },
      { state: 'dead', error: 'no such order' },
    ]);
    const [, dead] = all;
    const ids = { sender: AGENT, key: KEY, deliveryId: dead?.deliveryId, taskId: 'task-1' };
    expect(alarms.filter(({ code }) => code === 'dead')).toMatchObject([
      { ...ids, operationId: 'operation-1', run: 2, chargedAttempts: 1, lastError: 'no such order' },
    ]);
    expect(await receiver.inbox.inspect(AGENT, KEY)).toMatchObject({
      ...ids,
      operationId: 'operation-1',
      lastError: 'no such order',
    });
    expect((await receiver.inbox.list({ state: 'dead' })).records).toMatchObject([
      { ...ids, lastError: 'no such order' },
    ]);
  });

  it('is called once for a run past its deadline, when it ends', async () => {
    const held = gate();
    const { deliver, all, told } = await watched({ handlerDeadlineMs: 20, handler: () => held.opened });
    expect(said(await deliver(payload(KEY)))).toBe('unavailable handler_timeout 503');
    expect(all).toEqual([]);
    held.open();
    expect(await told.next()).toMatchObject({ key: KEY, state: 'applied' });
    expect(all).toHaveLength(1);
  });

  it('is called for a redriven run, and for an event that is older than its task', async () => {
    let fails = true;
    const { deliver, all, receiver } = await watched({
      handler: () => {
        if (fails) throw new PermanentError('once');
      },
    });
    const newer = { status: 'working', timestamp: '2026-01-02T00:00:00Z' };
    await deliver(payload(KEY, newer));
    fails = false;
    expect(await receiver.inbox.redrive(AGENT, KEY)).toBe('applied');
    const older = payload(eventKey(2), { ...newer, timestamp: '2026-01-01T00:00:00Z' });
    expect(said(await deliver(older))).toBe('stale 200');
    expect(all).toMatchObject([
      { key: KEY, state: 'dead' },
      { key: KEY, state: 'applied' },
      { key: eventKey(2), state: 'stale', taskId: 'task-1', run: 0, chargedAttempts: 0, durationMs: 0 },
    ]);
  });

  it('is not called in a process that lost the lease: the new owner reports', async () => {
    const store = memoryStore();
    const { deliver, all } = await watched({ store: { ...store, complete: async () => 'lost' } });
    expect(said(await deliver(payload(KEY)))).toBe('unavailable lease_lost 503');
    expect(all).toEqual([]);
  });

  it('is not called before the store has taken the run’s end', async () => {
    const store = memoryStore();
    let away = true;
    const held = gate();
    const complete: typeof store.complete = async (request) => {
      if (away) {
        await held.opened;
        away = false;
      }
      return store.complete(request);
    };
    const { deliver, all } = await watched({ store: { ...store, complete } });
    const delivered = deliver(payload(KEY));
    await new Promise((resolve) => void setImmediate(resolve));
    expect(all).toEqual([]);
    held.open();
    expect(said(await delivered)).toBe('accepted 200');
    expect(all).toHaveLength(1);
  });

  it('reports dead with the last error when an accept finds no attempt left', async () => {
    const first = await watched({
      handler: () => {
        throw new Error('the database is away');
      },
    });
    const same = payload(KEY);
    await first.deliver(same);
    const { deliver, all, alarms } = await watched({ state: first.state, retry: { attempts: 1 } });
    expect(await deliver(same)).toMatchObject({ kind: 'accepted', state: 'dead' });
    const told = {
      sender: AGENT,
      key: KEY,
      taskId: 'task-1',
      operationId: 'operation-1',
      run: 1,
      chargedAttempts: 1,
    };
    expect(all).toMatchObject([
      { ...told, state: 'dead', kind: 'task', error: 'the database is away', durationMs: 0 },
    ]);
    expect(alarms).toMatchObject([
      { code: 'dead', ...told, deliveryId: all[0]?.deliveryId, lastError: 'the database is away' },
    ]);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('hook');
      },
    ],
    ['rejects', () => Promise.reject(new Error('hook'))],
    ['hangs', () => new Promise(() => {})],
    [
      'changes what it gets',
      (...given: unknown[]) => Object.assign(Object(given[0]) as object, { state: 'dead' }),
    ],
  ])('a hook that %s changes no answer', async (_, onHandled) => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const { deliver, seen, outcomes } = await watched({ onHandled });
    expect(said(await deliver(payload(KEY)))).toBe('accepted 200');
    expect(said(await deliver(payload(KEY)))).toBe('duplicate 200');
    await new Promise((resolve) => void setImmediate(resolve));
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
    expect([seen.length, outcomes.length]).toEqual([1, 2]);
  });

  it('must be a function', async () => {
    await expect(testReceiver({ onHandled: 'log' as never })).rejects.toThrow(
      'onHandled: must be a function.',
    );
  });
});

describe.each(Object.keys(BACKENDS))('onHandled of a worker on %s', (name) => {
  const working = async (options: TestReceiverOptions) => {
    const backend = (BACKENDS[name] ?? expect.fail(name))();
    const made = await watched(options, (with_) => inboxSetup(backend, with_));
    return { ...made, backend };
  };

  it('reports each run with how long the event was stored', async () => {
    const thrown: unknown[] = [new Error('the database is away')];
    const { deliver, receiver, told, backend, seen } = await working({
      handler: () => {
        if (thrown.length > 0) throw thrown.pop();
      },
    });
    await deliver(status(KEY, 'task-1', { operation_id: 'operation-1' }));
    backend.advance(5_000);
    await receiver.start();
    const [failed, applied] = [await told.next(), await told.next()];
    const ids = { key: KEY, taskId: 'task-1', operationId: 'operation-1', status: 'working', kind: 'task' };
    expect(failed).toMatchObject({
      ...ids,
      state: 'failed',
      error: 'the database is away',
      run: 1,
      chargedAttempts: 1,
    });
    expect(failed.waitedMs).toBeGreaterThanOrEqual(5_000);
    expect(applied).toMatchObject({ ...ids, state: 'applied', run: 2, chargedAttempts: 2 });
    expect(applied.waitedMs).toBeGreaterThanOrEqual(5_000);
    expect(applied.deliveryId).toBe(seen[0]?.ctx.deliveryId);
    await receiver.stop();
    backend.remove();
  });

  it('reports an event that is older than its task when its turn comes', async () => {
    const { deliver, receiver, told, backend } = await working({});
    await deliver(status(KEY, 'task-1', { timestamp: '2026-01-02T00:00:00Z' }));
    backend.advance(1);
    await deliver(status(eventKey(2), 'task-1', { timestamp: '2026-01-01T00:00:00Z' }));
    await receiver.start();
    expect(await told.next()).toMatchObject({ key: KEY, state: 'applied' });
    expect(await told.next()).toMatchObject({
      key: eventKey(2),
      state: 'stale',
      taskId: 'task-1',
      durationMs: 0,
    });
    await receiver.stop();
    backend.remove();
  });

  it('reports an event without attempts left, as its alarm does', async () => {
    const retry = { baseMs: 60_000, maxMs: 60_000 };
    const first = await working({
      retry,
      handler: () => {
        throw new Error('the database is away');
      },
    });
    await first.deliver(status(KEY, 'task-1'));
    await first.receiver.start();
    expect(await first.told.next()).toMatchObject({ state: 'failed' });
    await first.receiver.stop();
    first.backend.advance(120_000);
    const { receiver, told, alarms } = await watched({ retry: { ...retry, attempts: 1 } }, (with_) =>
      inboxSetup(first.backend, with_),
    );
    await receiver.start();
    const dead = await told.next();
    expect(dead).toMatchObject({
      key: KEY,
      taskId: 'task-1',
      kind: 'task',
      state: 'dead',
      run: 1,
      chargedAttempts: 1,
      error: 'the database is away',
    });
    expect(alarms).toMatchObject([
      {
        code: 'dead',
        key: KEY,
        deliveryId: dead.deliveryId,
        taskId: 'task-1',
        lastError: 'the database is away',
      },
    ]);
    await receiver.stop();
    first.backend.remove();
  });
});
