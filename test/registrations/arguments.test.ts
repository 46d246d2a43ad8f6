import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ConfigError, type Store } from '../../src/index.ts';
import { createRegistrations, RegistrationError, type Registrations } from '../../src/registrations/index.ts';
import { a2aCaller } from '../../src/registrations/a2a.ts';
import { mcpCaller } from '../../src/registrations/mcp.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { NEWEST } from './kit.ts';

const SELLER = { agentUrl: 'https://seller.example/mcp' };
const REQUEST = { ...SELLER, taskType: 'create_media_buy', arguments: {} };
const DAILY = { frequency: 'daily' };
const options = { baseUrl: 'https://buyer.example/webhooks', secrets: [NEWEST] };

/** What a caller without types may give. */
type Loose = Record<
  'create' | 'reportingWebhook' | 'adopt' | 'forget' | 'get' | 'list',
  (...given: unknown[]) => Promise<unknown>
>;

const wrong: readonly (readonly [keyof Loose, readonly unknown[], string])[] = [
  ['create', [], 'create: is not an object'],
  ['create', [{ ...REQUEST, args: {} }], 'args is not known'],
  ['create', [{ ...REQUEST, token: 'yes' }], 'token: "yes" is not true or false'],
  ['create', [{ ...REQUEST, agentUrl: 5 }], 'agentUrl'],
  ['create', [{ ...REQUEST, requestKeyMs: '5' }], 'requestKeyMs: "5" is a string'],
  ['reportingWebhook', [], 'reportingWebhook: is not an object'],
  ['reportingWebhook', [{ ...SELLER, agent: 1 }, DAILY], 'agent is not known'],
  ['reportingWebhook', [SELLER], 'reportingWebhook: is not an object'],
  ['reportingWebhook', [SELLER, { ...DAILY, metrics: [] }], 'metrics is not known'],
  ['adopt', [], 'adopt: is not an object'],
  ['adopt', [{ url: 'https://buyer.example/webhooks/a' }], 'agentUrl'],
  ['adopt', [SELLER], 'adopt: nothing to take over'],
  ['adopt', [{ ...SELLER, uri: 'https://buyer.example/webhooks/a' }], 'uri is not known'],
  ['adopt', [{ ...SELLER, taskId: 'task-1' }], 'adopt: a task needs its taskType'],
  ['adopt', [{ ...SELLER, taskId: '', taskType: 'create_media_buy' }], 'taskId'],
  ['adopt', [{ ...SELLER, mediaBuyId: 'x'.repeat(4097) }], 'mediaBuyId: is longer than 4096'],
  ['adopt', [{ ...SELLER, mediaBuyId: 'mb', ref: 5 }], 'ref'],
  ['adopt', [{ ...SELLER, mediaBuyId: 'mb', taskType: 'a b' }], 'taskType'],
  ['adopt', [{ ...SELLER, mediaBuyId: 'mb', account: 'a1' }], 'account: is not an object'],
  ['adopt', [{ ...SELLER, mediaBuyId: 'mb', account: ['a1'] }], 'account: is not an object'],
  [
    'adopt',
    [{ ...SELLER, url: 'https://buyer.example/webhooks/a', account: null }],
    'account: is not an object',
  ],
  ['forget', [], 'agentUrl'],
  ['forget', [''], 'agentUrl'],
  ['forget', [SELLER], 'agentUrl'],
  ['get', [], 'agentUrl'],
  ['get', [null], 'agentUrl'],
  ['get', ['op-1'], 'get: is a string. Give both names: get({ agentUrl, operationId }).'],
  ['get', [SELLER], 'operationId'],
  ['get', [{ ...SELLER, operationId: 5 }], 'operationId'],
  ['list', [null], 'list: is not an object'],
  ['list', [{ limit: Number.NaN }], 'limit: NaN'],
  ['list', [{ limit: 0 }], 'limit'],
  ['list', [{ limit: 1001 }], 'limit'],
  ['list', [{ limit: '5' }], 'limit: "5" is a string, not a whole number from 1 to 1000.'],
  ['list', [{ limit: 5, state: 'done' }], 'state: "done"'],
  ['list', [{ limit: 5, agentUrl: 5 }], 'agentUrl'],
  ['list', [{ limit: 5, after: 5 }], 'after'],
  ['list', [{ limit: 5, after: 'no page gave this' }], 'after: is not the next of an earlier page.'],
  ['list', [{ limit: 5, sender: SELLER.agentUrl }], 'sender is not known'],
];

