import { AgentCard, Message, type SendMessageRequest, Task as AgentTask } from '@a2a-js/sdk';
import { PushNotificationNotSupportedError, TaskNotFoundError } from '@a2a-js/sdk/errors';
import { type A2ARequestHandler, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import express from 'express';
import * as z from 'zod';
import type { AgentPolicy } from '../wire.ts';
import type { Desk, Found, DeskReply } from './desk.ts';
import type { Asked } from './plan.ts';

/** Requests of one agent. */
export type AgentServer = (req: IncomingMessage, res: ServerResponse) => void;

const data = z.looseObject({
  skill: z.string(),
  parameters: z.looseObject({
    buyer_ref: z.string(),
    idempotency_key: z.string(),
    context: z.unknown().optional(),
  }),
});

function askedIn({ message, configuration }: SendMessageRequest): Asked {
  const content = message?.parts.find((part) => part.content?.$case === 'data')?.content?.value;
  const { skill, parameters } = data.parse(content);
  const { buyer_ref: name, idempotency_key: requestKey, context } = parameters;
  const config = configuration?.taskPushNotificationConfig;
  return {
    name,
    requestKey,
    taskType: skill,
    ...(context !== undefined && { context }),
    ...(config && { url: config.url, operationId: config.id }),
  };
}

interface TaskSaid {
  readonly id: string;
  readonly status: string;
  readonly at: number;
  /** In an artifact where it has ended, else in the status' message. */
  readonly result?: object | undefined;
  readonly isEnd: boolean;
}

function taskSaying({ id, status, at, result, isEnd }: TaskSaid): AgentTask {
  const parts = [{ data: result }];
  const state = `TASK_STATE_${status.toUpperCase().replace('-', '_')}`;
  const message = { messageId: randomUUID(), role: 'ROLE_AGENT', parts };
  return AgentTask.fromJSON({
    id,
    contextId: `context-of-${id}`,
    status: { state, timestamp: new Date(at).toISOString(), ...(result && !isEnd && { message }) },
    ...(result && isEnd && { artifacts: [{ artifactId: 'result', parts }] }),
  });
}

type Said = Exclude<DeskReply, { readonly kind: 'nothing' }>;

/** @throws PushNotificationNotSupportedError as the transport has it for who registers. */
function answerOf(said: Said, asked: Asked): AgentTask | Message {
  if (said.kind === 'refusal') {
    if (said.isStructured && asked.url !== undefined) throw new PushNotificationNotSupportedError();
    const error = { code: said.code, message: 'this is not supported' };
    const at = Date.now();
    return taskSaying({ id: randomUUID(), status: 'rejected', at, result: { error }, isEnd: true });
  }
  const { task, status, isStructured } = said;
  if (said.kind === 'task') return taskSaying({ id: task.taskId, status, at: task.createdAt, isEnd: false });
  // What is done at once may have no task at all.
  if (isStructured && status === 'completed') {
    const parts = [{ data: said.result }];
    return Message.fromJSON({ messageId: randomUUID(), role: 'ROLE_AGENT', parts });
  }
  return taskSaying({ id: task.taskId, status, at: task.createdAt, result: said.result, isEnd: true });
}

const found = ({ task, ...said }: Found): AgentTask => taskSaying({ id: task.taskId, ...said });

function cardOf({ name, transport }: AgentPolicy, url: string): AgentCard {
  const protocolVersion = transport === 'agent 0.3' ? '0.3' : '1.0';
  return AgentCard.fromJSON({
    name,
    description: 'sells',
    version: '1',
    defaultInputModes: ['application/json'],
    defaultOutputModes: ['application/json'],
    skills: [{ id: 'create_media_buy', name: 'buy', description: 'buys', tags: ['media'] }],
    capabilities: { pushNotifications: true },
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion }],
  });
}

/** An agent on the server SDK, of version 1.0, or of 0.3 by its compatibility layer. */
export function a2aServer(desk: Desk, policy: AgentPolicy, url: string): AgentServer {
  const responses = new AsyncLocalStorage<ServerResponse>();
  const card = cardOf(policy, url);
  const sdk = new DefaultRequestHandler(card, new InMemoryTaskStore(), {
    execute: async () => undefined,
    cancelTask: async () => undefined,
  });
  // Tasks are the seller's own: they outlive its process.
  const requestHandler: A2ARequestHandler = Object.assign(sdk, {
    sendMessage: async (request: SendMessageRequest) => {
      const asked = askedIn(request);
      const reply = await desk.ask(policy, asked);
      if (reply.kind !== 'nothing') return answerOf(reply, asked);
      responses.getStore()?.destroy();
      throw new Error('the connection has ended');
    },
    getTask: async ({ id }: { readonly id: string }) => {
      const response = responses.getStore();
      if (!response) throw new Error('a question outside of any request');
      const task = await desk.poll(policy, id, response);
      if (!task) throw new TaskNotFoundError(id);
      return found(task);
    },
  });
  const legacyCompat = { enabled: policy.transport === 'agent 0.3' };
  const { pathname } = new URL(url);
  const app = express();
  app.use(
    `${pathname}/.well-known/agent-card.json`,
    agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }),
  );
  app.use(
    pathname,
    jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat }),
  );
  return (req, res) => responses.run(res, () => app(req, res));
}
