import { randomBytes, randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  type CallSeller,
  type JsonObject,
  type Registrations,
  SellerError,
  type UrlState,
} from '../../src/registrations/index.ts';
import { registrationsOf } from '../../src/registrations/for-tests.ts';
import type { Store } from '../../src/stores/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { aborted, hashes, NEWEST } from './kit.ts';

const SELLER = 'https://seller.example/mcp';
const OTHER = 'https://other.example/mcp';
const BASE = 'https://buyer.example/webhooks';
const NEW_BASE = 'https://new.example/webhooks';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let state: ReturnType<typeof createMemoryState>;
let nowMs: number;
beforeEach(() => {
  state = createMemoryState();
  nowMs = 0;
});

const storeHere = (): Store => memoryStore({ state, clockOffsetMs: () => nowMs });
const process = (baseUrl: string | readonly string[] = BASE, call?: CallSeller): Registrations =>
  registrationsOf(
    { store: storeHere(), baseUrl, secrets: [NEWEST], logger: SILENT_LOGGER, call },
    {
      hashes,
      randomBytes: (count) => new Uint8Array(randomBytes(count)),
      newId: () => randomUUID(),
      now: () => nowMs,
      sleep: (_ms, signal) => aborted(signal),
    },
  );

/** All pages. */
async function urlsOf(
  by: Registrations,
  query: Parameters<Registrations['state']>[0] = {},
): Promise<UrlState[]> {
  const urls: UrlState[] = [];
  for (let after: string | undefined; ;) {
    const page = await by.state({ ...query, ...(after !== undefined && { after }) });
    urls.push(...page.urls);
    if (page.next === undefined) return urls;
    after = page.next;
  }
}

const order = async (by: Registrations, mediaBuyId: string, agentUrl = SELLER) => {
  const made = await by.create({
    agentUrl,
    taskType: 'create_media_buy',
    arguments: {
      packages: [{ product_id: 'p' }],
      reporting_webhook: await by.reportingWebhook({ agentUrl }, { frequency: 'daily' }),
    },
  });
  await made.settle({ status: 'completed', media_buy_id: mediaBuyId, packages: [] });
};

const byUse = (urls: readonly UrlState[]) =>
  urls
    .map(({ base, scheme, counts, quietAt }) => [
      base,
      scheme,
      ...Object.values(counts),
      quietAt === undefined,
    ])
    .toSorted(([...a], [...b]) => a.join().localeCompare(b.join()));

