import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { ConfigError } from '../../src/index.ts';
import {
  createRegistrations,
  type Registrations,
  SellerBusyError,
  TaskUnknownError,
} from '../../src/registrations/index.ts';
import { type CallerOptions, mcpCaller } from '../../src/registrations/mcp.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { listening, type Listening } from '../adapters/raw-client.ts';
import { NEWEST } from './kit.ts';
import { anyClient, callBy } from '../support/any-client.ts';

/** A seller on the real server SDK: a server for each request, as the SDK wants where there are no sessions. */
let server: Listening;
let answer: (args: Record<string, unknown>) => CallToolResult | Promise<CallToolResult>;
let calls: { readonly authorization: string | undefined; readonly args: Record<string, unknown> }[];
let status: number | undefined;
let headers: Record<string, string>;

beforeEach(async () => {
  calls = [];
  status = undefined;
  headers = {};
  answer = () => ({ content: [], structuredContent: { status: 'submitted', task_id: 'task-1' } });
  server = await listening((req, res) => {
    if (status === undefined) serve(req, res).catch((error: unknown) => res.destroy(error as Error));
    else res.writeHead(status, headers).end('no');
  });
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
});

async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
  const mcp = new McpServer({ name: 'seller', version: '1' });
  mcp.registerTool('create_media_buy', { inputSchema: z.looseObject({}) }, async (args) => {
    calls.push({ authorization: req.headers.authorization, args });
    return answer(args);
  });
  const transport = new StreamableHTTPServerTransport({});
  res.once('close', () => void transport.close());
  await mcp.connect(transport);
  await transport.handleRequest(req, res);
}

const call = (
  options: CallerOptions = {},
  args = {},
  signal: AbortSignal = AbortSignal.timeout(60_000),
): Promise<unknown> =>
  mcpCaller({ allowLoopback: true, ...options })(`${server.url}/mcp`, 'create_media_buy', args, { signal });

