import { describe, expect, it } from 'vitest';
import { ConfigError, Fault, type Store } from '../../src/index.ts';
import { createMemoryState, memoryStore } from '../../src/stores/memory.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { channel, eventKey, status } from '../inbox/setup.ts';
import { gate, said, testReceiver } from './setup.ts';

const AWAY = new Fault('store_unavailable', 'the database starts');

/** Stores that a receiver may close and open again, one of each kind that needs no server. */
const STORES: readonly (readonly [string, () => Store])[] = [
  ['memory', () => memoryStore()],
  ['SQLite without a file', () => sqliteStore(':memory:')],
];

/** A memory store, and how often it was opened and closed. */
function counted(open: () => Promise<void> = async () => {}) {
  const real = memoryStore({ state: createMemoryState() });
  const calls: string[] = [];
  const store: Store = {
    ...real,
    open: async () => {
      calls.push('open');
      await open();
      await real.open();
    },
    close: async () => {
      calls.push('close');
      await real.close();
    },
  };
  return { store, calls };
}

describe.each(STORES)('on the %s store', (_name, make) => {
  it('mode inline: ten times, shutting_down in between, and an event is handled once over all of them', async () => {
    const { receiver, deliver, sign, send, seen } = await testReceiver({ store: make() });
    const first = await sign(status(eventKey(0), 'task-0'));
    expect(said(await send(first))).toBe('accepted 200');
    for (let round = 1; round <= 10; round += 1) {
      await receiver.stop();
      expect(said(await deliver(status(eventKey(round), `task-${round}`)))).toBe(
        'unavailable shutting_down 503',
      );
      await expect(receiver.ready()).rejects.toMatchObject({ code: 'shutting_down' });
      expect((await receiver.health()).live).toBe(false);
      await receiver.start();
      expect(await receiver.health()).toMatchObject({ live: true, ready: true });
      expect(said(await deliver(status(eventKey(round), `task-${round}`)))).toBe('accepted 200');
    }
    expect(said(await deliver(status(eventKey(0), 'task-0')))).toBe('duplicate 200');
    expect(seen).toHaveLength(11);
    await receiver.stop();
  });

  it('mode inbox: ten times, and what was queued before a stop is run after the next start', async () => {
    const handled = channel<string>();
    const { receiver, deliver } = await testReceiver({
      store: make(),
      mode: 'inbox',
      worker: { pollMs: 2_147_483_647 },
      handler: ({ idempotencyKey }) => handled.push(idempotencyKey),
    });
    for (let round = 0; round < 10; round += 1) {
      // A receiver that is not started takes deliveries, but after a stop.
      if (round > 0) await receiver.start();
      expect(said(await deliver(status(eventKey(round), `task-${round}`)))).toBe('accepted 200');
      if (round === 0) await receiver.start();
      expect(await handled.next()).toBe(eventKey(round));
      expect((await receiver.health()).worker.state).toMatch(/starting|running/);
      await receiver.stop();
      expect((await receiver.health()).worker.state).toBe('stopped');
    }
  });
});

