import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { createRegistrations } from '../../src/registrations/index.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { listening } from '../adapters/raw-client.ts';
import { NEWEST } from '../registrations/kit.ts';
import { HOSTILE, MARK } from '../support/hostile-text.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { cli, type Ended } from './run-cli.ts';
import { tempFolder } from './temp-folder.ts';

const AGENT = 'https://seller.example/mcp';

const stateOf = (folder: { path: string }, ...args: string[]): Promise<Ended> =>
  cli(['state', '--sqlite', 'it.db', ...args], { cwd: folder.path });

it('state: says which URLs a seller was given and who is on them, whatever text a seller chose', async () => {
  using folder = tempFolder();
  const store = sqliteStore(folder.file('it.db'));
  await store.open();
  const baseUrl = 'https://buyer.example/webhooks';
  const registrations = createRegistrations({ store, baseUrl, secrets: [NEWEST], logger: SILENT_LOGGER });
  const none = await stateOf(folder);
  expect([none.code, none.stdout]).toEqual([0, 'No seller was given a URL that is in use.\n']);
  const made = await registrations.create({
    agentUrl: AGENT,
    taskType: 'create_media_buy',
    arguments: {},
    scheme: 'Bearer',
  });
  await made.settle({ status: 'completed', media_buy_id: HOSTILE.slice(0, 300), packages: [] });
  await registrations.create({ agentUrl: AGENT, taskType: 'sync_creatives', arguments: {} });
  await store.close();

  const { code, stdout, stderr } = await stateOf(folder);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toContain(MARK);
  expect(stdout).not.toContain('\u001B');
  expect(stdout).not.toMatch(/^pass/m);
  expect(stdout).toMatch(
    /^used +https:\/\/buyer\.example\/webhooks\/… \([\w-]{22}\) {2}Bearer {2}https:\/\/seller/m,
  );
  expect(stdout).toMatch(/^ +given 2\d{3}-\S+Z, never heard, credentials of 2\d{3}-/m);
  expect(stdout).toMatch(/^ +1 media buys: /m);
  expect(stdout).toMatch(/^ +1 calls: [\w-]{36}$/m);

  const json = JSON.parse((await stateOf(folder, '--json', '--limit', '1')).stdout) as {
    readonly urls: readonly { readonly givenAt: string }[];
    readonly next: string;
  };
  expect(json.urls).toHaveLength(1);
  expect(json.urls[0]?.givenAt).toMatch(/^2\d{3}-.*Z$/);
  const second = JSON.parse((await stateOf(folder, '--json', '--after', json.next)).stdout) as typeof json;
  expect(second.urls).toHaveLength(1);
  expect((await stateOf(folder, '--seller', AGENT)).code).toBe(0);
  const other = await stateOf(folder, '--seller', 'https://other.example/mcp');
  expect([other.code, other.stdout]).toEqual([
    1,
    expect.stringMatching(/^Nothing is known of this seller\. /),
  ]);
});

it.each([
  [['--after', 'x'], /--after: is not the next/],
  [['--limit', '0'], /Expected a whole number from 1 on/],
  [['--seller', 'seller.example'], /--seller: "seller\.example" is not a URL/],
  [['--seller', 'https://a:b@/'], /--seller/],
  [['--check'], /--check needs --seller/],
  [['--check', '--seller', AGENT, '--token-env', 'NOT_SET'], /NOT_SET: not set/],
  [['--check', '--seller', AGENT, '--transport', 'mail'], /--transport/],
])('state %j cannot be done', async (args, message) => {
  using folder = tempFolder();
  const store = sqliteStore(folder.file('it.db'));
  await store.open();
  await store.close();
  const { code, stdout, stderr } = await stateOf(folder, ...args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(message);
  expect(stderr.trimEnd().split('\n')).toHaveLength(1);
});

/** A seller on the real server SDK, which shows where it sends. */
async function activitySeller(shown: () => string) {
  const tokens = new Set<string | undefined>();
  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    tokens.add(req.headers.authorization);
    const mcp = new McpServer({ name: 'seller', version: '1' });
    mcp.registerTool('get_media_buys', { inputSchema: z.looseObject({}) }, () => ({
      content: [],
      structuredContent: {
        media_buys: [{ media_buy_id: 'buy-1', status: 'active', webhook_activity: [{ url: shown() }] }],
      },
    }));
    const transport = new StreamableHTTPServerTransport({});
    res.once('close', () => void transport.close());
    await mcp.connect(transport);
    await transport.handleRequest(req, res);
  };
  const server = await listening((req, res) => {
    serve(req, res).catch((error: unknown) => res.destroy(error as Error));
  });
  return { tokens, url: `${server.url}/mcp`, end: () => server[Symbol.asyncDispose]() };
}

it('state --check: asks the seller with its token, and says what differs and what failed', async () => {
  using folder = tempFolder();
  let shown = 'https://buyer.example/webhooks/***';
  const seller = await activitySeller(() => shown);
  onTestFinished(seller.end);
  const store = sqliteStore(folder.file('it.db'));
  await store.open();
  const registrations = createRegistrations({
    store,
    baseUrl: 'https://buyer.example/webhooks',
    secrets: [NEWEST],
    logger: SILENT_LOGGER,
    allowLoopback: true,
  });
  const made = await registrations.create({
    agentUrl: seller.url,
    taskType: 'create_media_buy',
    arguments: {},
  });
  await made.settle({ status: 'completed', media_buy_id: 'buy-1', packages: [] });
  await store.close();
  const check = (...more: string[]): Promise<Ended> =>
    cli(['state', '--sqlite', 'it.db', '--check', '--seller', seller.url, '--token-env', 'TOKEN', ...more], {
      cwd: folder.path,
      env: { TOKEN: 'a-token-of-the-seller' },
    });
  const right = await check('--allow-loopback');
  expect([right.code, right.stderr]).toEqual([0, '']);
  expect(right.stdout).toMatch(/^Compared: 1 media buys, 0 subscriptions\./m);
  expect([...seller.tokens]).toEqual(['Bearer a-token-of-the-seller']);

  shown = 'https://someone:password@old.example/hooks/s3cret';
  const wrong = await check('--allow-loopback');
  expect(wrong.code).toBe(1);
  expect(wrong.stdout).toMatch(/^differs +https:\/\/buyer\.example\/webhooks\/…/m);
  expect(wrong.stdout).toMatch(/^ +1 media buys differ: buy-1\n +shown: https:\/\/old\.example\/…$/m);
  const json = await check('--allow-loopback', '--json');
  expect([json.code, JSON.parse(json.stdout)]).toMatchObject([
    1,
    {
      urls: [{ drift: { mediaBuys: ['buy-1'], shown: ['https://old.example/…'] } }],
      check: { compared: { mediaBuys: 1, subscriptions: 0 }, errors: [] },
    },
  ]);
  expect(wrong.stdout + json.stdout).not.toMatch(/s3cret|password|a-token/);

  // Its address may not be called.
  const refused = await check();
  expect(refused.code).toBe(1);
  expect(refused.stdout).toMatch(/^Not compared: media buys of http:\/\/127\.0\.0\.1:\d+\/mcp: \w+: /m);
  expect(refused.stdout).toMatch(/^Compared: 0 media buys/m);
});
