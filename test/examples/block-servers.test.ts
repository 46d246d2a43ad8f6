import { mkdir } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { Client } from 'pg';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import * as z from 'zod';
import type { FakeSeller } from '../../src/testing/index.ts';
import { namedSeller } from '../support/named-seller.ts';
import { INSTALL_MS } from '../support/packed.ts';
import { ON_DISK, startServer } from '../support/redis.ts';
import { asWritten } from '../support/samples.ts';
import { sharedMariadb } from '../support/shared-mariadb.ts';
import { manifestIn } from '../support/shared-installation.ts';
import { ownDatabase } from './database.ts';
import { itListens, openPrograms, type Programs, type Server, URL_GIVEN } from './programs.ts';

const LINKED = [
  '@a2a-js/sdk',
  '@modelcontextprotocol/sdk',
  '@opentelemetry/api',
  '@opentelemetry/sdk-metrics',
  'bullmq',
  'express',
  'fastify',
  'ioredis',
  'mysql2',
  'pg',
  'pg-boss',
  'vitest',
  'zod',
];

let programs: Programs;
beforeAll(async () => {
  const nest = await manifestIn(new URL('../../examples/nest/', import.meta.url).pathname);
  const { 'proto-webhooks': _, ...asked } = nest.dependencies ?? {};
  const dependencies = Object.entries(asked).map(([name, range]) => `${name}@${range}`);
  programs = await openPrograms(inject('shared'), 'block-servers', dependencies);
  await programs.link(...LINKED);
}, INSTALL_MS);
afterAll(() => programs[Symbol.asyncDispose]());

/** Hands one delivery to the receiver of a block, and ends. */
const DELIVERED = `
const { headers, body } = JSON.parse(process.env.DELIVERY);
export async function deliver(receiver) {
  const { response } = await receiver.verifyAndDispatch(Buffer.from(body, 'base64'), headers, { url: '/webhooks/seller' });
  console.log(response.status);
}
`;

/** Runs a program whose \`deliver\` hands over a completed task that https://seller.example has signed. */
async function delivered(
  file: string,
  code: string,
  env: Readonly<Record<string, string>>,
  servers = {},
): Promise<string> {
  await using named = await namedSeller(programs.folder, undefined, { servers });
  const { seller } = named;
  const { headers, body } = await seller.sign(seller.payloads.tool('completed'), { url: URL_GIVEN });
  const delivery = JSON.stringify({ headers, body: Buffer.from(body).toString('base64') });
  await programs.write('deliver.mjs', DELIVERED);
  await programs.write(file, code);
  return await programs.run(file, { ...named.env, ...env, DELIVERY: delivery });
}

