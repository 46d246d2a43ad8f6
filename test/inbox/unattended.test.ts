import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Fault, type Logger, type Store } from '../../src/index.ts';
import type { StoreInbox } from '../../src/stores/index.ts';
import { gate, said, type TestReceiver, type TestReceiverOptions } from '../receiver/setup.ts';
import { BACKENDS, channel, eventKey, inboxSetup, inboxOf, status, type Backend } from './setup.ts';

/** A store with another answer to `overdueMs`; undefined: without the method. */
function withOverdue(store: Store, overdueMs: (() => Promise<number | undefined>) | undefined): Store {
  const inbox: StoreInbox = { ...inboxOf(store) };
  delete inbox.overdueMs;
  return { ...store, inbox: { ...inbox, ...(overdueMs && { overdueMs }) } };
}

/** Lines at level info that are about the queue. */
function told(): { readonly logger: Logger; readonly lines: readonly string[] } {
  const lines: string[] = [];
  const none = (): void => {};
  const info = (_: object, message: string): void => {
    if (message.includes('receiver.start()')) lines.push(message);
  };
  return { logger: { debug: none, info, warn: none, error: none }, lines };
}

describe.each(Object.keys(BACKENDS))('a queue without a worker, on %s', (name) => {
  let backend: Backend;
  const receivers: TestReceiver[] = [];

  beforeEach(() => {
    backend = (BACKENDS[name] ?? expect.fail(name))();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  });

  afterEach(async () => {
    vi.useRealTimers();
    for (const { receiver } of receivers.splice(0)) await receiver.stop();
    backend.remove();
  });

  const open = async (options: TestReceiverOptions = {}): Promise<TestReceiver> => {
    // Timers are counted: none of the thread pool's.
    const made = await inboxSetup(backend, { verification: 'main', ...options });
    receivers.push(made);
    return made;
  };
  const queue = async ({ deliver }: TestReceiver, n: number): Promise<void> =>
    expect(said(await deliver(status(eventKey(n), `task-${n}`)))).toBe('accepted 200');
  /** Time goes by, for receiver and store, and only so. */
  const pass = async (ms: number): Promise<void> => {
    await vi.advanceTimersByTimeAsync(ms);
    // What a timer began has ended: SQLite answers after some turns.
    for (let n = 0; n < 20; n += 1) await turn();
  };
  /** Another process runs the event that is queued, and ends. */
  const runOne = async (): Promise<void> => {
    const started = channel<void>();
    const { receiver } = await open({ handler: () => started.push() });
    await receiver.start();
    await started.next();
    await receiver.stop();
  };
  const sinceMade = ({ alarms }: TestReceiver): TestReceiver['alarms'] =>
    alarms.filter(({ code }) => code !== 'store_created');
  const unattended = ({ alarms }: TestReceiver): readonly unknown[] =>
    alarms
      .filter(({ code }) => code === 'queue_unattended')
      .map(({ overdueMs }) => Math.floor(Number(overdueMs) / 1000));

  it('a receiver without a worker raises the alarm when an event has been due for 60 s, then once a minute', async () => {
    const door = await open();
    await queue(door, 1);
    await pass(30_000);
    for (let n = 2; n < 20; n += 1) await queue(door, n);
    await pass(29_000);
    expect(unattended(door)).toEqual([]);
    await pass(1_000);
    expect(unattended(door)).toEqual([60]);
    for (let n = 0; n < 6; n += 1) await pass(10_000);
    expect(unattended(door)).toEqual([60, 120]);
    expect(sinceMade(door).map(({ code, message }) => [code, message])).toEqual([
      [
        'queue_unattended',
        expect.stringContaining('due for 60 s and no worker has leased it. Call receiver.start()'),
      ],
      ['queue_unattended', expect.stringContaining('due for 120 s')],
    ]);
  });

  it('queueUnattendedMs sets that time', async () => {
    const door = await open({ advanced: { queueUnattendedMs: 5_000 } });
    await queue(door, 1);
    await pass(4_000);
    expect(unattended(door)).toEqual([]);
    await pass(1_000);
    expect(unattended(door)).toEqual([5]);
  });

  it('an event that becomes due between two checks is reported in time', async () => {
    const door = await open();
    await queue(door, 1);
    await pass(50_000);
    await runOne();
    await queue(door, 2);
    await pass(10_000);
    expect(unattended(door), 'the first look').toEqual([]);
    await pass(50_000);
    expect(unattended(door)).toEqual([60]);
  });

  it('no alarm and no further check while a worker of another process handles it', async () => {
    const door = await open();
    await queue(door, 1);
    const timers = vi.getTimerCount();
    await runOne();
    await pass(60_000);
    expect(unattended(door)).toEqual([]);
    expect(timers).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('a worker that falls behind is reported, in a process without a receiver', async () => {
    const door = await open();
    await queue(door, 1);
    await queue(door, 2);
    const started = channel<void>();
    const { opened, open: release } = gate();
    const worker = await open({
      worker: { concurrency: 1 },
      handler: () => {
        started.push();
        return opened;
      },
    });
    await worker.receiver.start();
    await started.next();
    await pass(60_000);
    expect(unattended(worker)).toEqual([60]);
    release();
    await worker.receiver.stop();
  });

  it('a store that cannot answer is asked again when an event is queued', async () => {
    let asked = 0;
    const away = await open({
      store: withOverdue(backend.open(), () => {
        asked += 1;
        return Promise.reject(new Fault('store_unavailable', 'away'));
      }),
    });
    await queue(away, 1);
    await pass(60_000);
    await pass(60_000);
    expect(asked).toBe(1);
    await queue(away, 2);
    await pass(60_000);
    expect(asked).toBe(2);
    expect(sinceMade(away)).toEqual([]);
    const without = await open({ store: withOverdue(backend.open(), undefined) });
    await queue(without, 3);
    await pass(120_000);
    expect(sinceMade(without)).toEqual([]);
  });

  it('an event that is queued during a check gets a check too', async () => {
    const { opened, open: answer } = gate();
    const asked = channel<void>();
    const door = await open({
      store: withOverdue(backend.open(), async () => {
        asked.push();
        await opened;
        return undefined;
      }),
    });
    await queue(door, 1);
    await pass(60_000);
    await asked.next();
    await queue(door, 2);
    answer();
    await pass(60_000);
    await asked.next();
  });

  it('no check follows stop()', async () => {
    let asked = 0;
    const store = backend.open();
    const door = await open({
      store: withOverdue(store, () => {
        asked += 1;
        return Promise.resolve(120_000);
      }),
    });
    await queue(door, 1);
    await door.receiver.stop();
    await pass(60_000);
    expect(unattended(door)).toEqual([]);
    await pass(600_000);
    expect(asked).toBeLessThanOrEqual(1);
  });

  it('the first event queued in a process without start() is one line at info', async () => {
    const { logger, lines } = told();
    const door = await open({ logger });
    await queue(door, 1);
    await queue(door, 2);
    expect(lines).toEqual([expect.stringMatching(/queues events.*another process has to run them$/)]);
    const other = told();
    const both = await open({ logger: other.logger });
    await both.receiver.start();
    await queue(both, 3);
    expect(other.lines).toEqual([]);
  });
});
