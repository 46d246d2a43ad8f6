import { afterEach, describe, expect, it } from 'vitest';
import type { Account, AccountQuery } from '../../src/reconcile/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import type { StoreRegistrations } from '../../src/stores/index.ts';
import { AGENT } from '../receiver/setup.ts';
import { BUY, buy, buysOf, day, DAY_MS, HOUR_MS, type Process, world, type World } from './kit.ts';

let here: World | undefined;
afterEach(() => here?.end());
const begin = (at = '2026-03-01T12:00:00Z'): World => (here = world(at));

const FLIGHT = { start: '2026-03-02T00:00:00Z', end: '2026-03-06T00:00:00Z' };
const OTHER = 'https://other.example/mcp';

/** Every page of the account, of so many media buys each. */
async function pagesOf({ reconciler }: Process, query: AccountQuery): Promise<readonly Account[]> {
  const pages: Account[] = [];
  let after: string | undefined;
  do {
    const page = await reconciler.account({ ...query, after });
    pages.push(page);
    after = page.next;
  } while (after !== undefined);
  return pages;
}

const namesOf = (pages: readonly Account[]): readonly string[] =>
  pages.flatMap(({ streams }) => streams.map(({ agentUrl, mediaBuyId }) => `${mediaBuyId} ${agentUrl}`));

async function bought({ registrations }: Process, agentUrl: string, mediaBuyId: string): Promise<void> {
  const made = await registrations.create({
    agentUrl,
    taskType: 'create_media_buy',
    arguments: {
      start_time: FLIGHT.start,
      end_time: FLIGHT.end,
      reporting_webhook: { url: 'https://buyer.example/r', reporting_frequency: 'daily' },
    },
  });
  await made.settle({ media_buy_id: mediaBuyId, status: 'completed' });
}

describe('the account, page by page', () => {
  it('each media buy on one page, by seller; of one seller; of one buy, whatever its id is', async () => {
    const { process } = begin();
    const one = await process();
    const odd = `${'é'.repeat(300)}\u0000`;
    for (const id of ['buy-1', 'buy-2', odd]) await bought(one, AGENT, id);
    for (const id of ['buy-1', 'buy-4']) await bought(one, OTHER, id);
    const pages = await pagesOf(one, { limit: 2 });
    expect(pages.map(({ streams }) => streams.length)).toEqual([2, 2, 1]);
    const all = [
      ...['buy-1', 'buy-2', odd].map((id) => `${id} ${AGENT}`),
      `buy-1 ${OTHER}`,
      `buy-4 ${OTHER}`,
    ];
    expect(namesOf(pages).toSorted()).toEqual(all.toSorted());
    expect(namesOf(await pagesOf(one, { agentUrl: OTHER, limit: 1 }))).toEqual([
      `buy-1 ${OTHER}`,
      `buy-4 ${OTHER}`,
    ]);
    for (const mediaBuyId of ['buy-2', odd]) {
      const { streams, next } = await one.reconciler.account({ agentUrl: AGENT, mediaBuyId });
      expect([streams.map((stream) => stream.mediaBuyId), next]).toEqual([[mediaBuyId], undefined]);
    }
  });

  it('of a buy that nobody knows it is not complete; of a seller without buys it is', async () => {
    const { process } = begin();
    const one = await process();
    await bought(one, AGENT, 'buy-1');
    const unknown = await one.reconciler.account({ agentUrl: AGENT, mediaBuyId: 'buy-9' });
    expect(unknown).toMatchObject({ complete: false, streams: [] });
    expect(await one.reconciler.account({ agentUrl: OTHER })).toMatchObject({ complete: true, streams: [] });
  });

  it('of a buy of which reports came before anybody registered it, nothing is said yet', async () => {
    const { process } = begin('2026-03-03T01:00:00Z');
    const one = await process();
    await one.report(day(2));
    expect(await one.reconciler.account()).toMatchObject({ complete: true, streams: [] });
  });

  it('asks no seller, and is of the store’s clock', async () => {
    const { process, seller, until } = begin();
    const one = await process();
    await buy(one, FLIGHT);
    await until('2026-03-03T06:00:00Z');
    const { asOf } = await one.reconciler.account();
    expect(asOf).toBe(Date.parse('2026-03-03T06:00:00Z'));
    expect(seller.questions).toEqual([]);
  });
});