describe('go-live.md', () => {
  const ONE = `
import { createReceiver } from 'proto-webhooks';
import { deliver } from './deliver.mjs';
import { store } from './store.mjs';
const receiver = createReceiver({
  publicUrl: 'https://buyer.example/webhooks/seller',
  senders: [{ agentUrl: 'https://seller.example/mcp' }],
  store,
  handlers: { other: async (event) => console.log(event.kind, event.status) },
});
await receiver.ready();
await deliver(receiver);
await receiver.stop();
process.exit();
`;

  it('its receiver writes into its table, and ends in order', async () => {
    await using database = await ownDatabase(inject('shared'), 'blocks_live');
    await using named = await namedSeller(programs.folder);
    const client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query(asWritten('docs/go-live.md', 'CREATE TABLE webhooks_seen'));
    await programs.write('server.mjs', asWritten('docs/go-live.md', 'expectStoreId: STORE_ID'));
    const seen = async (): Promise<unknown> =>
      (await client.query('SELECT envelope FROM webhooks_seen')).rows;
    {
      await using server = await programs.serve('server.mjs', { ...named.env, DATABASE_URL: database.url });
      const { seller } = named;
      const to = `${server.origin}/webhooks/seller`;
      const event = seller.payloads.tool('completed');
      for (let time = 0; time < 2; time += 1)
        expect((await seller.deliver(event, { url: URL_GIVEN, to })).last.status, server.printed()).toBe(200);
      await expect.poll(seen).toEqual([{ envelope: event }]);
      expect(server.printed()).toMatch(/^store \S+$/m);
      expect(await server.stop(), server.printed()).toBe(0);
    }
    await programs.write('try.mjs', asWritten('docs/go-live.md', 'createFakeSeller'));
    {
      await using tried = await programs.serve('try.mjs', { DATABASE_URL: database.url });
      await expect
        .poll(tried.printed)
        .toMatch(/^200$[^]*^seen task completed$|^seen task completed$[^]*^200$/m);
      await expect.poll(seen).toHaveLength(2);
      expect(await tried.stop(), tried.printed()).toBe(0);
    }
    await client.end();
  });

  it('its store on a handle of SQLite', async () => {
    await programs.write('store.mjs', asWritten('docs/go-live.md', 'new DatabaseSync'));
    expect(await delivered('one.mjs', ONE, {})).toBe('task completed\n200\n');
  });

  it('its store on Postgres', async () => {
    await using database = await ownDatabase(inject('shared'), 'blocks_store');
    await programs.write('store.mjs', asWritten('docs/go-live.md', 'export const store = postgresStore'));
    const printed = await delivered('one.mjs', ONE, { DATABASE_URL: database.url });
    expect(printed).toBe('task completed\n200\n');
    await programs.write('file.mjs', FILE);
    await programs.run('file.mjs', {}, programs.folder);
    const tasks = asWritten('docs/cli.md', 'npx proto-webhooks tasks');
    const { code, stdout } = await programs.shell(tasks, { DATABASE_URL: database.url });
    expect([code, stdout]).toEqual([0, expect.stringContaining('"tasks": []')]);
  });

  it('its store on MySQL', async () => {
    const url = new URL(await sharedMariadb(inject('shared')));
    await programs.write('store.mjs', asWritten('docs/go-live.md', 'export const store = mysqlStore'));
    await programs.write('database.mjs', DATABASE);
    await programs.run('database.mjs', { DATABASE_URL: url.href, NAME: 'blocks_store' });
    url.pathname = '/blocks_store';
    const printed = await delivered('one.mjs', ONE, { DATABASE_URL: url.href });
    expect(printed).toBe('task completed\n200\n');
  });

  it('its store on Redis', async () => {
    const server = await startServer(ON_DISK);
    try {
      await programs.write('store.mjs', asWritten('docs/go-live.md', 'export const store = redisStore'));
      const url = `redis://127.0.0.1:${server.port}`;
      expect(await delivered('one.mjs', ONE, { REDIS_URL: url })).toBe('task completed\n200\n');
    } finally {
      await server.remove();
    }
  });
});

/** An empty store in the working directory. */
const FILE = `
import { sqliteStore } from 'proto-webhooks/sqlite';
const store = sqliteStore('webhooks.db');
await store.open();
await store.close();
`;

const DATABASE = `
import { createConnection } from 'mysql2/promise';
const connection = await createConnection(process.env.DATABASE_URL);
await connection.query('DROP DATABASE IF EXISTS ' + process.env.NAME);
await connection.query('CREATE DATABASE ' + process.env.NAME);
await connection.end();
`;

describe('queues.md: an event becomes a job, and the worker books it', () => {
  const BOOK = `
export const book = async (id: string | undefined, data: { status?: string }) => {
  console.log('booked', id, data.status);
  setImmediate(() => process.exit());
};`;
  const BOTH = `
import { deliver } from './deliver.mjs';
import { receiver } from './receiver.mjs';
await deliver(receiver);
await receiver.stop();
await import('./worker.ts');
`;
  const BOOKED = /^200\nbooked [\da-f-]{36} completed\n$/;

  it('BullMQ', async () => {
    const server = await startServer({ ...ON_DISK, 'maxmemory-policy': 'noeviction' });
    try {
      await programs.write('receiver.mjs', asWritten('docs/queues.md', "import { Queue } from 'bullmq'"));
      await programs.write('worker.ts', asWritten('docs/queues.md', "import { Worker } from 'bullmq'"));
      await programs.write('book.ts', BOOK);
      expect(await delivered('both.mjs', BOTH, {}, { redis: server.port })).toMatch(BOOKED);
    } finally {
      await server.remove();
    }
  });

  it('pg-boss', async () => {
    await using database = await ownDatabase(inject('shared'), 'blocks_boss');
    await programs.write('receiver.mjs', asWritten('docs/queues.md', 'transaction: true'));
    await programs.write('worker.ts', asWritten('docs/queues.md', 'boss.work'));
    await programs.write('book.ts', BOOK);
    expect(await delivered('both.mjs', BOTH, { DATABASE_URL: database.url })).toMatch(BOOKED);
  });
});

