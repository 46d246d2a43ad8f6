import { randomBytes, randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject, Registrations } from '../../src/registrations/index.ts';
import {
  type BuyStream,
  buyStreamIn,
  registrationsOf,
  type Stored,
} from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { hashes, NEWEST } from './kit.ts';

const SELLER = 'https://seller.example/mcp';
const BASE = 'https://buyer.example/webhooks';
const BUY = 'buy-1';
const account = { account_id: 'a1' };

let state: ReturnType<typeof createMemoryState>;
let nowMs: number;
let one: Registrations;
beforeEach(() => {
  state = createMemoryState();
  nowMs = 0;
  one = process();
});

const storeHere = () => memoryStore({ state, clockOffsetMs: () => nowMs });
const process = (baseUrl = BASE): Registrations =>
  registrationsOf(
    {
      store: storeHere(),
      baseUrl,
      secrets: [NEWEST],
      logger: { debug() {}, info() {}, warn() {}, error() {} },
    },
    {
      hashes,
      randomBytes: (count) => new Uint8Array(randomBytes(count)),
      newId: () => randomUUID(),
      now: () => nowMs,
      sleep: async () => {},
    },
  );

async function rows(kind: 'stream' | 'operation' | 'route', sender?: string): Promise<readonly JsonObject[]> {
  const page = await storeHere().registrations?.page({
    kind,
    limit: 100,
    ...(sender !== undefined && { sender }),
  });
  return (page?.rows ?? [])
    .filter(({ list }) => list !== 'url')
    .map(({ value }) => JSON.parse(value) as JsonObject);
}

async function stream(): Promise<BuyStream> {
  const page = await storeHere().registrations?.page({ kind: 'stream', limit: 9, sender: SELLER });
  const [row] = page?.rows ?? [];
  return row ? buyStreamIn(row) : expect.fail('no stream');
}

const reporting = { frequency: 'daily', requestedMetrics: ['impressions', 'spend'] } as const;

/** An order with reports; not answered yet. */
const order = async (by: Registrations, webhook?: object) =>
  by.create({
    agentUrl: SELLER,
    taskType: 'create_media_buy',
    arguments: {
      account,
      packages: [{ product_id: 'p' }],
      reporting_webhook: (webhook ?? (await by.reportingWebhook({ agentUrl: SELLER }, reporting))) as never,
    },
  });

const update = async (by: Registrations, more: object) =>
  by.create({
    agentUrl: SELLER,
    taskType: 'update_media_buy',
    arguments: { account, media_buy_id: BUY, ...more },
  });

