import { expectTypeOf, it } from 'vitest';
import type { Observation } from '../../src/index.ts';
import type { CallSeller, Registrations } from '../../src/registrations/index.ts';
import { mcpCaller } from '../../src/registrations/mcp.ts';
import type { PollerOptions } from '../../src/poll/index.ts';

/** As a buyer has them: an interface, which has no index signature. */
interface Buy {
  readonly buyer_ref: string;
  readonly packages: readonly { readonly budget: number }[];
}

/** Never called: what compiles is the test. */
async function calls(registrations: Registrations, buy: Buy, found: string | undefined): Promise<void> {
  const seller = { agentUrl: 'https://seller.example/mcp', brandJsonUrl: found };
  const taskType = 'create_media_buy';
  await registrations.create({ ...seller, taskType, arguments: buy, context: buy, ref: found });
  // @ts-expect-error arguments are an object
  await registrations.create({ ...seller, taskType, arguments: found });
  // @ts-expect-error and have to be there
  await registrations.create({ ...seller, taskType, arguments: undefined });
  await registrations.list({ after: found, agentUrl: found, limit: undefined });
  await registrations.list();
  await registrations.adopt({
    ...seller,
    taskId: found,
    taskType,
    mediaBuyId: found,
    account: buy,
    ref: found,
  });
  await registrations.reportingWebhook(seller, { frequency: 'daily', requestedMetrics: undefined });
}

it('of what callers give: what may be left out may be undefined, and JSON may be of an interface', () => {
  expectTypeOf(calls).toBeFunction();
  expectTypeOf<{ readonly timestamp: string | undefined }>().toExtend<Pick<Observation, 'timestamp'>>();
  expectTypeOf<() => undefined>().toExtend<Exclude<PollerOptions['silentMs'], number>>();
});

it('a caller has a signal, always', () => {
  expectTypeOf<Parameters<CallSeller>[3]['signal']>().toEqualTypeOf<AbortSignal>();
  const tokens = new Map<string, string>();
  expectTypeOf(
    mcpCaller({ auth: { type: 'bearer', token: (agentUrl) => tokens.get(agentUrl) } }),
  ).toEqualTypeOf<CallSeller>();
});
