import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { webhookHandler } from '../../src/adapters/node.ts';
import type { Dev, DevState, ScenarioRun } from '../../src/dev/for-tests.ts';
import { createReceiver, type Event, type Receiver } from '../../src/index.ts';
import { createPoller } from '../../src/poll/index.ts';
import { createReconciler } from '../../src/reconcile/index.ts';
import { createRegistrations, type Registrations } from '../../src/registrations/index.ts';
import { mcpCaller } from '../../src/registrations/mcp.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { devHooks } from '../../src/testing/index.ts';
import { listening, type Listening } from '../adapters/raw-client.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { ask, openDev } from './kit.ts';

const TASK_TYPE = 'create_media_buy';

/** A buyer as a user would write it, with a receiver, registrations and a dev that sends to it. */
interface World {
  readonly dev: Dev;
  readonly agentUrl: string;
  readonly receiver: Receiver;
  readonly registrations: Registrations;
  readonly handled: Event[];
  /** Paths that were called at the receiver. */
  readonly paths: string[];
  readonly state: () => Promise<DevState>;
  /** Starts a scenario, and gives what becomes of it. */
  readonly start: (name: string) => Promise<() => Promise<ScenarioRun>>;
  readonly close: () => Promise<void>;
}

async function asked<T>(dev: Dev, path: string, body?: object): Promise<T> {
  const { status, body: answer } = await ask<T>(dev, path, body);
  expect(status).toBe(200);
  return answer;
}

async function world(fails: () => boolean = () => false): Promise<World> {
  const late: { handler?: ReturnType<typeof webhookHandler> } = {};
  const paths: string[] = [];
  const server: Listening = await listening((req, res) => {
    paths.push(req.url ?? '');
    late.handler?.(req, res);
  });
  const { dev, cwd, end } = await openDev({ forward: `${server.url}/webhooks/seller` });
  const agentUrl = dev.sellers[0]?.agentUrl ?? '';
  const store = memoryStore();
  const registrations = createRegistrations({
    store,
    call: mcpCaller({ allowLoopback: true }),
    baseUrl: `${server.url}/webhooks/calls`,
    secrets: [randomBytes(32).toString('base64')],
    allowLoopback: true,
    logger: SILENT_LOGGER,
  });
  const handled: Event[] = [];
  const receiver = createReceiver({
    publicUrl: `${server.url}/webhooks/*`,
    senders: { '/webhooks/seller': [{ agentUrl }] },
    registrations,
    store,
    allowLoopback: true,
    logger: SILENT_LOGGER,
    handlers: {
      other: async (event) => {
        if (fails()) throw new Error('the table is away');
        handled.push(event);
      },
    },
    ...devHooks({ dir: join(cwd, '.proto-webhooks') }),
  });
  late.handler = webhookHandler(receiver);
  await receiver.start();
  const state = (): Promise<DevState> => asked(dev, 'state');
  return {
    dev,
    agentUrl,
    receiver,
    registrations,
    handled,
    paths,
    state,
    start: async (name) => {
      const { run } = await asked<{ run: number }>(dev, `scenarios/${name}`, {});
      return async () => {
        const { scenarios } = await state();
        return scenarios.find((one) => one.run === run) as ScenarioRun;
      };
    },
    close: async () => {
      await registrations.stop();
      await receiver.stop();
      await end();
      await server[Symbol.asyncDispose]();
    },
  };
}