describe('what is due, and what is missing', () => {
  it('a window is due after its end, the delay and the grace, to the millisecond', async () => {
    const { process, until } = begin();
    const one = await process({ expectedDelayMs: 2 * HOUR_MS, graceMs: 60_000 });
    await buy(one, FLIGHT);
    const dueAt = Date.parse(day(2).end) + 2 * HOUR_MS + 60_000;
    await until(new Date(dueAt - 1).toISOString());
    expect((await one.reconciler.account()).streams[0]).toMatchObject({ windows: { due: 0 }, missing: [] });
    await until(new Date(dueAt).toISOString());
    const { complete, streams } = await one.reconciler.account();
    expect(complete).toBe(false);
    expect(streams[0]).toMatchObject({
      windows: { due: 1, byWebhook: 0, byPull: 0, repeated: 0 },
      missing: [
        {
          start: '2026-03-02T00:00:00.000Z',
          end: '2026-03-03T00:00:00.000Z',
          dueAt: new Date(dueAt).toISOString(),
          tries: 0,
          recoverable: true,
        },
      ],
      closed: false,
    });
  });

  it('since: only windows that end after it, missing and held', async () => {
    const { process, until } = begin();
    const one = await process();
    await buy(one, FLIGHT);
    await until('2026-03-10T00:00:00Z');
    const startsSince = async (since: string): Promise<readonly string[] | undefined> => {
      const { streams, complete } = await one.reconciler.account({ since: Date.parse(since) });
      const missing = streams[0]?.missing.map(({ start }) => start.slice(8, 10));
      expect(complete).toBe(missing?.length === 0);
      return missing;
    };
    expect(await startsSince('2026-03-01T00:00:00Z')).toEqual(['02', '03', '04', '05']);
    expect(await startsSince('2026-03-04T00:00:00Z')).toEqual(['04', '05']);
    expect(await startsSince('2026-03-06T00:00:00Z')).toEqual([]);
  });

  it('next_expected_at moves what is due, by an interval and seven days at most', async () => {
    const { process, until } = begin();
    const one = await process({ expectedDelayMs: 0, graceMs: 0 });
    await buy(one, { ...FLIGHT, end: '2026-03-30T00:00:00Z' });
    await until('2026-03-03T00:10:00Z');
    await one.report(day(2), { report: { next_expected_at: '2026-03-29T00:00:00Z' } });
    const missing = async (): Promise<readonly string[] | undefined> =>
      (await one.reconciler.account()).streams[0]?.missing.map(({ start }) => start.slice(8, 10));
    await until('2026-03-10T23:00:00Z');
    expect(await missing()).toEqual([]);
    // A day, and seven days after the end of the third.
    await until('2026-03-12T00:10:00Z');
    expect(await missing()).toContain('03');
  });

  it('a row that is late moves its own window', async () => {
    const { process, until } = begin();
    const one = await process({ expectedDelayMs: 0, graceMs: 0 });
    await buy(one, FLIGHT);
    await until('2026-03-03T00:10:00Z');
    await one.report(day(2), {
      type: 'delayed',
      row: {
        status: 'reporting_delayed',
        expected_availability: '2026-03-03T18:00:00Z',
        totals: undefined,
      },
    });
    await until('2026-03-03T17:59:00Z');
    expect((await one.reconciler.account()).streams[0]).toMatchObject({ missing: [] });
    await until('2026-03-03T18:00:01Z');
    expect((await one.reconciler.account()).streams[0]?.missing).toMatchObject([
      { start: '2026-03-02T00:00:00.000Z' },
    ]);
  });

  it('a buy without reports owes nothing; one whose reports are taken away, nothing from then on', async () => {
    const { process, until, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    const one = await process();
    await buy(one, FLIGHT);
    await until('2026-03-04T00:00:00Z');
    const update = await one.registrations.create({
      agentUrl: AGENT,
      taskType: 'update_media_buy',
      arguments: { media_buy_id: BUY, reporting_webhook: null },
    });
    await update.settle({ media_buy_id: BUY, status: 'completed' });
    await until('2026-03-10T00:00:00Z');
    const { streams } = await one.reconciler.account();
    expect(streams[0]).toMatchObject({ frequency: null, windows: { due: 2 } });
  });
});

describe('tasks', () => {
  it('are counted by how they stand, of one seller or of all', async () => {
    const { process } = begin();
    const one = await process();
    const call = (agentUrl: string) =>
      one.registrations.create({ agentUrl, taskType: 'sync_creatives', arguments: {} });
    await (await call(AGENT)).settle({ status: 'submitted', task_id: 'task-1' });
    await (await call(AGENT)).settle({ status: 'completed', creatives: [] });
    await (await call(AGENT)).settle({ errors: [{ code: 'INVALID_REQUEST', message: 'no' }] }).catch(() => 0);
    await call(OTHER);
    expect((await one.reconciler.account()).tasks).toMatchObject({
      ended: 1,
      open: 2,
      unresolved: 0,
      orphaned: 0,
    });
    const { tasks, complete } = await one.reconciler.account({ agentUrl: OTHER });
    expect([tasks?.open, complete]).toEqual([1, true]);
    expect(tasks?.since).toBe(Date.parse('2026-03-01T12:00:00Z'));
    expect((await one.reconciler.account({ agentUrl: 'https://third.example' })).tasks).toEqual({
      ended: 0,
      open: 0,
      unresolved: 0,
      orphaned: 0,
    });
  });

  it('are counted with the first page alone: later ones read no operation', async () => {
    const { process } = begin();
    const store = memoryStore();
    const { registrations } = store as { registrations: StoreRegistrations };
    const pages: string[] = [];
    const page: StoreRegistrations['page'] = (query) => {
      pages.push(query.kind);
      return registrations.page(query);
    };
    const one = await process({}, { store: { ...store, registrations: { ...registrations, page } } });
    for (const id of ['mb_1', 'mb_2', 'mb_3']) await bought(one, AGENT, id);
    pages.length = 0;
    const first = await one.reconciler.account({ limit: 1 });
    expect(first.tasks).toMatchObject({ ended: 3 });
    expect(pages).toContain('operation');
    pages.length = 0;
    const second = await one.reconciler.account({ limit: 1, after: first.next });
    const third = await one.reconciler.account({ limit: 1, after: second.next });
    expect(third.streams).toMatchObject([{ mediaBuyId: 'mb_3' }]);
    expect([second.tasks, third.tasks]).toEqual([undefined, undefined]);
    expect(pages).toEqual(['stream', 'stream']);
  });

  it('one that is orphaned makes the account not complete', async () => {
    const { process, until } = begin();
    const one = await process();
    const request = { agentUrl: AGENT, taskType: 'sync_creatives', arguments: {}, requestKeyMs: 0 };
    await one.registrations.create(request);
    await one.registrations.start();
    await until(new Date(Date.parse('2026-03-01T12:00:00Z') + DAY_MS).toISOString());
    await one.registrations.stop();
    expect(await one.reconciler.account()).toMatchObject({ complete: false, tasks: { orphaned: 1 } });
  });
});