describe('frameworks.md: doors that have to be installed or fetched', () => {
  beforeAll(() => programs.write('receiver.mjs', asWritten('docs/frameworks.md', 'export const receiver =')));
  const EXPRESS = asWritten('docs/frameworks.md', "import express from 'express'");
  const FASTIFY = asWritten('docs/frameworks.md', "from 'fastify'");

  it.each([
    ['express', EXPRESS],
    ['fastify', FASTIFY],
  ])('%s listens', async (name, code) => {
    await programs.write(`${name}.mjs`, code);
    await itListens(programs, `${name}.mjs`);
  });

  /** As Nest's own build writes JavaScript. */
  const compiled = (code: string): string =>
    ts.transpile(code, {
      module: ts.ModuleKind.ESNext,
      target: ts.ScriptTarget.ES2022,
      experimentalDecorators: true,
    });

  it('Nest, before its parsers', async () => {
    const module = `import 'reflect-metadata';\nimport { Module } from '@nestjs/common';\n@Module({}) export class AppModule {}`;
    await programs.write('app.module.js', compiled(module));
    await programs.write('nest.mjs', compiled(asWritten('docs/frameworks.md', "app.use('/webhooks'")));
    await itListens(programs, 'nest.mjs', {
      './receiver': join(programs.folder, 'receiver.mjs'),
      './app.module': join(programs.folder, 'app.module.js'),
    });
  });
});

describe('tests of the documents pass in their runner', () => {
  const VITEST = 'node_modules/vitest/vitest.mjs run --root . --testTimeout 180000';

  it('write-a-store.md: the contract of a store', async () => {
    await programs.write('harness.ts', HARNESS);
    await programs.write('contract.test.ts', asWritten('docs/write-a-store.md', 'describeStoreContract'));
    const { code, stdout } = await programs.shell(`node ${VITEST} contract.test.ts`);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/Tests {2}(\d{3}) passed \(\1\)/)]);
  });
});

/** A store of the reader's own: here SQLite's. */
const HARNESS = `
import { mkdtempSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { sqliteStore } from 'proto-webhooks/sqlite';
export async function makeHarness() {
  const folder = mkdtempSync('store-');
  const file = folder + '/webhooks.db';
  let offsetMs = 0;
  const open = () => sqliteStore(file, { clockOffsetMs: () => offsetMs });
  const db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 3000; CREATE TABLE effects (n INTEGER)');
  return {
    a: open(),
    b: open(),
    reopen: async () => {
      const store = open();
      await store.open();
      return store;
    },
    setClockOffsetMs: (ms) => { offsetMs = ms; },
    cleanup: async () => { db.close(); rmSync(folder, { recursive: true }); },
    effects: {
      synchronous: true,
      write: (tx) => tx.prepare('INSERT INTO effects VALUES (1)').run(),
      count: async () => db.prepare('SELECT count(*) AS n FROM effects').get().n,
    },
  };
}`;

