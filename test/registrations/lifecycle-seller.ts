import { AgentCard, Message, type SendMessageRequest, Task } from '@a2a-js/sdk';
import { TaskNotFoundError } from '@a2a-js/sdk/errors';
import { type A2ARequestHandler, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import express from 'express';
import * as z from 'zod';
import { listening } from '../adapters/raw-client.ts';

/** An answer: of a tool, a Task, a message with a data part, or none, since the connection ends. */
export type Says =
  | { readonly kind: 'tool'; readonly result: object }
  | { readonly kind: 'task'; readonly task: object }
  | { readonly kind: 'message'; readonly data: object }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'lost' };

/** A seller on the server SDKs of both transports, `/tool` and `/agent`, that says what it is told to, one after the other. */
export interface LifecycleSeller {
  readonly url: string;
  /** What it still has to answer to calls, and to questions about tasks. */
  calls: Says[];
  polls: Says[];
  /** How often it was called. */
  called: number;
  /** By which operations it was asked about tasks, and for its list. */
  readonly asked: string[];
  /** Names of its question about a task. */
  questions: string[];
  readonly reset: () => void;
  readonly close: () => Promise<void>;
}

const QUESTIONS = ['get_task_status'];

export async function lifecycleSeller(): Promise<LifecycleSeller> {
  const agents = new AsyncLocalStorage<ServerResponse>();
  let app: ReturnType<typeof express> | undefined;
  const server = await listening((req, res) => {
    if (req.url?.startsWith('/tool')) void serveTool(req, res).catch(() => res.destroy());
    else agents.run(res, () => app?.(req, res));
  });
  const seller: LifecycleSeller = {
    url: server.url,
    calls: [],
    polls: [],
    called: 0,
    asked: [],
    questions: QUESTIONS,
    reset: () => {
      Object.assign(seller, { calls: [], polls: [], called: 0, questions: QUESTIONS });
      seller.asked.length = 0;
    },
    close: async () => server[Symbol.asyncDispose](),
  };
  const nextCall = (): Says => {
    seller.called += 1;
    return seller.calls.shift() ?? { kind: 'lost' };
  };
  const nextPoll = (by: string): Says => {
    seller.asked.push(by);
    return seller.polls.shift() ?? { kind: 'unknown' };
  };

  async function serveTool(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const mcp = new McpServer({ name: 'seller', version: '1' });
    const said = (says: Says): CallToolResult => {
      if (says.kind === 'tool') return says.result as CallToolResult;
      if (says.kind === 'lost') res.destroy();
      const error = { code: 'TASK_NOT_FOUND', message: 'There is no such task.' };
      return { isError: true, content: [], structuredContent: { error } };
    };
    const inputSchema = z.looseObject({});
    mcp.registerTool('create_media_buy', { inputSchema }, () => said(nextCall()));
    for (const name of seller.questions) mcp.registerTool(name, { inputSchema }, () => said(nextPoll(name)));
    const transport = new StreamableHTTPServerTransport({});
    res.once('close', () => void transport.close());
    await mcp.connect(transport);
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body = text === '' ? undefined : (JSON.parse(text) as { readonly method?: string });
    if (body?.method === 'tools/list') seller.asked.push('the list');
    await transport.handleRequest(req, res, body);
  }

  const said = (says: Says): Task | Message => {
    if (says.kind === 'task') return Task.fromJSON(says.task);
    if (says.kind !== 'message') throw new Error('the connection has ended');
    const parts = [{ data: says.data }];
    return Message.fromJSON({ messageId: randomUUID(), role: 'ROLE_AGENT', parts });
  };
  const cardOf = (): AgentCard =>
    AgentCard.fromJSON({
      name: 'seller',
      description: 'sells',
      version: '1',
      defaultInputModes: ['application/json'],
      defaultOutputModes: ['application/json'],
      skills: ['create_media_buy', ...seller.questions].map((id) => ({
        id,
        name: id,
        description: id,
        tags: ['m'],
      })),
      capabilities: { pushNotifications: true },
      supportedInterfaces: [
        { url: `${server.url}/agent`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      ],
    });
  const sdk = new DefaultRequestHandler(cardOf(), new InMemoryTaskStore(), {
    execute: async () => undefined,
    cancelTask: async () => undefined,
  });
  const requestHandler: A2ARequestHandler = Object.assign(sdk, {
    getAgentCard: async () => cardOf(),
    sendMessage: async ({ message }: SendMessageRequest) => {
      const data = message?.parts.find(({ content }) => content?.$case === 'data')?.content?.value;
      const { skill } = z.looseObject({ skill: z.string() }).parse(data);
      const says = seller.questions.includes(skill) ? nextPoll(skill) : nextCall();
      if (says.kind === 'lost') agents.getStore()?.destroy();
      return said(says);
    },
    getTask: async ({ id }: { readonly id: string }) => {
      const says = nextPoll('the transport');
      if (says.kind === 'unknown') throw new TaskNotFoundError(id);
      return said(says) as Task;
    },
  });
  app = express();
  app.use('/agent/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/agent', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  return seller;
}
