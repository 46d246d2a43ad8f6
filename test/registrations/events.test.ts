import { randomBytes, randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError, type EventRegistrations, Fault, type Store } from '../../src/index.ts';
import type { Event } from '../../src/events/index.ts';
import type { Registration, Registrations } from '../../src/registrations/index.ts';
import { registrationsOf } from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { BACKENDS, type Backend, channel, type Channel, eventKey, inboxSetup } from '../inbox/setup.ts';
import {
  AGENT,
  testReceiver,
  type TestReceiver,
  type TestReceiverOptions,
  payloads,
  said,
} from '../receiver/setup.ts';
import { hashes, NEWEST } from './kit.ts';

const OTHER = 'https://other.example/mcp';
const request = { agentUrl: AGENT, taskType: 'create_media_buy', arguments: { budget: 1 } } as const;
const MODES = { inline: testReceiver, inbox: inboxSetup } as const;
const CASES = Object.keys(BACKENDS).flatMap((name) =>
  Object.keys(MODES).map((mode) => [mode as keyof typeof MODES, name] as const),
);

/** Later with each, and all of them past. */
const minute = (n: number): string => new Date(Date.UTC(2020, 0, 1, 0, n)).toISOString();

/** A store whose steps over registrations are counted, and can be made to fail. */
interface Counted {
  readonly store: Store;
  runs: number;
  failures: number;
}

function counted(store: Store): Counted {
  const { registrations } = store;
  if (!registrations) return expect.fail('the store has them');
  const run: typeof registrations.run = (sender, plan) => {
    at.runs += 1;
    if (at.failures === 0) return registrations.run(sender, plan);
    at.failures -= 1;
    return Promise.reject(new Fault('store_unavailable', 'connection refused'));
  };
  const at: Counted = {
    runs: 0,
    failures: 0,
    store: {
      ...store,
      registrations: {
        ...registrations,
        run,
      },
    },
  };
  return at;
}

