import { afterEach, describe, expect, it, vi } from 'vitest';
import { ConfigError, Fault, type Health, type Receiver, type Store } from '../../src/index.ts';
import type { AcceptRequest, LeaseDueRequest } from '../../src/stores/index.ts';
import { generateKey } from '../../src/sender/sign.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { channel, eventKey, status } from '../inbox/setup.ts';
import {
  AGENT,
  gate,
  testReceiver,
  payloads,
  said,
  type TestReceiver,
  type TestReceiverOptions,
} from './setup.ts';

const AWAY = new Fault('store_unavailable', 'the database restarts');
const receivers: Receiver[] = [];

afterEach(async () => {
  for (const receiver of receivers.splice(0)) await receiver.stop();
});

interface Observed extends TestReceiver {
  /** Moves the receiver's clock. Unix ms. */
  time: number;
  /** What each call of the store throws or waits for, until it is taken away. */
  trouble: (() => Promise<void>) | undefined;
  readonly calls: string[];
  /** `health`, when the last answer is old. */
  readonly later: () => Promise<Health>;
}

async function observed(options: TestReceiverOptions = {}): Promise<Observed> {
  const own = { time: Date.now(), trouble: undefined as Observed['trouble'] };
  const state = createMemoryState();
  const real = memoryStore({ state, clockOffsetMs: () => own.time - Date.now() });
  const { inbox } = real;
  const calls: string[] = [];
  const watched =
    <A extends unknown[], R>(name: string, call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      calls.push(name);
      await own.trouble?.();
      return call(...args);
    };
  const store: Store = {
    ...real,
    open: watched('open', () => real.open()),
    peek: watched('peek', (...args: Parameters<Store['peek']>) => real.peek(...args)),
    accept: watched('accept', (request: AcceptRequest) => real.accept(request)),
    ...(inbox && {
      inbox: { ...inbox, lease: watched('lease', (request: LeaseDueRequest) => inbox.lease(request)) },
    }),
  };
  const made = await testReceiver({ store, state, now: () => own.time, ...options });
  receivers.push(made.receiver);
  return Object.assign(own, {
    ...made,
    calls,
    deliver: async (...[payload, changes]: Parameters<TestReceiver['deliver']>) =>
      made.send(await made.sign(payload, { now: () => own.time, ...changes })),
    later: () => {
      own.time += 1_000;
      return made.receiver.health();
    },
  });
}

/** As long as it takes. */
const until = (check: () => Promise<boolean>): Promise<void> =>
  vi.waitFor(async () => expect(await check()).toBe(true), { timeout: 30_000, interval: 2 });

const away = (): Promise<never> => Promise.reject(AWAY);
const one = (key = 1): object => payloads.tool('completed', { idempotency_key: eventKey(key) });

describe('receiver.health', () => {
  it('runs the check of ready() if none was made, and is ready then', async () => {
    const made = await observed();
    const { calls } = made;
    await until(async () => (await made.later()).ready);
    const opens = calls.length;
    expect(await made.receiver.health()).toEqual({
      live: true,
      ready: true,
      store: { ok: true, checkedAt: made.time },
      worker: { state: 'off', handlers: 0 },
      senders: [{ agentUrl: AGENT }],
      admissionPressure: { recent: 0, known: 0, ratios: {} },
    });
    expect(calls).toEqual(Array.from({ length: opens }, () => 'open'));
  });

  it('asks the store at most once a second, for any number of calls and any clock', async () => {
    const made = await observed();
    await made.receiver.ready();
    made.calls.length = 0;
    await Promise.all(Array.from({ length: 50 }, () => made.receiver.health()));
    made.time += 999;
    await made.receiver.health();
    expect(made.calls).toEqual(['peek']);
    await made.later();
    made.time -= 3_600_000;
    await made.receiver.health();
    expect(made.calls).toEqual(['peek', 'peek', 'peek']);
  });

  it('with an unavailable store: not ready, still live, and ready when it is back', async () => {
    const made = await observed();
    await made.receiver.ready();
    made.trouble = away;
    const { live, ready, store } = await made.later();
    expect({ live, ready, store }).toEqual({
      live: true,
      ready: false,
      store: {
        ok: false,
        checkedAt: made.time,
        fault: { code: 'store_unavailable', message: AWAY.message, at: made.time },
      },
    });
    made.trouble = undefined;
    expect((await made.later()).ready).toBe(true);
  });

  it('repeats the check of a store that was unavailable at start, without a delivery', async () => {
    const made = await observed({ advanced: { startMs: 0 } });
    made.trouble = away;
    await expect(made.receiver.ready()).rejects.toBe(AWAY);
    expect((await made.receiver.health()).ready).toBe(false);
    made.trouble = undefined;
    await until(async () => (await made.later()).ready);
    expect(said(await made.deliver(one()))).toBe('accepted 200');
  });

  it('reports misconfigured with the fix for what waiting does not fix', async () => {
    const made = await observed();
    made.trouble = () => Promise.reject(new ConfigError('store: run migrate().'));
    const { live, store } = await made.receiver.health();
    expect(live).toBe(true);
    expect(store.fault).toMatchObject({ code: 'misconfigured', message: 'store: run migrate().' });
  });

  it('waits 0.8 s for a store that does not answer, and ignores a later answer', async () => {
    const made = await observed();
    await made.receiver.ready();
    const { opened, open } = gate();
    made.trouble = () => opened;
    const { store } = await made.later();
    expect(store.fault).toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(/within 800 ms/),
    });
    open();
    expect((await made.later()).ready).toBe(true);
  });

  it('names the last delivery that failed in the store, until one succeeds', async () => {
    const made = await observed();
    await made.receiver.ready();
    made.trouble = away;
    expect(said(await made.deliver(one()))).toBe('unavailable store_unavailable 503');
    made.trouble = undefined;
    const { store, senders } = await made.later();
    const at = made.time - 1_000;
    expect(store.ok).toBe(true);
    expect(store.deliveryFault).toEqual({ code: 'store_unavailable', message: AWAY.message, at });
    expect(senders).toEqual([{ agentUrl: AGENT, lastRefusedAt: at, lastCode: 'store_unavailable' }]);
    await made.deliver(one());
    expect((await made.later()).store).not.toHaveProperty('deliveryFault');
  });

  it('after stop(): not ready while deliveries end, not live afterwards', async () => {
    const held = gate();
    const begun = gate();
    const made = await observed({
      handler: async () => {
        begun.open();
        await held.opened;
      },
    });
    const delivery = made.deliver(one());
    await begun.opened;
    expect((await made.receiver.health()).worker.handlers).toBe(1);
    const stopping = made.receiver.stop();
    const during = await made.receiver.health();
    expect([during.live, during.ready]).toEqual([true, false]);
    held.open();
    expect(said(await delivery)).toBe('accepted 200');
    await stopping;
    const after = await made.receiver.health();
    expect([after.live, after.ready]).toEqual([false, false]);
  });
});

