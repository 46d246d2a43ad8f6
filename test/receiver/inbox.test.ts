import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError, createReceiver, type HandlerContext, PermanentError } from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import type { Event } from '../../src/events/index.ts';
import {
  BACKENDS,
  channel,
  eventKey,
  inboxSetup,
  seenRecord,
  status,
  type Backend,
  type Channel,
} from '../inbox/setup.ts';
import {
  AGENT,
  URL_GIVEN,
  gate,
  testReceiver,
  payloads,
  said,
  sellerKey,
  type TestReceiver,
} from './setup.ts';

const KEY = eventKey(1);

interface Handled {
  readonly event: Event;
  readonly ctx: HandlerContext;
}

describe.each(Object.keys(BACKENDS))('mode inbox on %s', (name) => {
  let backend: Backend;
  let handled: Channel<Handled>;
  const receivers: TestReceiver[] = [];

  beforeEach(() => {
    backend = (BACKENDS[name] ?? expect.fail(name))();
    handled = channel();
  });

  afterEach(async () => {
    for (const { receiver } of receivers.splice(0)) await receiver.stop();
    backend.remove();
  });

  const open: typeof inboxSetup = async (of, given) => {
    const { onAlarm, ...options } = given ?? {};
    const made = await inboxSetup(of, {
      handler: (event, ctx) => handled.push({ event, ctx }),
      ...options,
      // That the store was made is an alarm too.
      onAlarm: (alarm) => alarm.code !== 'store_created' && onAlarm?.(alarm),
    });
    receivers.push(made);
    return made;
  };

  it('runs the typed handler of a notification that is read from the store', async () => {
    const { deliver, receiver } = await open(backend, {
      handlers: {
        notifications: { impairment: (event, ctx) => handled.push({ event, ctx }) },
        other: () => expect.fail('has a handler of its own'),
      },
    });
    const payload = payloads.family('impairment', { vendor: 1 });
    expect(said(await deliver(payload))).toBe('accepted 200');
    await receiver.start();
    const { event } = await handled.next();
    expect(event).toMatchObject({ family: 'impairment', notification: payload, warnings: [] });
  });

  it('answers 200 once the event is durable, and the worker runs it after start()', async () => {
    const { deliver, sign, send, receiver, seen } = await open(backend);
    const signed = await sign(status(KEY, 'task-1'));
    const first = await send(signed);
    expect(first).toMatchObject({ kind: 'accepted', state: 'queued', changed: false });
    expect(first.response.status).toBe(200);
    const again = await deliver(status(KEY, 'task-1'));
    expect(again).toMatchObject({ kind: 'duplicate', state: 'queued' });
    expect(again.response.status).toBe(200);
    expect(said(await send(signed))).toBe('refused webhook_signature_replayed 401');
    expect(seen).toEqual([]);
    await receiver.start();
    const { event, ctx } = await handled.next();
    expect(event).toMatchObject({ kind: 'task', taskId: 'task-1', sender: AGENT, idempotencyKey: KEY });
    expect(ctx).toMatchObject({ run: 1, chargedAttempts: 1, sender: AGENT, deliveryId: first.deliveryId });
  });

  it('wakes the worker of the process that queued an event', async () => {
    const { deliver, receiver } = await open(backend);
    await receiver.start();
    for (const n of [1, 2, 3]) {
      await deliver(status(eventKey(n), `task-${n}`));
      expect((await handled.next()).event.taskId).toBe(`task-${n}`);
    }
  });

  it('handles events in another process than the one that received them', async () => {
    const door = await open(backend);
    const worker = await open(backend, { worker: { pollMs: 5 } });
    await worker.receiver.start();
    expect(await door.deliver(status(KEY, 'task-1'))).toMatchObject({ state: 'queued' });
    await handled.next();
    await worker.receiver.stop();
    expect(door.seen).toEqual([]);
    expect(worker.seen).toHaveLength(1);
    expect(await door.deliver(status(KEY, 'task-1'))).toMatchObject({ kind: 'duplicate', state: 'applied' });
  });

  it('shares the work of two workers, each event once', async () => {
    const door = await open(backend);
    const workers = [await open(backend), await open(backend)];
    const keys = Array.from({ length: 30 }, (_, n) => eventKey(n));
    for (const key of keys) await door.deliver(status(key, key));
    for (const { receiver } of workers) await receiver.start();
    for (const _ of keys) await handled.next();
    for (const { receiver } of workers) await receiver.stop();
    const ran = workers.flatMap(({ seen }) => seen.map(({ event }) => event.idempotencyKey));
    expect(ran.toSorted()).toEqual(keys);
  });

  it('runs the stored first copy, whatever came after it', async () => {
    const { deliver, receiver } = await open(backend);
    await deliver(status(KEY, 'task-1', { message: 'first' }));
    const second = await deliver(status(KEY, 'task-1', { message: 'second' }));
    expect(second).toMatchObject({ kind: 'duplicate', changed: true });
    await receiver.start();
    expect((await handled.next()).event.message).toBe('first');
  });

  it('answers a changed payload 409 in edition 3.2, and an identical one 200', async () => {
    const { deliver } = await open(backend, { edition: '3.2' });
    const payload = status(KEY, 'task-1');
    await deliver(payload);
    expect(said(await deliver(payload))).toBe('duplicate 200');
    expect(said(await deliver({ ...payload, message: 'other' }))).toBe('refused payload_changed 409');
  });

  it('tells handlers of a re-emission and of a status after a terminal one', async () => {
    const { deliver, receiver } = await open(backend);
    await receiver.start();
    await deliver(
      payloads.tool('completed', { task_id: 't', timestamp: '2026-01-01T00:00:00Z', notification_id: 'n-1' }),
    );
    await handled.next();
    const late = status(KEY, 't', { timestamp: '2026-01-02T00:00:00Z', notification_id: 'n-1' });
    expect((await deliver(late)).event?.reemission).toBe(true);
    const { event } = await handled.next();
    expect(event.reemission).toBe(true);
    expect(event.warnings.map(({ code }) => code)).toContain('after_terminal');
  });

  it('repeats a failed run in the worker, with the last error', async () => {
    const errors = ['the first', 'the second'];
    const setup = await open(backend, {
      handler: (event, ctx) => {
        handled.push({ event, ctx });
        const error = errors.shift();
        if (error !== undefined) throw new Error(error);
      },
    });
    await setup.deliver(status(KEY, 'task-1'));
    await setup.receiver.start();
    const attempts = [await handled.next(), await handled.next(), await handled.next()];
    expect(attempts.map(({ ctx }) => [ctx.run, ctx.chargedAttempts])).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ]);
    expect(await seenRecord(setup, KEY)).toMatchObject({ attempts: 3, lastError: 'the second' });
  });

  it('makes an event DEAD at once on PermanentError, with an alarm and 200 to the seller', async () => {
    const alarms = channel<string>();
    const setup = await open(backend, {
      handler: () => {
        throw new PermanentError('no such media buy');
      },
      onAlarm: ({ code }) => alarms.push(code),
    });
    const payload = status(KEY, 'task-1');
    await setup.deliver(payload);
    await setup.receiver.start();
    expect(await alarms.next()).toBe('dead');
    expect(await seenRecord(setup, KEY)).toMatchObject({
      state: 'dead',
      attempts: 1,
      lastError: 'no such media buy',
    });
    const again = await setup.deliver(payload);
    expect(again).toMatchObject({ kind: 'duplicate', state: 'dead', response: { status: 200 } });
    expect(setup.seen).toHaveLength(1);
  });

  it('makes an event DEAD after its last attempt, with an alarm', async () => {
    const alarms = channel<string>();
    const setup = await open(backend, {
      retry: { attempts: 3, baseMs: 1, maxMs: 1 },
      handler: () => {
        throw new Error('still down');
      },
      onAlarm: ({ code }) => alarms.push(code),
    });
    await setup.deliver(status(KEY, 'task-1'));
    await setup.receiver.start();
    expect(await alarms.next()).toBe('dead');
    expect(setup.seen.map(({ ctx }) => ctx.chargedAttempts)).toEqual([1, 2, 3]);
  });

  it('ctx.run is 2 on the run after a crash, which is not charged', async () => {
    const setup = await open(backend);
    await setup.deliver(status(KEY, 'task-1'));
    const dying = backend.open();
    await dying.open();
    const retry = { attempts: 12, crashes: 5 };
    const request = { owner: 'dies', max: 1, leaseMs: 1000, retry, retentionMs: 1, senders: [] };
    expect((await dying.inbox?.lease(request))?.events).toHaveLength(1);
    await dying.close();
    backend.advance(1001);
    await setup.receiver.start();
    const { ctx } = await handled.next();
    expect([ctx.run, ctx.chargedAttempts]).toEqual([2, 1]);
    expect(await seenRecord(setup, KEY)).toMatchObject({ runs: 2, attempts: 1, crashes: 0 });
  });

  it('makes an event DEAD after a crash and five runs alone, with an alarm', async () => {
    const alarms = channel<{ code: string; key?: unknown }>();
    const setup = await open(backend, { onAlarm: (alarm) => alarms.push(alarm) });
    await setup.deliver(status(KEY, 'task-1'));
    const dying = backend.open();
    await dying.open();
    const retry = { attempts: 12, crashes: 5 };
    const request = { max: 1, leaseMs: 1000, retry, retentionMs: 1, senders: [] };
    expect((await dying.inbox?.lease({ ...request, owner: 'dies first' }))?.events).toHaveLength(1);
    backend.advance(1001);
    expect((await dying.inbox?.lease({ ...request, owner: 'looks' }))?.suspectDue).toBe(true);
    for (let crash = 1; crash <= 5; crash += 1) {
      const alone = { ...request, alone: true };
      expect((await dying.inbox?.lease({ ...alone, owner: `dies-${crash}` }))?.events).toHaveLength(1);
      backend.advance(1001);
      if (crash === 5) break;
      expect((await dying.inbox?.lease({ ...alone, owner: `looks-${crash}` }))?.events).toEqual([]);
      backend.advance(3_600_000);
    }
    await dying.close();
    await setup.receiver.start();
    expect(await alarms.next()).toMatchObject({ code: 'dead', key: KEY, sender: AGENT });
    expect(await seenRecord(setup, KEY)).toMatchObject({ state: 'dead', crashes: 5, attempts: 0 });
    expect(setup.seen).toEqual([]);
  });

  it('processes an event of a sender that is no longer configured', async () => {
    const { deliver } = await open(backend);
    await deliver(status(KEY, 'task-1'));
    const { receiver } = await open(backend, {
      senders: [{ agentUrl: 'https://other.example/mcp', auth: { hmac: { secret: 's-'.repeat(16) } } }],
    });
    await receiver.start();
    expect((await handled.next()).event).toMatchObject({ sender: AGENT, idempotencyKey: KEY });
  });

  it('makes an older status that waited behind a newer one stale', async () => {
    const setup = await open(backend, { worker: { concurrency: 1 } });
    await setup.deliver(status(eventKey(1), 't', { timestamp: '2026-01-02T00:00:00Z' }));
    const older = status(eventKey(2), 't', { timestamp: '2026-01-01T00:00:00Z' });
    expect(await setup.deliver(older)).toMatchObject({ state: 'queued' });
    await setup.receiver.start();
    await handled.next();
    await setup.deliver(status(eventKey(3), 't', { timestamp: '2026-01-03T00:00:00Z' }));
    expect((await handled.next()).event.idempotencyKey).toBe(eventKey(3));
    expect(await seenRecord(setup, eventKey(2))).toMatchObject({ state: 'stale' });
    expect(await setup.deliver(older)).toMatchObject({ kind: 'duplicate', state: 'stale' });
  });

  it('handles a DEAD event after redrive', async () => {
    let broken = true;
    const alarms = channel<string>();
    const setup = await open(backend, {
      handler: (event, ctx) => {
        if (broken) throw new PermanentError('not yet');
        handled.push({ event, ctx });
      },
      onAlarm: ({ code }) => alarms.push(code),
    });
    await setup.deliver(status(KEY, 'task-1'));
    await setup.receiver.start();
    await alarms.next();
    const { inbox } = setup.receiver;
    expect((await inbox.list({ state: 'dead' })).records.map(({ key }) => key)).toEqual([KEY]);
    broken = false;
    expect(await inbox.redrive(AGENT, KEY)).toBe('queued');
    expect((await handled.next()).ctx.chargedAttempts).toBe(1);
    await setup.receiver.stop();
    const { receiver } = await open(backend);
    expect(await receiver.inbox.list({ state: 'dead' })).toEqual({ records: [] });
    expect((await receiver.inbox.inspect(AGENT, KEY))?.state).toBe('applied');
    expect(await receiver.inbox.redrive(AGENT, KEY)).toBe('other');
    expect(await receiver.inbox.redrive(AGENT, 'nobody-sent-this-event')).toBe('absent');
  });

  it('never handles a discarded event, and answers its duplicates 200', async () => {
    const setup = await open(backend);
    const payload = status(KEY, 'task-1');
    await setup.deliver(payload);
    expect(await setup.receiver.inbox.discard(AGENT, KEY)).toBe('discarded');
    expect(await setup.deliver(payload)).toMatchObject({ kind: 'duplicate', state: 'stale' });
    await setup.receiver.start();
    await setup.deliver(status(eventKey(2), 'task-2'));
    expect((await handled.next()).event.idempotencyKey).toBe(eventKey(2));
    expect(setup.seen).toHaveLength(1);
  });
});

