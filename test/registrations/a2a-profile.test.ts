import { AgentCard, Message, Task } from '@a2a-js/sdk';
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express, { type Express } from 'express';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { a2aCaller } from '../../src/registrations/a2a.ts';
import { answerIn } from '../../src/registrations/for-tests.ts';
import { createRegistrations, type JsonObject } from '../../src/registrations/index.ts';
import { failureOf } from '../../src/poll/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createReceiver } from '../../src/index.ts';
import { listening, type Listening } from '../adapters/raw-client.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { NEWEST } from './kit.ts';
import { anyClient, callBy, pollerBy } from '../support/any-client.ts';

const PROFILE = 'https://adcontextprotocol.org/extensions/adcp/v3';

interface Called {
  readonly skill: string;
  readonly input: JsonObject;
}

/** The state of the transport's Task, and the data part. */
type Answer = readonly [state: string, data: object | undefined];

let server: Listening;
let app: Express;
let agentUrl: string;
let called: Called[];
let requests: { readonly body: JsonObject; readonly headers: Readonly<Record<string, unknown>> }[];
let answer: (called: Called) => Answer;

/** An agent on the server SDK that refuses, as the profile demands, whatever is not called by it. */
function profileAgent(extension: object, protocolVersion = '1.0'): Express {
  const card = AgentCard.fromJSON({
    name: 'seller',
    description: 'sells',
    version: '1',
    defaultInputModes: ['application/json'],
    defaultOutputModes: ['application/json'],
    skills: ['get_adcp_capabilities', 'create_media_buy', 'get_task_status'].map((id) => ({
      id,
      name: id,
      description: id,
      tags: [],
    })),
    capabilities: { pushNotifications: true, extensions: [{ uri: 'https://other.example/x' }, extension] },
    supportedInterfaces: [{ url: agentUrl, protocolBinding: 'JSONRPC', protocolVersion }],
  });
  const requestHandler = new DefaultRequestHandler(
    card,
    new InMemoryTaskStore(),
    {
      cancelTask: async () => undefined,
      execute: async ({ taskId, contextId, userMessage, context }, bus) => {
        const say = ([state, data]: Answer): void => {
          const artifacts = data && [{ artifactId: 'a', parts: [{ data }] }];
          const status = { state: `TASK_STATE_${state}` };
          bus.publish(
            AgentEvent.task(
              Task.fromJSON({ id: taskId, contextId, status, ...(artifacts && { artifacts }) }),
            ),
          );
          bus.finished();
        };
        const { parts } = Message.toJSON(userMessage) as { parts: { data?: JsonObject }[] };
        const { skill, input, ...others } = parts[0]?.data ?? {};
        const isProfile =
          context.requestedExtensions?.includes(PROFILE) &&
          parts.length === 1 &&
          typeof skill === 'string' &&
          typeof input === 'object' &&
          Object.keys(others).length === 0;
        if (!isProfile) {
          say(['REJECTED', { adcp_error: { code: 'INVALID_REQUEST', message: 'not of the profile' } }]);
          return;
        }
        context.addActivatedExtension(PROFILE);
        const now = { skill, input: input as JsonObject };
        called.push(now);
        say(answer(now));
      },
    },
    undefined,
    new InMemoryPushNotificationStore(),
    { send: async () => undefined },
  );
  const made = express();
  made.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  made.use(
    '/a2a',
    express.json(),
    (req, _res, next) => {
      if (req.method === 'POST') requests.push({ body: req.body as JsonObject, headers: req.headers });
      next();
    },
    jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }),
  );
  return made;
}

const submitted = (): Answer => ['COMPLETED', { status: 'submitted', task_id: 'work-1' }];
const REQUIRED = { uri: PROFILE, required: true };

beforeEach(async () => {
  [called, requests, answer] = [[], [], submitted];
  server = await listening((req, res) => void app(req, res));
  agentUrl = `${server.url}/a2a`;
  app = profileAgent(REQUIRED);
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
});

const caller = () => a2aCaller({ allowLoopback: true });
const call = (operation: string, args: JsonObject = {}): Promise<unknown> =>
  caller()(agentUrl, operation, args, { signal: AbortSignal.timeout(60_000) });

const BUY = {
  buyer_ref: 'spring',
  context: { trace: 7 },
  idempotency_key: 'key-1',
  push_notification_config: { url: 'https://buyer.example/webhooks/token', operation_id: 'op-1' },
};

