import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/index.ts';
import { a2aCaller, type A2aOptions } from '../../src/registrations/a2a.ts';
import { answerIn, refusalIn } from '../../src/registrations/for-tests.ts';
import {
  createRegistrations,
  type JsonObject,
  type Registrations,
  SellerBusyError,
  TaskUnknownError,
} from '../../src/registrations/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { listening, type Listening } from '../adapters/raw-client.ts';
import { type Agent, agent03, agent10, type Said } from './agents.ts';
import { NEWEST } from './kit.ts';
import { anyClient, callBy } from '../support/any-client.ts';

interface Sent {
  readonly path: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

let server: Listening;
let agent: Agent;
let answer: () => AsyncIterable<Said> | Iterable<Said>;
let sent: Sent[];
/** Answers instead of the agent, where it gives true. */
let instead: (req: IncomingMessage, res: ServerResponse) => boolean;
let agentUrl: string;

async function listen(make: (url: string) => Agent): Promise<void> {
  sent = [];
  answer = () => [{ state: 'submitted' }];
  instead = () => false;
  server = await listening((req, res) => {
    const { url: path, headers } = req;
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => sent.push({ path, headers, body: Buffer.concat(chunks) }));
    if (!instead(req, res)) agent.app(req, res);
  });
  agentUrl = `${server.url}/a2a`;
  agent = make(agentUrl);
}
afterEach(async () => {
  await server[Symbol.asyncDispose]();
});

const posts = (): readonly Sent[] => sent.filter(({ body }) => body.length > 0);
const bodies = (): readonly JsonObject[] =>
  posts().map(({ body }) => JSON.parse(body.toString()) as JsonObject);

const call = (
  operation: string,
  args: JsonObject = {},
  options: A2aOptions = {},
  signal: AbortSignal = AbortSignal.timeout(60_000),
): Promise<unknown> => a2aCaller({ allowLoopback: true, ...options })(agentUrl, operation, args, { signal });

const CONFIG = { url: 'https://buyer.example/webhooks/token', operation_id: 'op-1' };
const BUY = {
  buyer_ref: 'spring',
  context: { trace: 7 },
  idempotency_key: 'key-1',
  push_notification_config: CONFIG,
};

const AGENTS: Readonly<Record<string, (url: string) => Agent>> = {
  '1.0': (url) => agent10({ url, answer: () => answer() }),
  '0.3': (url) => agent03({ url, answer: () => answer() }),
  '0.3 in the newer SDK': (url) => agent10({ url, answer: () => answer() }, true),
};

