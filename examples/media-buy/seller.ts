// The seller: one operation over MCP and A2A, on the SDKs of both; brand.json, JWKS, signed webhooks.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentCard, Artifact, Task, TaskState } from '@a2a-js/sdk';
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import express, { type Request, type Response } from 'express';
import { generateKey, signDelivery } from 'proto-webhooks/sender';
import * as z from 'zod';

const app = express();
const server = createServer(app).listen(0, '127.0.0.1');
await once(server, 'listening');
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

// Whose webhooks are whose: both agents, and the key that they sign with.
const { privateJwk, publicJwk } = await generateKey('ed25519');
const jwks_uri = `${origin}/.well-known/jwks.json`;
const agents = ['mcp', 'a2a'].map((path) => ({ type: 'sales', url: `${origin}/${path}`, jwks_uri }));
app.get('/.well-known/brand.json', (_req, res) => void res.json({ name: 'Seller', agents }));
app.get('/.well-known/jwks.json', (_req, res) => void res.json({ keys: [publicJwk] }));

/** Signed anew each time, under the key of its event; twice, as where the first answer is lost. */
async function post(url: string, what: string, event: object): Promise<void> {
  const body = { idempotency_key: randomUUID(), ...event };
  for (const time of ['', ' again']) {
    const { method, headers, body: bytes } = await signDelivery({ url, key: privateJwk, body });
    const { status } = await fetch(url, { method, headers, body: bytes });
    console.log(`seller  ${what} posted${time}: ${status}`);
    process.send?.({ answer: status });
  }
}

app.use(['/mcp', '/a2a'], (req, res, next) => {
  if (req.headers.authorization === `Bearer ${process.env['TOKEN']}`) next();
  else res.sendStatus(401);
});

const Buy = z.looseObject({
  buyer_ref: z.string(),
  budget: z.number(),
  context: z.looseObject({}).optional(),
  push_notification_config: z.looseObject({ url: z.string(), operation_id: z.string() }).optional(),
  reporting_webhook: z.looseObject({ url: z.string() }).optional(),
});
type Buy = z.infer<typeof Buy>;

const resultOf = ({ buyer_ref }: Buy) => ({ media_buy_id: `mb-${buyer_ref}`, buyer_ref });
const approval = () => sleep(100); // by a person
const now = () => new Date().toISOString();

// Over MCP.

/** What the operation answers; a small budget needs no approval. */
function create(buy: Buy): Record<string, unknown> {
  if (buy.budget < 1_000) return { status: 'completed', result: resultOf(buy) };
  const task_id = randomUUID();
  tasks.set(task_id, { status: 'submitted' });
  void finish(buy, task_id);
  return { status: 'submitted', task_id };
}

/** What is answered to who asks about a task. */
const tasks = new Map<string, { readonly status: string; readonly result?: object }>();

async function finish(buy: Buy, task_id: string): Promise<void> {
  const { push_notification_config: config, reporting_webhook: reports, context } = buy;
  await approval();
  tasks.set(task_id, { status: 'completed', result: resultOf(buy) });
  if (buy.buyer_ref === 'winter') return; // its webhook is lost
  const domain = 'media-buy';
  const common = { task_id, domain, status: 'completed', timestamp: now(), ...(context && { context }) };
  const { media_buy_id } = resultOf(buy);
  if (config) {
    const { operation_id } = config;
    const event = { ...common, operation_id, task_type: 'create_media_buy', result: resultOf(buy) };
    await post(config.url, 'end of a task', event);
  }
  if (reports) {
    const result = {
      notification_type: 'scheduled',
      sequence_number: 1,
      reporting_period: { start: '2026-03-01T00:00:00Z', end: '2026-03-02T00:00:00Z' },
      currency: 'EUR',
      media_buy_deliveries: [
        {
          media_buy_id,
          status: 'active',
          totals: { impressions: 1000, spend: 12.5, clicks: 3 },
          by_package: [],
        },
      ],
    };
    await post(reports.url, 'report', { ...common, task_type: 'media_buy_delivery', result });
  }
}

async function serveTool(req: Request, res: Response): Promise<void> {
  const mcp = new McpServer({ name: 'seller', version: '1' });
  mcp.registerTool('create_media_buy', { inputSchema: Buy }, (buy) => ({
    content: [],
    structuredContent: create(buy),
  }));
  mcp.registerTool(
    'get_task_status',
    { inputSchema: z.looseObject({ task_id: z.string() }) },
    ({ task_id }) => ({
      content: [],
      structuredContent: {
        task_id,
        ...(tasks.get(task_id) ?? { error: { code: 'TASK_NOT_FOUND', message: '' } }),
      },
    }),
  );
  const transport = new StreamableHTTPServerTransport({});
  res.once('close', () => void transport.close());
  await mcp.connect(transport);
  await transport.handleRequest(req, res);
}
app.all('/mcp', (req, res) => void serveTool(req, res));

// Over A2A. The SDK keeps the registration, and calls `send` for what the task becomes.

const execute: AgentExecutor['execute'] = async ({ taskId, contextId, userMessage }, bus) => {
  const content = userMessage.parts[0]?.content;
  const { parameters } = z.object({ parameters: Buy }).parse(content?.value);
  bus.publish(
    AgentEvent.task(Task.fromJSON({ id: taskId, contextId, status: { state: 'TASK_STATE_SUBMITTED' } })),
  );
  await approval();
  const artifact = Artifact.fromJSON({ artifactId: randomUUID(), parts: [{ data: resultOf(parameters) }] });
  const common = { taskId, contextId, metadata: undefined };
  bus.publish(AgentEvent.artifactUpdate({ ...common, artifact, append: false, lastChunk: true }));
  const status = { state: TaskState.TASK_STATE_COMPLETED, message: undefined, timestamp: now() };
  bus.publish(AgentEvent.statusUpdate({ ...common, status }));
  bus.finished();
};

const registered = new InMemoryPushNotificationStore();
const card = {
  name: 'seller',
  description: 'Sells media.',
  version: '1',
  capabilities: { pushNotifications: true },
  supportedInterfaces: [{ url: `${origin}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  defaultInputModes: ['application/json'],
  defaultOutputModes: ['application/json'],
  skills: [{ id: 'create_media_buy', name: 'Buy', description: 'Creates a media buy.', tags: [] }],
};
const requestHandler = new DefaultRequestHandler(
  AgentCard.fromJSON(card),
  new InMemoryTaskStore(),
  { execute, cancelTask: async () => {} },
  undefined,
  registered,
  {
    send: async ({ payload }, context, task) => {
      if (payload?.$case !== 'statusUpdate' || !task) return;
      for (const { url, id } of await registered.load(task.id, context)) {
        // Of version 1.0: the registration has an id, which is the buyer's operation_id.
        await post(url, 'end of a task', {
          ...(Task.toJSON(task) as object),
          metadata: { operation_id: id },
        });
      }
    },
  },
);
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/a2a', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));

process.send?.({ origin });
process.once('disconnect', () => process.exit());
