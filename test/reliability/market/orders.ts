import type { Order } from './buyer.ts';
import type { Market } from './on-market.ts';
import type { AgentPolicy } from './wire.ts';

const ORDER_MS = 20_000;

/** The order of this number, at each agent in turn. Of some the handler fails once. */
export function orderAt(
  { ground, seller }: Market,
  agents: readonly AgentPolicy[],
  index: number,
): Order & { readonly agent: AgentPolicy } {
  const { random, backend } = ground;
  const agent = agents[index % agents.length];
  if (!agent) throw new Error('there is no agent');
  return {
    agent,
    name: `order-${index}`,
    agentUrl: seller.urlOf(agent),
    context: {
      order: `order-${index}`,
      inTransaction: backend.hasTransactions,
      takesMs: random.below(20),
      ...(index % 7 === 3 && { fails: 'after' }),
    },
  };
}

/** Gives it to one process. @returns whether that process has answered that the call was made. */
export async function isMade({ ground, made }: Market, order: Order): Promise<boolean> {
  const { port } = await ground.fleet.door(ground.signal);
  try {
    const response = await fetch(`http://127.0.0.1:${port}/order`, {
      method: 'POST',
      body: JSON.stringify(order),
      signal: AbortSignal.timeout(ORDER_MS),
    });
    await response.text();
    if (response.ok) made.add(order.name);
    return response.ok;
  } catch {
    ground.signal.throwIfAborted();
    return false;
  }
}
