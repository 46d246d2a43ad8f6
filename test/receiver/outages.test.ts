import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Alarm, Fault, type Store } from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { payloads, said, testReceiver, type TestReceiverOptions } from './setup.ts';

const AWAY = new Fault('store_unavailable', 'connection refused');
const SECOND = 1_000;

/** A receiver whose store and handler fail as `down` says, and whose clock the test moves. */
async function bench(options: TestReceiverOptions = {}) {
  const down = { store: false, handler: false };
  const clock = { now: Date.now() };
  const state = createMemoryState();
  const real = memoryStore({ state, clockOffsetMs: () => clock.now - Date.now() });
  const { inbox } = real;
  const store: Store = {
    ...real,
    accept: (request) => (down.store ? Promise.reject(AWAY) : real.accept(request)),
    ...(inbox && {
      inbox: { ...inbox, lease: (request) => (down.store ? Promise.reject(AWAY) : inbox.lease(request)) },
    }),
  };
  const made = await testReceiver({
    store,
    state,
    now: () => clock.now,
    handler: () => {
      if (down.handler) throw new Error('the ad server is away');
    },
    ...options,
  });
  const told = (): readonly Alarm[] =>
    made.alarms.filter(({ code }) => code === 'store_away' || code === 'handlers_failing');
  const outages = (): unknown[] =>
    told().map(
      ({ code, over, durationMs }) => `${code} ${over ? 'over' : 'begun'} ${Number(durationMs) / 1000}`,
    );
  const messages = (): unknown[] => told().map(({ message }) => message);
  /** One delivery, so many seconds after the last one. */
  const after = async (seconds: number): Promise<string> => {
    clock.now += seconds * SECOND;
    const signed = await made.sign(payloads.tool('completed'), { now: () => clock.now });
    return said(await made.send(signed));
  };
  return { ...made, down, clock, outages, messages, after };
}

describe('store_away', () => {
  it('is told once after 10 s, and once when the store is back', async () => {
    const { down, after, outages, messages } = await bench();
    expect(await after(0)).toBe('accepted 200');
    down.store = true;
    expect(await after(1)).toBe('unavailable store_unavailable 503');
    await after(9);
    expect(outages()).toEqual([]);
    await after(1);
    for (let more = 0; more < 5; more += 1) await after(70);
    expect(outages()).toEqual(['store_away begun 10']);
    down.store = false;
    expect(await after(10)).toBe('accepted 200');
    await after(10);
    expect(outages()).toEqual(['store_away begun 10', 'store_away over 370']);
    expect(messages()).toEqual([
      'the store has not answered for 10 s: deliveries are answered 503, and sellers deliver again. The last fault: connection refused',
      'the store answers again, after 370 s',
    ]);
  });

  it('is not told of a short one, nor of two that had a success between them', async () => {
    const { down, after, outages } = await bench();
    for (let turn = 0; turn < 3; turn += 1) {
      down.store = true;
      await after(4);
      await after(5);
      down.store = false;
      await after(4);
    }
    expect(outages()).toEqual([]);
  });

  it.each([
    ['the store, from the start', { store: { ...memoryStore(), open: () => Promise.reject(AWAY) } }],
    ['a function of senders', { senders: () => Promise.reject(AWAY) }],
  ])('is told where nobody is known to have sent: %s', async (_, failing) => {
    const { after, outages } = await bench(failing);
    expect(await after(0)).toBe('unavailable store_unavailable 503');
    await after(10);
    expect(outages()).toEqual(['store_away begun 10']);
  });

  it('is told by ready, which nobody delivers to either', async () => {
    let isAway = true;
    const store = memoryStore();
    const open = async (): Promise<void> => {
      if (isAway) throw AWAY;
      await store.open();
    };
    const { receiver, clock, outages } = await bench({ store: { ...store, open }, advanced: { startMs: 0 } });
    for (let tries = 0; tries < 3; tries += 1) {
      await expect(receiver.ready()).rejects.toThrow('connection refused');
      clock.now += 6 * SECOND;
    }
    expect(outages()).toEqual(['store_away begun 12']);
    isAway = false;
    await receiver.ready();
    expect(outages()).toEqual(['store_away begun 12', 'store_away over 18']);
  });

  it('is not told where the store answered between, whatever the delivery was answered', async () => {
    const { down, clock, sign, send, after, outages } = await bench();
    const signed = await sign(payloads.tool('completed'), { now: () => clock.now });
    expect(said(await send(signed))).toBe('accepted 200');
    const between = [
      async () => {
        down.handler = true;
        expect(await after(1)).toBe('unavailable handler_failed 503');
      },
      async () => expect(said(await send(signed))).toBe('refused webhook_signature_replayed 401'),
    ];
    for (const answered of between) {
      down.store = true;
      await after(1);
      down.store = false;
      await answered();
      down.store = true;
      await after(11);
      down.store = false;
      down.handler = false;
      await after(1);
    }
    expect(outages()).toEqual([]);
  });

  it('is told by a worker that nobody delivers to', async () => {
    const alarms: Alarm[] = [];
    const heard: (() => void)[] = [];
    const at = await bench({
      mode: 'inbox',
      worker: { pollMs: 1 },
      onAlarm: (alarm) => {
        if (alarm.code !== 'store_away') return;
        alarms.push(alarm);
        heard.shift()?.();
      },
    });
    const { down, clock } = at;
    await using receiver = at.receiver;
    const next = (): Promise<void> => new Promise((resolve) => void heard.push(resolve));
    await receiver.start();
    down.store = true;
    const begun = next();
    // Each look of the worker is another second.
    const ticking = setInterval(() => (clock.now += SECOND), 1);
    await begun;
    const over = next();
    down.store = false;
    await over;
    clearInterval(ticking);
    expect(alarms.map((alarm) => alarm['over'])).toEqual([false, true]);
  });
});