describe.each(CASES)('mode %s on %s', (mode, name) => {
  let backend: Backend;
  let at: Counted;
  let registrations: Registrations;
  let handled: Channel<{ event: Event; chargedAttempts: number }>;
  const receivers: TestReceiver[] = [];

  beforeEach(async () => {
    backend = (BACKENDS[name] ?? expect.fail(name))();
    handled = channel();
    at = counted(backend.open());
    await at.store.open();
    registrations = registrationsOf(
      { store: at.store, baseUrl: 'https://buyer.example/webhooks', secrets: [NEWEST] },
      {
        hashes,
        randomBytes: (count) => new Uint8Array(randomBytes(count)),
        newId: () => randomUUID(),
        now: () => performance.now(),
        sleep: async () => {},
      },
    );
  });
  afterEach(async () => {
    for (const { receiver } of receivers.splice(0)) await receiver.stop();
    backend.remove();
  });

  /** With a worker, where the mode has one. */
  async function open(options: TestReceiverOptions = {}): Promise<TestReceiver> {
    const own: TestReceiverOptions = {
      store: at.store,
      registrations,
      handler: (event, { chargedAttempts }) => handled.push({ event, chargedAttempts }),
      ...options,
    };
    const made = mode === 'inline' ? await testReceiver(own) : await inboxSetup(backend, own);
    receivers.push(made);
    if (mode === 'inbox') await made.receiver.start();
    return made;
  }

  /** The event as its handler got it. */
  async function handledOf(made: TestReceiver, payload: object): Promise<Event> {
    expect(said(await made.deliver(payload))).toBe('accepted 200');
    return (await handled.next()).event;
  }

  const codes = ({ warnings }: Event): string[] => warnings.map(({ code }) => code);
  const warned = ({ alarms }: TestReceiver): unknown[] =>
    alarms.flatMap((alarm) => (alarm.code === 'nonconforming_sender' ? [alarm['warning']] : []));

  const begun = async (taskId: string, more: object = {}): Promise<Registration> => {
    const made = await registrations.create({ ...request, ...more });
    await made.settle({ status: 'submitted', task_id: taskId });
    return made;
  };
  const told = (operationId: string | undefined, taskId: string, more: object = {}): object =>
    payloads.tool('working', { operation_id: operationId, task_id: taskId, ...more });

  it('says on the event what was registered for it', async () => {
    const made = await open();
    const { operationId } = await begun('task-1', { ref: 'order 7', context: { a: 1, b: [2] } });
    const event = await handledOf(made, told(operationId, 'task-1', { context: { b: [2], a: 1 } }));
    expect(event.registration).toEqual({
      operationId,
      ref: 'order 7',
      taskType: 'create_media_buy',
      createdAt: (await registrations.get({ agentUrl: AGENT, operationId }))?.createdAt,
    });
    expect(codes(event)).toEqual([]);
    expect(warned(made)).toEqual([]);
  });

  it('compares the token that was asked for, and no other: none, another one, the right one', async () => {
    const made = await open();
    const mismatches = (): number => made.alarms.filter(({ code }) => code === 'token_mismatch').length;
    const plain = await begun('task-0');
    expect(codes(await handledOf(made, told(plain.operationId, 'task-0', { token: 'whatever' })))).toEqual(
      [],
    );
    const { operationId, toolArguments } = await begun('task-1', { token: true });
    const { token } = toolArguments['push_notification_config'] as { readonly token: string };
    const of = (more: object): Promise<Event> => handledOf(made, told(operationId, 'task-1', more));
    expect(codes(await of({ token }))).toEqual([]);
    expect(codes(await of({}))).toEqual(['token_missing']);
    expect(codes(await of({ token: null }))).toEqual(['token_missing']);
    expect(mismatches()).toBe(0);
    expect(codes(await of({ token: `${token}x` }))).toEqual(['token_mismatch']);
    // One that is no string is another one, even where its text would be the same.
    for (const other of [5, true, [token], { token }]) {
      expect(codes(await of({ token: other }))).toEqual(['token_mismatch']);
    }
    expect(mismatches()).toBe(1);
  });

  it('raises one alarm for each mismatch, in whichever transport: none is left out', async () => {
    let clock = Date.now();
    const made = await open({ now: () => clock });
    const { operationId } = await begun('task-1', { token: true });
    const send = async (payload: object, sign: object): Promise<string[]> => {
      const signed = await made.sign(payload, { ...sign, now: () => clock });
      expect(said(await made.send(signed))).toBe('accepted 200');
      const { event } = await handled.next();
      clock += 61_000;
      return codes(event);
    };
    const wrong = told(operationId, 'task-1', { token: 'another one' });
    const push = payloads.agent('working', { taskId: 'task-1', metadata: {} });
    expect(await send(wrong, {})).toEqual(['token_mismatch']);
    await send(push, { headers: { 'X-A2A-Notification-Token': 'another one' } });
    await send(told(operationId, 'task-1', { token: 'a third one' }), {});
    const mismatches = made.alarms.filter(({ code }) => code === 'token_mismatch');
    expect(mismatches.map(({ suppressed }) => suppressed)).toEqual([undefined, undefined, undefined]);
  });

  it('compares the token in the header of an agent’s push, before admission', async () => {
    const made = await open();
    const { agentRequest } = await begun('task-1', { token: true });
    const { configuration } = agentRequest('1.0') as unknown as {
      readonly configuration: { readonly taskPushNotificationConfig: { readonly token: string } };
    };
    const push = async (token: string | undefined, taskId: string, metadata = {}): Promise<string[]> => {
      const signed = await made.sign(payloads.agent('working', { taskId, metadata }));
      const field = token === undefined ? {} : { 'X-A2A-Notification-Token': token };
      const headers = { ...signed.headers, ...field };
      const outcome = await made.receiver.verifyAndDispatch(signed.body, headers);
      expect(said(outcome)).toBe('accepted 200');
      await handled.next();
      return 'event' in outcome && outcome.event ? codes(outcome.event) : ['no event'];
    };
    const { token } = configuration.taskPushNotificationConfig;
    expect(await push(token, 'task-1')).toEqual([]);
    // Where none was asked for, none is missed.
    await begun('task-2');
    expect(await push(undefined, 'task-2')).not.toContain('token_missing');
    expect(await push(undefined, 'task-of-nobody')).not.toContain('token_missing');
    expect(await push(undefined, 'task-1')).toContain('token_missing');
    // Before the call is answered, only the operation_id finds the token.
    const early = await registrations.create({ ...request, token: true });
    const named = { operation_id: early.operationId };
    expect(await push(undefined, 'task-before-its-answer', named)).toContain('token_missing');
    expect(await push('another one', 'task-of-nobody')).not.toContain('token_mismatch');
    expect(await push('another one', 'task-1')).toContain('token_mismatch');
    expect(made.alarms.filter(({ code }) => code === 'token_mismatch')).toHaveLength(1);
  });

  it('gives no reason of a task that failed without a word', async () => {
    const made = await open();
    const silent = await begun('task-1');
    await handledOf(
      made,
      payloads.tool('failed', { operation_id: silent.operationId, task_id: 'task-1', result: {} }),
    );
    const seen = await registrations.get(silent);
    expect(seen).toMatchObject({ state: 'ended', status: 'failed' });
    expect(seen).not.toHaveProperty('reason');
  });

  it('finds it by the task, where the event has no operation_id', async () => {
    const made = await open();
    const { operationId } = await begun('task-1');
    const event = await handledOf(made, payloads.agent('completed', { id: 'task-1', metadata: {} }));
    expect(event.operationId).toBeUndefined();
    expect(event.registration).toMatchObject({ operationId });
    expect(codes(event)).toEqual([]);
    const unknown = await handledOf(made, payloads.agent('completed', { id: 'task-2', metadata: {} }));
    expect('registration' in unknown).toBe(false);
    expect(codes(unknown)).toEqual([]);
    // Also where its data names no media buy.
    const third = await begun('task-3');
    const working = payloads.agent('working', { taskId: 'task-3', metadata: {} });
    expect((await handledOf(made, working)).registration).toMatchObject({ operationId: third.operationId });
  });

  it('finds it by the media buy that came of it, where a report names no operation', async () => {
    const made = await open();
    const { operationId } = await begun('task-1', { ref: 'order 7' });
    const report = (...ids: string[]): object =>
      payloads.report(
        'scheduled',
        { media_buy_deliveries: ids.map((id) => ({ media_buy_id: id, status: 'active', totals: {} })) },
        { task_id: 'task-of-the-report' },
      );
    const before = await handledOf(made, report('mb-7'));
    expect('registration' in before).toBe(false);
    await handledOf(
      made,
      payloads.tool('completed', {
        operation_id: operationId,
        task_id: 'task-1',
        result: { media_buy_id: 'mb-7' },
      }),
    );
    expect(await registrations.get({ agentUrl: AGENT, operationId })).toMatchObject({ mediaBuyId: 'mb-7' });
    const one = await handledOf(made, report('mb-7', 'mb-7'));
    expect(one.registration).toMatchObject({ operationId, ref: 'order 7' });
    expect(codes(one)).toEqual([]);
    const several = await handledOf(made, report('mb-7', 'mb-8'));
    expect('registration' in several).toBe(false);
  });

  it('adopts a media buy that runs, and a task that is under way, each once', async () => {
    const made = await open();
    const buy = { agentUrl: AGENT, mediaBuyId: 'mb-9', ref: 'order 9' };
    const adopted = await registrations.adopt(buy);
    expect(adopted).toMatchObject({ state: 'ended', taskType: 'create_media_buy', mediaBuyId: 'mb-9' });
    expect(await registrations.adopt(buy)).toEqual(adopted);
    const deliveries = [{ media_buy_id: 'mb-9', status: 'active', totals: {} }];
    const report = await handledOf(made, payloads.report('scheduled', { media_buy_deliveries: deliveries }));
    expect(report.registration).toMatchObject({ operationId: adopted?.operationId, ref: 'order 9' });

    const running = { agentUrl: AGENT, taskId: 'task-9', taskType: 'update_media_buy', ref: 'change 9' };
    const task = await registrations.adopt(running);
    expect(task).toMatchObject({ state: 'open', taskType: 'update_media_buy', taskId: 'task-9' });
    expect(await registrations.adopt(running)).toEqual(task);
    expect((await registrations.list({ state: 'watched', limit: 9 })).operations).toEqual([task]);
    const end = await handledOf(made, payloads.tool('completed', { task_id: 'task-9', result: {} }));
    expect(end.registration).toMatchObject({ operationId: task?.operationId, ref: 'change 9' });
    // It names the operation that its seller was told elsewhere.
    expect(end.operationId).toBeDefined();
    expect(codes(end)).toEqual([]);
    expect(await registrations.get(task ?? expect.fail())).toMatchObject({ state: 'ended' });
  });

  it('adopts a task of a media buy that is adopted already, as an operation of its own', async () => {
    const buy = await registrations.adopt({ agentUrl: AGENT, mediaBuyId: 'mb-1' });
    const task = await registrations.adopt({
      agentUrl: AGENT,
      mediaBuyId: 'mb-1',
      taskId: 'task-9',
      taskType: 'update_media_buy',
    });
    expect(task).toMatchObject({ state: 'open', taskId: 'task-9', taskType: 'update_media_buy' });
    expect(task?.operationId).not.toBe(buy?.operationId);
    expect((await registrations.list({ state: 'watched', limit: 9 })).operations).toEqual([task]);
  });

  it('a task that was adopted before its call was answered is the call’s from its answer on', async () => {
    const made = await open();
    const called = await registrations.create(request);
    const adopted = await registrations.adopt({
      agentUrl: AGENT,
      taskId: 'task-9',
      taskType: 'create_media_buy',
    });
    expect(await called.settle({ status: 'submitted', task_id: 'task-9' })).toBe('settled');
    expect(await registrations.get(adopted ?? expect.fail())).toMatchObject({ state: 'ended' });
    const watched = await registrations.list({ state: 'watched', limit: 9 });
    expect(watched.operations).toEqual([await registrations.get(called)]);
    const told = {
      operation_id: called.operationId,
      task_id: 'task-9',
      result: {},
    };
    const end = await handledOf(made, payloads.tool('completed', told));
    expect(end.registration).toMatchObject({ operationId: called.operationId });
    expect(codes(end)).toEqual([]);
    expect(await registrations.get(called)).toMatchObject({ state: 'ended', status: 'completed' });
  });

  it('a webhook before the answer takes the task from an adoption, too', async () => {
    const made = await open();
    const called = await registrations.create(request);
    await registrations.adopt({ agentUrl: AGENT, taskId: 'task-9', taskType: 'create_media_buy' });
    const event = await handledOf(made, told(called.operationId, 'task-9'));
    expect(codes(event)).toEqual([]);
    expect(await registrations.get(called)).toMatchObject({ state: 'open', taskId: 'task-9' });
  });

  it('warns of an operation_id that nobody has registered with this seller', async () => {
    const made = await open();
    const foreign = await registrations.create({ ...request, agentUrl: OTHER });
    for (const [n, id] of ['made-up', foreign.operationId, 'x'.repeat(5000), 'a\0b\ud800'].entries()) {
      const event = await handledOf(made, told(id, `task-${n}`));
      expect('registration' in event).toBe(false);
      expect(codes(event)).toEqual(['operation_id_unknown']);
    }
    // Once a minute.
    expect(warned(made)).toEqual(['operation_id_unknown']);
    expect((await registrations.get(foreign))?.state).toBe('calling');
  });

  it('warns where operation and task are not of each other, and ends that of the task alone', async () => {
    const made = await open();
    const [one, two, three] = [
      await begun('task-1'),
      await begun('task-2'),
      await registrations.create(request),
    ];
    const cases = [
      [one.operationId, 'task-2', one.operationId],
      [one.operationId, 'task-of-nobody', one.operationId],
      ['made-up', 'task-2', two.operationId],
      [three.operationId, 'task-2', three.operationId],
    ] as const;
    for (const [n, [named, taskId, found]] of cases.entries()) {
      const is = { operation_id: named, task_id: taskId, timestamp: minute(n) };
      const event = await handledOf(made, payloads.tool('completed', is));
      expect(event.registration).toMatchObject({ operationId: found });
      expect(codes(event)).toContain('operation_id_mismatch');
      expect(codes(event)).not.toContain('operation_id_unknown');
    }
    expect(warned(made)).toEqual(['operation_id_mismatch']);
    expect((await registrations.get(one))?.state).toBe('open');
    expect(await registrations.get(two)).toMatchObject({ state: 'ended', status: 'completed' });
    expect((await registrations.get(three))?.state).toBe('calling');
  });

  it('warns of a context that is not what the call was given; other events than a task’s may have none', async () => {
    const made = await open();
    const { operationId } = await begun('task-1', { context: { trace: 't-1' } });
    const contexts = [{ trace: 't-2' }, { trace: 't-1', more: 1 }, undefined, null, 'text'];
    for (const [n, context] of contexts.entries()) {
      const event = await handledOf(made, told(operationId, 'task-1', { context, timestamp: minute(n) }));
      expect(codes(event)).toEqual(['context_mismatch']);
    }
    const report = { operation_id: operationId, task_id: 'task-1' };
    const without = await handledOf(made, payloads.report('scheduled', {}, report));
    expect(without.registration).toMatchObject({ operationId });
    expect(codes(without)).toEqual([]);
    const wrong = payloads.report('scheduled', {}, { ...report, context: {} });
    expect(codes(await handledOf(made, wrong))).toEqual(['context_mismatch']);
    const free = await begun('task-2');
    expect(codes(await handledOf(made, told(free.operationId, 'task-2', { context: { own: 1 } })))).toEqual(
      [],
    );
  });

  it('the webhook is there before the answer: it settles the call', async () => {
    const made = await open();
    const early = await registrations.create(request);
    const event = await handledOf(made, told(early.operationId, 'task-1', { timestamp: minute(0) }));
    expect(event.registration).toMatchObject({ operationId: early.operationId });
    expect(await registrations.get(early)).toMatchObject({
      state: 'open',
      taskId: 'task-1',
      status: 'working',
    });
    expect(await early.settle({ status: 'submitted', task_id: 'task-1' })).toBe('known');
    const next = payloads.agent('completed', { id: 'task-1', metadata: {} });
    expect((await handledOf(made, next)).registration).toMatchObject({ operationId: early.operationId });
    expect(await registrations.get(early)).toMatchObject({ state: 'ended', status: 'completed' });
  });

  it('a duplicate, a stale one and one that names nothing cost no step', async () => {
    const made = await open();
    const { operationId } = await begun('task-1');
    const late = { timestamp: minute(0), idempotency_key: eventKey(1) };
    const payload = told(operationId, 'task-1', { timestamp: minute(1) });
    at.runs = 0;
    await handledOf(made, payload);
    expect(at.runs).toBe(1);
    expect(said(await made.deliver(payload))).toBe('duplicate 200');
    await made.deliver(told(operationId, 'task-1', late));
    // In the inbox perhaps a worker finds that out.
    while ((await made.receiver.inbox.inspect(AGENT, eventKey(1)))?.state !== 'stale') await turn();
    const plain = await handledOf(made, payloads.family('impairment'));
    expect('registration' in plain).toBe(false);
    expect(at.runs).toBe(1);
    expect(made.seen).toHaveLength(2);
  });

  it('a look-up that fails loses nothing: the event is run again, and no attempt is counted', async () => {
    const made = await open();
    const { operationId } = await begun('task-1');
    const payload = told(operationId, 'task-1');
    at.failures = 1;
    const first = await made.deliver(payload);
    if (mode === 'inline') {
      expect(said(first)).toBe('unavailable store_unavailable 503');
      expect(made.seen).toEqual([]);
      expect(said(await made.deliver(payload))).toBe('accepted 200');
    } else {
      expect(said(first)).toBe('accepted 200');
    }
    const { event, chargedAttempts } = await handled.next();
    expect(event.registration).toMatchObject({ operationId });
    expect(chargedAttempts).toBe(1);
    expect(made.seen).toHaveLength(1);
  });
});

describe('the option registrations', () => {
  it.each([null, {}, { ofEvent: 1 }])('%j is a ConfigError', async (registrations) => {
    const wrong = { store: memoryStore(), registrations: registrations as unknown as EventRegistrations };
    await expect(testReceiver(wrong)).rejects.toThrow(ConfigError);
  });
});