describe('a buyer that calls a seller of dev (dev.md §1.5)', () => {
  let is: World;
  let fails = false;
  beforeEach(async () => {
    fails = false;
    is = await world(() => fails);
  });
  afterEach(() => is.close());

  it('gets the webhook of its call at --forward, and none at the URL that the call names', async () => {
    const { agentUrl, registrations, handled, paths } = is;
    const order = await registrations.create({
      agentUrl,
      taskType: TASK_TYPE,
      arguments: { packages: [{ product_id: 'p_1', budget: 100 }] },
      context: { trace: 'of mine' },
      ref: 'order-1',
    });
    expect(await order.call()).toMatchObject({ status: 'submitted' });
    await expect.poll(() => handled).toHaveLength(1);
    expect(handled[0]).toMatchObject({
      source: 'webhook',
      status: 'completed',
      operationId: order.operationId,
      registration: { ref: 'order-1' },
      context: { trace: 'of mine' },
      data: { packages: [{ package_id: 'pkg_1', product_id: 'p_1', budget: 100 }] },
      warnings: [],
    });
    expect(paths).toEqual(['/webhooks/seller']);
    await expect
      .poll(async () => (await asked<{ rows: unknown[] }>(is.dev, 'deliveries')).rows)
      .toMatchObject([{ what: 'completed (tool): a call', asExpected: true, told: 'applied' }]);
  });

  it('finds by a poll what lost-and-polled lost (dev.md §2.3)', async () => {
    const { agentUrl, registrations, receiver, handled, start, paths } = is;
    const run = await start('lost-and-polled');
    await expect
      .poll(run)
      .toMatchObject({ state: 'waiting', note: expect.stringContaining(agentUrl) as string });
    const poller = createPoller({ receiver, registrations, fastMs: 1000, slowMs: 1000 });
    await poller.start();
    try {
      const order = await registrations.create({
        agentUrl,
        taskType: TASK_TYPE,
        arguments: {},
        ref: 'order-1',
      });
      await order.call();
      await expect.poll(run).toMatchObject({
        state: 'passed',
        steps: [],
        note: expect.stringMatching(
          /^The buyer asked about the task \d+ s after its call\. Its handler's run 1 ended as applied\.$/,
        ) as string,
      });
    } finally {
      await poller.stop();
    }
    expect(handled).toMatchObject([
      { source: 'poll', status: 'completed', registration: { ref: 'order-1' } },
    ]);
    expect(paths).toEqual([]);
  });

  it('fails a scenario where the handler fails, and says why', async () => {
    const { agentUrl, registrations, receiver, start } = is;
    fails = true;
    const run = await start('lost-and-polled');
    const poller = createPoller({ receiver, registrations, fastMs: 1000, slowMs: 1000 });
    await poller.start();
    try {
      await (await registrations.create({ agentUrl, taskType: TASK_TYPE, arguments: {} })).call();
      await expect.poll(run).toMatchObject({
        state: 'failed',
        note: expect.stringMatching(/run 1 ended as failed: .*the table is away/) as string,
      });
    } finally {
      await poller.stop();
    }
  });

  it('pulls what report-lost-and-pulled lost', async () => {
    const { agentUrl, registrations, receiver, handled, start } = is;
    const run = await start('report-lost-and-pulled');
    const reporting_webhook = await registrations.reportingWebhook({ agentUrl }, { frequency: 'daily' });
    const order = await registrations.create({
      agentUrl,
      taskType: TASK_TYPE,
      arguments: { packages: [{ product_id: 'p_1', budget: 100 }], reporting_webhook },
    });
    await order.call();
    await expect.poll(() => handled).toHaveLength(1);
    await expect
      .poll(run)
      .toMatchObject({ state: 'waiting', note: expect.stringMatching(/^The reports of mb_/) as string });
    const reconciler = createReconciler({ receiver, registrations });
    await reconciler.start();
    try {
      await expect.poll(run).toMatchObject({
        state: 'passed',
        note: expect.stringMatching(/^The buyer asked for the reports .* ended as applied\.$/) as string,
      });
    } finally {
      await reconciler.stop();
    }
    const reports = handled.filter(({ kind }) => kind === 'delivery-report');
    expect(reports[0]).toMatchObject({
      source: 'pull',
      report: { media_buy_deliveries: [{ totals: { spend: 10 } }] },
      windows: [{ repeated: false }],
    });
  });
});
