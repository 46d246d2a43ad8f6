import { describe, expect, it } from 'vitest';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { Fault, PermanentError, type Receiver, type Store } from '../../src/index.ts';
import type { AcceptRequest, FailRequest } from '../../src/stores/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { AGENT, gate, heldHandler, testReceiver, payloads, said } from './setup.ts';

describe('inline: events that a crash made suspect', () => {
  /** Every lease is that of a suspect. */
  function suspicious(store: Store): Store {
    return {
      ...store,
      accept: async (request) => {
        const result = await store.accept(request);
        return result.kind === 'won' ? { ...result, lease: { ...result.lease, suspect: true } } : result;
      },
    };
  }

  it('run one at a time: another is released and answered 503', async () => {
    const { handler, started, release } = heldHandler();
    const { deliver, receiver, seen } = await testReceiver({
      store: suspicious(memoryStore()),
      handler,
    });
    const [first, second] = [1, 2].map((n) =>
      payloads.report('scheduled', {}, { idempotency_key: `suspect-of-the-seller-${n}` }),
    );
    if (!first || !second) throw new TypeError('two payloads');
    const running = deliver(first);
    await started;
    expect(said(await deliver(second))).toBe('unavailable in_flight 503');
    expect(await receiver.inbox.inspect(AGENT, 'suspect-of-the-seller-2')).toMatchObject({
      state: 'queued',
      attempts: 0,
    });
    expect(await receiver.inbox.redrive(AGENT, 'suspect-of-the-seller-2')).toBe('busy');
    expect(seen).toHaveLength(1);
    release();
    expect(said(await running)).toBe('accepted 200');
    expect(said(await deliver(second))).toBe('accepted 200');
  });
});

describe('inline: suspect events that come at once', () => {
  it('lease one: no other is charged when its handler ends the process', async () => {
    let offsetMs = 0;
    const given: FailRequest[] = [];
    const store = memoryStore({ clockOffsetMs: () => offsetMs });
    const spied: Store = {
      ...store,
      fail: (request) => {
        given.push(request);
        return store.fail(request);
      },
    };
    const events = [1, 2, 3].map((n) =>
      payloads.report('scheduled', {}, { idempotency_key: `suspect-of-the-seller-${n}` }),
    );
    const states = async (receiver: Receiver): Promise<readonly unknown[]> => {
      const records = events.map(({ idempotency_key: key }) => receiver.inbox.inspect(AGENT, key));
      return (await Promise.all(records))
        .map((record) => String(record?.state))
        .toSorted((a, b) => a.localeCompare(b));
    };
    // What its process ran is over with it: for the store a handler that never settles is the same.
    // What is answered at once is waited for by nobody: who waited would wait for longer than this test may take.
    const first = await testReceiver({
      store: spied,
      advanced: { waitMs: 2_000_000 },
      handler: () => new Promise(() => {}),
    });
    const started = gate();
    let begun = 0;
    const dies = await testReceiver({
      store: spied,
      handler: () => {
        begun += 1;
        if (begun === events.length) started.open();
        return new Promise(() => {});
      },
    });
    for (const event of events) void dies.deliver(event);
    await started.opened;
    offsetMs = 60_000;
    const answers = events.map((event) => first.deliver(event));
    const told: string[] = [];
    const two = gate();
    const hear = async (answer: (typeof answers)[number]): Promise<void> => {
      told.push(said(await answer));
      if (told.length === 2) two.open();
    };
    for (const answer of answers) void hear(answer);
    await two.opened;
    expect(told).toEqual(['unavailable in_flight 503', 'unavailable in_flight 503']);
    expect(await states(first.receiver)).toEqual(['leased', 'queued', 'queued']);
    expect(given).toEqual([]);
  });
});

describe('inline: a suspect whose lease may have been given', () => {
  it('keeps the place where its accept failed: no other one is leased, which its crash would be charged to too', async () => {
    let offsetMs = 0;
    const store = memoryStore({ clockOffsetMs: () => offsetMs });
    const alone: string[] = [];
    const spied: Store = {
      ...store,
      accept: async (request) => {
        const result = await store.accept(request);
        if (!request.alone) return result;
        alone.push(String(request.event?.key));
        throw new Fault('store_unavailable', 'the answer did not arrive');
      },
    };
    const events = [1, 2].map((n) =>
      payloads.report('scheduled', {}, { idempotency_key: `suspect-of-the-seller-${n}` }),
    );
    const started = gate();
    const over = gate();
    let begun = 0;
    const dies = await testReceiver({
      store,
      handler: () => {
        begun += 1;
        if (begun === events.length) started.open();
        return over.opened;
      },
    });
    const left = events.map((event) => dies.deliver(event));
    await started.opened;
    // What its process ran is over with it: for the store a handler that has not settled is the same.
    offsetMs = 60_000;
    const next = await testReceiver({ store: spied, handler: () => {} });
    const answers = [];
    for (const event of events) answers.push(said(await next.deliver(event)));
    expect(answers).toEqual(['unavailable store_unavailable 503', 'unavailable in_flight 503']);
    expect(alone).toEqual(['suspect-of-the-seller-1']);
    over.open();
    await Promise.all(left);
  });
});

