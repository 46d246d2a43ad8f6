import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError, type DiscardManyQuery, PermanentError, type Receiver } from '../../src/index.ts';
import type { InboxQuery } from '../../src/stores/index.ts';
import { actOnMany, statsOf, WIDTH } from '../../src/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { AGENT, gate, testReceiver, said, type TestReceiverOptions } from '../receiver/setup.ts';
import { acceptRequest } from '../stores/requests.ts';
import { BACKENDS, eventKey, inboxSetup, inboxOf, status, type Backend } from './setup.ts';

describe.each(Object.keys(BACKENDS))('operations on many events on %s', (name) => {
  let backend: Backend;
  const receivers: Receiver[] = [];

  beforeEach(() => {
    backend = (BACKENDS[name] ?? expect.fail(name))();
  });
  afterEach(async () => {
    for (const receiver of receivers.splice(0)) await receiver.stop();
    backend.remove();
  });

  /** Mode `inline`, where each event ends DEAD with what its message says, until `works`. */
  async function inline(options: TestReceiverOptions = {}) {
    const own = { works: false, handled: [] as string[] };
    const made = await testReceiver({
      store: backend.open(),
      handler: (event) => {
        if (!own.works) throw new PermanentError(event.message ?? 'no message');
        own.handled.push(event.idempotencyKey);
      },
      ...options,
    });
    receivers.push(made.receiver);
    return Object.assign(own, made);
  }

  /** Events `from` to `to`, each of a task of its own. */
  async function deliver(to: { deliver: (payload: object) => Promise<unknown> }, from: number, last: number) {
    for (let n = from; n <= last; n += 1) {
      await to.deliver(status(eventKey(n), `task-${n}`, { message: `fault ${n % 2}` }));
    }
  }

  const keys = (...numbers: number[]): string[] => numbers.map(eventKey);

  it('stats counts by sender and state, with the instant of the oldest', async () => {
    const dead = await inline();
    await deliver(dead, 1, 3);
    const queue = await inboxSetup(backend);
    receivers.push(queue.receiver);
    await deliver(queue, 4, 5);
    const seen = (await queue.receiver.inbox.list({ state: 'queued' })).records;
    const stats = await queue.receiver.inbox.stats();
    expect(stats).toEqual({
      queued: 2,
      leased: 0,
      dead: 3,
      isComplete: true,
      senders: [
        { sender: AGENT, state: 'queued', count: 2, oldestInsertedAt: seen[0]?.insertedAt },
        { sender: AGENT, state: 'dead', count: 3, oldestInsertedAt: expect.any(Number) as number },
      ],
    });
    const all = { sender: AGENT, dryRun: false };
    await queue.receiver.inbox.discardMany(all);
    await queue.receiver.inbox.discardMany({ ...all, state: 'queued' });
    expect(await queue.receiver.inbox.stats()).toEqual({
      queued: 0,
      leased: 0,
      dead: 0,
      isComplete: true,
      senders: [],
    });
  });

  it('a dry run counts and changes nothing', async () => {
    const { receiver, ...made } = await inline();
    await deliver(made, 1, 3);
    const counted = { matched: 3, senders: { [AGENT]: 3 }, results: {} };
    expect(await receiver.inbox.redriveMany({ dryRun: true })).toEqual(counted);
    expect(await receiver.inbox.discardMany({ dryRun: true })).toEqual(counted);
    expect((await receiver.inbox.stats()).dead).toBe(3);
  });

  it('redriveMany in mode inline runs the handlers one after the other, the oldest first', async () => {
    const made = await inline();
    await deliver(made, 1, 4);
    made.works = true;
    expect(await made.receiver.inbox.redriveMany({ dryRun: false })).toEqual({
      matched: 4,
      senders: { [AGENT]: 4 },
      results: { applied: 4 },
    });
    expect(made.handled).toEqual(keys(1, 2, 3, 4));
    expect((await made.receiver.inbox.stats()).dead).toBe(0);
  });

  it('events that fail again are DEAD again, and run once a call', async () => {
    const made = await inline();
    await deliver(made, 1, 3);
    expect(await made.receiver.inbox.redriveMany({ dryRun: false })).toMatchObject({ results: { dead: 3 } });
    expect(made.seen).toHaveLength(6);
  });

  it('redriveMany in mode inline runs what the command line has queued, and nothing that a seller will bring again', async () => {
    const store = backend.open();
    const made = await inline({ store });
    await deliver(made, 1, 3);
    for (const key of keys(1, 2)) await store.inbox?.redrive(AGENT, key);
    expect(await made.receiver.inbox.stats()).toMatchObject({ queued: 2, dead: 1 });
    const waiting = await testReceiver({
      store: backend.open(),
      handlers: { other: () => Promise.reject(new Error('its seller comes again')) },
    });
    receivers.push(waiting.receiver);
    expect(said(await waiting.deliver(status(eventKey(9), 'task-9')))).toBe('unavailable handler_failed 503');

    made.works = true;
    expect(await made.receiver.inbox.redriveMany({ dryRun: true })).toMatchObject({ matched: 3 });
    expect(await made.receiver.inbox.redriveMany({ dryRun: false })).toMatchObject({
      results: { applied: 3 },
    });
    expect(made.handled.toSorted()).toEqual(keys(1, 2, 3));
    expect(await made.receiver.inbox.stats()).toMatchObject({ queued: 1, dead: 0 });
  });

  it('what the command line has queued and fails again is DEAD again, and runs once a call', async () => {
    const store = backend.open();
    const made = await inline({ store });
    await deliver(made, 1, 3);
    for (const key of keys(1, 2)) await store.inbox?.redrive(AGENT, key);
    expect(await made.receiver.inbox.redriveMany({ dryRun: false })).toMatchObject({
      matched: 3,
      results: { dead: 3 },
    });
    expect(made.seen).toHaveLength(6);
  });

  it('redriveMany in mode inbox queues them for the workers', async () => {
    await deliver(await inline(), 1, 9);
    const { receiver } = await inboxSetup(backend);
    receivers.push(receiver);
    expect(await receiver.inbox.redriveMany({ dryRun: false })).toMatchObject({
      matched: 9,
      results: { queued: 9 },
    });
    expect(await receiver.inbox.stats()).toMatchObject({ queued: 9, dead: 0 });
  });

  it('selects by text of the last error, sender and instant together', async () => {
    const made = await inline();
    await deliver(made, 1, 4);
    const { insertedAt = 0 } = (await made.receiver.inbox.list({ state: 'dead' })).records[0] ?? {};
    const { redriveMany, discardMany } = made.receiver.inbox;
    const matched = async (filter: Omit<DiscardManyQuery, 'dryRun'>): Promise<number> =>
      (await redriveMany({ dryRun: true, ...filter })).matched;
    expect(await matched({ error: 'fault 1' })).toBe(2);
    expect(await matched({ error: 'Fault 1' })).toBe(0);
    expect(await matched({ sender: AGENT })).toBe(4);
    expect(await matched({ sender: 'https://other.example/mcp' })).toBe(0);
    expect(await matched({ before: insertedAt })).toBe(0);
    expect(await matched({ before: insertedAt + 3_600_000, error: 'fault 0' })).toBe(2);
    expect(await discardMany({ dryRun: false, error: 'fault 0' })).toMatchObject({
      results: { discarded: 2 },
    });
    const left = (await made.receiver.inbox.list({ state: 'dead' })).records.map(({ key }) => key);
    expect(left).toEqual(keys(1, 3));
    expect(said(await made.deliver(status(eventKey(2), 'task-2', { message: 'fault 0' })))).toBe(
      'duplicate 200',
    );
  });

  it('an event that was redriven since its page was read is not discarded', async () => {
    const made = await inline();
    await deliver(made, 1, 2);
    const store = backend.open();
    await store.open();
    const inbox = inboxOf(store);
    const late = {
      ...store,
      inbox: {
        ...inbox,
        list: async (query: InboxQuery) => {
          const page = await inbox.list(query);
          if (query.state === 'dead') await inbox.redrive(AGENT, eventKey(1));
          return page;
        },
      },
    };
    const { receiver } = await inboxSetup({ ...backend, open: () => late });
    receivers.push(receiver);
    expect(await receiver.inbox.discardMany({ dryRun: false })).toMatchObject({
      matched: 2,
      results: { discarded: 1, other: 1 },
    });
    expect(await receiver.inbox.stats()).toMatchObject({ queued: 1, dead: 0 });
  });

  it('stop() ends it between two events; the next call takes the rest', async () => {
    const entered = gate();
    const held = gate();
    const made = await inline();
    await deliver(made, 1, 3);
    const again = await inline({
      handler: async () => {
        entered.open();
        await held.opened;
      },
    });
    const redriving = again.receiver.inbox.redriveMany({ dryRun: false });
    const ended = expect(redriving).rejects.toMatchObject({ code: 'shutting_down' });
    await entered.opened;
    const stopping = again.receiver.stop();
    held.open();
    await Promise.all([ended, stopping]);
    expect(again.seen).toHaveLength(1);
    expect((await made.receiver.inbox.stats()).dead).toBe(2);
    made.works = true;
    expect(await made.receiver.inbox.redriveMany({ dryRun: false })).toMatchObject({
      results: { applied: 2 },
    });
  });

  it('a wrong argument is a ConfigError with the fix', async () => {
    const { redriveMany, discardMany, stats } = (await inline()).receiver.inbox;
    const bad = (query: object): Promise<unknown> => redriveMany(query as never);
    await expect(bad({})).rejects.toThrow(/inbox.redriveMany: dryRun is missing. Set true to count only/);
    await expect(redriveMany(undefined as never)).rejects.toThrow(ConfigError);
    await expect(bad({ dryRun: 'yes' })).rejects.toThrow(/is not true or false/);
    await expect(bad({ dryRun: false, senders: [AGENT] })).rejects.toThrow(/senders is not known/);
    await expect(bad({ dryRun: false, sender: '' })).rejects.toThrow(ConfigError);
    await expect(bad({ dryRun: false, error: /fault/ })).rejects.toThrow(ConfigError);
    await expect(bad({ dryRun: false, before: '2026-01-01' })).rejects.toThrow(ConfigError);
    await expect(bad({ dryRun: false, state: 'queued' })).rejects.toThrow(/state is not known/);
    await expect(discardMany({ dryRun: false, state: 'leased' as 'dead' })).rejects.toThrow(
      /one of dead, queued/,
    );
    await expect(stats({ most: 0 })).rejects.toThrow(/inbox.stats: most/);
    await expect(stats({ limit: 1 } as never)).rejects.toThrow(/limit is not known/);
  });
});

