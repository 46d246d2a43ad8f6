import { AgentCard, Message, Task } from '@a2a-js/sdk';
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import {
  DefaultRequestHandler as DefaultRequestHandler03,
  InMemoryPushNotificationStore as InMemoryPushNotificationStore03,
  InMemoryTaskStore as InMemoryTaskStore03,
} from 'a2a-sdk03/server';
import {
  agentCardHandler as agentCardHandler03,
  jsonRpcHandler as jsonRpcHandler03,
  UserBuilder as UserBuilder03,
} from 'a2a-sdk03/server/express';
import express, { type Express } from 'express';

/** What an agent says next: a state of the task, or a message and no task. */
export type Said =
  | { readonly state: string; readonly data?: Record<string, unknown> }
  | { readonly parts: readonly Record<string, unknown>[] };

/** A seller's agent: says what `answer` gives, one after the other. */
export interface AgentOptions {
  /** Where it is called: the card says so. */
  readonly url: string;
  readonly answer: () => AsyncIterable<Said> | Iterable<Said>;
}

/** An agent on a server SDK, and what it keeps of registrations. */
export interface Agent {
  readonly app: Express;
  readonly registeredFor: (taskId: string) => Promise<readonly unknown[]>;
}

const NAMES = {
  name: 'seller',
  description: 'sells',
  version: '1',
  defaultInputModes: ['application/json'],
  defaultOutputModes: ['application/json'],
  skills: [{ id: 'create_media_buy', name: 'buy', description: 'buys', tags: ['media'] }],
} as const;

const CARD = '/.well-known/agent-card.json';

/** Of version 1.0, on the SDK that speaks it; with `legacy` of 0.3, by its compatibility layer. */
export function agent10({ url, answer }: AgentOptions, legacy = false): Agent {
  const enabled = { legacyCompat: { enabled: legacy } };
  const store = new InMemoryPushNotificationStore();
  const protocolVersion = legacy ? '0.3' : '1.0';
  const card = AgentCard.fromJSON({
    ...NAMES,
    capabilities: { pushNotifications: true },
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion }],
  });
  const contexts = new Map<string, Parameters<typeof store.load>[1]>();
  const execute: ConstructorParameters<typeof DefaultRequestHandler>[2]['execute'] = async (request, bus) => {
    const { taskId, contextId } = request;
    contexts.set(taskId, request.context);
    for await (const said of answer()) {
      if ('parts' in said) {
        bus.publish(AgentEvent.message(Message.fromJSON({ messageId: 'm', role: 'ROLE_AGENT', ...said })));
      } else {
        bus.publish(
          AgentEvent.task(
            Task.fromJSON(taskOf(said, taskId, contextId, `TASK_STATE_${said.state.toUpperCase()}`)),
          ),
        );
      }
    }
    bus.finished();
  };
  const requestHandler = new DefaultRequestHandler(
    card,
    new InMemoryTaskStore(),
    { execute, cancelTask: async () => undefined },
    undefined,
    store,
    { send: async () => undefined },
  );
  const app = express();
  app.use(CARD, agentCardHandler({ agentCardProvider: requestHandler, ...enabled }));
  app.use('/a2a', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication, ...enabled }));
  return {
    app,
    registeredFor: async (taskId) => {
      const context = contexts.get(taskId);
      return context ? store.load(taskId, context) : [];
    },
  };
}

/** Of version 0.3, on the SDK of that time. */
export function agent03({ url, answer }: AgentOptions): Agent {
  const store = new InMemoryPushNotificationStore03();
  const card = { ...NAMES, skills: NAMES.skills.map((skill) => ({ ...skill, tags: [...skill.tags] })) };
  const requestHandler = new DefaultRequestHandler03(
    {
      ...card,
      defaultInputModes: [...NAMES.defaultInputModes],
      defaultOutputModes: [...NAMES.defaultOutputModes],
      url,
      protocolVersion: '0.3.0',
      capabilities: { pushNotifications: true },
    },
    new InMemoryTaskStore03(),
    {
      cancelTask: async () => undefined,
      execute: async ({ taskId, contextId }, bus) => {
        for await (const said of answer()) {
          const event =
            'parts' in said
              ? { kind: 'message', messageId: 'm', role: 'agent', parts: said.parts }
              : { kind: 'task', ...taskOf(said, taskId, contextId, said.state) };
          bus.publish(event as unknown as Parameters<typeof bus.publish>[0]);
        }
        bus.finished();
      },
    },
    undefined,
    store,
    { send: async () => undefined },
  );
  const app = express();
  app.use(CARD, agentCardHandler03({ agentCardProvider: requestHandler }));
  app.use('/a2a', jsonRpcHandler03({ requestHandler, userBuilder: UserBuilder03.noAuthentication }));
  return { app, registeredFor: async (taskId) => store.load(taskId) };
}

function taskOf(
  { data }: { readonly data?: Record<string, unknown> },
  id: string,
  contextId: string,
  state: string,
): object {
  const parts = [{ kind: 'data', data }];
  return { id, contextId, status: { state }, ...(data && { artifacts: [{ artifactId: 'a', parts }] }) };
}