describe('senders', () => {
  it('report when each was last accepted and last refused, and why; a forgery under a known key id counts, an unknown one does not', async () => {
    const made = await observed();
    const accepted = made.time;
    await made.deliver(one());
    made.time += 5;
    const forged = await generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' });
    await made.deliver(one(2), { key: forged.privateJwk });
    const stranger = await generateKey('ed25519', 'webhook-signing', { kid: 'stranger' });
    for (let count = 0; count < 20; count += 1) {
      await made.deliver(one(3), { key: { ...stranger.privateJwk, kid: `stranger-${count}` } });
    }
    // The line of a refusal, and the note beside it, are nobody's to wait for.
    await until(async () => {
      const { senders } = await made.receiver.health();
      return senders.some(({ lastRefusedAt }) => lastRefusedAt !== undefined);
    });
    const { senders } = await made.receiver.health();
    expect(senders).toEqual([
      {
        agentUrl: AGENT,
        lastAcceptedAt: accepted,
        lastRefusedAt: made.time,
        lastCode: 'webhook_signature_invalid',
      },
    ]);
  });

  it('of a function appear once they delivered', async () => {
    const key = await generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' });
    const made = await observed({
      senders: () => Promise.resolve([{ agentUrl: AGENT, pins: [key.publicJwk] }]),
    });
    expect((await made.receiver.health()).senders).toEqual([]);
    await made.deliver(one(), { key: key.privateJwk });
    expect((await made.receiver.health()).senders).toEqual([{ agentUrl: AGENT, lastAcceptedAt: made.time }]);
  });

  it('are at most 1 000: the first to come are forgotten', async () => {
    const key = await generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' });
    let count = 0;
    const agentUrl = (): string => `https://seller-${count}.example/mcp`;
    const made = await observed({
      senders: () => Promise.resolve([{ agentUrl: agentUrl(), pins: [key.publicJwk] }]),
    });
    for (; count < 1_010; count += 1) await made.deliver(one(count), { key: key.privateJwk });
    const { senders } = await made.receiver.health();
    expect(senders).toHaveLength(1_000);
    expect(senders[0]?.agentUrl).toBe('https://seller-10.example/mcp');
  });
});

describe('worker', () => {
  it('is off, then starting until the store answers, running, failing and running again, stopped', async () => {
    const handled = channel<string>();
    const lines = channel<string>();
    const none = (): void => {};
    const made = await observed({
      mode: 'inbox',
      worker: { pollMs: 1 },
      logger: { debug: none, info: none, warn: none, error: (_, message) => lines.push(message) },
      handler: ({ idempotencyKey }) => handled.push(idempotencyKey),
    });
    const stateNow = async (): Promise<Health['worker']> => (await made.receiver.health()).worker;
    expect(await stateNow()).toEqual({ state: 'off', handlers: 0 });
    made.trouble = away;
    const starting = made.receiver.start();
    expect(await lines.next()).toBe('the inbox could not be read');
    expect(await stateNow()).toEqual({ state: 'starting', error: AWAY.message, handlers: 0 });
    made.trouble = undefined;
    await starting;
    await until(async () => (await stateNow()).state === 'running');
    expect(await stateNow()).toEqual({ state: 'running', lastLookedAt: made.time, handlers: 0 });
    made.trouble = away;
    await until(async () => (await stateNow()).state === 'failing');
    expect((await stateNow()).error).toBe(AWAY.message);
    made.trouble = undefined;
    await made.deliver(status(eventKey(1), 'task-1'));
    expect(await handled.next()).toBe(eventKey(1));
    await until(async () => (await stateNow()).state === 'running');
    await made.receiver.stop();
    expect((await stateNow()).state).toBe('stopped');
  });

  it('stays off after a refused start', async () => {
    const made = await observed({ mode: 'inbox' });
    made.trouble = () => Promise.reject(new ConfigError('wrong'));
    await expect(made.receiver.start()).rejects.toThrow(ConfigError);
    expect((await made.receiver.health()).worker.state).toBe('off');
  });
});