describe('start and stop', () => {
  it('are idempotent, also concurrently: the store is opened and closed once', async () => {
    const { store, calls } = counted();
    const { receiver } = await testReceiver({ store });
    await Promise.all([receiver.start(), receiver.start()]);
    await receiver.start();
    expect(calls).toEqual(['open']);
    await Promise.all([receiver.stop(), receiver.stop()]);
    await receiver.stop();
    expect(calls).toEqual(['open', 'close']);
    await receiver[Symbol.asyncDispose]();
    expect(calls).toEqual(['open', 'close']);
  });

  it('a stop during a start ends it, waits for the check that is under way, and closes the store behind it', async () => {
    const { opened: begun, open: begin } = gate();
    const { opened, open } = gate();
    const { store, calls } = counted(() => {
      begin();
      return opened;
    });
    const { receiver, deliver } = await testReceiver({ store });
    const starting = receiver.start();
    await begun;
    const stopping = receiver.stop();
    const order: string[] = [];
    void starting.then(
      () => order.push('started'),
      () => order.push('not started'),
    );
    void stopping.then(() => order.push('stopped'));
    open();
    await Promise.allSettled([starting, stopping]);
    expect(calls).toEqual(['open', 'close']);
    expect(order.at(-1)).toBe('stopped');
    expect(said(await deliver(status(eventKey(1), 'task-1')))).toBe('unavailable shutting_down 503');
  });

  it.each(['inline', 'inbox'] as const)(
    'mode %s: of many that are not awaited the last one decides',
    async (mode) => {
      const { store, calls } = counted();
      const { receiver, deliver } = await testReceiver({ store, mode });
      void receiver.start();
      void receiver.stop();
      void receiver.start();
      void receiver.stop();
      await receiver.start();
      expect(said(await deliver(status(eventKey(1), 'task-1')))).toBe('accepted 200');
      void receiver.stop();
      void receiver.start();
      await receiver.stop();
      expect(said(await deliver(status(eventKey(2), 'task-2')))).toBe('unavailable shutting_down 503');
      expect(calls.at(-1)).toBe('close');
    },
  );

  it('of receivers that have one store the last one that stops closes it', async () => {
    const { store, calls } = counted();
    const one = await testReceiver({ store });
    const other = await testReceiver({ store });
    const unused = await testReceiver({ store });
    await one.receiver.start();
    expect(said(await other.deliver(status(eventKey(1), 'task-1')))).toBe('accepted 200');
    await Promise.all([one.receiver.stop(), unused.receiver.stop()]);
    expect(said(await one.deliver(status(eventKey(2), 'task-2')))).toBe('unavailable shutting_down 503');
    expect(said(await other.deliver(status(eventKey(2), 'task-2')))).toBe('accepted 200');
    expect(calls).not.toContain('close');
    await other.receiver.stop();
    expect(calls.filter((call) => call === 'close')).toHaveLength(1);
    await one.receiver.start();
    expect(said(await one.deliver(status(eventKey(2), 'task-2')))).toBe('duplicate 200');
    await one.receiver.stop();
    expect(calls.at(-1)).toBe('close');
  });

  it('a receiver whose check failed does not keep the store of another one open', async () => {
    const { store, calls } = counted();
    const failed = await testReceiver({ store, durability: { require: 'failover' } });
    await expect(failed.receiver.start()).rejects.toThrow(ConfigError);
    const { receiver } = await testReceiver({ store });
    await receiver.start();
    await receiver.stop();
    expect(calls.at(-1)).toBe('close');
  });

  it('a start that failed may be made again', async () => {
    let fails = true;
    const { store } = counted(async () => {
      if (fails) throw AWAY;
    });
    const { receiver } = await testReceiver({ store, advanced: { startMs: 0 } });
    await expect(receiver.start()).rejects.toBe(AWAY);
    fails = false;
    await receiver.start();
    await receiver.stop();
    fails = true;
    await expect(receiver.start()).rejects.toBe(AWAY);
    fails = false;
    await receiver.start();
    await receiver.stop();
  });

  it('a handler that outlives a stop ends its own event, and the next run of the receiver does not begin it anew', async () => {
    const started = gate();
    const released = gate();
    const { receiver, sign, send, deliver, seen } = await testReceiver({
      handlerDeadlineMs: 20,
      leaseMs: 100,
      advanced: { waitMs: 1 },
      handler: async () => {
        started.open();
        await released.opened;
      },
    });
    const signed = await sign(status(eventKey(1), 'task-1'));
    const answer = send(signed);
    await started.opened;
    expect(said(await answer)).toBe('unavailable handler_timeout 503');
    await receiver.stop();
    await receiver.start();
    expect((await deliver(status(eventKey(1), 'task-1'))).kind).toBe('unavailable');
    released.open();
    await expect.poll(async () => said(await deliver(status(eventKey(1), 'task-1')))).toBe('duplicate 200');
    expect(seen).toHaveLength(1);
    await receiver.stop();
  });
});