describe('mode inbox: ctx.transaction', () => {
  it('commits the handler’s writes and the completion together (SQLite)', async () => {
    const backend = (BACKENDS['SQLite'] ?? expect.fail())();
    const store = backend.open();
    const done = channel<unknown>();
    const setup = await inboxSetup(backend, {
      store,
      handler: async (event, ctx) => {
        await ctx.transaction((tx) => {
          const db = tx as { exec: (sql: string) => void };
          db.exec('CREATE TABLE effects (id TEXT)');
          db.exec(`INSERT INTO effects VALUES ('${ctx.deliveryId}')`);
        });
        done.push(event);
        throw new Error('after the commit: logged, no more');
      },
    });
    await setup.deliver(status(KEY, 'task-1'));
    await setup.receiver.start();
    await done.next();
    expect(await seenRecord(setup, KEY)).toMatchObject({ state: 'applied', attempts: 1 });
    await setup.receiver.stop();
    expect(setup.seen).toHaveLength(1);
    backend.remove();
  });
});

describe('mode inbox: what is refused at construction and at call', () => {
  const options = async () => ({
    publicUrl: URL_GIVEN,
    senders: [{ agentUrl: AGENT, pins: [(await sellerKey()).publicJwk] }],
    durability: { require: 'process' as const },
    handlers: { other: () => {} },
  });

  it('a store without an inbox: ConfigError in mode inbox, and from receiver.inbox in mode inline', async () => {
    const { inbox: _, ...store } = memoryStore();
    const given = { ...(await options()), store };
    expect(() => createReceiver({ ...given, mode: 'inbox' })).toThrow(/memory store has no inbox/);
    const receiver = createReceiver(given);
    await expect(receiver.inbox.list({ state: 'dead' })).rejects.toThrow(/memory store has no inbox/);
    await expect(receiver.inbox.redrive(AGENT, KEY)).rejects.toBeInstanceOf(ConfigError);
  });

  it('is shutting_down after stop(), until start()', async () => {
    const inbox = createReceiver({ ...(await options()), store: memoryStore(), mode: 'inbox' });
    await inbox.start();
    await inbox.start();
    await inbox.stop();
    await expect(inbox.inbox.list({ state: 'dead' })).rejects.toMatchObject({ code: 'shutting_down' });
    await inbox.start();
    expect(await inbox.inbox.list({ state: 'dead' })).toEqual({ records: [] });
    await inbox.stop();
  });

  it('refuses start() where ready() would reject', async () => {
    const receiver = createReceiver({
      ...(await options()),
      store: memoryStore(),
      durability: { require: 'disk' },
      mode: 'inbox',
    });
    await expect(receiver.start()).rejects.toThrow(/durability: \{ require: 'disk' \}/);
  });

  it('lists pages as long as asked for, 100 by default', async () => {
    const store = memoryStore();
    const limits: number[] = [];
    const inbox = store.inbox && {
      ...store.inbox,
      list: async ({ limit }: { readonly limit: number }) => {
        limits.push(limit);
        return { records: [] };
      },
    };
    const receiver = createReceiver({ ...(await options()), store: { ...store, ...(inbox && { inbox }) } });
    for (const limit of [undefined, 1, 7, 1000])
      await receiver.inbox.list({ state: 'dead', ...(limit !== undefined && { limit }) });
    expect(limits).toEqual([100, 1, 7, 1000]);
  });

  it('refuses a page longer than 1000 or shorter than 1', async () => {
    const receiver = createReceiver({ ...(await options()), store: memoryStore() });
    await expect(receiver.inbox.list({ state: 'dead', limit: 1001 })).rejects.toThrow(/inbox.list: limit/);
    await expect(receiver.inbox.list({ state: 'dead', limit: 0 })).rejects.toThrow(/inbox.list: limit/);
    await expect(receiver.inbox.list({ state: 'dead', after: 'x' })).rejects.toThrow(
      /^after: is not the next of an earlier page/,
    );
  });

  it.each([{ state: 'bogus' }, { state: undefined }, { state: null }, {}, undefined])(
    'refuses list(%o)',
    async (query) => {
      const receiver = createReceiver({ ...(await options()), store: memoryStore() });
      const listing = receiver.inbox.list(query as { state: 'dead' });
      await expect(listing).rejects.toBeInstanceOf(ConfigError);
      await expect(listing).rejects.toThrow(/state.*queued, leased, dead/);
    },
  );

  it('refuses next for after in list(), which would give the first page again', async () => {
    const receiver = createReceiver({ ...(await options()), store: memoryStore() });
    const listing = receiver.inbox.list({ state: 'dead', next: 'x' } as { state: 'dead' });
    await expect(listing).rejects.toThrow(/inbox.list: next is not known.*after/);
  });

  it.each([undefined, null, 5, ''])('refuses sender or key %o', async (wrong) => {
    const receiver = createReceiver({ ...(await options()), store: memoryStore() });
    const no = wrong as string;
    const { list, inspect, redrive, discard } = receiver.inbox;
    for (const call of [inspect, redrive, discard]) {
      await expect(call(no, KEY)).rejects.toThrow(/: sender: .* is not a non-empty string/);
      await expect(call(AGENT, no)).rejects.toThrow(/: idempotencyKey: .* is not a non-empty string/);
      await expect(call(no, KEY)).rejects.toBeInstanceOf(ConfigError);
    }
    const query = { state: 'dead', sender: no } as const;
    if (wrong !== undefined) await expect(list(query)).rejects.toThrow(/inbox.list: sender/);
    else expect(await list(query)).toEqual({ records: [] });
  });
});