describe('handlers_failing', () => {
  it('is told once after 20 runs and a minute, and once when one is done', async () => {
    const { down, after, outages, messages } = await bench();
    down.handler = true;
    for (let run = 0; run < 19; run += 1) expect(await after(4)).toBe('unavailable handler_failed 503');
    expect(outages()).toEqual([]);
    for (let run = 0; run < 10; run += 1) await after(4);
    expect(outages()).toEqual(['handlers_failing begun 76']);
    down.handler = false;
    await after(4);
    await after(4);
    expect(outages()).toEqual(['handlers_failing begun 76', 'handlers_failing over 116']);
    expect(messages()).toEqual([
      expect.stringMatching(
        /^the last 20 runs of handlers failed, for 76 s\. A service that they share may be down\. .+ The last error: .*the ad server is away/,
      ),
      'a run of a handler succeeded again, after 116 s',
    ]);
  });

  it('is told of handlers that never settle', async () => {
    const { after, outages } = await bench({ handlerDeadlineMs: 1, handler: () => new Promise(() => {}) });
    for (let run = 0; run < 20; run += 1) expect(await after(4)).toBe('unavailable handler_timeout 503');
    expect(outages()).toEqual(['handlers_failing begun 76']);
  });

  it('counts a run once that fails past its deadline', async () => {
    const late: Promise<unknown>[] = [];
    const { after, outages } = await bench({
      handlerDeadlineMs: 1,
      handler: (_event, { signal }) => {
        const aborted = new Promise<never>((_resolve, reject) => {
          signal.addEventListener('abort', () => setTimeout(reject, 1, new Error('aborted')));
        });
        late.push(aborted.catch(() => {}));
        return aborted;
      },
    });
    for (let run = 0; run < 19; run += 1) await after(4);
    await Promise.all(late);
    expect(outages()).toEqual([]);
  });

  it('is not told within a minute, nor where one of them is done', async () => {
    const { down, after, outages } = await bench();
    down.handler = true;
    for (let run = 0; run < 30; run += 1) await after(1);
    expect(outages()).toEqual([]);
    for (let run = 0; run < 60; run += 1) {
      down.handler = run % 19 !== 0;
      await after(10);
    }
    expect(outages()).toEqual([]);
  });
});

describe('an alarm where nobody gave a logger', () => {
  afterEach(() => void vi.restoreAllMocks());
  const printed = () => vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  const alarming = async (options: TestReceiverOptions): Promise<void> => {
    const { deliver } = await testReceiver({ logger: undefined as never, ...options });
    const payload = payloads.tool('completed');
    await deliver(payload);
    await deliver({ ...payload, message: 'another one' });
  };
  const changed = (warn: ReturnType<typeof printed>): unknown[] =>
    warn.mock.calls.filter(([, fields]) => (fields as Alarm).code === 'payload_changed');

  it('is not printed beside the hook that has it', async () => {
    const warn = printed();
    const alarms: Alarm[] = [];
    await alarming({ onAlarm: (alarm) => void alarms.push(alarm) });
    expect(alarms.map(({ code }) => code)).toContain('payload_changed');
    expect(changed(warn)).toEqual([]);
    await alarming({ logger: console, onAlarm: () => undefined });
    expect(changed(warn)).toEqual([]);
  });

  it('is printed where there is no hook, or the hook fails', async () => {
    const warn = printed();
    await alarming({ onAlarm: undefined as never });
    expect(changed(warn)).toHaveLength(1);
    await alarming({
      onAlarm: () => {
        throw new Error('the pager is away');
      },
    });
    expect(changed(warn)).toHaveLength(2);
  });
});