describe('inline: after a process died', () => {
  it('ctx.run is 2, and 3 where the event is redriven after that; neither is charged for the crash', async () => {
    let offsetMs = 0;
    const store = memoryStore({ clockOffsetMs: () => offsetMs });
    const { handler, started, release } = heldHandler();
    const dies = await testReceiver({ store, handler });
    const runs: unknown[] = [];
    const next = await testReceiver({
      store,
      handler: (_, { run, chargedAttempts }) => {
        runs.push([run, chargedAttempts]);
        if (runs.length === 1) throw new PermanentError('look before it is repeated');
      },
    });
    const payload = payloads.report('scheduled', {}, { idempotency_key: 'event-of-the-seller-1' });
    const cut = dies.deliver(payload);
    await started;
    // What its process ran is over with it: for the store a handler that never settles is the same.
    offsetMs = 60_000;
    expect(await next.deliver(payload)).toMatchObject({ kind: 'accepted', state: 'dead' });
    expect(await next.receiver.inbox.redrive(AGENT, 'event-of-the-seller-1')).toBe('applied');
    expect(runs).toEqual([
      [2, 1],
      [3, 1],
    ]);
    release();
    await cut;
  });
});

describe('inline: after a store was unavailable for longer than a lease', () => {
  it('a task whose handler still runs here holds up its next event', async () => {
    let offsetMs = 0;
    const { handler, started, release } = heldHandler();
    const { deliver, seen } = await testReceiver({
      store: memoryStore({ clockOffsetMs: () => offsetMs }),
      advanced: { waitMs: 0 },
      handler,
    });
    const first = payloads.tool('working', { task_id: 'task' });
    const second = payloads.tool('completed', { task_id: 'task' });
    const running = deliver(first);
    await started;
    // No renewal came through meanwhile, and none has come since.
    offsetMs = 60_000;
    expect(said(await deliver(second))).toBe('unavailable task_busy 503');
    expect(said(await deliver(second))).toBe('unavailable task_busy 503');
    expect(seen).toHaveLength(1);
    release();
    expect(said(await running)).toBe('accepted 200');
    expect(said(await deliver(second))).toBe('accepted 200');
  });
});

describe('what accept tells the store', () => {
  it('the id of the process, and whether the event already runs there', async () => {
    const told: Partial<AcceptRequest>[] = [];
    const { handler, started, release } = heldHandler();
    const store = memoryStore();
    const { deliver } = await testReceiver({
      store: {
        ...store,
        accept: async (request) => {
          const { process, isRunning } = request;
          told.push({
            ...(process !== undefined && { process }),
            ...(isRunning !== undefined && { isRunning }),
          });
          return store.accept(request);
        },
      },
      advanced: { waitMs: 0 },
      handler,
    });
    const payload = payloads.tool('completed');
    const running = deliver(payload);
    await started;
    expect(said(await deliver(payload))).toBe('unavailable in_flight 503');
    release();
    await running;
    expect(said(await deliver(payload))).toBe('duplicate 200');
    const process = expect.stringMatching(/./);
    expect(told).toEqual([{ process }, { process, isRunning: true }, { process }]);
    expect(new Set(told.map((one) => one.process)).size).toBe(1);
  });
});

describe('maxRunMs', () => {
  it('is reported when it has passed, also in the log, and the lease is released', async () => {
    const failed = gate<FailRequest>();
    const errors: unknown[] = [];
    const error = (...line: readonly unknown[]): void => void errors.push(line);
    const store = memoryStore();
    const { deliver, receiver } = await testReceiver({
      logger: { ...SILENT_LOGGER, error },
      store: {
        ...store,
        fail: async (request) => {
          const result = await store.fail(request);
          failed.open(request);
          return result;
        },
      },
      handlerDeadlineMs: 10,
      advanced: { maxRunMs: 40 },
      handler: () => new Promise(() => {}),
    });
    const payload = payloads.tool('completed');
    expect(said(await deliver(payload))).toBe('unavailable handler_timeout 503');
    expect(await failed.opened).toMatchObject({
      overrun: true,
      permanent: false,
      error: 'the handler ran over maxRunMs (40 ms)',
    });
    expect(errors).toContainEqual([
      expect.objectContaining({ key: payload.idempotency_key, run: 1, chargedAttempts: 1 }),
      'the handler ran over maxRunMs (40 ms) and was abandoned: it may still run',
    ]);
    expect(await receiver.inbox.inspect(AGENT, payload.idempotency_key)).toMatchObject({ state: 'queued' });
  });
});

describe('a store that fails a completion', () => {
  it('is asked again after the reply: the retry gets 200, and the handler ran once', async () => {
    let isAway = true;
    const done = gate();
    const store = memoryStore();
    const { deliver, seen } = await testReceiver({
      store: {
        ...store,
        complete: async (request) => {
          if (isAway) throw new Fault('store_unavailable', 'away');
          const result = await store.complete(request);
          done.open();
          return result;
        },
      },
      advanced: { waitMs: 1 },
    });
    const payload = payloads.tool('completed');
    expect(said(await deliver(payload))).toBe('unavailable store_unavailable 503');
    // Its handler has settled, and the store does not know.
    expect(said(await deliver(payload))).toBe('unavailable in_flight 503');
    isAway = false;
    await done.opened;
    expect(said(await deliver(payload))).toBe('duplicate 200');
    expect(seen).toHaveLength(1);
  });
});
