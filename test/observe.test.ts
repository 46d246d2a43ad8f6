import { randomBytes, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { ConfigError, type Observation, type Store } from '../src/index.ts';
import type { Event } from '../src/events/index.ts';
import type { Registrations } from '../src/registrations/index.ts';
import { registrationsOf } from '../src/registrations/for-tests.ts';
import { memoryStore } from '../src/stores/memory.ts';
import { BACKENDS, type Backend, channel, type Channel } from './inbox/setup.ts';
import {
  AGENT,
  payloads,
  said,
  sellerKey,
  testReceiver,
  type TestReceiver,
  type TestReceiverOptions,
} from './receiver/setup.ts';
import { hashes, NEWEST } from './registrations/kit.ts';
import { anyClient, callBy } from './support/any-client.ts';

const CASES = Object.keys(BACKENDS).flatMap((name) =>
  (['inline', 'inbox'] as const).map((mode) => [mode, name] as const),
);

/** Later with each, and all of them past. */
const minute = (n: number): string => new Date(Date.UTC(2020, 0, 1, 0, n)).toISOString();

const registrationsOn = (store: Store): Registrations =>
  registrationsOf(
    { call: anyClient, store, baseUrl: 'https://buyer.example/webhooks', secrets: [NEWEST] },
    {
      hashes,
      randomBytes: (count) => new Uint8Array(randomBytes(count)),
      newId: () => randomUUID(),
      now: () => performance.now(),
      sleep: async () => {},
    },
  );

const polled = (more: Partial<Observation> = {}): Observation => ({
  sender: AGENT,
  taskId: 'task-1',
  taskType: 'create_media_buy',
  status: 'completed',
  data: { media_buy_id: 'mb-1' },
  askedAt: Date.now(),
  source: 'poll',
  observation: '1',
  ...more,
});

const webhook = (status: 'working' | 'completed' | 'failed', more: object = {}): object =>
  payloads.tool(status, {
    task_id: 'task-1',
    result: { media_buy_id: 'mb-1' },
    timestamp: minute(1),
    ...more,
  });

describe.each(CASES)('observe, mode %s on %s', (mode, name) => {
  let backend: Backend;
  let store: Store;
  let registrations: Registrations;
  let handled: Channel<{ event: Event; run: number }>;
  const receivers: TestReceiver[] = [];

  beforeEach(async () => {
    backend = (BACKENDS[name] ?? expect.fail(name))();
    handled = channel();
    store = backend.open();
    await store.open();
    registrations = registrationsOn(store);
  });
  afterEach(async () => {
    for (const { receiver } of receivers.splice(0)) await receiver.stop();
    backend.remove();
  });

  /** Its worker looks when it is told to, and runs what failed at once. */
  async function open(options: TestReceiverOptions = {}): Promise<TestReceiver> {
    const made = await testReceiver({
      store,
      mode,
      registrations,
      retry: { baseMs: 1, maxMs: 1 },
      worker: { pollMs: 2_147_483_647 },
      handler: (event, { run }) => handled.push({ event, run }),
      ...options,
    });
    receivers.push(made);
    await made.receiver.start();
    return made;
  }

  const raised = ({ alarms }: TestReceiver, code: string) => alarms.filter((alarm) => alarm.code === code);

  it('is an event like any other, by its own channel; given again it is a duplicate', async () => {
    const { receiver } = await open();
    const { operationId } = await registrations.create({
      agentUrl: AGENT,
      taskType: 'create_media_buy',
      arguments: {},
      ref: 'order 7',
    });
    const seen = polled({ operationId, timestamp: minute(1), context: { trace: 't' } });
    expect((await receiver.observe(seen)).kind).toBe('accepted');
    const { event } = await handled.next();
    expect(event).not.toHaveProperty('url');
    expect(event).toMatchObject({
      kind: 'task',
      source: 'poll',
      sender: AGENT,
      taskId: 'task-1',
      operationId,
      taskType: 'create_media_buy',
      status: 'completed',
      data: { media_buy_id: 'mb-1' },
      context: { trace: 't' },
      timestamp: minute(1),
      registration: { operationId, ref: 'order 7' },
    });
    expect(await registrations.get({ agentUrl: AGENT, operationId })).toMatchObject({ state: 'ended' });
    expect((await receiver.observe(seen)).kind).toBe('duplicate');
  });

  it('a webhook that tells the same end is a duplicate, and one that tells another is an alarm', async () => {
    const made = await open();
    await made.receiver.observe(polled());
    await handled.next();
    expect(said(await made.deliver(webhook('completed')))).toBe('duplicate 200');
    expect(raised(made, 'terminal_differs')).toEqual([]);
    const failed = webhook('failed', { timestamp: minute(2), result: { reason: 'no' } });
    expect(said(await made.deliver(failed))).toBe('duplicate 200');
    const [alarm] = raised(made, 'terminal_differs');
    expect(alarm).toMatchObject({ sender: AGENT, taskId: 'task-1', source: 'webhook', firstSource: 'poll' });
    expect(alarm?.['hash']).toMatch(/^[0-9a-f]{64}$/);
    expect(alarm?.['firstHash']).toMatch(/^[0-9a-f]{64}$/);
    expect(alarm?.['hash']).not.toBe(alarm?.['firstHash']);
    expect(made.seen).toHaveLength(1);
  });

  it('errors of one code in the shapes of two channels are one end; of another code they are an alarm', async () => {
    const made = await open();
    const error = { code: 'BUDGET_TOO_LOW', message: 'Raise the budget.' };
    await made.receiver.observe(polled({ status: 'failed', data: { error } }));
    const { event } = await handled.next();
    expect(event).toMatchObject({ error: { ...error, recovery: 'correctable' }, data: { error } });
    const errors = [{ ...error, message: 'The budget is too low.', field: 'packages[0].budget' }];
    expect(said(await made.deliver(webhook('failed', { result: { errors } })))).toBe('duplicate 200');
    expect(raised(made, 'terminal_differs')).toEqual([]);
    const other = webhook('failed', { result: { errors: [{ code: 'POLICY_VIOLATION', message: 'No.' }] } });
    expect(said(await made.deliver(other))).toBe('duplicate 200');
    expect(raised(made, 'terminal_differs')).toHaveLength(1);
  });

  it('what a webhook told before is a duplicate, and stays a webhook’s', async () => {
    const made = await open();
    expect(said(await made.deliver(webhook('completed')))).toBe('accepted 200');
    expect((await handled.next()).event.source).toBe('webhook');
    expect((await made.receiver.observe(polled())).kind).toBe('duplicate');
    expect((await made.receiver.observe(polled({ status: 'working', observation: '2' }))).kind).toBe('stale');
    expect(made.seen).toHaveLength(1);
    expect(raised(made, 'terminal_differs')).toEqual([]);
  });

  it('one whose handler failed is run again', async () => {
    let failures = 2;
    const made = await open({
      handler: (event, { run }) => {
        if (failures > 0) {
          failures -= 1;
          throw new Error('the database is away');
        }
        handled.push({ event, run });
      },
    });
    await made.receiver.observe(polled());
    expect((await handled.next()).run).toBe(3);
  });

  it('makes safe what a webhook told whose handler failed: that one is run again, and no second event', async () => {
    let failures = 1;
    const made = await open({
      handler: (event, { run }) => {
        if (failures > 0) {
          failures -= 1;
          throw new Error('the database is away');
        }
        handled.push({ event, run });
      },
      // The worker of the inbox does not come before the poll.
      ...(mode === 'inbox' && { retry: { baseMs: 50, maxMs: 50 } }),
    });
    const told = await made.deliver(webhook('completed'));
    expect(said(told)).toBe(mode === 'inline' ? 'unavailable handler_failed 503' : 'accepted 200');
    expect((await made.receiver.observe(polled())).kind).toBe('duplicate');
    const { event, run } = await handled.next();
    expect([event.source, run]).toEqual(['webhook', 2]);
    expect(made.seen).toHaveLength(2);
  });

  it('an answer that ended the operation has no task; a webhook after it is warned of', async () => {
    const made = await open();
    const { operationId } = await registrations.create({
      agentUrl: AGENT,
      taskType: 'create_media_buy',
      arguments: {},
    });
    const { taskId: _none, ...rest } = polled({ operationId, source: 'response' });
    expect((await made.receiver.observe(rest)).kind).toBe('accepted');
    const { event } = await handled.next();
    expect(event).toMatchObject({
      kind: 'task',
      source: 'response',
      taskId: '',
      registration: { operationId },
    });
    const outcome = await made.deliver(webhook('completed', { operation_id: operationId }));
    expect(said(outcome)).toBe('duplicate 200');
    const warnings = 'event' in outcome ? outcome.event?.warnings.map(({ code }) => code) : [];
    expect(warnings).toEqual(['webhook_after_terminal_response']);
    expect(raised(made, 'nonconforming_sender')).toMatchObject([
      { warning: 'webhook_after_terminal_response' },
    ]);
    expect(made.seen).toHaveLength(1);
  });

  it('a status without a time is stale where something was applied since it was asked for', async () => {
    const { receiver, deliver } = await open();
    const before = Date.now() - 60_000;
    expect(said(await deliver(webhook('working')))).toBe('accepted 200');
    await handled.next();
    const late = polled({ status: 'input-required', askedAt: before });
    expect((await receiver.observe(late)).kind).toBe('stale');
    backend.advance(60_000);
    const { timestamp: _none, ...now } = polled({
      status: 'input-required',
      askedAt: Date.now() + 30_000,
      observation: '2',
    });
    expect((await receiver.observe(now)).kind).toBe('accepted');
    expect((await handled.next()).event).toMatchObject({ status: 'input-required', source: 'poll' });
  });

  it('is read as what it is, whatever format its sender’s webhooks have', async () => {
    const { receiver } = await open({
      senders: [{ agentUrl: AGENT, pins: [(await sellerKey()).publicJwk], format: 'agent' }],
    });
    await receiver.observe(polled({ taskType: 'media_buy_delivery', data: { media_buy_deliveries: [] } }));
    expect((await handled.next()).event).toMatchObject({ kind: 'task', taskType: 'media_buy_delivery' });
  });

  it('no webhook can take its place, by a key that its seller has worked out (admission.md §5.10)', async () => {
    const { receiver, deliver } = await open();
    const next = polled({ taskId: 'task-2' });
    // What the seller knows, it can work out.
    const elsewhere = memoryStore();
    const other = await testReceiver({ registrations: registrationsOn(elsewhere), store: elsewhere });
    onTestFinished(() => other.receiver.stop());
    const seen = await other.receiver.observe(next);
    const guessed = 'event' in seen ? (seen.event?.idempotencyKey ?? '') : '';
    expect(guessed).toMatch(/^observation\/poll\/[0-9a-f]{64}$/);
    for (const known of [guessed, guessed.replaceAll('/', ':')]) {
      // Of another task: its key alone can be in the way.
      await deliver(webhook('working', { task_id: 'task-9', idempotency_key: known }));
    }
    expect((await receiver.observe(next)).kind).toBe('accepted');
  });

  it('is within its sender’s caps', async () => {
    const { receiver } = await open({ maxRecordsPerSender: 1 });
    await receiver.observe(polled());
    expect(await receiver.observe(polled({ taskId: 'task-2' }))).toMatchObject({
      kind: 'refused',
      code: 'sender_over_limit',
    });
  });
});

describe('the answer that ends a call', () => {
  const request = { agentUrl: AGENT, taskType: 'create_media_buy', arguments: {}, context: { trace: 't' } };

  /** With a receiver in the same process. */
  async function open(options: TestReceiverOptions = {}) {
    const store = memoryStore();
    await store.open();
    const registrations = registrationsOn(store);
    const handled = channel<Event>();
    const made = await testReceiver({
      store,
      registrations,
      handler: (event) => handled.push(event),
      worker: { pollMs: 2_147_483_647 },
      ...options,
    });
    onTestFinished(() => made.receiver.stop());
    await made.receiver.start();
    return { ...made, registrations, handled };
  }

  const agentTask = {
    kind: 'task',
    id: 'task-9',
    contextId: 'c',
    status: { state: 'completed' },
    artifacts: [{ artifactId: 'a', parts: [{ kind: 'data', data: { media_buy_id: 'mb-1' } }] }],
  };
  const answers: readonly (readonly [string, object, string])[] = [
    ['the result itself', { media_buy_id: 'mb-1' }, ''],
    ['a status with the result beside it', { status: 'completed', context: {}, media_buy_id: 'mb-1' }, ''],
    [
      'a status with a result',
      { status: 'completed', task_id: 'task-9', result: { media_buy_id: 'mb-1' } },
      'task-9',
    ],
    ['what a client gives around it', { structuredContent: { media_buy_id: 'mb-1' } }, ''],
    ['a task of the agent transport', agentTask, 'task-9'],
  ];

  it.each(answers)('%s: is an event, once', async (_name, answer, taskId) => {
    const { registrations, handled, seen, receiver } = await open();
    const made = await registrations.create({ ...request, ref: 'order 7' });
    expect(await callBy(made, async () => answer)).toBe(answer);
    const event = await handled.next();
    expect(event).toMatchObject({
      kind: 'task',
      source: 'response',
      status: 'completed',
      taskId,
      operationId: made.operationId,
      taskType: 'create_media_buy',
      data: { media_buy_id: 'mb-1' },
      context: { trace: 't' },
      registration: { operationId: made.operationId, ref: 'order 7' },
      warnings: [],
    });
    expect((await registrations.get(made))?.state).toBe('ended');
    await made.settle(answer);
    await receiver.stop();
    expect(seen).toHaveLength(1);
  });

  it('is durable before the call counts as answered: where it cannot be kept, the call is repeated', async () => {
    const { registrations, handled, receiver } = await open({ maxRecordsPerSender: 4 });
    const fill = (n: number): Promise<unknown> =>
      receiver.observe(polled({ taskId: `task-${n}`, observation: `${n}` }));
    const made = await registrations.create(request);
    await Promise.all([1, 2, 3].map(fill));
    await expect(callBy(made, async () => ({ done: true }))).rejects.toMatchObject({ code: 'overloaded' });
    expect((await registrations.get(made))?.state).toBe('calling');
    expect((await handled.next()).source).toBe('poll');
  });

  it('one that does not end it is none', async () => {
    const { registrations, seen, receiver } = await open();
    const made = await registrations.create(request);
    await callBy(made, async () => ({ status: 'submitted', task_id: 'task-1' }));
    expect((await registrations.get(made))?.state).toBe('open');
    await receiver.stop();
    expect(seen).toEqual([]);
  });
});

describe('what cannot be observed', () => {
  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;
  const wrong: readonly (readonly [string, unknown, RegExp])[] = [
    ['nothing', undefined, /give an object/],
    ['an unknown member', { ...polled(), task_id: 'x' }, /task_id/],
    ['no URL', polled({ sender: 'seller' }), /sender/],
    ['neither task nor operation', { ...polled(), taskId: undefined }, /taskId, operationId, or both/],
    ['an empty task', polled({ taskId: '' }), /taskId is not a string/],
    ['a status that is none', { ...polled(), status: 'active' }, /status is not a task status/],
    ['a time without a zone', polled({ timestamp: '2026-01-01T12:00:00' }), /timestamp/],
    ['no time of asking', { ...polled(), askedAt: undefined }, /askedAt/],
    ['NaN as one', polled({ askedAt: Number.NaN }), /askedAt/],
    ['a webhook', { ...polled(), source: 'webhook' }, /source/],
    [
      'no observation',
      { ...polled(), observation: undefined },
      /observation is not .* "change 1", "change 2"/,
    ],
    ['an empty one', { ...polled(), observation: '' }, /observation is not a string/],
    ['what is no JSON', polled({ data: { at: 1n } }), /data\.at/],
    ['NaN in it', polled({ data: [Number.NaN] }), /data\[0\]/],
    ['a cycle', polled({ data: cyclic }), /levels deep, or contains itself/],
    ['more than a body may have', polled({ data: 'x'.repeat(2_000_000) }), /maxBodyBytes/],
  ];

  it.each(wrong)('%s', async (_name, observation, message) => {
    const store = memoryStore();
    const { receiver } = await testReceiver({ store, registrations: registrationsOn(store) });
    const observing = receiver.observe(observation as Observation);
    await expect(observing).rejects.toThrow(ConfigError);
    await expect(observing).rejects.toThrow(message);
    await receiver.stop();
  });

  it('anything, without registrations', async () => {
    const { receiver } = await testReceiver();
    await expect(receiver.observe(polled())).rejects.toThrow(/registrations/);
    await receiver.stop();
  });

  it('anything, after stop', async () => {
    const store = memoryStore();
    const { receiver } = await testReceiver({ store, registrations: registrationsOn(store) });
    await receiver.stop();
    await expect(receiver.observe(polled())).rejects.toMatchObject({ code: 'shutting_down' });
  });
});
