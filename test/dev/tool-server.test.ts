import { request } from 'node:http';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Dev } from '../../src/dev/for-tests.ts';
import { mcpCaller } from '../../src/registrations/mcp.ts';
import { openDev } from './kit.ts';

/* What a stranger may send to the agent URL of a seller of dev (dev.md §1.5). */

interface Rpc {
  readonly id: unknown;
  readonly result?: Readonly<Record<string, unknown>> & { readonly structuredContent?: Answer };
  readonly error?: { readonly code: unknown; readonly message: string };
}
type Answer = Readonly<Record<string, unknown>> & {
  readonly proto_error?: { readonly code: string; readonly message: string; readonly field?: string };
};

let dev: Dev;
let end: () => Promise<void>;
beforeAll(async () => {
  // Nobody listens there: what is sent is answered by nobody.
  ({ dev, end } = await openDev({ forward: 'http://127.0.0.1:9/webhooks/seller' }));
});
afterAll(() => end());

const agentUrl = (at = 0): string => dev.sellers[at]?.agentUrl ?? '';

async function post(body: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(agentUrl(), {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...headers },
  });
}

const rpc = async (message: unknown): Promise<Rpc> =>
  (await (await post(JSON.stringify(message))).json()) as Rpc;

async function call(name: string, args: unknown, at = 0): Promise<Answer> {
  const response = await fetch(agentUrl(at), {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
    headers: { 'content-type': 'application/json' },
  });
  const { result } = (await response.json()) as Rpc;
  const { structuredContent, content, isError } = result as unknown as {
    structuredContent: Answer;
    content: [{ text: string }];
    isError?: boolean;
  };
  expect(JSON.parse(content[0].text)).toEqual(structuredContent);
  expect(isError === true).toBe(structuredContent.proto_error !== undefined);
  return structuredContent;
}

describe('requests that are none', () => {
  it.each([
    [405, 'method_not_allowed', { method: 'GET' }],
    [405, 'method_not_allowed', { method: 'DELETE' }],
    [
      415,
      'unsupported_media_type',
      { method: 'POST', body: '{}', headers: { 'content-type': 'text/plain' } },
    ],
    [400, 'bad_request', { method: 'POST', body: '{' }],
    [400, 'bad_request', { method: 'POST', body: '[]' }],
    [400, 'bad_request', { method: 'POST', body: '{"id":1,"id":2}' }],
    [400, 'bad_request', { method: 'POST', body: '['.repeat(100_000) }],
    [413, 'body_too_large', { method: 'POST', body: ' '.repeat(1024 * 1024 + 1) }],
    [403, 'forbidden_origin', { method: 'POST', body: '{}', headers: { origin: 'https://page.example' } }],
  ] as const)('%s %s', async (status, code, init) => {
    const headers = { 'content-type': 'application/json', ...('headers' in init && init.headers) };
    const response = await fetch(agentUrl(), { ...init, headers });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code } });
    expect(response.headers.get('allow')).toBe(status === 405 ? 'POST' : null);
  });

  it('one that breaks off', async () => {
    const broken = request(agentUrl(), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': '100' },
    });
    const ended = new Promise((resolve) => void broken.once('error', resolve));
    broken.write('{"jsonrpc":', () => broken.destroy(new Error('gone')));
    await ended;
    expect((await rpc({ jsonrpc: '2.0', id: 1, method: 'ping' })).result).toEqual({});
  });

  it.each([
    [-32_600, null, {}],
    [-32_600, 1, { jsonrpc: '1.0', id: 1, method: 'ping' }],
    [-32_600, 1, { jsonrpc: '2.0', id: 1, method: 5 }],
    [-32_600, null, { jsonrpc: '2.0', id: {}, method: 'ping' }],
    [-32_600, null, { jsonrpc: '2.0', id: 'x'.repeat(257), method: 'ping' }],
    [-32_601, 'a', { jsonrpc: '2.0', id: 'a', method: 'resources/list' }],
    [-32_601, 0, { jsonrpc: '2.0', id: 0, method: '__proto__' }],
    [-32_602, 1, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: [] }],
    [-32_602, 1, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} }],
    [-32_602, 1, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'constructor' } }],
    [
      -32_602,
      1,
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_media_buys', arguments: 5 } },
    ],
  ])('%s, id %j: %j', async (code, id, message) => {
    expect(await rpc(message)).toEqual({
      jsonrpc: '2.0',
      id,
      error: { code, message: expect.any(String) as string },
    });
  });

  it('a notification is answered 202 without a body', async () => {
    const response = await post('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    expect([response.status, await response.text()]).toEqual([202, '']);
  });
});

