import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, inject, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { createReceiver, type Event, type Store } from '../../src/index.ts';
import { createPoller } from '../../src/poll/index.ts';
import { createReconciler } from '../../src/reconcile/index.ts';
import { createRegistrations } from '../../src/registrations/index.ts';
import { mcpCaller } from '../../src/registrations/mcp.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { listening } from '../adapters/raw-client.ts';
import { tempFolder } from '../cli/temp-folder.ts';
import { NEWEST } from '../registrations/kit.ts';
import { testSchema } from '../stores/postgres-schemas.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { DAY_MS } from './kit.ts';

const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
const midnight = (ago: number): string => new Date(today - ago * DAY_MS).toISOString();
/** Flights that have ended, so that no window comes due while this runs. */
const FLIGHTS = new Map([
  ['mb_1', { start_time: midnight(6), end_time: midnight(2) }],
  ['mb_2', { start_time: midnight(4), end_time: midnight(3) }],
]);
/** Each day of each flight, as `media buy start`. */
const WINDOWS = ['mb_1 6', 'mb_1 5', 'mb_1 4', 'mb_1 3', 'mb_2 4'].map((one) => {
  const [buy = '', ago = ''] = one.split(' ');
  return `${buy} ${midnight(Number(ago))}`;
});
const ACCOUNT = { account_id: 'a1' };

/** A seller of edition 3.0 on the protocol's own server SDK, which refuses arguments that its tools do not have. */
async function seller() {
  const asked: string[] = [];
  const status = { 'task-1': 'working' };
  const answer = (value: object) => ({ content: [], structuredContent: value as Record<string, unknown> });
  const page = z.object({ max_results: z.number(), cursor: z.string().optional() });
  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const mcp = new McpServer({ name: 'seller', version: '1' });
    const buys = {
      account: z.any(),
      media_buy_ids: z.array(z.string()).optional(),
      status_filter: z.array(z.string()).optional(),
      pagination: page.optional(),
    };
    mcp.registerTool('get_media_buys', { inputSchema: z.strictObject(buys) }, (args) => {
      asked.push('get_media_buys');
      const all = [...FLIGHTS].filter(([id]) => args.media_buy_ids?.includes(id) ?? true);
      const from = Number(args.pagination?.cursor ?? 0);
      // One a page, whatever is asked for.
      const rows = args.media_buy_ids ? all : all.slice(from, from + 1);
      const more = !args.media_buy_ids && from + 1 < all.length;
      return answer({
        media_buys: rows.map(([id, flight]) => ({
          media_buy_id: id,
          status: 'active',
          packages: [],
          ...flight,
        })),
        pagination: { has_more: more, ...(more && { cursor: String(from + 1) }) },
      });
    });
    const dates = { media_buy_ids: z.array(z.string()), start_date: z.string(), end_date: z.string() };
    mcp.registerTool('get_media_buy_delivery', { inputSchema: z.looseObject(dates) }, (args) => {
      const [id] = args.media_buy_ids;
      return answer({
        reporting_period: { start: `${args.start_date}T00:00:00Z`, end: `${args.end_date}T00:00:00Z` },
        currency: 'USD',
        media_buy_deliveries: [{ media_buy_id: id, status: 'active', totals: { spend: 1 }, by_package: [] }],
      });
    });
    const lists = { filters: z.object({ statuses: z.array(z.string()) }), pagination: page };
    mcp.registerTool('tasks_list', { inputSchema: z.strictObject(lists) }, () =>
      answer({
        query_summary: {},
        tasks: [
          { task_id: 'task-1', task_type: 'sync_creatives', domain: 'media-buy', status: status['task-1'] },
        ],
        pagination: { has_more: false },
      }),
    );
    mcp.registerTool('tasks_get', { inputSchema: z.looseObject({}) }, () =>
      answer({
        task_id: 'task-1',
        task_type: 'sync_creatives',
        protocol: 'media-buy',
        status: 'completed',
        result: { creatives: [] },
      }),
    );
    const transport = new StreamableHTTPServerTransport({});
    res.once('close', () => void transport.close());
    await mcp.connect(transport);
    await transport.handleRequest(req, res);
  };
  const server = await listening((req, res) => void serve(req, res).catch(() => res.destroy()));
  onTestFinished(() => server[Symbol.asyncDispose]());
  return { agentUrl: `${server.url}/mcp`, asked };
}

