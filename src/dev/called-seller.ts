// Answers the buyer's tool calls at the agent URLs of dev's sellers: orders, tasks, media buys, figures (dev.md §1.5).
// dev.ts calls it.
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { protocolFor } from '../shared/wire-names.ts';
import type { CalledSellers, CallParts } from './contract.ts';
import { createLostWebhooks, type LostWebhooks } from './lost-webhooks.ts';
import { buyOf, createMediaBuys, deliveryOf, type Order, resultOf, taskOf } from './media-buys.ts';
import { answerTools, type Tool, type ToolAnswer, type Tools } from './tool-server.ts';
import type { CallEvent, DevSeller } from './wire.ts';

/** The details of a tool call that dev's page shows. */
type Said = Omit<CallEvent, 'at' | 'scheme' | 'tool'>;

/** A tool that also returns the details of each call for dev's page. */
interface Served {
  readonly description: string;
  /** Runs the tool. @throws ToolError if the tool refuses the call */
  readonly call: (args: JsonObject) => ToolAnswer & { readonly said: Said };
}

/** The names of the tool that returns the status of a task. Protocol versions and sellers differ in the name. */
const TASK_TOOLS = ['get_task_status', 'tasks/get'] as const;

/**
 * Posts the webhook of a completed order to the receiver at `--forward`, never to the URL that the order named (dev.md
 * §1.3).
 */
function sendEnd({ deliver }: CallParts, seller: DevSeller, order: Order): void {
  const { taskId, webhook, context } = order;
  const { operationId, token } = webhook ?? {};
  deliver(seller, {
    what: 'completed (tool): a call',
    expected: { status: '2xx' },
    payload: (payloads) =>
      payloads.tool('completed', {
        task_id: taskId,
        task_type: 'create_media_buy',
        result: resultOf(order),
        ...(operationId !== undefined && { operation_id: operationId }),
        ...(token !== undefined && { token }),
        ...(context && { context }),
      }),
  });
}

/** Makes the tools of one seller. `lost` says which webhooks a running scenario withholds. */
function toolsOf(parts: CallParts, seller: DevSeller, lost: LostWebhooks): Readonly<Record<string, Served>> {
  const { now } = parts;
  const { agentUrl } = seller;
  const buys = createMediaBuys(now);
  const task: Served = {
    description: 'What became of a task.',
    call: (args) => {
      const order = buys.byTask(args);
      lost.asked('end', [order]);
      return { answer: taskOf(order), said: { taskId: order.taskId, mediaBuyId: order.mediaBuyId } };
    },
  };
  const onlyBuy = (orders: readonly Order[]): Said =>
    orders.length === 1 && orders[0] ? { mediaBuyId: orders[0].mediaBuyId } : {};
  return {
    create_media_buy: {
      description: 'Orders a media buy. It is taken as submitted, and done at once.',
      call: (args) => {
        const { order, isNew } = buys.order(args, lost.isNext('report', agentUrl));
        if (isNew) lost.ordered(agentUrl, order);
        const { taskId, mediaBuyId, webhook } = order;
        const isSent = isNew && webhook !== undefined && !lost.isLost('end', order);
        return {
          ...(isSent && { after: () => sendEnd(parts, seller, order) }),
          answer: { status: 'submitted', task_id: taskId, ...(!isNew && { replayed: true }) },
          said: { taskId, mediaBuyId, ...(webhook && { webhookUrl: webhook.url }) },
        };
      },
    },
    ...Object.fromEntries(TASK_TOOLS.map((name) => [name, task])),
    get_media_buys: {
      description: 'Media buys that were ordered.',
      call: (args) => {
        const orders = buys.named(args);
        return {
          answer: {
            media_buys: orders.map((order) => buyOf(order, now())),
            pagination: { has_more: false },
          },
          said: onlyBuy(orders),
        };
      },
    },
    get_media_buy_delivery: {
      description: 'Figures of media buys for days, or for all of their life.',
      call: (args) => {
        const orders = buys.named(args);
        const answer = deliveryOf(orders, args, now());
        lost.asked('report', orders);
        return { answer, said: onlyBuy(orders) };
      },
    },
  };
}

/** Wraps the tools of a seller. Each call is shown on dev's page, and its answer repeats the `context` of the call. */
function served(
  { heard, now }: CallParts,
  { scheme }: DevSeller,
  tools: Readonly<Record<string, Served>>,
): Tools {
  return Object.fromEntries(
    Object.entries(tools).map(([name, { description, call }]): [string, Tool] => [
      name,
      {
        description,
        call: (args) => {
          const { context } = args;
          const { said, ...done } = call(args);
          heard({ at: now(), scheme, tool: name, ...said });
          return { ...done, answer: { ...done.answer, ...(isJsonObject(context) && { context }) } };
        },
      },
    ]),
  );
}

/**
 * Makes the handler of tool calls at the agent URLs of dev's sellers, and the scenarios that wait for such calls
 * (dev.md §1.5).
 */
export function calledSellers(parts: CallParts): CalledSellers {
  const lost = createLostWebhooks();
  const { errorMember } = protocolFor(parts.protocol);
  const tools = new Map(
    parts.sellers.map((seller) => [seller.agentUrl, served(parts, seller, toolsOf(parts, seller, lost))]),
  );
  return {
    answer: ({ agentUrl }, request, response) =>
      answerTools(request, response, { tools: tools.get(agentUrl) ?? {}, errorMember }),
    told: lost.told,
    scenarios: lost.scenarios,
  };
}
