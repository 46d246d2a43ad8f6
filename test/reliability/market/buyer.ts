import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { a2aCaller } from '../../../src/registrations/a2a.ts';
import { mcpCaller } from '../../../src/registrations/mcp.ts';
import type {
  CallSeller,
  JsonObject,
  Registration,
  Registrations,
} from '../../../src/registrations/index.ts';
import type { Store } from '../../../src/index.ts';
import { storeWith } from '../processes/breaks.ts';
import type { Buys } from '../processes/wire.ts';
import { callBy } from '../../support/any-client.ts';

/** Where a process dies that makes a call. */
export type CrashPoint =
  | 'before create'
  | 'after create'
  | 'in call'
  | 'after call'
  | 'after refusal'
  | 'after observe'
  | 'after settle';

/** A call that a buyer's process is told to register and make. */
export interface Order {
  readonly name: string;
  readonly agentUrl: string;
  /** Where the seller does not know requests by their key: 0. */
  readonly requestKeyMs?: number;
  readonly context: JsonObject;
  readonly dies?: CrashPoint;
}

/** An order under way. */
interface Running {
  readonly order: Order;
  /** Calls that were begun, and answers (or errors in their place) that came. */
  calls: number;
  answers: number;
  wasRefused: boolean;
}

/** Makes calls, and dies in them where it is told to. */
export interface Buyer {
  /** With each step of an order seen. */
  readonly watched: <T extends Store>(store: T) => T;
  readonly make: (registrations: Registrations, order: Order) => Promise<unknown>;
  /** The client, as the repeater has it too. */
  readonly call: CallSeller;
}

const TASK_TYPE = 'create_media_buy';
const argumentsOf = (name: string): JsonObject => ({ buyer_ref: name, packages: [] });

const CALL_TIMEOUT_MS = 1_500;
/** Until a process dies in a call, ms. Nothing that is asserted depends on it. */
const IN_CALL_MS = 15;

/** In whatever form the transport has it: an object, a task that was rejected, an error. */
const isRefusal = (answer: unknown): boolean =>
  answer instanceof Error
    ? (answer as { readonly code?: unknown }).code === 'INVALID_REQUEST'
    : JSON.stringify(answer).includes('"INVALID_REQUEST"');

/** The client of whichever transport the agent's URL is of. @param token a bearer token, for all sellers. */
export function clientOf(timeoutMs: number, token?: string): CallSeller {
  const auth = token === undefined ? {} : { auth: { type: 'bearer', token } as const };
  const byTool = mcpCaller({ allowLoopback: true, timeoutMs, ...auth });
  const byAgent = a2aCaller({ allowLoopback: true, timeoutMs, ...auth });
  return (agentUrl, ...rest) => (agentUrl.endsWith('/a2a') ? byAgent : byTool)(agentUrl, ...rest);
}

/** @param die kills this process, and writes down where. */
export function buyerOf({ registersLate }: Buys, die: (order: Order) => void): Buyer {
  const current = new AsyncLocalStorage<Running>();
  const client = clientOf(CALL_TIMEOUT_MS);
  /** Does not come back where this is the order's point. */
  const reach = (running: Running, point: CrashPoint): void => {
    if (running.order.dies === point) die(running.order);
  };

  const dieInCall = async (running: Running): Promise<void> => {
    await sleep(IN_CALL_MS);
    reach(running, 'in call');
  };

  const call: CallSeller = async (...args) => {
    const running = current.getStore();
    if (!running) return client(...args);
    running.calls += 1;
    reach(running, running.calls === 1 ? 'after create' : 'after refusal');
    void dieInCall(running);
    try {
      const answer = await client(...args);
      running.wasRefused = isRefusal(answer);
      return answer;
    } catch (error) {
      running.wasRefused = isRefusal(error);
      throw error;
    } finally {
      running.answers += 1;
      reach(running, 'in call');
      reach(running, 'after call');
    }
  };

  const create = async (
    registrations: Registrations,
    { agentUrl, name, context, requestKeyMs }: Order,
  ): Promise<Registration> =>
    registrations.create({
      agentUrl,
      taskType: TASK_TYPE,
      arguments: argumentsOf(name),
      context,
      ref: name,
      ...(requestKeyMs !== undefined && { requestKeyMs }),
    });

  /** Nobody else knows of the call until the seller has answered. */
  const makeFirst = async (registrations: Registrations, order: Order): Promise<unknown> => {
    const { agentUrl, name, context } = order;
    const { url } = await registrations.reportingWebhook({ agentUrl }, { frequency: 'daily' });
    const args = {
      ...argumentsOf(name),
      context,
      idempotency_key: randomUUID(),
      push_notification_config: { url, operation_id: randomUUID() },
    };
    const answer = await call(agentUrl, TASK_TYPE, args, { signal: AbortSignal.timeout(60_000) });
    const registration = await create(registrations, order);
    await registration.settle(answer);
    return answer;
  };

  return {
    watched: (store) => {
      const { registrations } = store;
      if (!registrations) throw new TypeError('the store keeps no registrations');
      return storeWith(store, {
        registrations: {
          run: async (sender, plan) => {
            const running = current.getStore();
            if (running?.calls === 0) reach(running, 'before create');
            const result = await registrations.run(sender, plan);
            if (running && running.answers > 0 && !running.wasRefused) reach(running, 'after settle');
            return result;
          },
          due: (request) => registrations.due(request),
          page: (query) => registrations.page(query),
        },
        accept: async (request) => {
          const result = await store.accept(request);
          const running = current.getStore();
          if (running) reach(running, 'after observe');
          return result;
        },
      });
    },
    make: (registrations, order) =>
      current.run({ order, calls: 0, answers: 0, wasRefused: false }, async () => {
        if (registersLate) return makeFirst(registrations, order);
        return callBy(await create(registrations, order), call);
      }),
    call,
  };
}