describe('a session', () => {
  it.each([
    ['2025-03-26', '2025-03-26'],
    ['1999-01-01', '2025-11-25'],
    [undefined, '2025-11-25'],
  ])('a client that asks for version %j gets %s', async (protocolVersion, given) => {
    const { result } = await rpc({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion },
    });
    expect(result).toMatchObject({ protocolVersion: given, capabilities: { tools: {} } });
  });

  it('a client of the SDK lists the tools', async () => {
    const { operations } = mcpCaller({ allowLoopback: true });
    expect(await operations?.(agentUrl(), { signal: new AbortController().signal })).toEqual([
      'create_media_buy',
      'get_task_status',
      'tasks/get',
      'get_media_buys',
      'get_media_buy_delivery',
    ]);
  });
});

describe('a client of another maker', () => {
  it('opens a session, calls a tool and ends', async () => {
    const client = new Client({ name: 'a buyer', version: '1' });
    // The SDK's own types do not agree under exactOptionalPropertyTypes.
    const transport = new StreamableHTTPClientTransport(new URL(agentUrl())) as unknown as Transport;
    await client.connect(transport);
    const { structuredContent } = await client.callTool({ name: 'create_media_buy', arguments: {} });
    expect(structuredContent).toMatchObject({ status: 'submitted' });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('create_media_buy');
    await expect(client.callTool({ name: 'no_such_tool' })).rejects.toThrow(/Unknown tool/);
    await client.close();
  });
});

describe('arguments', () => {
  const webhook = { url: 'https://buyer.example/webhooks/a' };
  const wrong: readonly (readonly [string, object, string, string | undefined])[] = [
    ['create_media_buy', { idempotency_key: 5 }, 'VALIDATION_ERROR', 'idempotency_key'],
    ['create_media_buy', { idempotency_key: 'x'.repeat(256) }, 'VALIDATION_ERROR', 'idempotency_key'],
    ['create_media_buy', { packages: {} }, 'VALIDATION_ERROR', 'packages'],
    ['create_media_buy', { packages: [5] }, 'VALIDATION_ERROR', 'packages'],
    [
      'create_media_buy',
      { packages: Array.from({ length: 101 }, () => ({})) },
      'VALIDATION_ERROR',
      'packages',
    ],
    ['create_media_buy', { packages: [{ product_id: {} }] }, 'VALIDATION_ERROR', 'packages[0].product_id'],
    ['create_media_buy', { start_time: 'tomorrow' }, 'VALIDATION_ERROR', 'start_time'],
    ['create_media_buy', { start_time: '+275760-09-13' }, 'VALIDATION_ERROR', 'start_time'],
    ['create_media_buy', { end_time: '2020-01-01' }, 'VALIDATION_ERROR', 'end_time'],
    ['create_media_buy', { context: 'x' }, 'VALIDATION_ERROR', 'context'],
    ['create_media_buy', { context: { long: 'x'.repeat(65_536) } }, 'VALIDATION_ERROR', 'context'],
    ['create_media_buy', { push_notification_config: [] }, 'VALIDATION_ERROR', 'push_notification_config'],
    ...['javascript:alert(1)', '/webhooks', 5, `https://buyer.example/${'x'.repeat(2048)}`].map(
      (url) =>
        [
          'create_media_buy',
          { push_notification_config: { url } },
          'VALIDATION_ERROR',
          'push_notification_config.url',
        ] as const,
    ),
    [
      'create_media_buy',
      { push_notification_config: { ...webhook, operation_id: 5 } },
      'VALIDATION_ERROR',
      'push_notification_config.operation_id',
    ],
    [
      'create_media_buy',
      { push_notification_config: { ...webhook, token: 'x'.repeat(4097) } },
      'VALIDATION_ERROR',
      'push_notification_config.token',
    ],
    [
      'create_media_buy',
      { reporting_webhook: webhook },
      'VALIDATION_ERROR',
      'reporting_webhook.reporting_frequency',
    ],
    [
      'create_media_buy',
      { reporting_webhook: { reporting_frequency: 'daily' } },
      'VALIDATION_ERROR',
      'reporting_webhook.url',
    ],
    ['get_task_status', {}, 'VALIDATION_ERROR', 'task_id'],
    ['get_task_status', { task_id: '__proto__' }, 'REFERENCE_NOT_FOUND', 'task_id'],
    ['get_media_buys', { media_buy_ids: 'mb' }, 'VALIDATION_ERROR', 'media_buy_ids'],
    ['get_media_buys', { media_buy_ids: Array(101).fill('mb') }, 'VALIDATION_ERROR', 'media_buy_ids'],
    ['get_media_buy_delivery', { start_date: '2026-01-01' }, 'INVALID_DATE_RANGE', undefined],
    ['get_media_buy_delivery', { start_date: 'x', end_date: 'y' }, 'INVALID_DATE_RANGE', 'start_date'],
    [
      'get_media_buy_delivery',
      { start_date: '2026-13-01', end_date: '2027-01-01' },
      'INVALID_DATE_RANGE',
      'start_date',
    ],
    [
      'get_media_buy_delivery',
      { start_date: '2026-01-02', end_date: '2026-01-02' },
      'INVALID_DATE_RANGE',
      undefined,
    ],
    ['get_media_buy_delivery', { time_granularity: 'hourly' }, 'UNSUPPORTED_GRANULARITY', 'time_granularity'],
  ];

  it.each(wrong)('%s(%j): %s, %s', async (tool, args, code, field) => {
    const { proto_error: error } = await call(tool, args);
    expect(error).toMatchObject({ code, recovery: 'correctable' });
    expect(error?.field).toBe(field);
    expect(error?.message.length).toBeLessThan(200);
  });

  it('that are null are absent, and others are left alone', async () => {
    const answer = await call('create_media_buy', {
      push_notification_config: null,
      packages: [],
      account: { account_id: 'a' },
      anything: 'else',
    });
    expect(answer).toMatchObject({ status: 'submitted' });
  });
});

