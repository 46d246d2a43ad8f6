import { describe, expect, it } from 'vitest';
import { Fault, type Store } from '../../src/index.ts';
import { memoryStore, type MemoryStoreOptions } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { heldHandler, testReceiver, payloads, said } from './setup.ts';

const down = new Fault('store_unavailable', 'connection refused');

/** A real store whose methods fail as often as `failures` says, before or after they did their work. */
function flaky(
  failures: Partial<Record<keyof Store, number>>,
  after = false,
  options: MemoryStoreOptions = {},
): Store {
  const store = memoryStore(options);
  const left: Partial<Record<string, number>> = { ...failures };
  return new Proxy(store, {
    get(target, name, receiver) {
      const member: unknown = Reflect.get(target, name, receiver);
      if (typeof member !== 'function' || typeof name !== 'string') return member;
      return async (...args: unknown[]): Promise<unknown> => {
        const remaining = left[name] ?? 0;
        if (remaining > 0) left[name] = remaining - 1;
        if (remaining > 0 && !after) throw down;
        const result: unknown = await Reflect.apply(member, target, args);
        if (remaining > 0) throw down;
        return result;
      };
    },
  });
}

/** What can be thrown and cannot be shown. */
const UNSHOWABLE: readonly (readonly [string, () => unknown])[] = [
  ['an object without a prototype', () => Object.create(null)],
  [
    'an error whose conversion throws',
    () =>
      Object.assign(new Error('x'), {
        toString() {
          throw new Error('not me');
        },
      }),
  ],
  [
    'a proxy that was revoked',
    () => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      return proxy;
    },
  ],
];

describe.each(UNSHOWABLE)('%s, thrown, is 503 and never a rejection', (_, make) => {
  const throws = (): never => {
    throw make();
  };

  it('by the senders function', async () => {
    const { deliver, alarms } = await testReceiver({ senders: throws });
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable misconfigured 503');
    expect(alarms.map(({ code }) => code)).toEqual(['senders_failed']);
  });

  it('by the clock', async () => {
    let broken = false;
    const { deliver } = await testReceiver({ now: () => (broken ? throws() : Date.now()) });
    broken = true;
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable misconfigured 503');
  });

  it('is handed to the adapter as 503', async () => {
    const { receiver } = await testReceiver();
    expect(receiver.door.fault(make()).response.status).toBe(503);
  });
});

describe('a fault on our side is 503 and never 4xx', () => {
  it('a store that is down when an event comes: not handled, accepted later', async () => {
    const { sign, send, seen } = await testReceiver({ store: flaky({ accept: 1 }) });
    const signed = await sign(payloads.tool('completed'));
    const outcome = await send(signed);
    expect(said(outcome)).toBe('unavailable store_unavailable 503');
    expect(outcome.response).toEqual({ status: 503, headers: { 'Retry-After': '5' }, body: '' });
    expect(seen).toEqual([]);
    expect(said(await send(signed))).toBe('accepted 200');
  });

  it('an accept whose answer was lost: the retry waits for its lease and is handled once', async () => {
    let offset = 0;
    const { deliver, seen } = await testReceiver({
      store: flaky({ accept: 1 }, true, { clockOffsetMs: () => offset }),
    });
    const payload = payloads.tool('completed');
    expect(said(await deliver(payload))).toBe('unavailable store_unavailable 503');
    offset = 8_001;
    expect(said(await deliver(payload))).toBe('accepted 200');
    expect(seen).toHaveLength(1);
  });

  it('a completion whose answer was lost is sent again: 200, and one run', async () => {
    const { deliver, seen } = await testReceiver({ store: flaky({ complete: 1 }, true) });
    const payload = payloads.tool('completed');
    expect(said(await deliver(payload))).toBe('accepted 200');
    expect(said(await deliver(payload))).toBe('duplicate 200');
    expect(seen).toHaveLength(1);
  });

  it('a completion that cannot be made is 503', async () => {
    const { deliver } = await testReceiver({ store: flaky({ complete: 4 }) });
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable store_unavailable 503');
  });

  it('a handler that throws a value that cannot be inspected has failed', async () => {
    const trap = (): never => {
      throw new Error('trap');
    };
    const evil: unknown = new Proxy({}, { get: trap, getPrototypeOf: trap, has: trap, ownKeys: trap });
    const { deliver, receiver } = await testReceiver({
      handler: () => {
        throw evil;
      },
    });
    const payload = payloads.tool('completed');
    expect(said(await deliver(payload))).toBe('unavailable handler_failed 503');
    const { records } = await receiver.inbox.list({ state: 'queued' });
    expect(records).toMatchObject([{ attempts: 1, lastError: 'an error that has no text' }]);
  });

  it('a failing handler on a failing store is 503', async () => {
    const { deliver } = await testReceiver({
      store: flaky({ fail: 4 }),
      handler: () => {
        throw new Error('x');
      },
    });
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable store_unavailable 503');
  });

  it('a store that fails while a duplicate waits is 503 for the duplicate alone', async () => {
    const { handler, started, release } = heldHandler();
    const { deliver } = await testReceiver({
      store: flaky({ peek: 1 }),
      handler,
    });
    const payload = payloads.tool('completed');
    const first = deliver(payload);
    await started;
    expect(said(await deliver(payload))).toBe('unavailable store_unavailable 503');
    release();
    expect(said(await first)).toBe('accepted 200');
  });

  it('a store that is down at the start is checked again with the next delivery', async () => {
    const { deliver, receiver } = await testReceiver({ store: flaky({ open: 2 }), advanced: { startMs: 0 } });
    await expect(receiver.ready()).rejects.toThrow('connection refused');
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable store_unavailable 503');
    expect(said(await deliver(payloads.tool('completed')))).toBe('accepted 200');
  });

  it('any other error of a store is 503 too, and logged', async () => {
    const logged: object[] = [];
    const store = memoryStore();
    const { deliver } = await testReceiver({
      store: { ...store, accept: () => Promise.reject(new TypeError('bug')) },
      logger: { debug() {}, info() {}, warn() {}, error: (fields) => logged.push(fields) },
    });
    const outcome = await deliver(payloads.tool('completed'));
    expect(outcome.response.status).toBe(503);
    expect(JSON.stringify(outcome.response)).not.toContain('bug');
    expect(logged[0]).toMatchObject({ err: { message: 'bug' } });
  });

  it('over 1,000 waiting deliveries: 503 overloaded at once', async () => {
    const { handler, started, release } = heldHandler();
    const state = createMemoryState();
    // However long it takes until the last of them is verified.
    const { deliver, sign, send } = await testReceiver({
      state,
      handler,
      handlerDeadlineMs: 300_000,
      advanced: { waitMs: 300_000 },
    });
    const payload = payloads.tool('completed');
    const first = deliver(payload);
    await started;
    const signed = await Promise.all(Array.from({ length: 1_001 }, () => sign(payload)));
    const waiting = signed.map((delivery) => send(delivery));
    const refused = await Promise.race(waiting);
    expect(said(refused)).toBe('unavailable overloaded 503');
    release();
    expect(said(await first)).toBe('accepted 200');
    const outcomes = await Promise.all(waiting);
    expect(outcomes.filter((outcome) => outcome.kind === 'duplicate')).toHaveLength(1_000);
  });
});