describe.each([
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore(':memory:')],
] as const)('wrong arguments, %s', (_name, storeOf) => {
  let store: Store;
  let registrations: Registrations;
  beforeEach(async () => {
    store = storeOf();
    await store.open();
    registrations = createRegistrations({ ...options, store });
  });
  afterEach(() => store.close());

  it.each(wrong)('%s(…%j): request_invalid, %s', async (method, given, message) => {
    const calling = (registrations as unknown as Loose)[method](...given);
    await expect(calling).rejects.toBeInstanceOf(RegistrationError);
    await expect(calling).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringContaining(message) as string,
    });
  });

  it('a seller of dev is registered in development only (dev.md §1.4)', async () => {
    const seller = { agentUrl: 'http://127.0.0.1:4646/proto-webhooks-dev/signature' };
    const local = createRegistrations({ ...options, store, allowLoopback: true });
    const subscription = {
      ...seller,
      account: { account_id: 'a1' },
      eventTypes: ['creative.purged'],
      ref: 'a1',
    };
    const adopted = { ...seller, url: 'https://buyer.example/webhooks/a' };
    vi.stubEnv('NODE_ENV', 'production');
    try {
      for (const registering of [
        () => local.create({ ...REQUEST, ...seller }),
        () => local.reportingWebhook(seller, { frequency: 'daily' }),
        () => local.adopt(adopted),
        () => local.subscribe(subscription),
      ]) {
        await expect(registering()).rejects.toMatchObject({
          code: 'request_invalid',
          message: expect.stringContaining('refused under NODE_ENV=production') as string,
        });
      }
    } finally {
      vi.unstubAllEnvs();
    }
    await local.create({ ...REQUEST, ...seller });
    await local.adopt(adopted);
  });

  it('an operation_id that no store could keep is of no operation', async () => {
    for (const operationId of ['x'.repeat(5000), 'a\0b\ud800']) {
      expect(await registrations.get({ ...SELLER, operationId })).toBeUndefined();
    }
  });

  it('list gives a hundred where nobody says how many', async () => {
    for (let at = 0; at < 101; at += 1) await registrations.create(REQUEST);
    const { operations, next } = await registrations.list();
    expect(operations).toHaveLength(100);
    const { operations: rest } = await registrations.list({ after: next });
    expect(rest).toHaveLength(1);
  });

  it('a client in the place of the options of a call says where to give it', async () => {
    const made = await registrations.create(REQUEST);
    for (const client of [async () => ({}), mcpCaller, a2aCaller]) {
      await expect(made.call(client as never)).rejects.toThrow(
        'call: the client is given to createRegistrations({ call, … }). Write: await registration.call().',
      );
    }
  });

  it('of a registration: call, its signal, and the version of the agent transport', async () => {
    const made = await registrations.create(REQUEST);
    const code = 'request_invalid';
    await expect(made.call()).rejects.toMatchObject({ code });
    for (const signal of [{} as AbortSignal, null as unknown as AbortSignal]) {
      await expect(made.call({ signal })).rejects.toMatchObject({
        code,
        message: 'signal: is not an AbortSignal. Give one, or leave it out.',
      });
    }
    expect((await registrations.get(made))?.state).toBe('calling');
    for (const make of [made.agentRequest, made.agentConfiguration]) {
      expect(() => make('2.0' as '1.0')).toThrow(/version: "2.0"/);
    }
  });

  it('a task_id over 4,096 characters is answer_invalid', async () => {
    const made = await registrations.create(REQUEST);
    const answer = (length: number) => ({ status: 'submitted', task_id: 'x'.repeat(length) });
    await expect(made.settle(answer(4097))).rejects.toMatchObject({ code: 'answer_invalid' });
    expect((await registrations.get(made))?.state).toBe('calling');
    expect(await made.settle(answer(4096))).toBe('settled');
  });

  it('ready counts the token of an operation whose task is open', async () => {
    const before = createRegistrations({
      ...options,
      store,
      secrets: ['an-older-secret-of-forty-characters-0001'],
    });
    const made = await before.create({ ...REQUEST, token: true });
    await made.settle({ status: 'submitted', task_id: 'task-1' });
    await expect(registrations.ready()).rejects.toThrow(/1 URLs .* and 1 calls/);
    await made.settle({ status: 'completed', task_id: 'task-1', result: { media_buy_id: 'mb-1' } });
    await expect(registrations.ready()).rejects.toThrow(/1 URLs .* and 0 calls/);
  });
});

describe('options', () => {
  it.each([
    [{ logger: 5 }, 'logger: has no function debug'],
    [{ onAlarm: 'page me' }, 'onAlarm'],
  ])('%j is a ConfigError', (more, message) => {
    const store = memoryStore();
    const make = (): unknown => createRegistrations({ ...options, store, ...(more as object) });
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(message);
  });

  it.each([[null], [{ call: async () => ({}) }]])('start(%j) is a ConfigError', async (...given) => {
    const { start } = createRegistrations({ ...options, store: memoryStore() });
    const anyStart: (...args: unknown[]) => Promise<void> = start;
    await expect(anyStart(...given)).rejects.toThrow(ConfigError);
    await expect(anyStart(...given)).rejects.toThrow(ConfigError);
  });
});