/** A buyer's process on a store. */
async function buyer(store: Store) {
  const registrations = createRegistrations({
    store,
    call: mcpCaller({ allowLoopback: true }),
    baseUrl: 'http://127.0.0.1:9/webhooks',
    secrets: [NEWEST],
    allowLoopback: true,
    logger: SILENT_LOGGER,
  });
  const events: Event[] = [];
  const keep = async (event: Event): Promise<void> => void events.push(event);
  const receiver = createReceiver({
    store,
    registrations,
    allowLoopback: true,
    mode: 'inbox',
    handlers: { deliveryReport: keep, completed: keep, other: async () => {} },
    logger: SILENT_LOGGER,
    onAlarm: () => undefined,
  });
  await receiver.ready();
  const reconciler = createReconciler({ receiver, registrations, expectedDelayMs: 0 });
  const poller = createPoller({ receiver, registrations, fastMs: 1, slowMs: 1 });
  return {
    registrations,
    reconciler,
    events,
    start: async () => {
      await receiver.start();
      await reconciler.start();
      await poller.start();
    },
    stop: async () => {
      await Promise.all([poller.stop(), reconciler.stop(), registrations.stop()]);
      await receiver.stop();
    },
  };
}

const windowsOf = (events: readonly Event[]): readonly string[] =>
  events.flatMap((event) =>
    event.kind === 'delivery-report'
      ? (event.windows ?? []).map(({ mediaBuyId, start }) => `${mediaBuyId} ${start}`)
      : [],
  );

interface Emptied {
  readonly store: () => Store;
  /** What was in it is gone. */
  readonly empty: () => Promise<void>;
}

async function onSqlite(): Promise<Emptied> {
  const folder = tempFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const file = folder.file('it.db');
  return {
    store: () => sqliteStore(file),
    empty: async () => {
      for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true });
    },
  };
}

async function onPostgres(): Promise<Emptied> {
  const schema = await testSchema(await sharedPostgres(inject('shared')));
  onTestFinished(schema.drop);
  return { store: () => schema.store(), empty: schema.clear };
}

/** A machine may be slow. */
const PATIENT = { timeout: 20_000 };

it.each([
  ['SQLite', onSqlite],
  ['Postgres', onPostgres],
])('a store that was lost is rebuilt from what its seller says, %s', async (_name, on) => {
  const { store, empty } = await on();
  const { agentUrl, asked } = await seller();
  const before = await buyer(store());
  const reporting = { frequency: 'daily' } as const;
  await before.registrations.adopt({ agentUrl, account: ACCOUNT, mediaBuyId: 'mb_1', reporting });
  await before.start();
  await expect.poll(async () => (await before.reconciler.account()).complete, PATIENT).toBe(true);
  // The account has them once they are stored; handlers run behind that.
  await expect.poll(() => windowsOf(before.events), PATIENT).toHaveLength(4);
  await before.stop();
  await empty();

  const after = await buyer(store());
  onTestFinished(() => after.stop());
  expect(await after.reconciler.account()).toMatchObject({ streams: [], tasks: { open: 0 } });
  asked.length = 0;
  const {
    mediaBuys,
    tasks = [],
    errors,
    next,
  } = await after.reconciler.discover({ agentUrl, account: ACCOUNT });
  expect(mediaBuys.map(({ mediaBuyId }) => mediaBuyId)).toEqual(['mb_1', 'mb_2']);
  expect(tasks).toMatchObject([{ taskId: 'task-1', taskType: 'sync_creatives', status: 'working' }]);
  // The seller takes no account for its tasks.
  expect([errors.map(({ code }) => code), next]).toEqual([['account_refused'], undefined]);
  expect(asked).toHaveLength(2);
  for (const { adoption } of mediaBuys) await after.registrations.adopt({ ...adoption, reporting });
  for (const { adoption } of tasks) await after.registrations.adopt(adoption);
  expect(await after.reconciler.account()).toMatchObject({ complete: false, tasks: { open: 1 } });

  await after.start();
  const isDone = async (): Promise<boolean> => {
    const { complete, streams, tasks: counts } = await after.reconciler.account();
    return complete && streams.length === 2 && counts?.open === 0;
  };
  await expect.poll(isDone, PATIENT).toBe(true);
  await expect.poll(() => windowsOf(after.events).toSorted(), PATIENT).toEqual(WINDOWS.toSorted());
  const tasksOf = () => after.events.filter(({ kind }) => kind === 'task');
  await expect
    .poll(tasksOf, PATIENT)
    .toMatchObject([{ taskId: 'task-1', status: 'completed', source: 'poll', data: { creatives: [] } }]);
  expect(await after.reconciler.discover({ agentUrl, account: ACCOUNT })).toMatchObject({
    mediaBuys: [],
    tasks: [],
  });
});