describe.each(Object.entries(AGENTS))('an agent of version %s', (version, make) => {
  const is10 = version === '1.0';
  beforeEach(() => listen(make));

  it('gets the registration in configuration, and the parameters in a data part', async () => {
    const { taskId } = answerIn(await call('create_media_buy', BUY), 'create_media_buy');
    const { push_notification_config: _, ...parameters } = BUY;
    const data = { skill: 'create_media_buy', parameters };
    expect(bodies()).toEqual([
      {
        jsonrpc: '2.0',
        id: 1,
        method: is10 ? 'SendMessage' : 'message/send',
        params: is10
          ? {
              message: { role: 'ROLE_USER', messageId: 'key-1', parts: [{ data }] },
              configuration: {
                returnImmediately: true,
                taskPushNotificationConfig: { id: 'op-1', url: CONFIG.url },
              },
            }
          : {
              message: { kind: 'message', role: 'user', messageId: 'key-1', parts: [{ kind: 'data', data }] },
              configuration: { blocking: false, pushNotificationConfig: { id: 'op-1', ...CONFIG } },
            },
      },
    ]);
    expect(await agent.registeredFor(taskId ?? '')).toMatchObject([{ id: 'op-1', url: CONFIG.url }]);
  });

  it('a repeated call is the same in every byte', async () => {
    await call('create_media_buy', BUY);
    await call('create_media_buy', BUY);
    const [first, second] = posts();
    expect(second?.body).toEqual(first?.body);
  });

  it('a task that goes on is answered at once, also where the agent waits for nothing else', async () => {
    answer = async function* () {
      yield { state: 'working' };
      await new Promise(() => {});
    };
    expect(answerIn(await call('create_media_buy', BUY), 'create_media_buy')).toEqual({
      status: 'working',
      taskId: expect.any(String) as string,
    });
  });

  it('what only asks, without a request key, is waited for', async () => {
    answer = () => [{ state: 'working' }, { state: 'completed', data: { products: [] } }];
    expect(answerIn(await call('get_products', { brief: 'all' }), 'get_products')).toMatchObject({
      status: 'completed',
      data: { products: [] },
    });
    await call('get_products', { brief: 'all' });
    const ids = bodies().map(
      ({ params }) => (params as { message: { messageId: string } }).message.messageId,
    );
    expect(new Set(ids).size).toBe(2);
  });

  it('a completed task and a message are answers with their data', async () => {
    answer = () => [{ state: 'completed', data: { media_buy_id: 'mb-1' } }];
    expect(answerIn(await call('create_media_buy', BUY), 'create_media_buy')).toMatchObject({
      status: 'completed',
      data: { media_buy_id: 'mb-1' },
    });
    answer = () => [
      {
        parts: [
          { kind: 'text', text: 'Done.' },
          { kind: 'data', data: { media_buy_id: 'mb-2' } },
        ],
      },
    ];
    expect(answerIn(await call('create_media_buy', BUY), 'create_media_buy')).toEqual({
      status: 'completed',
      data: { media_buy_id: 'mb-2' },
    });
    answer = () => [{ parts: [{ kind: 'text', text: 'Done.' }] }];
    const words = await call('create_media_buy', BUY);
    expect(() => answerIn(words, 'create_media_buy')).toThrow(/an agent's message without a data part/);
  });

  it.each([
    ['a message', (data: Record<string, unknown>) => ({ parts: [{ kind: 'data', data }] })],
    ['a task that failed at once', (data: Record<string, unknown>) => ({ state: 'failed', data })],
    ['a task that was rejected at once', (data: Record<string, unknown>) => ({ state: 'rejected', data })],
  ])('a refusal in %s is a SellerError', async (_name, saying) => {
    answer = () => [saying({ error: { code: 'INVALID_REQUEST', message: 'no webhooks' } })];
    const refusal = refusalIn(await call('create_media_buy', BUY), 'create_media_buy');
    expect(refusal).toMatchObject({ name: 'SellerError', code: 'INVALID_REQUEST' });
    expect(refusal?.message).toContain('no webhooks');
  });

  it('a task that failed of what has no code has failed, and is no refusal', async () => {
    const error = { message: 'more' };
    answer = () => [{ state: 'failed', data: { error } }];
    const answered = await call('create_media_buy', BUY);
    expect(refusalIn(answered, 'create_media_buy')).toBeUndefined();
    expect(answerIn(answered, 'create_media_buy')).toMatchObject({ status: 'failed', data: { error } });
  });

  it('tasks/get asks the transport for a task; one that is unknown is an error of its own', async () => {
    answer = () => [{ state: 'submitted' }, { state: 'completed', data: { media_buy_id: 'mb-1' } }];
    const { taskId = '' } = answerIn(await call('get_products'), 'get_products');
    expect(answerIn(await call('tasks/get', { id: taskId }), 'get_products')).toEqual({
      status: 'completed',
      taskId,
      data: { media_buy_id: 'mb-1' },
    });
    expect(bodies().at(-1)).toMatchObject({ method: is10 ? 'GetTask' : 'tasks/get', params: { id: taskId } });
    const unknown = call('tasks/get', { id: 'none' });
    await expect(unknown).rejects.toBeInstanceOf(TaskUnknownError);
    await expect(unknown).rejects.toThrow(/does not know the task/);
  });
});

const respond =
  (status: number, headers: Record<string, string> = {}, body = '') =>
  (_req: IncomingMessage, res: ServerResponse): boolean => {
    res.writeHead(status, headers).end(body);
    return true;
  };

describe('a2aCaller', () => {
  beforeEach(() => listen((url) => agent10({ url, answer: () => answer() })));

  it('sends the token of the seller, asked for before each call, with the card’s request too', async () => {
    const token = async (url: string): Promise<string> => `for-${new URL(url).pathname.slice(1)}`;
    await call('get_products', {}, { auth: { type: 'bearer', token } });
    expect(sent.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer for-a2a',
      'Bearer for-a2a',
      'Bearer for-a2a',
    ]);
  });

  it.each([
    [401, undefined, 'AUTH_REQUIRED'],
    [401, 'old', 'AUTH_INVALID'],
    [403, 'old', 'INSUFFICIENT_PERMISSIONS'],
  ])('a transport that answers %i (token: %s) is %s', async (status, token, code) => {
    instead = (req, res) => req.method === 'POST' && respond(status)(req, res);
    const calling = call(
      'create_media_buy',
      BUY,
      token === undefined ? {} : { auth: { type: 'bearer', token } },
    );
    await expect(calling).rejects.toMatchObject({ name: 'SellerError', code });
  });

  it('its card is read once for several calls, and anew after one that failed', async () => {
    const caller = a2aCaller({ allowLoopback: true });
    const cards = (): number => sent.filter(({ path }) => path?.endsWith('agent-card.json')).length;
    await caller(agentUrl, 'create_media_buy', BUY, { signal: AbortSignal.timeout(60_000) });
    const first = cards();
    expect(first).toBeGreaterThan(0);
    await caller(agentUrl, 'create_media_buy', BUY, { signal: AbortSignal.timeout(60_000) });
    expect(cards()).toBe(first);
    instead = respond(503);
    await expect(
      caller(agentUrl, 'create_media_buy', BUY, { signal: AbortSignal.timeout(60_000) }),
    ).rejects.toThrow('503');
    instead = () => false;
    await caller(agentUrl, 'create_media_buy', BUY, { signal: AbortSignal.timeout(60_000) });
    expect(cards()).toBe(2 * first);
  });

  it.each([
    [429, { 'retry-after': '7' }, 7000],
    [429, {}, undefined],
    [503, { 'retry-after': '0' }, 0],
  ])('%i with %j is busy', async (status, headers, retryAfterMs) => {
    instead = respond(status, headers);
    const calling = call('create_media_buy', BUY);
    await expect(calling).rejects.toBeInstanceOf(SellerBusyError);
    await expect(calling).rejects.toMatchObject({ status, retryAfterMs });
  });

  it.each([
    [respond(503), /answers HTTP 503/],
    [respond(200, {}, '<html>'), /without a JSON object/],
    [
      respond(404),
      /No agent card: .*\/a2a\/\.well-known\/agent-card\.json answers HTTP 404, .*give a2aCaller a version/,
    ],
    [
      respond(
        200,
        {},
        '{"supportedInterfaces":[{"url":"https://a.example","protocolBinding":"GRPC","protocolVersion":"1.0"}]}',
      ),
      /GRPC 1\.0 at https:\/\/a\.example/,
    ],
    [
      respond(
        200,
        {},
        '{"supportedInterfaces":[{"url":"/a2a","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}',
      ),
      /names no https URL/,
    ],
    [respond(200, {}, '{"protocolVersion":"0.3.0","url":"https://a.example"}'), /cannot be read/],
    [respond(200, {}, '{}'), /names no https URL .*: nothing/],
  ])(
    'a card that is none is a plain error that says why (%#): the call is repeated',
    async (card, message) => {
      instead = card;
      const calling = call('create_media_buy', BUY);
      await expect(calling).rejects.toThrow(message);
      await expect(calling).rejects.not.toMatchObject({ name: 'SellerError' });
      expect(posts()).toEqual([]);
    },
  );

  it.each([
    [respond(500, {}, 'oops'), /answers HTTP 500 without a JSON-RPC result/],
    [respond(200, {}, '{"jsonrpc":"2.0","id":1,"result":null}'), /without a JSON-RPC result/],
    [
      respond(200, {}, '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"boom"}}'),
      /error -32603: boom/,
    ],
    [respond(200, {}, `"${'x'.repeat(16_777_216)}"`), /more than 16777216 bytes/],
  ])('an answer that is none is a plain error (%#): the call is repeated', async (said, message) => {
    instead = (req, res) => req.method === 'POST' && said(req, res);
    const calling = call('create_media_buy', BUY);
    await expect(calling).rejects.toThrow(message);
    await expect(calling).rejects.not.toMatchObject({ name: 'SellerError' });
  });

  it('push notifications that an agent does not have are a registration refused', async () => {
    const body = '{"jsonrpc":"2.0","id":1,"error":{"code":-32003,"message":"none"}}';
    instead = (req, res) => req.method === 'POST' && respond(200, {}, body)(req, res);
    await expect(call('create_media_buy', BUY)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });

  it('with a version no card is asked for', async () => {
    await call('get_products', {}, { version: '1.0' });
    expect(sent.map(({ path, headers }) => [path, headers['a2a-version']])).toEqual([['/a2a', '1.0']]);
  });

  it('the newest version of a card is spoken, where and for whom the card says', async () => {
    const card = {
      supportedInterfaces: [
        { url: `${server.url}/old`, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
        { url: `${server.url}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: 'acme' },
      ],
    };
    instead = (req, res) => req.method === 'GET' && respond(200, {}, JSON.stringify(card))(req, res);
    await call('get_products');
    expect(posts().map(({ path }) => path)).toEqual(['/a2a']);
    expect(bodies()).toMatchObject([{ params: { tenant: 'acme' } }]);
  });

  it.each([[undefined], [null], [''], [7], [{ id: 'acme' }]])(
    'a tenant that is no text of a card (%j) is not told to the agent',
    async (tenant) => {
      const one = { url: agentUrl, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant };
      const card = JSON.stringify({ supportedInterfaces: [one] });
      instead = (req, res) => req.method === 'GET' && respond(200, {}, card)(req, res);
      await call('get_products');
      expect(bodies()).toHaveLength(1);
      expect(bodies()[0]?.['params']).not.toHaveProperty('tenant');
    },
  );

  it('an interface for a tenant of too many characters is not spoken, and the error says why', async () => {
    const [binding, version] = ['JSONRPC', '1.0'];
    const tenant = 'x'.repeat(4097);
    const only = { url: `${server.url}/a2a`, protocolBinding: binding, protocolVersion: version, tenant };
    const card = JSON.stringify({ supportedInterfaces: [only] });
    instead = (req, res) => req.method === 'GET' && respond(200, {}, card)(req, res);
    await expect(call('get_products')).rejects.toThrow(
      `JSONRPC 1.0 at ${server.url}/a2a, which is for a tenant of more than 4096 characters.`,
    );
    expect(posts()).toEqual([]);
  });

  it('stops where it is told to, and where no answer comes', async () => {
    answer = async function* () {
      await new Promise(() => {});
      yield { state: 'working' };
    };
    const stopping = new AbortController();
    const calling = call('create_media_buy', BUY, {}, stopping.signal);
    stopping.abort(new Error('no more'));
    await expect(calling).rejects.toThrow('no more');
    await expect(call('create_media_buy', BUY, { timeoutMs: 50 })).rejects.toThrow(/timed out/);
  });

  it.each([
    [{ auth: { type: 'basic', token: 'x' } }, /auth: must be/],
    [{ timeoutMs: 0 }, /timeoutMs/],
    [{ timeout: 5 }, /timeout is not known/],
    [{ version: '2.0' }, /version/],
  ])('refuses %j', (options, message) => {
    expect(() => a2aCaller(options as A2aOptions)).toThrow(ConfigError);
    expect(() => a2aCaller(options as A2aOptions)).toThrow(message);
  });

  it('http is for development', async () => {
    await expect(call('get_products', {}, { allowLoopback: false })).rejects.toThrow(
      /not https.*allowLoopback: true in mcpCaller or a2aCaller/,
    );
  });
});

describe('with registrations', () => {
  let registrations: Registrations;
  beforeEach(async () => {
    await listen((url) => agent03({ url, answer: () => answer() }));
    registrations = createRegistrations({
      call: anyClient,
      store: memoryStore(),
      baseUrl: 'https://buyer.example/webhooks',
      secrets: [NEWEST],
      allowLoopback: true,
    });
  });
  const create = (): ReturnType<Registrations['create']> =>
    registrations.create({ agentUrl, taskType: 'create_media_buy', arguments: { budget: 1 } });

  it('a task is begun: what the seller is told is what was registered', async () => {
    const registration = await create();
    await callBy(registration, a2aCaller({ allowLoopback: true }));
    expect(bodies()).toMatchObject([{ params: registration.agentRequest('0.3') }]);
    const { taskId = '' } = (await registrations.get(registration)) ?? {};
    expect(await agent.registeredFor(taskId)).toMatchObject([{ operation_id: registration.operationId }]);
  });

  it('the registration refused, it is called once more without it, under a new request key', async () => {
    answer = () =>
      posts().length === 1
        ? [{ state: 'failed', data: { error: { code: 'INVALID_REQUEST', message: 'no webhooks' } } }]
        : [{ state: 'submitted' }];
    const registration = await create();
    await callBy(registration, a2aCaller({ allowLoopback: true }));
    const requests = bodies().map(
      ({ params }) => params as { message: JsonObject; configuration: JsonObject },
    );
    expect(requests.map(({ configuration }) => Object.keys(configuration))).toEqual([
      ['blocking', 'pushNotificationConfig'],
      ['blocking'],
    ]);
    expect(requests[1]?.message['messageId']).not.toBe(requests[0]?.message['messageId']);
  });

  it('busy, the operation stays calling and is called again with the same bytes', async () => {
    instead = (req, res) => req.method === 'POST' && respond(429, { 'retry-after': '1' })(req, res);
    const registration = await create();
    await expect(callBy(registration, a2aCaller({ allowLoopback: true }))).rejects.toBeInstanceOf(
      SellerBusyError,
    );
    expect(await registrations.get(registration)).toMatchObject({ state: 'calling' });
    instead = () => false;
    await callBy(registration, a2aCaller({ allowLoopback: true }));
    const [first, second] = posts();
    expect(second?.body).toEqual(first?.body);
    expect(await registrations.get(registration)).toMatchObject({ state: 'open' });
  });
});