describe('receiver.inbox in mode inline', () => {
  const key = KEY;
  const payload = status(key, 'task-1');

  it('redrive runs the handler of a DEAD event in this process', async () => {
    let broken = true;
    const { deliver, receiver, seen } = await testReceiver({
      handler: () => {
        if (broken) throw new PermanentError('no such media buy');
      },
    });
    expect(await deliver(payload)).toMatchObject({ kind: 'accepted', state: 'dead' });
    expect((await receiver.inbox.list({ state: 'dead' })).records).toMatchObject([
      { key, lastError: 'no such media buy' },
    ]);
    broken = false;
    expect(await receiver.inbox.redrive(AGENT, key)).toBe('applied');
    expect(seen.map(({ ctx }) => [ctx.run, ctx.chargedAttempts])).toEqual([
      [1, 1],
      [2, 1],
    ]);
    expect(seen[1]?.event).toEqual(seen[0]?.event);
    expect(await deliver(payload)).toMatchObject({ kind: 'duplicate', state: 'applied' });
    expect(await receiver.inbox.redrive(AGENT, key)).toBe('other');
    expect(await receiver.inbox.redrive(AGENT, 'nobody-sent-this-event')).toBe('absent');
  });

  it('an event that fails again is DEAD again: no seller and no worker would repeat it', async () => {
    const { deliver, receiver, alarms } = await testReceiver({
      handler: (_, ctx) => {
        throw ctx.run > 1 && alarms.length > 0 ? new Error('still down') : new PermanentError('down');
      },
    });
    await deliver(payload);
    expect(await receiver.inbox.redrive(AGENT, key)).toBe('dead');
    expect(alarms.map(({ code }) => code)).toEqual(['dead', 'dead']);
    const record = await receiver.inbox.inspect(AGENT, key);
    expect(record).toMatchObject({ state: 'dead', lastError: 'still down', attempts: 1 });
    expect(record?.body).toBeInstanceOf(Uint8Array);
  });

  it('redrive runs an event that waits for its seller’s retry, and reports a running one as busy', async () => {
    const { opened, open } = gate();
    const started = channel<number>();
    let broken = true;
    const { deliver, receiver } = await testReceiver({
      handler: async (_, ctx) => {
        started.push(ctx.chargedAttempts);
        if (broken) throw new Error('down');
        await opened;
      },
    });
    expect(said(await deliver(payload))).toBe('unavailable handler_failed 503');
    await started.next();
    broken = false;
    const redriven = receiver.inbox.redrive(AGENT, key);
    expect(await started.next()).toBeGreaterThan(0);
    expect(await receiver.inbox.redrive(AGENT, key)).toBe('busy');
    expect(await receiver.inbox.discard(AGENT, key)).toBe('other');
    open();
    expect(await redriven).toBe('applied');
  });

  it('an event whose task has a newer status by now is stale', async () => {
    const { deliver, receiver, seen } = await testReceiver({
      handler: (event) => {
        if (event.idempotencyKey === key) throw new PermanentError('down');
      },
    });
    await deliver(status(key, 't', { timestamp: '2026-01-01T00:00:00Z' }));
    await deliver(status(eventKey(2), 't', { timestamp: '2026-01-02T00:00:00Z' }));
    expect(await receiver.inbox.redrive(AGENT, key)).toBe('stale');
    expect(seen).toHaveLength(2);
  });

  it('discard ends a DEAD event: its duplicates are answered 200', async () => {
    const { deliver, receiver } = await testReceiver({
      handler: () => {
        throw new PermanentError('down');
      },
    });
    await deliver(payload);
    expect(await receiver.inbox.discard(AGENT, key)).toBe('discarded');
    expect(await deliver(payload)).toMatchObject({ kind: 'duplicate', state: 'stale' });
    expect(await receiver.inbox.list({ state: 'dead' })).toEqual({ records: [] });
  });

  it('redrive runs under ctx.transaction as a delivery does', async () => {
    let broken = true;
    const { deliver, receiver } = await testReceiver({
      store: sqliteStore(':memory:'),
      handler: async (_, ctx) => {
        if (broken) throw new PermanentError('down');
        await ctx.transaction(() => undefined);
        throw new Error('after the commit');
      },
    });
    await deliver(payload);
    broken = false;
    expect(await receiver.inbox.redrive(AGENT, key)).toBe('applied');
  });
});