describe('state', () => {
  it('says who is on each URL: calls until they end, media buys, each once', async () => {
    const one = process();
    expect(await one.state()).toStrictEqual({ urls: [], asOf: expect.any(Number) as number });
    await order(one, 'buy-1');
    await order(one, 'buy-2');
    const sync = await one.create({
      agentUrl: SELLER,
      taskType: 'sync_creatives',
      arguments: {},
      scheme: 'Bearer',
    });
    const urls = await urlsOf(one);
    expect(byUse(urls)).toEqual([
      [BASE, 'Bearer', 1, 0, 0, true],
      [BASE, 'HMAC-SHA256', 0, 2, 0, true],
      [BASE, 'signature', 0, 2, 0, true],
    ]);
    const bearer = urls.find(({ scheme }) => scheme === 'Bearer');
    expect(bearer).toEqual({
      agentUrl: SELLER,
      base: BASE,
      route: expect.stringMatching(/^[\w-]{22}$/) as string,
      scheme: 'Bearer',
      givenAt: expect.any(Number) as number,
      credentialsMadeAt: bearer?.givenAt,
      counts: { operations: 1, mediaBuys: 0, subscriptions: 0 },
      operations: [sync.operationId],
      mediaBuys: [],
      subscriptions: [],
      moving: [],
    });
    expect(urls.find(({ scheme }) => scheme === 'signature')).not.toHaveProperty('credentialsMadeAt');
    nowMs += HOUR_MS;
    await sync.settle({ status: 'completed', creatives: [] });
    const after = (await urlsOf(one)).find(({ scheme }) => scheme === 'Bearer');
    expect(after?.counts.operations).toBe(0);
    // 24 h from its end on, where the seller declares nothing.
    expect(after?.quietAt).toBeGreaterThanOrEqual((bearer?.givenAt ?? 0) + HOUR_MS + DAY_MS);
  });

  it('a media buy is on both URLs of a move, and the former says since when it may be quiet', async () => {
    const one = process();
    await order(one, 'buy-1');
    const two = process(NEW_BASE);
    nowMs += HOUR_MS;
    const made = await two.create({
      agentUrl: SELLER,
      taskType: 'update_media_buy',
      arguments: {
        media_buy_id: 'buy-1',
        reporting_webhook: await two.reportingWebhook({ agentUrl: SELLER }, { frequency: 'daily' }),
      },
    });
    await made.settle({ status: 'completed', media_buy_id: 'buy-1' });
    expect(byUse(await urlsOf(two))).toEqual([
      [BASE, 'HMAC-SHA256', 0, 1, 0, true],
      [BASE, 'signature', 0, 1, 0, true],
      [NEW_BASE, 'HMAC-SHA256', 0, 1, 0, true],
      [NEW_BASE, 'signature', 0, 1, 0, true],
    ]);
  });

  it('is of one seller, or of all; one that is forgotten is in it no more', async () => {
    const one = process();
    await order(one, 'buy-1');
    await order(one, 'buy-1', OTHER);
    expect(new Set((await urlsOf(one)).map(({ agentUrl }) => agentUrl))).toEqual(new Set([SELLER, OTHER]));
    expect((await urlsOf(one, { agentUrl: OTHER })).map(({ counts }) => counts.mediaBuys)).toEqual([1, 1]);
    await one.forget(SELLER);
    expect(new Set((await urlsOf(one)).map(({ agentUrl }) => agentUrl))).toEqual(new Set([OTHER]));
  });

  it('subscriptions are on the URL of their scheme until they are gone', async () => {
    let set: unknown[] = [];
    const call: CallSeller = async (_agentUrl, operation, args) => {
      if (operation === 'list_accounts')
        return { accounts: [{ account_id: 'a1', notification_configs: set }] };
      const [entry] = (args as { readonly accounts: readonly { readonly notification_configs: unknown[] }[] })
        .accounts;
      const isDry = (args as { readonly dry_run?: boolean }).dry_run === true;
      if (!isDry) set = entry?.notification_configs ?? [];
      return { ...(isDry && { dry_run: true }), accounts: [{ account_id: 'a1', action: 'updated' }] };
    };
    const one = process(BASE, call);
    const name = { agentUrl: SELLER, account: { account_id: 'a1' }, ref: 'creatives' };
    await one.subscribe({ ...name, eventTypes: ['creative.status_changed'] });
    expect(await urlsOf(one)).toMatchObject([{ scheme: 'signature', subscriptions: ['creatives'] }]);
    await one.unsubscribe(name);
    expect(await urlsOf(one)).toMatchObject([{ counts: { subscriptions: 0 }, subscriptions: [] }]);
  });

  it('10,000 URLs of one seller come page by page, each once', async () => {
    const { registrations } = storeHere();
    if (!registrations) return expect.fail('memory has them');
    for (let from = 0; from < 10_000; from += 1000) {
      await registrations.run(SELLER, (rows, now) => {
        for (let n = from; n < from + 1000; n += 1) {
          const value = JSON.stringify({
            base: BASE,
            route: `old/${n}`,
            kind: 'signature',
            isAdopted: true,
            givenAt: now,
          });
          rows.save({
            kind: 'route',
            sender: SELLER,
            id: `url/${n}`,
            value,
            dueAt: null,
            list: 'url',
            expiresAt: null,
          });
        }
      });
    }
    const urls = await urlsOf(process(), { agentUrl: SELLER, limit: 1000 });
    expect(new Set(urls.map(({ route }) => route)).size).toBe(10_000);
    expect(urls).toHaveLength(10_000);
  });

  it('names the first 100 of each kind, and counts all, on whichever page', async () => {
    const one = process();
    for (let n = 0; n < 120; n += 1) await order(one, `buy-${n}`);
    const calls: string[] = [];
    for (let n = 0; n < 101; n += 1) {
      const call = await one.create({ agentUrl: SELLER, taskType: 'sync_creatives', arguments: {} });
      calls.push(call.operationId);
    }
    for (const limit of [1, 100]) {
      const urls = await urlsOf(one, { limit });
      expect(urls.map(({ scheme }) => scheme).toSorted()).toEqual(['HMAC-SHA256', 'signature']);
      for (const { scheme, counts, mediaBuys, operations } of urls) {
        expect([counts.mediaBuys, new Set(mediaBuys).size, mediaBuys.length]).toEqual([120, 100, 100]);
        const isOn = scheme === 'signature';
        expect([counts.operations, new Set(operations).size]).toEqual(isOn ? [101, 100] : [0, 0]);
        expect(operations.every((id) => calls.includes(id))).toBe(true);
      }
    }
  });

  it('names a media buy that moves on each URL that it is on, and no other', async () => {
    const one = process([NEW_BASE, BASE], async () => expect.fail('no seller is called'));
    await order(process(), 'buy-1');
    await order(process(), 'buy-2');
    const { steps } = await one.apply(await one.plan(), { first: 1 });
    const [{ mediaBuyId = '' } = {}] = steps;
    const moving = [{ mediaBuyId, state: 'waiting' }];
    expect(await urlsOf(one)).toMatchObject([
      { base: BASE, moving },
      { base: BASE, moving },
    ]);
  });

  it('names the first 100 media buys that move', async () => {
    const one = process([NEW_BASE, BASE], async () => expect.fail('no seller is called'));
    for (let n = 0; n < 101; n += 1) await order(process(), `buy-${n}`);
    await one.apply(await one.plan());
    const [{ counts, moving, mediaBuys } = expect.fail('no URL')] = await urlsOf(one);
    expect(counts.mediaBuys).toBe(101);
    expect(moving).toHaveLength(100);
    expect(new Set(moving.map(({ mediaBuyId }) => mediaBuyId))).toEqual(new Set(mediaBuys));
  });

  it('a media buy without reports is on its one URL, also after an update of it', async () => {
    const one = process();
    const made = await one.create({ agentUrl: SELLER, taskType: 'create_media_buy', arguments: {} });
    await made.settle({ status: 'completed', media_buy_id: 'buy-1', packages: [] });
    const on = { scheme: 'signature', mediaBuys: ['buy-1'], counts: { operations: 0, mediaBuys: 1 } };
    expect(await urlsOf(one)).toMatchObject([on]);
    nowMs += 40 * DAY_MS;
    expect(await urlsOf(one)).toMatchObject([on]);
    const update = await process(NEW_BASE).create({
      agentUrl: SELLER,
      taskType: 'update_media_buy',
      arguments: { media_buy_id: 'buy-1' },
    });
    expect(byUse(await urlsOf(one))).toEqual([
      [BASE, 'signature', 0, 1, 0, true],
      [NEW_BASE, 'signature', 1, 0, 0, true],
    ]);
    await update.settle({ status: 'completed', media_buy_id: 'buy-1' });
    expect(byUse(await urlsOf(one))).toEqual([
      [BASE, 'signature', 0, 1, 0, true],
      [NEW_BASE, 'signature', 0, 1, 0, true],
    ]);
  });

  it('an adopted URL has the media buys that are adopted with it, each seller its own', async () => {
    const one = process();
    const url = `${BASE}/legacy/in?tenant=7`;
    await one.adopt({ agentUrl: SELLER, url });
    await one.adopt({ agentUrl: OTHER, url: `${BASE}/` });
    await one.adopt({ agentUrl: OTHER, url, mediaBuyId: 'buy-1', reporting: { frequency: 'hourly' } });
    await one.adopt({ agentUrl: OTHER, url, taskId: 'task-1', taskType: 'sync_creatives' });
    const [sellers, , legacy, ...others] = [
      ...(await urlsOf(one, { agentUrl: SELLER })),
      ...(await urlsOf(one, { agentUrl: OTHER })).toSorted((a, b) => a.route.length - b.route.length),
    ].toSorted((a, b) => b.agentUrl.localeCompare(a.agentUrl));
    expect(others).toEqual([]);
    expect(sellers).toMatchObject({ route: 'legacy/in?tenant=7', scheme: 'signature', mediaBuys: [] });
    expect(sellers?.quietAt).toBe((sellers?.givenAt ?? 0) + DAY_MS);
    expect(legacy).toMatchObject({
      agentUrl: OTHER,
      route: 'legacy/in?tenant=7',
      mediaBuys: ['buy-1'],
      counts: { operations: 1, mediaBuys: 1, subscriptions: 0 },
    });
    for (const named of await urlsOf(one)) await one.retire(named, { force: true });
    expect((await urlsOf(one)).map(({ agentUrl, retiredAt }) => [agentUrl, retiredAt === undefined])).toEqual(
      [[OTHER, false]],
    );
  });

  it('a call of which nobody knows whether it was done is on its URL', async () => {
    const errors = [new Error('no connection'), new SellerError('IDEMPOTENCY_CONFLICT', 'another request')];
    const call: CallSeller = async () => {
      throw errors.shift();
    };
    const one = process(BASE, call);
    const made = await one.create({ agentUrl: SELLER, taskType: 'create_media_buy', arguments: {} });
    for (let attempts = 0; attempts < 2; attempts += 1) await made.call().catch(() => undefined);
    expect(await one.get(made)).toMatchObject({ state: 'orphaned' });
    nowMs += 2 * DAY_MS;
    expect(await urlsOf(one)).toMatchObject([{ operations: [made.operationId] }]);
  });

  /** Changes what is kept of a media buy. */
  const setBuy = async (mediaBuyId: string, more: (stream: JsonObject) => JsonObject): Promise<void> => {
    const { registrations } = storeHere();
    const page = await registrations?.page({ kind: 'stream', sender: SELLER, limit: 100 });
    const row = page?.rows.find(({ value }) => JSON.parse(value).mediaBuyId === mediaBuyId);
    if (!registrations || !row) return expect.fail('no stream');
    const stream = JSON.parse(row.value) as JsonObject;
    const value = JSON.stringify({ ...stream, ...more(stream) });
    return registrations.run(SELLER, (rows) => rows.save({ ...row, value }));
  };
  const storeNow = async (): Promise<number> => (await process().state()).asOf;

  it('is quiet a horizon after the end of its media buys, with what their reports take', async () => {
    const one = process();
    await order(one, 'buy-1');
    nowMs += 10 * DAY_MS;
    const endedAt = await storeNow();
    await setBuy('buy-1', () => ({ endedAt }));
    nowMs += DAY_MS - 1000;
    expect((await urlsOf(one)).map(({ counts }) => counts.mediaBuys)).toEqual([1, 1]);
    nowMs += 2000;
    expect((await urlsOf(one)).map(({ quietAt }) => quietAt)).toEqual([endedAt + DAY_MS, endedAt + DAY_MS]);
    await setBuy('buy-1', () => ({ frequency: 'monthly' }));
    expect(new Set((await urlsOf(one)).map(({ quietAt }) => quietAt))).toEqual(
      new Set([endedAt + DAY_MS, endedAt + 31 * DAY_MS]),
    );
  });

  it('counts an end that was said, by whichever channel, until the seller answers otherwise', async () => {
    const one = process();
    await order(one, 'buy-1');
    const update = await one.create({
      agentUrl: SELLER,
      taskType: 'update_media_buy',
      arguments: { media_buy_id: 'buy-1', canceled: true },
    });
    await update.settle({ status: 'completed', media_buy_id: 'buy-1', media_buy_status: 'canceled' });
    expect((await urlsOf(one)).map(({ counts }) => counts.mediaBuys)).toEqual([1, 1]);
    nowMs += DAY_MS + 1000;
    expect((await urlsOf(one)).map(({ counts }) => counts.mediaBuys)).toEqual([0, 0]);
    // It was asked, and the media buy goes on.
    await setBuy('buy-1', () => ({ askedAt: 1, status: 'active', endSaid: null }));
    expect((await urlsOf(one)).map(({ counts }) => counts.mediaBuys)).toEqual([1, 1]);
  });

  it("a media buy whose reports go to another's URL is quiet a horizon after that was acknowledged", async () => {
    const one = process();
    await order(one, 'buy-1');
    nowMs += HOUR_MS;
    const update = await one.create({
      agentUrl: SELLER,
      taskType: 'update_media_buy',
      arguments: {
        media_buy_id: 'buy-1',
        reporting_webhook: { url: 'https://another.example/r', reporting_frequency: 'daily' },
      },
    });
    await update.settle({ status: 'completed', media_buy_id: 'buy-1' });
    const at = await storeNow();
    const reports = async (): Promise<UrlState | undefined> =>
      (await urlsOf(one)).find(({ scheme }) => scheme === 'HMAC-SHA256');
    expect((await reports())?.counts.mediaBuys).toBe(1);
    nowMs += DAY_MS + 1000;
    const { quietAt = Infinity, counts } = (await reports()) ?? expect.fail('no URL');
    expect(counts.mediaBuys).toBe(0);
    expect(quietAt - DAY_MS).toBeGreaterThan(at - 1000);
    expect(quietAt - DAY_MS).toBeLessThanOrEqual(at);
  });

  it.each([
    [{ limit: 0 }, 'limit'],
    [{ limit: 1001 }, 'limit'],
    [{ agentUrl: 'seller' }, 'agentUrl'],
    [{ after: 7 }, 'after'],
    [{ after: 'what no page gave' }, 'after'],
    [{ sellers: [] }, 'sellers'],
  ])('refuses %j', async (query, member) => {
    await expect(process().state(query as never)).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringContaining(member) as string,
    });
  });
});