describe('what was bought', () => {
  const buy = async (args: object = {}): Promise<string> =>
    (await call('create_media_buy', args))['task_id'] as string;

  it('is a task that is completed, and a media buy with figures, of that seller alone', async () => {
    const start_time = '2026-01-01T00:00:00Z';
    const end_time = '2099-01-01T00:00:00Z';
    const task_id = await buy({ start_time, end_time, packages: [{ product_id: 'p' }] });
    const task = await call('tasks/get', { task_id, context: { of: 'mine' } });
    expect(task).toMatchObject({ task_id, status: 'completed', has_webhook: false, context: { of: 'mine' } });
    const { media_buy_id: id } = task['result'] as { media_buy_id: string };
    const media_buy_ids = [id, 'mb_other', id];
    expect(await call('get_media_buys', { media_buy_ids })).toEqual({
      media_buys: [
        expect.objectContaining({
          media_buy_id: id,
          status: 'active',
          start_time: '2026-01-01T00:00:00.000Z',
          end_time: '2099-01-01T00:00:00.000Z',
          packages: [{ package_id: 'pkg_1', product_id: 'p' }],
        }),
      ],
      pagination: { has_more: false },
    });
    const dates = { start_date: '2026-01-02', end_date: '2026-01-03' };
    expect(await call('get_media_buy_delivery', { media_buy_ids, ...dates })).toMatchObject({
      reporting_period: { start: '2026-01-02T00:00:00.000Z', end: '2026-01-03T00:00:00.000Z' },
      media_buy_deliveries: [{ media_buy_id: id, totals: { spend: 10 } }],
    });
    expect(await call('get_media_buy_delivery', { media_buy_ids })).toMatchObject({
      reporting_period: { start: '2026-01-01T00:00:00.000Z' },
    });
    expect(await call('get_task_status', { task_id }, 1)).toMatchObject({
      proto_error: { code: 'REFERENCE_NOT_FOUND' },
    });
    expect(await call('get_media_buys', {}, 1)).toMatchObject({ media_buys: [] });
  });

  it('is bought once by one idempotency_key', async () => {
    const idempotency_key = 'the same';
    const task_id = await buy({ idempotency_key });
    expect(await call('create_media_buy', { idempotency_key })).toEqual({
      status: 'submitted',
      task_id,
      replayed: true,
    });
  });

  it.each([
    ['2099-01-01', '2099-02-01', 'pending_start'],
    ['2025-01-01', '2025-02-01', 'completed'],
    ['asap', '2099-02-01', 'active'],
  ])('from %s to %s is %s', async (start_time, end_time, status) => {
    const task_id = await buy({ start_time, end_time });
    const { result } = (await call('get_task_status', { task_id })) as { result: { media_buy_id: string } };
    expect(await call('get_media_buys', { media_buy_ids: [result.media_buy_id] })).toMatchObject({
      media_buys: [{ status }],
    });
  });

  it('is forgotten behind 200 later orders', async () => {
    const first = await buy();
    for (let at = 0; at < 199; at += 1) await buy();
    expect(await call('get_task_status', { task_id: first })).toMatchObject({ status: 'completed' });
    await buy();
    expect(await call('get_task_status', { task_id: first })).toMatchObject({
      proto_error: { code: 'REFERENCE_NOT_FOUND' },
    });
    const { media_buys } = await call('get_media_buys', {});
    expect(media_buys).toHaveLength(100);
  });
});
