import { afterEach, describe, expect, it, vi } from 'vitest';
import { ConfigError, Fault, type Store } from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { channel, eventKey, status, type Channel } from '../inbox/setup.ts';
import { testReceiver, type TestReceiver, type TestReceiverOptions } from './setup.ts';

const AWAY = new Fault('store_unavailable', 'the database starts');

interface Bench extends TestReceiver {
  /** What was thrown, each time that a start did not succeed. */
  readonly failed: Channel<unknown>;
  readonly opens: () => number;
  readonly closed: () => boolean;
}

/** @param answers to `open`, one by one; the last one again and again. */
async function bench(
  answers: readonly (Error | undefined)[],
  options: TestReceiverOptions = {},
): Promise<Bench> {
  const failed = channel<unknown>();
  const none = (): void => {};
  const error = (fields: object, message: string): void => {
    if (message === 'the worker could not start yet') failed.push((fields as { err: unknown }).err);
  };
  const state = createMemoryState();
  const real = memoryStore({ state });
  let opens = 0;
  let closed = false;
  const store: Store = {
    ...real,
    open: async () => {
      opens += 1;
      const answer = answers[Math.min(opens, answers.length) - 1];
      if (answer) throw answer;
      await real.open();
    },
    close: async () => {
      closed = true;
      await real.close();
    },
  };
  const made = await testReceiver({
    store,
    state,
    mode: 'inbox',
    worker: { pollMs: 1 },
    logger: { debug: none, info: none, warn: none, error },
    ...options,
  });
  return { ...made, failed, opens: () => opens, closed: () => closed };
}

describe('ready()', () => {
  afterEach(() => void vi.useRealTimers());

  it('tries again while the store cannot be reached, for startMs, and then rejects', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
    const back = await bench([AWAY, AWAY, AWAY, undefined]);
    const ready = back.receiver.ready();
    await vi.advanceTimersByTimeAsync(700);
    await expect(ready).resolves.toMatchObject({ storeId: expect.any(String) as string });
    expect(back.opens()).toBe(4);

    const away = await bench([AWAY]);
    let settled = false;
    const late = away.receiver.ready().finally(() => (settled = true));
    const rejected = expect(late).rejects.toBe(AWAY);
    await vi.advanceTimersByTimeAsync(28_000);
    expect(settled).toBe(false);
    await vi.advanceTimersByTimeAsync(2_000);
    await rejected;
    expect(away.opens()).toBeLessThan(40);
  });

  it.each([
    ['startMs is 0', AWAY, { advanced: { startMs: 0 } }],
    ["it is the owner's mistake", new ConfigError('no such table. Run migrate.'), {}],
  ])('rejects at once where %s', async (_why, error, options) => {
    const { receiver, opens } = await bench([error], options);
    await expect(receiver.ready()).rejects.toBe(error);
    expect(opens()).toBe(1);
  });

  it('is not tried again once the receiver stops', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
    const { receiver, opens } = await bench([AWAY]);
    const rejected = expect(receiver.ready()).rejects.toBe(AWAY);
    await receiver.stop();
    await vi.advanceTimersByTimeAsync(1_000);
    await rejected;
    expect(opens()).toBe(1);
  });
});

describe('start()', () => {
  it('stays pending while the store is unavailable, reports each attempt, and resolves when it is back', async () => {
    const driver = new TypeError('a driver that throws what it likes');
    const handled = channel<string>();
    const { receiver, deliver, failed, opens } = await bench([AWAY, driver, AWAY, undefined], {
      handler: ({ idempotencyKey }) => handled.push(idempotencyKey),
    });
    await receiver.start();
    expect(opens()).toBe(4);
    expect([await failed.next(), await failed.next(), await failed.next()]).toEqual([AWAY, driver, AWAY]);
    await deliver(status(eventKey(1), 'task-1'));
    expect(await handled.next()).toBe(eventKey(1));
    await receiver.stop();
  });

  it('resolves without a worker when stop() comes while it waits for the store', async () => {
    const { receiver, failed, opens, closed } = await bench([AWAY], { worker: { pollMs: 2_147_483_647 } });
    const starting = receiver.start();
    await failed.next();
    await receiver.stop();
    await starting;
    expect(opens()).toBe(1);
    expect(closed()).toBe(true);
  });

  it('rejects with a ConfigError, also after failed attempts; the next start() checks anew', async () => {
    const wrong = new ConfigError('the schema is a newer one. Upgrade.');
    const { receiver, failed, opens } = await bench([AWAY, wrong, AWAY, undefined]);
    await expect(receiver.start()).rejects.toBe(wrong);
    expect(await failed.next()).toBe(AWAY);
    await receiver.start();
    expect(opens()).toBe(4);
    await receiver.stop();
  });

  it('makes one check at a time and one worker when called twice', async () => {
    const started = channel<string>();
    const { receiver, deliver, opens, seen } = await bench([AWAY, undefined], {
      handler: ({ idempotencyKey }) => started.push(idempotencyKey),
    });
    await Promise.all([receiver.start(), receiver.start()]);
    await receiver.start();
    expect(opens()).toBe(2);
    await deliver(status(eventKey(1), 'task-1'));
    await started.next();
    await receiver.stop();
    expect(seen).toHaveLength(1);
  });
});