describe('register-with-a-seller.md, calling.md and poll.md', () => {
  /** What the seller was asked, by its tool. */
  interface Asked {
    readonly tool: string;
    readonly args: Readonly<Record<string, unknown>>;
    readonly authorization: string | undefined;
  }

  /** A seller's operation and the question about its task, on the protocol's own server. */
  const toolsOf =
    (asked: Asked[]) =>
    async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
      const { authorization } = req.headers;
      const mcp = new McpServer({ name: 'seller', version: '1' });
      const tool = (name: string, answer: object): void =>
        void mcp.registerTool(name, { inputSchema: z.looseObject({}) }, (args) => {
          asked.push({ tool: name, args, authorization });
          return { content: [], structuredContent: { ...answer } };
        });
      tool('create_media_buy', { status: 'submitted', task_id: 'task-1' });
      tool('update_media_buy', { media_buy_id: 'mb-1' });
      tool('get_task_status', { task_id: 'task-1', status: 'completed', result: { media_buy_id: 'mb-1' } });
      const transport = new StreamableHTTPServerTransport({});
      res.once('close', () => void transport.close());
      await mcp.connect(transport);
      await transport.handleRequest(req, res);
    };

  /** A buyer's database, and the seller that it calls. */
  interface Market extends AsyncDisposable {
    readonly asked: readonly Asked[];
    readonly seller: FakeSeller;
    /** Runs a module that is the reader's, with the page's files beside it, until `judge` is done; it has to end in order. */
    readonly buyer: (main: string, judge: (server: Server) => Promise<void>) => Promise<void>;
    /** Runs the page's order beside it, to its end. @returns what it printed. */
    readonly order: () => Promise<string>;
    /** Runs lines of a shell in the reader's folder. @returns what they printed. */
    readonly shell: (lines: string) => Promise<string>;
  }

  let opened = 0;
  async function market(): Promise<Market> {
    opened += 1;
    const file = `main-${opened}.mjs`;
    const database = await ownDatabase(inject('shared'), `blocks_market_${opened}`);
    const asked: Asked[] = [];
    const tools = toolsOf(asked);
    const answers = { '/mcp': (req: IncomingMessage, res: ServerResponse) => void tools(req, res) };
    const given = join(programs.folder, 'given.mjs');
    const named = await namedSeller(programs.folder, undefined, { given }, answers);
    const secrets = { WEBHOOK_SECRET: Buffer.alloc(32, 7).toString('base64'), SELLER_TOKEN: 'token-1' };
    const env = { ...named.env, ...secrets, DATABASE_URL: database.url };
    return {
      asked,
      seller: named.seller,
      order: () => programs.run('order.mjs', env),
      shell: async (lines) => {
        const { stdout, stderr } = await programs.shell(lines, env);
        return stdout + stderr;
      },
      buyer: async (main, judge) => {
        await programs.write(file, main);
        await using server = await programs.serve(file, env);
        await judge(server);
        expect(await server.stop(), server.printed()).toBe(0);
      },
      [Symbol.asyncDispose]: async () => {
        await named[Symbol.asyncDispose]();
        await database.drop();
      },
    };
  }

  beforeAll(async () => {
    await programs.write('buyer.mjs', asWritten('docs/register-with-a-seller.md', 'createReceiver({'));
    await programs.write('server.mjs', asWritten('docs/register-with-a-seller.md', 'createServer('));
    await programs.write('order.mjs', asWritten('docs/register-with-a-seller.md', "ref: 'order-4711'"));
    await programs.write('call.mjs', asWritten('docs/calling.md', 'a2aCaller'));
    await programs.write('observe.ts', asWritten('docs/register-with-a-seller.md', 'receiver.observe'));
    await programs.write('poll-measured.mjs', asWritten('docs/observability.md', 'pollMetrics'));
    await programs.write('given.mjs', GIVEN);
    await programs.write('measured.mjs', MEASURED);
  });

  const ENDED = "order-4711 { media_buy_id: 'mb-1' }";
  const QUESTION: Asked = {
    tool: 'get_task_status',
    args: { task_id: 'task-1', include_result: true },
    authorization: 'Bearer token-1',
  };

  const SERVER = "import './server.mjs';";
  const CALLED = /task_id: 'task-1'/;

  /** The seller reports the end of the order's task by the URL that the call told it. */
  async function reportEnd({ asked, seller }: Market, server: Server): Promise<void> {
    const config = z.object({ url: z.string(), operation_id: z.string() });
    const { url, operation_id } = config.parse(asked[0]?.args['push_notification_config']);
    expect(url).toMatch(/^https:\/\/buyer\.example\/webhooks\//);
    const told = {
      operation_id,
      task_id: 'task-1',
      task_type: 'create_media_buy',
      result: { media_buy_id: 'mb-1' },
    };
    const event = { ...seller.payloads.tool('completed'), ...told };
    const to = server.origin + new URL(url).pathname;
    expect((await seller.deliver(event, { url, to })).last.status, server.printed()).toBe(200);
    await expect.poll(server.printed).toContain(ENDED);
  }

  it('an order is called, and its webhook reaches the handler', async () => {
    await using open = await market();
    await open.buyer(SERVER, async (server) => {
      expect(await open.order()).toMatch(CALLED);
      expect(open.asked).toMatchObject([
        { tool: 'create_media_buy', args: { buyer_ref: 'spring' }, authorization: 'Bearer token-1' },
      ]);
      await reportEnd(open, server);
    });
  });

  it('moving-a-url.md: a media buy is moved by the program of the page, and its former URL is not retired under it', async () => {
    const [, list = ''] =
      /^const baseUrl = (.*);$/m.exec(asWritten('docs/moving-a-url.md', 'baseUrl = [')) ?? [];
    const buyer = asWritten('docs/register-with-a-seller.md', 'createReceiver({');
    const moved = buyer.replace(/^ {2}baseUrl: .*$/m, () => `  baseUrl: ${list},`);
    expect(moved).not.toBe(buyer);
    await mkdir(join(programs.folder, 'moved'));
    await programs.write('moved/buyer.mjs', moved);
    await programs.write('moved/server.mjs', asWritten('docs/register-with-a-seller.md', 'createServer('));
    await programs.write('moved/move.mjs', asWritten('docs/moving-a-url.md', 'registrations.plan'));
    await using open = await market();
    await open.buyer(SERVER, async (server) => {
      await open.order();
      await reportEnd(open, server);
    });
    await open.buyer("import './moved/server.mjs';", async ({ printed }) => {
      const move = (...args: readonly string[]): Promise<string> =>
        open.shell(`node moved/move.mjs ${args.join(' ')}`);
      expect(await move('plan')).toMatch(
        /^https:\/\/seller\.example\/mcp media buy mb-1: push from https:\/\/buyer\.example\/webhooks \(signature\) to https:\/\/new\.buyer\.example\/webhooks \(signature\); planned$/m,
      );
      expect(await move('apply', '1')).toContain('mb-1');
      await expect.poll(() => move('plan'), { timeout: 30_000 }).toBe('');
      const update = open.asked.findLast(({ tool }) => tool === 'update_media_buy');
      expect(update?.args, printed()).toMatchObject({
        media_buy_id: 'mb-1',
        push_notification_config: {
          url: expect.stringMatching(/^https:\/\/new\.buyer\.example\/webhooks\//),
        },
      });
      expect(await move('state')).toMatch(/buyer\.example\/webhooks .* in use$/m);
      expect(await move('retire', 'https://buyer.example/webhooks')).toMatch(
        /^url_in_use .*1 media buys \(mb-1\)/m,
      );
    });
  });

  it('a client of both transports calls each seller by its own', async () => {
    await using open = await market();
    const main = `
import './server.mjs';
import { call } from './call.mjs';
const { signal } = new AbortController();
console.log(call.transport('https://other.example/a2a'), call.transport('https://seller.example/mcp'));
console.log(await call('https://seller.example/mcp', 'get_task_status', { task_id: 'task-1' }, { signal }));
`;
    await open.buyer(main, async ({ printed }) => {
      await expect.poll(printed).toContain("result: { media_buy_id: 'mb-1' }");
      expect(printed()).toMatch(/^agent tool$/m);
    });
  });

  it('what is learned by asking reaches the handler', async () => {
    await using open = await market();
    await open.buyer(`${SERVER}\nawait import('./observe.ts');`, async ({ printed }) => {
      await expect.poll(printed).toContain("undefined { media_buy_id: 'mb-9' }");
      expect(printed()).toMatch(/^accepted$/m);
    });
  });

  // The first poll is half a minute after the call: both at once.
  it('a task whose webhook does not come is polled, and measured', async () => {
    const polled = async (main: string, ...printed: readonly string[]): Promise<void> => {
      await using open = await market();
      await open.buyer(main, async (server) => {
        expect(await open.order()).toMatch(CALLED);
        for (const text of [ENDED, ...printed])
          await expect.poll(server.printed, { timeout: 90_000 }).toContain(text);
        expect(open.asked.filter(({ tool }) => tool === 'get_task_status')).toEqual([QUESTION]);
      });
    };
    await Promise.all([polled(SERVER), polled("import './measured.mjs';", 'webhook.polls 1 ended')]);
  });
});

/** What the page says is the reader's. */
const GIVEN = `
globalThis.agentUrl = 'https://seller.example/mcp';
globalThis.taskId = 'task-9';
globalThis.changes = 1;
globalThis.getTaskStatus = async () => ({ status: 'completed', result: { media_buy_id: 'mb-9' } });
`;

/** Starts an SDK of OpenTelemetry, then a worker whose polls it measures, and shows what is counted. */
const MEASURED = `
import { createServer } from 'node:http';
import { metrics } from '@opentelemetry/api';
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter });
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
await import('./poll-measured.mjs');
const { pool, receiver } = await import('./buyer.mjs');
await receiver.start();
const server = createServer().listen(process.env.PORT);
const timer = setInterval(async () => {
  await reader.forceFlush();
  const all = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
  const found = all.findLast(({ descriptor }) => descriptor.name === 'webhook.polls');
  for (const { value, attributes } of found?.dataPoints ?? []) console.log(found.descriptor.name, value, attributes['webhook.poll.result']);
}, 500).unref();
process.once('SIGTERM', async () => {
  clearInterval(timer);
  server.close();
  server.closeAllConnections();
  await reader.shutdown();
  await receiver.stop();
  await pool.end();
});
`;