it('more than a page: each event once, in pages of 1 000', async () => {
  const store = memoryStore();
  for (let n = 0; n < 2_500; n += 1) {
    await store.accept({ ...acceptRequest({ key: eventKey(n), task: `task-${n}` }), mode: 'inbox' });
  }
  const inbox = inboxOf(store);
  // As a store that cannot count.
  delete inbox.counts;
  let calls = 0;
  const counted: typeof inbox = {
    ...inbox,
    list: (query) => {
      calls += 1;
      return inbox.list(query);
    },
  };
  expect(await statsOf(counted, 10_000)).toMatchObject({ queued: 2_500, isComplete: true });
  // Three pages of those that are queued, one for each of the other states.
  expect(calls).toBe(5);
  expect(await statsOf(counted, 1_500)).toMatchObject({ queued: 2_000, isComplete: false });
  const filter = { state: 'queued', before: Infinity, error: '', dryRun: false } as const;
  const keys: string[] = [];
  const all = await actOnMany(inbox, filter, WIDTH, async ({ sender, key }) => {
    keys.push(key);
    return inbox.discard(sender, key, 86_400_000);
  });
  expect(all).toMatchObject({ matched: 2_500, results: { discarded: 2_500 } });
  expect(keys).toEqual(Array.from({ length: 2_500 }, (_, n) => eventKey(n)));
});
