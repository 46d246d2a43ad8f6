import { afterEach, describe, expect, it } from 'vitest';
import type { Account, AccountQuery } from '../../src/reconcile/index.ts';
import { pollerOf } from '../../src/poll/for-tests.ts';
import type { Registrations } from '../../src/registrations/index.ts';
import { WATCHED_TASKS, type WithWatchedTasks } from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
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

const rowsOf = ({ registrations }: Process): StoreRegistrations =>
  (registrations as Registrations & WithWatchedTasks)[WATCHED_TASKS].rows;

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

  it('a window whose event is done while the page is read is had', async () => {
    const { process, until } = begin();
    const state = createMemoryState();
    const store = memoryStore({ state });
    const { registrations } = store as { registrations: StoreRegistrations };
    let handled: (() => void) | undefined;
    const running = new Promise<void>((resolve) => (handled = resolve));
    let between = async (): Promise<void> => undefined;
    const page: StoreRegistrations['page'] = async (query) => {
      const found = await registrations.page(query);
      await between();
      return found;
    };
    const one = await process(
      { expectedDelayMs: 0, graceMs: 0 },
      { store: { ...store, registrations: { ...registrations, page } }, handler: () => running },
    );
    await bought(one, AGENT, BUY);
    await until('2026-03-03T00:10:00Z');
    const delivered = one.report(day(2));
    const claimed = async (): Promise<boolean> =>
      (await one.reconciler.account()).streams[0]?.missing.length === 0;
    await expect.poll(claimed).toBe(true);
    between = async () => {
      handled?.();
      await delivered;
    };
    expect((await one.reconciler.account()).streams).toMatchObject([
      { missing: [], windows: { due: 1, byWebhook: 1 } },
    ]);
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
      const { streams, complete, unchanged } = await one.reconciler.account({ since: Date.parse(since) });
      expect([streams.length, unchanged, complete]).toEqual(
        streams.length === 0 ? [0, 1, true] : [1, 0, false],
      );
      return streams[0]?.missing.map(({ start }) => start.slice(8, 10));
    };
    expect(await startsSince('2026-03-01T00:00:00Z')).toEqual(['02', '03', '04', '05']);
    expect(await startsSince('2026-03-04T00:00:00Z')).toEqual(['04', '05']);
    expect(await startsSince('2026-03-06T00:00:00Z')).toBeUndefined();
    // One media buy of which nothing is newer is known all the same.
    const since = Date.parse('2026-03-06T00:00:00Z');
    const old = { agentUrl: AGENT, mediaBuyId: BUY, since };
    expect(await one.reconciler.account(old)).toMatchObject({ complete: true, streams: [], unchanged: 1 });
    const unknown = { ...old, mediaBuyId: 'buy-9' };
    expect(await one.reconciler.account(unknown)).toMatchObject({ complete: false, unchanged: 0 });
    expect(await one.reconciler.account({})).not.toHaveProperty('unchanged');
  });

  it('since: a media buy that is new, one with new terms or a period that fits nothing, and one that is unverifiable', async () => {
    const { process, until, seller } = begin();
    const one = await process();
    await bought(one, AGENT, 'old');
    await one.registrations.adopt({
      agentUrl: AGENT,
      mediaBuyId: 'adopted',
      reporting: { frequency: 'daily' },
    });
    await until('2026-03-20T00:00:00Z');
    const since = Date.now();
    const names = async (): Promise<readonly string[]> => namesOf([await one.reconciler.account({ since })]);
    // Nobody has asked yet what the adopted one owes, and it is not known since when that is so.
    expect(await names()).toEqual([`adopted ${AGENT}`]);
    await until('2026-03-20T00:00:01Z');
    await bought(one, AGENT, 'young');
    expect(await names()).toEqual([`adopted ${AGENT}`, `young ${AGENT}`]);
    const odd = { start: '2026-03-20T00:00:00Z', end: '2026-03-20T00:07:00Z' };
    await one.report(odd, { mediaBuyId: 'old' });
    expect(await names()).toEqual([`adopted ${AGENT}`, `old ${AGENT}`, `young ${AGENT}`]);
    seller.buys = ({ media_buy_ids: [id] = [] }: { readonly media_buy_ids?: readonly string[] }) => ({
      media_buys: [{ media_buy_id: id, status: 'active', start_time: FLIGHT.start, end_time: FLIGHT.end }],
    });
    await one.reconciler.start();
    await until('2026-03-20T00:10:00Z');
    const now = Date.now();
    await until('2026-03-20T00:20:00Z');
    const update = await one.registrations.create({
      agentUrl: AGENT,
      taskType: 'update_media_buy',
      arguments: { media_buy_id: 'adopted', reporting_webhook: { reporting_frequency: 'hourly' } },
    });
    await update.settle({ media_buy_id: 'adopted', status: 'completed' });
    expect(namesOf([await one.reconciler.account({ since: now })])).toEqual([`adopted ${AGENT}`]);
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
      attention: [],
      sellers: [],
    });
  });

  it('that have not ended are named, the oldest first, with what to do; and the seller of the oldest', async () => {
    const { process, clock, until } = begin();
    const one = await process();
    const call = (agentUrl: string, more: object = {}) =>
      one.registrations.create({ agentUrl, taskType: 'sync_creatives', arguments: {}, ...more });
    await call(AGENT, { requestKeyMs: 0, ref: 'lost' });
    await until('2026-03-01T13:00:00Z');
    await (await call(OTHER)).settle({ status: 'submitted', task_id: 'given-up' });
    await until('2026-03-01T14:00:00Z');
    await (await call(AGENT)).settle({ status: 'completed', creatives: [] });
    await one.registrations.start();
    const giveUpMs = 2 * HOUR_MS;
    const poller = pollerOf(
      { receiver: one.receiver, registrations: one.registrations, giveUpMs },
      { clock: clock.now, sleep: clock.sleep, random: () => 0.5 },
    );
    await poller.start();
    await until('2026-03-02T12:00:00Z');
    await poller.stop();
    await one.registrations.stop();
    const since = Date.now();
    await until('2026-03-02T13:00:00Z');
    await (await call(OTHER, { ref: 'young' })).settle({ status: 'working', task_id: 'task-2' });
    const { tasks, complete } = await one.reconciler.account();
    expect(complete).toBe(false);
    expect(tasks).toMatchObject({
      ended: 1,
      open: 2,
      unresolved: 1,
      orphaned: 1,
      attention: [
        {
          agentUrl: AGENT,
          taskType: 'sync_creatives',
          ref: 'lost',
          state: 'orphaned',
          since: Date.parse('2026-03-01T12:00:00Z'),
          ageMs: 25 * HOUR_MS,
          todo: expect.stringMatching(/^Ask the seller if it performed the call/) as unknown,
        },
        {
          agentUrl: OTHER,
          taskId: 'given-up',
          state: 'unresolved',
          ageMs: DAY_MS,
          todo: expect.stringMatching(/receiver\.observe, or pass .* to registrations\.adopt/) as unknown,
        },
        { agentUrl: OTHER, taskId: 'task-2', ref: 'young', state: 'open', ageMs: 0 },
      ],
      sellers: [{ agentUrl: OTHER, open: 2, oldestMs: DAY_MS }],
    });
    expect(tasks?.attention[2]).not.toHaveProperty('todo');
    expect(tasks).not.toHaveProperty('changed');

    // What it says to do helps.
    const taskType = 'sync_creatives';
    await one.registrations.adopt({ agentUrl: OTHER, taskId: 'given-up', taskType });
    const { operationId = '' } = tasks?.attention[0] ?? {};
    const seen = { taskType, status: 'completed', data: { creatives: [] }, askedAt: 0 } as const;
    const told = { ...seen, sender: AGENT, operationId, source: 'poll', observation: '1' } as const;
    expect(await one.receiver.observe(told)).toMatchObject({ kind: 'accepted' });
    await clock.pass(60_000);
    const after = await one.reconciler.account({ since });
    expect(after).toMatchObject({
      complete: true,
      tasks: { ended: 2, open: 2, changed: { registered: 1, ended: 1 }, attention: [{ ref: 'young' }] },
    });
  });

  it('of more than are named, unresolved and orphaned ones come before open ones', async () => {
    const { process, until } = begin();
    const one = await process();
    const call = (more: object = {}) =>
      one.registrations.create({ agentUrl: AGENT, taskType: 'sync_creatives', arguments: {}, ...more });
    for (let nth = 0; nth < 230; nth += 1) await call({ ref: `open ${nth}`, requestKeyMs: 400 * DAY_MS });
    await until('2026-03-02T12:00:00Z');
    const orphan = await call({ ref: 'orphan' });
    const [row] = (await rowsOf(one).page({ kind: 'operation', limit: 1000 })).rows.filter(
      ({ id }) => id === orphan.operationId,
    );
    await rowsOf(one).run(AGENT, (rows) => {
      if (!row) throw new Error('it is not there');
      const value = JSON.stringify({ ...(JSON.parse(row.value) as object), state: 'orphaned' });
      rows.save({ ...row, value, list: 'orphaned', dueAt: null });
    });
    const { tasks } = await one.reconciler.account();
    expect(tasks).toMatchObject({ open: 230, orphaned: 1 });
    expect(tasks?.attention).toHaveLength(100);
    expect(tasks?.attention.at(-1)).toMatchObject({ ref: 'orphan', ageMs: 0 });
    expect(tasks?.attention[0]).toMatchObject({ ageMs: DAY_MS });
    expect(tasks?.sellers).toEqual([{ agentUrl: AGENT, open: 230, oldestMs: DAY_MS }]);
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
