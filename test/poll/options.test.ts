import { describe, expect, it, onTestFinished } from 'vitest';
import { ConfigError } from '../../src/index.ts';
import { createPoller } from '../../src/poll/index.ts';
import { type CallSeller, createRegistrations } from '../../src/registrations/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { AGENT, testReceiver } from '../receiver/setup.ts';
import { NEWEST } from '../registrations/kit.ts';

async function good(call: CallSeller | undefined = async () => ({})) {
  const store = memoryStore();
  const baseUrl = 'https://buyer.example';
  const registrations = createRegistrations({ store, call, baseUrl, secrets: [NEWEST] });
  const at = await testReceiver({ store, registrations });
  onTestFinished(() => at.receiver.stop());
  return { ...at, options: { receiver: at.receiver, registrations } };
}

/** Registrations without a client. */
async function registered() {
  const store = memoryStore();
  const registrations = createRegistrations({ store, baseUrl: 'https://buyer.example', secrets: [NEWEST] });
  const { receiver } = await testReceiver({ store, registrations });
  onTestFinished(() => receiver.stop());
  return { receiver, registrations };
}

const WRONG: readonly (readonly [string, object, RegExp])[] = [
  ['an option that does not exist', { fast: 5 }, /fast is not known/],
  ['no receiver', { receiver: {} }, /receiver is not a receiver. Give what createReceiver returned/],
  ['fastMs', { fastMs: 0 }, /fastMs: 0/],
  ['slowMs', { slowMs: 1.5 }, /slowMs: 1.5/],
  ['giveUpMs', { giveUpMs: Number.NaN }, /giveUpMs: NaN/],
  ['silentMs', { silentMs: '1h' }, /silentMs: "1h" is a string, not a whole number/],
  ['a number as a string', { callMs: '5000' }, /callMs: "5000" is a string, not a whole number from 1 to/],
  ['a bigint', { fastMs: 5n }, /fastMs: 5 is a bigint, not a whole number/],
  [
    'callMs over half the longest lease',
    { callMs: 300_001 },
    /callMs: 300001 is not a whole number from 1 to 300000/,
  ],
  ['fastMs over a day', { fastMs: 86_400_001 }, /fastMs: 86400001 is not a whole number from 1 to 86400000/],
  ['slowMs over a day', { slowMs: 86_400_001 }, /slowMs: 86400001 is not a whole number from 1 to 86400000/],
  ['perSeller', { perSeller: 0 }, /perSeller/],
  ['concurrency', { concurrency: -1 }, /concurrency/],
  ['query', { query: 'get_task_status' }, /query is not a function/],
  ['onPoll', { onPoll: true }, /onPoll is not a function/],
];

describe('createPoller', () => {
  it.each(WRONG)('refuses at once, with the fix: %s', async (_what, change, message) => {
    const { options } = await good();
    const make = (): unknown => createPoller({ ...options, ...change });
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(message);
  });

  it('refuses a receiver that has other registrations, or none', async () => {
    const { options } = await good();
    const other = await good();
    const without = await testReceiver();
    onTestFinished(() => without.receiver.stop());
    for (const { receiver } of [other, without]) {
      expect(() => createPoller({ ...options, receiver })).toThrow(/Give both the same/);
    }
  });

  it('asks each seller by the transport that the client says', async () => {
    const asked: string[] = [];
    const client = async (_agentUrl: string, operation: string): Promise<object> => {
      asked.push(operation);
      return { id: 'task-1', status: { state: 'working' } };
    };
    const transport = (agentUrl: string) => (agentUrl === AGENT ? ('agent' as const) : ('tool' as const));
    const { options } = await good(Object.assign(client, { transport }));
    const made = await options.registrations.create({ agentUrl: AGENT, taskType: 'a', arguments: {} });
    await made.settle({ status: 'submitted', task_id: 'task-1' });
    const poller = createPoller({ ...options, fastMs: 1 });
    onTestFinished(() => poller.stop());
    await poller.start();
    await expect.poll(() => asked[0]).toBe('tasks/get');
  });

  it('refuses registrations that have no client', async () => {
    const { receiver, registrations } = await registered();
    expect(() => createPoller({ receiver, registrations })).toThrow(
      'createPoller: these registrations have no client. Give it once: createRegistrations({ call, … })',
    );
  });

  it('starts and stops ten times, polls in between, and is ready as its receiver is', async () => {
    let asked = 0;
    const { options } = await good(async () => {
      asked += 1;
      return { status: 'submitted', task_id: 'task-1' };
    });
    const made = await options.registrations.create({ agentUrl: AGENT, taskType: 'a', arguments: {} });
    await made.settle({ status: 'submitted', task_id: 'task-1' });
    const poller = createPoller({ ...options, fastMs: 1 });
    expect(await poller.ready()).toEqual(await options.receiver.ready());
    for (let round = 0; round < 10; round += 1) {
      const before = asked;
      await Promise.all([poller.start(), poller.start()]);
      await expect.poll(() => asked).toBeGreaterThan(before);
      await Promise.all([poller.stop(), poller.stop()]);
      expect(poller.stats().inFlight).toBe(0);
    }
    void poller.start();
    await poller[Symbol.asyncDispose]();
    const after = asked;
    await poller.stop();
    expect(asked).toBe(after);
  });

  it('functions may leave a seller to the default', async () => {
    const asked: string[] = [];
    const client = async (_agentUrl: string, operation: string): Promise<object> => {
      asked.push(operation);
      return { status: 'working', task_id: 'task-1' };
    };
    const { options, alarms } = await good(Object.assign(client, { transport: () => undefined }));
    const made = await options.registrations.create({ agentUrl: AGENT, taskType: 'a', arguments: {} });
    await made.settle({ status: 'submitted', task_id: 'task-1' });
    const poller = createPoller({ ...options, fastMs: 1, silentMs: () => undefined });
    onTestFinished(() => poller.stop());
    await poller.start();
    await expect.poll(() => asked[0]).toBe('get_task_status');
    await expect.poll(() => poller.stats().polls.changed).toBe(1);
    expect(alarms).toEqual([]);
  });

  it('polls a seller fast whose silentMs nobody can say, with an alarm', async () => {
    const { options, alarms } = await good(async () => ({ status: 'submitted', task_id: 'task-1' }));
    const made = await options.registrations.create({
      agentUrl: AGENT,
      taskType: 'create_media_buy',
      arguments: {},
    });
    await made.settle({ status: 'submitted', task_id: 'task-1' });
    const polls: string[] = [];
    const poller = createPoller({
      ...options,
      fastMs: 1,
      silentMs: () => {
        throw new Error('no such seller');
      },
      onPoll: ({ result }) => void polls.push(result),
    });
    onTestFinished(() => poller.stop());
    await poller.start();
    await expect.poll(() => polls[0]).toBe('unchanged');
    expect(alarms[0]).toMatchObject({ code: 'misconfigured', sender: AGENT });
    expect(alarms[0]?.message).toContain('silentMs: no such seller');
  });
});
