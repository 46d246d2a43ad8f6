import { randomBytes, randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { CallSeller, Registrations, UrlState } from '../../src/registrations/index.ts';
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
const process = (baseUrl = BASE, call?: CallSeller): Registrations =>
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
    expect(await one.state()).toEqual({ urls: [], asOf: expect.any(Number) as number });
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

  it('names the first 100 of each kind, and counts all', async () => {
    const one = process();
    for (let n = 0; n < 120; n += 1) await order(one, `buy-${n}`);
    const [first] = await urlsOf(one);
    expect([first?.counts.mediaBuys, first?.mediaBuys.length]).toEqual([120, 100]);
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