describe('an agent whose card requires the profile extension (calls.md §4.14)', () => {
  it('gets every argument in input, the registration too, and both headers', async () => {
    expect(answerIn(await call('create_media_buy', BUY), 'create_media_buy')).toMatchObject({
      status: 'submitted',
      taskId: 'work-1',
    });
    expect(called).toEqual([{ skill: 'create_media_buy', input: BUY }]);
    expect(requests.map(({ body }) => body)).toEqual([
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'SendMessage',
        params: {
          message: {
            role: 'ROLE_USER',
            messageId: 'key-1',
            parts: [{ data: { skill: 'create_media_buy', input: BUY } }],
          },
          configuration: { returnImmediately: false },
        },
      },
    ]);
    expect(requests[0]?.headers).toMatchObject({ 'a2a-version': '1.0', 'a2a-extensions': PROFILE });
  });

  it('a repeated call is the same in every byte', async () => {
    await call('create_media_buy', BUY);
    await call('create_media_buy', BUY);
    expect(requests[1]?.body).toEqual(requests[0]?.body);
  });

  it('a result, a failure and a refusal are answers as of any agent', async () => {
    answer = () => ['COMPLETED', { products: [] }];
    expect(answerIn(await call('get_products'), 'get_products')).toMatchObject({
      status: 'completed',
      data: { products: [] },
    });
    answer = () => ['FAILED', { adcp_error: { code: 'BUDGET_TOO_LOW', message: 'more' } }];
    expect(answerIn(await call('create_media_buy', BUY), 'create_media_buy')).toMatchObject({
      status: 'failed',
    });
  });

  it('tasks/get is no operation of it, and nothing is sent', async () => {
    const error = await call('tasks/get', { id: 'work-1' }).catch((caught: unknown) => caught);
    expect(failureOf(error).kind).toBe('no-operation');
    expect((error as Error).message).toMatch(/get_task_status/);
    expect(requests).toEqual([]);
  });

  it.each(['WORKING', 'SUBMITTED'])(
    'an answer before the end of the call (%s) names no task: it is not answered',
    async (state) => {
      const task = { id: 'transport-1', contextId: 'c', status: { state: `TASK_STATE_${state}` } };
      const agent = app;
      app = express();
      app.post('/a2a', (_req, res) => void res.json({ jsonrpc: '2.0', id: 1, result: { task } }));
      app.use(agent);
      await expect(call('create_media_buy', BUY)).rejects.toThrow(/before the call has ended/);
    },
  );

  it.each([
    ['lists it and does not require it', { uri: PROFILE, required: false }],
    ['requires the older, informative one', { uri: PROFILE.replace('/v3', ''), required: true }],
    ['requires another', { uri: 'https://other.example/v3', required: true }],
  ])('one whose card %s is called as before', async (_, extension) => {
    app = profileAgent(extension);
    // The SDK refuses calls that do not know an extension which its card requires.
    await call('create_media_buy', BUY).catch(() => undefined);
    const [sent] = requests;
    expect(sent?.headers).not.toHaveProperty('a2a-extensions');
    expect(sent?.body).toMatchObject({
      params: {
        message: { parts: [{ data: { skill: 'create_media_buy', parameters: { buyer_ref: 'spring' } } }] },
        configuration: { taskPushNotificationConfig: { id: 'op-1' } },
      },
    });
  });

  it.each([
    [{ ...REQUIRED, params: { mode: 'x' } }, '1.0', /requires .*\/v3 with params/],
    [REQUIRED, '0.3', /names no https URL for JSONRPC in version 1\.0: JSONRPC 0\.3/],
  ])('a card %j with version %s is an error, and nothing is called', async (extension, version, message) => {
    app = profileAgent(extension, version);
    await expect(call('create_media_buy', BUY)).rejects.toThrow(message);
    expect(requests).toEqual([]);
  });

  it.each([
    '{"capabilities":null}',
    '{"capabilities":{"extensions":{"uri":"x"}}}',
    '{"capabilities":{"extensions":[null,7]}}',
  ])('a card with %s requires nothing', async (capabilities) => {
    const card = {
      ...(JSON.parse(capabilities) as JsonObject),
      supportedInterfaces: [{ url: agentUrl, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    };
    const agent = app;
    app = express();
    app.get('/.well-known/agent-card.json', (_req, res) => void res.json(card));
    app.use(agent);
    await call('get_products').catch(() => undefined);
    expect(requests[0]?.headers).not.toHaveProperty('a2a-extensions');
  });

  it('a registered operation is open under the task of the work, which is polled by the skill to its end', async () => {
    const account = { account_id: 'a1' };
    answer = ({ skill }) =>
      skill === 'get_task_status'
        ? [
            'COMPLETED',
            {
              task_id: 'work-1',
              task_type: 'create_media_buy',
              status: 'completed',
              result: { media_buy_id: 'mb-1' },
            },
          ]
        : submitted();
    const store = memoryStore();
    const registrations = createRegistrations({
      call: anyClient,
      store,
      baseUrl: 'https://buyer.example/webhooks',
      secrets: [NEWEST],
      allowLoopback: true,
      logger: SILENT_LOGGER,
    });
    const ended: unknown[] = [];
    const receiver = createReceiver({
      store,
      registrations,
      allowLoopback: true,
      durability: { require: 'process' },
      logger: SILENT_LOGGER,
      handlers: { completed: (event) => void ended.push(event.data), other: () => {} },
    });
    await receiver.start();
    const poller = pollerBy({ receiver, registrations, call: caller(), fastMs: 10 });
    try {
      const reg = await registrations.create({
        agentUrl,
        taskType: 'create_media_buy',
        arguments: { buyer_ref: 'spring', account },
      });
      await callBy(reg, caller());
      expect(await registrations.get(reg)).toMatchObject({ state: 'open', taskId: 'work-1' });
      await poller.start();
      await vi.waitFor(() => expect(ended).toEqual([{ media_buy_id: 'mb-1' }]), { timeout: 20_000 });
      expect(called.at(-1)).toMatchObject({
        skill: 'get_task_status',
        input: { task_id: 'work-1', account },
      });
    } finally {
      await poller.stop();
      await receiver.stop();
    }
  });
});