describe('what a media buy was told', () => {
  it('is read from its call: both channels, by base and route, and acknowledged at its end', async () => {
    const made = await order(one);
    const [before] = (await rows('operation')) as unknown as readonly Stored[];
    expect(before?.told).toMatchObject({
      reports: { base: BASE, scheme: 'HMAC-SHA256' },
      push: { base: BASE, scheme: 'signature' },
    });
    await made.settle({ status: 'submitted', task_id: 't1' });
    expect(await rows('stream')).toEqual([]);
    nowMs += 5000;
    await made.settle({ status: 'completed', task_id: 't1', media_buy_id: BUY, packages: [] });
    const { told = [], metrics, since } = await stream();
    expect(metrics).toEqual(['impressions', 'spend']);
    expect(told).toEqual(
      [
        {
          channel: 'reports',
          base: BASE,
          route: told[0]?.route,
          scheme: 'HMAC-SHA256',
          at: since - 5000,
          ackedAt: since,
        },
        {
          channel: 'push',
          base: BASE,
          route: told[1]?.route,
          scheme: 'signature',
          at: since - 5000,
          ackedAt: since,
        },
      ].map((is) =>
        expect.objectContaining({
          ...is,
          at: expect.any(Number) as number,
          ackedAt: expect.any(Number) as number,
        }),
      ),
    );
    for (const { at, ackedAt = 0, route } of told) {
      expect(ackedAt - at).toBeGreaterThanOrEqual(5000);
      // The random part of the token alone: nobody can make the URL of it.
      expect(route).toMatch(/^[\w-]{22}$/);
    }
  });

  it('keeps no credential, and no URL, in the clear', async () => {
    const webhook = await one.reportingWebhook({ agentUrl: SELLER }, reporting);
    await (await order(one, webhook)).settle({ status: 'completed', media_buy_id: BUY, packages: [] });
    const { url, authentication } = webhook as unknown as {
      readonly url: string;
      readonly authentication: { readonly credentials: string };
    };
    const kept = JSON.stringify([await rows('stream'), await rows('operation'), await rows('route', SELLER)]);
    expect(kept).not.toContain(authentication.credentials);
    expect(kept).not.toContain(url.slice(url.lastIndexOf('/') + 1));
  });

  it('an update that replaces it keeps the former one beside it; one that is submitted acknowledges nothing', async () => {
    await (await order(one)).settle({ status: 'completed', media_buy_id: BUY, packages: [] });
    const two = process('https://other.example/w');
    const made = await update(two, {
      reporting_webhook: await two.reportingWebhook({ agentUrl: SELLER }, { frequency: 'daily' }),
    });
    await made.settle({ status: 'submitted', task_id: 't2' });
    expect((await stream()).told?.map(({ base }) => base)).toEqual([BASE, BASE]);
    await made.settle({ status: 'completed', task_id: 't2', media_buy_id: BUY });
    const { told = [], metrics } = await stream();
    expect(metrics).toBeNull();
    expect(
      told.map(({ channel, base, formerAt, ackedAt }) => [
        channel,
        base,
        formerAt === undefined,
        ackedAt === undefined,
      ]),
    ).toEqual([
      ['reports', BASE, false, false],
      ['push', BASE, false, false],
      ['reports', 'https://other.example/w', true, false],
      ['push', 'https://other.example/w', true, false],
    ]);
    // The route is the seller's own, whichever base it is below.
    expect(told[2]?.route).toBe(told[0]?.route);
  });

  it('an update that failed has told nothing', async () => {
    await (await order(one)).settle({ status: 'completed', media_buy_id: BUY, packages: [] });
    const before = await stream();
    const two = process('https://other.example/w');
    const made = await update(two, {
      reporting_webhook: await two.reportingWebhook({ agentUrl: SELLER }, reporting),
    });
    await made.settle({ status: 'failed', task_id: 't2', media_buy_id: BUY });
    expect(await stream()).toEqual(before);
  });

  it('reports that are taken away, or sent to another, are former', async () => {
    await (await order(one)).settle({ status: 'completed', media_buy_id: BUY, packages: [] });
    await (await update(one, { reporting_webhook: null })).settle({ status: 'completed', media_buy_id: BUY });
    const { told = [] } = await stream();
    expect(told.map(({ channel, formerAt }) => [channel, formerAt === undefined])).toEqual([
      ['reports', false],
      ['push', true],
    ]);
  });

  it.each([
    ['another host', 'https://elsewhere.example/webhooks/x'],
    ['a path beside the base', 'https://buyer.example/webhooks-2/x'],
    ['a token that no secret made', `${BASE}/${'A'.repeat(48)}`],
    ['no URL', 'webhooks'],
    ['a URL that is too long', `${BASE}/${'x'.repeat(3000)}`],
  ])('a URL of another is not kept: %s', async (_name, url) => {
    const made = await order(one, { url, reporting_frequency: 'daily' });
    await made.settle({ status: 'completed', media_buy_id: BUY, packages: [] });
    expect((await stream()).told?.map(({ channel }) => channel)).toEqual(['push']);
  });

  it('a call whose webhooks were refused has told no URL for its own', async () => {
    const made = await order(one);
    await expect(
      made.settle({
        errors: [{ code: 'INVALID_REQUEST', message: 'no', field: 'push_notification_config' }],
      }),
    ).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    await made.again()?.settle({ status: 'completed', media_buy_id: BUY, packages: [] });
    expect((await stream()).told?.map(({ channel }) => channel)).toEqual(['reports']);
  });

  it.each([
    [{ requested_metrics: ['clicks'] }, ['clicks']],
    [{}, null],
    [{ requested_metrics: 'all' }, undefined],
    [{ requested_metrics: [7] }, undefined],
    [{ requested_metrics: Array.from({ length: 101 }, String) }, undefined],
    [{ operation_id: 'reports-1' }, undefined],
    [{ token: 'x'.repeat(16) }, undefined],
  ])('metrics are kept where an update can say all of it again: %j', async (more, metrics) => {
    const made = await order(one, { url: `${BASE}/r`, reporting_frequency: 'daily', ...more });
    await made.settle({ status: 'completed', media_buy_id: BUY, packages: [] });
    expect((await stream()).metrics).toEqual(metrics);
  });

  it('one that is adopted was told the URL that it is adopted with', async () => {
    await one.adopt({
      agentUrl: SELLER,
      mediaBuyId: BUY,
      url: `${BASE}/old/path`,
      reporting: { frequency: 'daily', requestedMetrics: ['spend'] },
    });
    expect(await stream()).toMatchObject({
      metrics: ['spend'],
      told: [{ channel: 'reports', base: BASE, route: 'old/path', scheme: 'signature' }],
    });
  });

  it.each([
    [['spend'], ['spend']],
    [null, null],
    [undefined, undefined],
  ])(
    'metrics of one that is adopted are those that its owner says: %j',
    async (requestedMetrics, metrics) => {
      const adoption = { agentUrl: SELLER, mediaBuyId: BUY, url: `${BASE}/old/path` };
      await one.adopt({ ...adoption, reporting: { frequency: 'daily', requestedMetrics } });
      expect((await stream()).metrics).toEqual(metrics);
      // What is not said again stays.
      await one.adopt({ ...adoption, reporting: { frequency: 'hourly' } });
      expect(await stream()).toMatchObject({
        frequency: 'hourly',
        ...(metrics !== undefined && { metrics }),
      });
    },
  );

  it('metrics that are neither a list of names nor null are refused', async () => {
    const reporting = { frequency: 'daily', requestedMetrics: '' as never } as const;
    await expect(one.adopt({ agentUrl: SELLER, mediaBuyId: BUY, reporting })).rejects.toMatchObject({
      code: 'request_invalid',
    });
  });
});

it('a route keeps when its credentials were made, and a process that finds it changes nothing', async () => {
  await one.reportingWebhook({ agentUrl: SELLER }, reporting);
  const [made] = await rows('route', SELLER);
  expect(made?.['madeAt']).toBeTypeOf('number');
  nowMs += 60_000;
  await process().reportingWebhook({ agentUrl: SELLER }, reporting);
  expect(await rows('route', SELLER)).toEqual([made]);
});