describe('mcpCaller', () => {
  it('gives what the operation answers, structured or as JSON in a text', async () => {
    expect(await call({}, { budget: 1 })).toEqual({ status: 'submitted', task_id: 'task-1' });
    expect(calls).toEqual([{ authorization: undefined, args: { budget: 1 } }]);
    answer = () => ({
      content: [
        { type: 'text', text: 'Done.' },
        { type: 'text', text: '{"status":"completed"}' },
      ],
    });
    expect(await call()).toEqual({ status: 'completed' });
  });

  it('sends the token of the seller, asked for before each call', async () => {
    let asked = 0;
    const token = async (agentUrl: string): Promise<string> =>
      `${new URL(agentUrl).pathname}-${(asked += 1)}`;
    await call({ auth: { type: 'bearer', token: 'secret' } });
    await call({ auth: { type: 'bearer', token } });
    await call({ auth: { type: 'bearer', token } });
    expect(calls.map(({ authorization }) => authorization)).toEqual([
      'Bearer secret',
      'Bearer /mcp-1',
      'Bearer /mcp-2',
    ]);
  });

  it.each([
    [401, undefined, 'AUTH_REQUIRED'],
    [401, 'old', 'AUTH_INVALID'],
    [403, 'old', 'INSUFFICIENT_PERMISSIONS'],
  ])('a transport that answers %i (token: %s) is %s', async (code, token, expected) => {
    status = code;
    const calling = call(token === undefined ? {} : { auth: { type: 'bearer', token } });
    await expect(calling).rejects.toMatchObject({ name: 'SellerError', code: expected });
  });

  it.each([
    [429, { 'retry-after': '7' }, 7000],
    [429, {}, undefined],
    [503, { 'retry-after': '0' }, 0],
  ])('a transport that answers %i with %j is busy', async (code, said, retryAfterMs) => {
    status = code;
    headers = said;
    const calling = call();
    await expect(calling).rejects.toBeInstanceOf(SellerBusyError);
    await expect(calling).rejects.toMatchObject({ status, retryAfterMs });
  });

  it.each(['TASK_NOT_FOUND', 'REFERENCE_NOT_FOUND'])(
    '%s is of a task that the seller does not know, where one was asked about',
    async (code) => {
      answer = () => ({ content: [], structuredContent: { error: { code, message: 'no such task' } } });
      const asking = call({}, { task_id: 'task-1', include_result: true });
      await expect(asking).rejects.toBeInstanceOf(TaskUnknownError);
      await expect(asking).rejects.toThrow('no such task');
      expect(await call({}, { budget: 1 })).toEqual({ error: { code, message: 'no such task' } });
    },
  );

  it('another status, a failed tool, an answer without an object and a dead server are plain errors: the call is repeated', async () => {
    answer = () => ({ isError: true, content: [{ type: 'text', text: 'out of memory' }] });
    await expect(call()).rejects.toThrow('the operation failed: out of memory');
    // What else is in its object: nothing that says that the operation was done.
    answer = () => ({
      isError: true,
      content: [],
      structuredContent: { errors: [{ code: 'X', message: 'y' }], done: 0 },
    });
    await expect(call()).rejects.toMatchObject({ name: 'SellerError', code: 'X', isUnknown: true });
    // An error that operations have is a refusal in whichever member.
    answer = () => ({
      isError: true,
      content: [],
      structuredContent: { adcp_error: { code: 'INVALID_REQUEST', message: 'no push' } },
    });
    await expect(call()).rejects.toMatchObject({ name: 'SellerError', code: 'INVALID_REQUEST' });
    answer = () => ({ isError: true, content: [{ type: 'text', text: '{"detail":"z"}' }] });
    await expect(call()).rejects.toThrow('the operation failed: {"detail":"z"}');
    answer = () => ({
      isError: true,
      content: [],
      structuredContent: { error: { code: 'INVALID_REQUEST' } },
    });
    await expect(call()).rejects.toMatchObject({ name: 'SellerError', code: 'INVALID_REQUEST' });
    answer = () => ({ content: [{ type: 'text', text: '[1]' }] });
    await expect(call()).rejects.toThrow('the answer has no JSON object: [1]');
    status = 500;
    await expect(call()).rejects.not.toMatchObject({ name: 'SellerError' });
    await server[Symbol.asyncDispose]();
    await expect(call()).rejects.not.toMatchObject({ name: 'SellerError' });
  });

  it('stops where it is told to, and where no answer comes', async () => {
    answer = () => new Promise(() => {});
    const stopping = new AbortController();
    const calling = call({}, {}, stopping.signal);
    stopping.abort(new Error('no more'));
    await expect(calling).rejects.toThrow(/no more|abort/i);
    await expect(call({ timeoutMs: 50 })).rejects.toThrow(/timed out/i);
  });

  it.each([
    [{ auth: { type: 'basic', token: 'x' } }, /auth: must be/],
    [{ auth: { type: 'bearer', token: '' } }, /^auth.token: is empty\. Is the environment variable set/],
    [{ auth: { type: 'bearer' } }, /^auth.token: is undefined\. Is the environment variable set/],
    [{ timeoutMs: 0 }, /timeoutMs/],
    [{ timeout: 5 }, /timeout is not known/],
  ])('refuses %j', (options, message) => {
    expect(() => mcpCaller(options as CallerOptions)).toThrow(ConfigError);
    expect(() => mcpCaller(options as CallerOptions)).toThrow(message);
  });

  it('http is for development', async () => {
    await expect(call({ allowLoopback: false })).rejects.toThrow(
      /not https.*allowLoopback: true in mcpCaller/,
    );
  });
});

describe('with registrations', () => {
  let registrations: Registrations;
  beforeEach(() => {
    registrations = createRegistrations({
      call: anyClient,
      store: memoryStore(),
      baseUrl: 'https://buyer.example/webhooks',
      secrets: [NEWEST],
      allowLoopback: true,
    });
  });
  const create = (): ReturnType<Registrations['create']> =>
    registrations.create({
      agentUrl: `${server.url}/mcp`,
      taskType: 'create_media_buy',
      arguments: { budget: 1 },
    });

  it('a task is begun: what the seller is told is what was registered', async () => {
    const registration = await create();
    await callBy(registration, mcpCaller({ allowLoopback: true }));
    expect(calls.map(({ args }) => args)).toEqual([registration.toolArguments]);
    expect(await registrations.get(registration)).toMatchObject({ state: 'open', taskId: 'task-1' });
  });

  it('an operation’s error is a SellerError with what to do; the field refused is called once more without it', async () => {
    const refusing = { error: { code: 'INVALID_REQUEST', message: 'no webhooks' } };
    answer = ({ push_notification_config: config }) =>
      config
        ? { isError: true, content: [{ type: 'text', text: JSON.stringify(refusing) }] }
        : { content: [], structuredContent: { status: 'submitted', task_id: 'task-2' } };
    const registration = await create();
    await callBy(registration, mcpCaller({ allowLoopback: true }));
    expect(calls.map(({ args }) => 'push_notification_config' in args)).toEqual([true, false]);
    answer = () => ({
      content: [],
      structuredContent: { error: { code: 'AUTH_INVALID', message: 'expired' } },
    });
    const refused = callBy(await create(), mcpCaller({ allowLoopback: true }));
    await expect(refused).rejects.toMatchObject({ name: 'SellerError', code: 'AUTH_INVALID' });
    await expect(refused).rejects.toThrow('Get a new token');
  });
});
