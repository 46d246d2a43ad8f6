import { describe, expect, it, onTestFinished } from 'vitest';
import { ConfigError } from '../../src/index.ts';
import { createPoller } from '../../src/poll/index.ts';
import { a2aCaller } from '../../src/registrations/a2a.ts';
import { mcpCaller } from '../../src/registrations/mcp.ts';
import { createRegistrations } from '../../src/registrations/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { AGENT, testReceiver } from '../receiver/setup.ts';
import { NEWEST } from '../registrations/kit.ts';

async function good() {
  const store = memoryStore();
  const registrations = createRegistrations({ store, baseUrl: 'https://buyer.example', secrets: [NEWEST] });
  const at = await testReceiver({ store, registrations });
  onTestFinished(() => at.receiver.stop());
  return { ...at, options: { receiver: at.receiver, registrations, call: async () => ({}) } };
}

const WRONG: readonly (readonly [string, object, RegExp])[] = [
  ['an option that does not exist', { fast: 5 }, /fast is not known/],
  ['no receiver', { receiver: {} }, /receiver is not a receiver. Give what createReceiver returned/],
  ['call', { call: undefined }, /call: is not a function/],
  ['what makes a caller', { call: mcpCaller }, /call: mcpCaller is no client.*mcpCaller\(\{ auth \}\)/],
  ['the other one', { call: a2aCaller }, /call: a2aCaller is no client.*a2aCaller\(\{ auth \}\)/],
  ['fastMs', { fastMs: 0 }, /fastMs: 0/],
  ['slowMs', { slowMs: 1.5 }, /slowMs: 1.5/],
  ['giveUpMs', { giveUpMs: Number.NaN }, /giveUpMs: NaN/],
  ['silentMs', { silentMs: '1h' }, /silentMs: "1h" is a string, not a whole number/],
  ['a number as a string', { callMs: '5000' }, /callMs: "5000" is a string, not a whole number from 1 to/],
  ['a bigint', { fastMs: 5n }, /fastMs: 5 is a bigint, not a whole number/],
  ['callMs over what a timer can hold', { callMs: 2 ** 31 }, /callMs/],
  ['perSeller', { perSeller: 0 }, /perSeller/],
  ['concurrency', { concurrency: -1 }, /concurrency/],
  ['transport', { transport: 'mcp' }, /transport: "mcp" is not one of tool, agent/],
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

  it('functions may leave a seller to the default', async () => {
    const { options, alarms } = await good();
    const made = await options.registrations.create({ agentUrl: AGENT, taskType: 'a', arguments: {} });
    await made.settle({ status: 'submitted', task_id: 'task-1' });
    const asked: string[] = [];
    const call = Object.assign(
      async (_agentUrl: string, operation: string) => {
        asked.push(operation);
        return { id: 'task-1', status: { state: 'working' } };
      },
      { transport: 'agent' as const },
    );
    const poller = createPoller({
      ...options,
      call,
      fastMs: 1,
      transport: () => undefined,
      silentMs: () => undefined,
    });
    onTestFinished(() => poller.stop());
    poller.start();
    await expect.poll(() => asked[0]).toBe('tasks/get');
    await expect.poll(() => poller.stats().polls.changed).toBe(1);
    expect(alarms).toEqual([]);
  });

  it('polls a seller fast whose silentMs nobody can say, with an alarm', async () => {
    const { options, alarms } = await good();
    const made = await options.registrations.create({
      agentUrl: AGENT,
      taskType: 'create_media_buy',
      arguments: {},
    });
    await made.settle({ status: 'submitted', task_id: 'task-1' });
    const polls: string[] = [];
    const poller = createPoller({
      ...options,
      call: async () => ({ status: 'submitted', task_id: 'task-1' }),
      fastMs: 1,
      silentMs: () => {
        throw new Error('no such seller');
      },
      onPoll: ({ result }) => void polls.push(result),
    });
    onTestFinished(() => poller.stop());
    poller.start();
    await expect.poll(() => polls[0]).toBe('unchanged');
    expect(alarms[0]).toMatchObject({ code: 'misconfigured', sender: AGENT });
    expect(alarms[0]?.message).toContain('silentMs: no such seller');
  });
});
