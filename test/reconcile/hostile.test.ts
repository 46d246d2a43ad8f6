import { afterEach, describe, expect, it } from 'vitest';
import type { DeliveryReportEvent, Event } from '../../src/events/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import type { RegistrationRows, StoreRegistrations } from '../../src/stores/index.ts';
import type { JsonObject } from '../../src/registrations/index.ts';
import { AGENT } from '../receiver/setup.ts';
import { BUY, buy, buysOf, day, daysDelivery, type Process, world, type World } from './kit.ts';

let here: World | undefined;
afterEach(() => here?.end());

const FLIGHT = { start: '2026-03-02T00:00:00Z', end: '2026-03-06T00:00:00Z' };

const begin = (): World => (here = world('2026-03-01T12:00:00Z'));

const reportsOf = ({ seen }: Process): readonly DeliveryReportEvent[] =>
  seen.map(({ event }) => event).filter((event: Event) => event.kind === 'delivery-report');

const deliveryOf = (row: Record<string, unknown>, more: Record<string, unknown> = {}) => ({
  currency: 'USD',
  media_buy_deliveries: [
    { media_buy_id: BUY, status: 'active', totals: { spend: 2 }, by_package: [], ...row },
  ],
  ...more,
});

/** An answer, so often; then none. A loop ends so. */
const atMost = (most: number, answer: (args: never) => unknown) => {
  let asked = 0;
  return (args: unknown): unknown => {
    asked += 1;
    if (asked > most) throw new Error('enough');
    return answer(args as never);
  };
};

/** A store whose steps of registrations are counted. */
function countedStore() {
  const store = memoryStore();
  const { registrations } = store as { registrations: StoreRegistrations };
  let steps = 0;
  const run: StoreRegistrations['run'] = (sender, step) => {
    steps += 1;
    return registrations.run(sender, step);
  };
  return {
    store: { ...store, registrations: { ...registrations, run } },
    steps: () => steps,
    rowsOfStreams: async () =>
      (await registrations.page({ kind: 'stream', limit: 1000, sender: AGENT })).rows.length,
    rowLength: () =>
      registrations.run(AGENT, (rows: RegistrationRows) => rows.get('stream', BUY)?.value.length),
  };
}

describe('a seller that answers so that it is asked for ever', () => {
  it('a row that is reporting_delayed has no data: no event, and it is asked again as for no answer', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    seller.delivery = atMost(60, (args) => ({
      ...(daysDelivery(args) as object),
      ...deliveryOf({ status: 'reporting_delayed', totals: { spend: 0 } }),
    }));
    const one = await process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await until('2026-03-03T12:00:00Z');
    expect(reportsOf(one)).toEqual([]);
    expect(seller.asked('get_media_buy_delivery').length).toBeLessThan(8);
    expect(await one.reconciler.account()).toMatchObject({ streams: [{ missing: [{ recoverable: true }] }] });
  });

  it('a window that is of two frequencies is got once', async () => {
    const { until, process, seller } = begin();
    const flight = { start: '2026-03-02T00:00:00Z', end: '2026-03-03T00:00:00Z' };
    seller.buys = buysOf(flight);
    seller.delivery = atMost(60, daysDelivery);
    const one = await process();
    await one.reconciler.start();
    await buy(one, flight);
    await until('2026-03-03T00:30:00Z');
    await one.registrations.adopt({ agentUrl: AGENT, mediaBuyId: BUY, reporting: { frequency: 'monthly' } });
    await until('2026-04-03T12:00:00Z');
    expect(seller.asked('get_media_buy_delivery').length).toBeLessThan(30);
    expect(reportsOf(one).length).toBeLessThan(3);
  });

  it('a media buy that is active, and ended in each answer about delivery: windows are got once', async () => {
    const { until, process, seller } = begin();
    const flight = { start: '2026-03-02T00:00:00Z', end: '2026-03-03T00:00:00Z' };
    const row = (args: JsonObject, more: JsonObject) => ({
      ...(daysDelivery(args) as object),
      media_buy_deliveries: [{ media_buy_id: BUY, totals: { spend: 2 }, by_package: [], ...more }],
    });
    seller.buys = atMost(60, buysOf(flight));
    seller.delivery = atMost(60, (args) => row(args, { status: 'completed' }));
    // Snapshots have a budget of their own.
    const one = await process({ snapshotMs: 86_400_000 });
    await one.reconciler.start();
    await buy(one, flight);
    await until('2026-03-03T00:30:00Z');
    await one.registrations.adopt({ agentUrl: AGENT, mediaBuyId: BUY, reporting: { frequency: 'monthly' } });
    await until('2026-03-20T00:00:00Z');
    expect(seller.asked('get_media_buy_delivery').length).toBeLessThan(30);
    expect(seller.asked('get_media_buys').length).toBeLessThan(50);
    expect(reportsOf(one).length).toBeLessThan(3);
  });

  it('without any data: each day is asked for by itself, some times a week', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(
      { start: '2026-02-01T00:00:00Z', end: '2026-02-10T00:00:00Z' },
      { status: 'completed' },
    );
    seller.delivery = atMost(300, () => ({ media_buy_deliveries: [] }));
    const one = await process({ snapshotMs: 86_400_000 });
    await one.reconciler.start();
    await one.registrations.adopt({ agentUrl: AGENT, mediaBuyId: BUY, reporting: { frequency: 'daily' } });
    await until('2026-03-13T00:00:00Z');
    expect(seller.asked('get_media_buy_delivery').length).toBeLessThan(9 * 15);
  });

  it('a question that failed for a window that came since is not looked after all the time', async () => {
    const { until, process, seller } = begin();
    let fails = false;
    seller.buys = (args) => {
      if (fails) throw new Error('connection refused');
      return buysOf(FLIGHT)(args);
    };
    const { store, steps } = countedStore();
    const one = await process({}, { store });
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await until('2026-03-03T00:00:00Z');
    fails = true;
    await until('2026-03-03T01:06:00Z');
    await one.report(day(2));
    const before = steps();
    await until('2026-03-03T02:00:00Z');
    expect(steps() - before).toBeLessThan(20);
  });
});

describe('a buy that stands still at first', () => {
  it('is asked about until it goes on', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT, { status: 'paused', updated_at: '2026-03-01T11:59:00Z', revision: 1 });
    seller.delivery = daysDelivery;
    const one = await process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await until('2026-03-03T01:00:00Z');
    seller.buys = buysOf(FLIGHT, { updated_at: '2026-03-03T01:00:00Z', revision: 2 });
    await until('2026-03-08T00:00:00Z');
    expect(seller.asked('get_media_buy_delivery').map(({ args }) => args['start_date'])).toEqual([
      '2026-03-03',
      '2026-03-04',
      '2026-03-05',
    ]);
  });
});

describe('answers about another period', () => {
  it('the next day is not this day, in a zone behind UTC', async () => {
    const { until, process, seller } = begin();
    const flight = { start: '2026-03-02T05:00:00Z', end: '2026-03-04T05:00:00Z' };
    seller.buys = buysOf(flight);
    seller.delivery = () =>
      deliveryOf({}, { reporting_period: { start: '2026-03-03T00:00:00Z', end: '2026-03-04T00:00:00Z' } });
    const one = await process({ schedule: () => ({ timeZone: 'America/New_York' }) });
    await one.reconciler.start();
    await buy(one, flight);
    await until('2026-03-03T12:00:00Z');
    expect(reportsOf(one)).toEqual([]);
    await until('2026-03-04T12:00:00Z');
    // What it says it is of.
    expect(reportsOf(one).map(({ report }) => report.reporting_period?.start)).toEqual([
      '2026-03-03T05:00:00.000Z',
    ]);
  });

  it.each([undefined, 'March', { start: '2026-03-02T00:00:00Z' }, { start: '2026-03-02T00:00:00Z', end: 5 }])(
    'one that does not say its period is no report of it: %j',
    async (period) => {
      const { until, process, seller } = begin();
      seller.buys = buysOf(FLIGHT);
      seller.delivery = () => deliveryOf({}, { reporting_period: period });
      const one = await process();
      await one.reconciler.start();
      await buy(one, FLIGHT);
      await until('2026-03-03T12:00:00Z');
      expect(reportsOf(one)).toEqual([]);
    },
  );
});

describe('what a seller says of its buys', () => {
  it('a pulled report over maxBodyBytes is no event: it is asked for as seldom as one that failed, and is told', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    const row = { media_buy_id: BUY, status: 'active', totals: { spend: 1, text: 'x'.repeat(2000) } };
    seller.delivery = (args) => ({ ...(daysDelivery(args) as object), media_buy_deliveries: [row] });
    const one = await process({}, { maxBodyBytes: 1024 });
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await until('2026-03-03T23:00:00Z');
    expect(reportsOf(one)).toEqual([]);
    const missing = (await one.reconciler.account()).streams.flatMap((stream) => stream.missing);
    expect(missing).toMatchObject([
      {
        tries: 5,
        lastError: expect.stringMatching(/the report is over maxBodyBytes \(1024\) as JSON/) as string,
      },
    ]);
    expect(seller.asked('get_media_buy_delivery').length).toBe(5);
    expect(one.alarms.map(({ code }) => code)).toContain('report_missing');
  });

  it('long and many words do not grow the account', async () => {
    const { until, process, seller } = begin();
    let asked = 0;
    seller.buys = () => {
      asked += 1;
      return (
        buysOf(FLIGHT, {
          status: 'x'.repeat(100_000),
          revision: asked,
          packages: Array.from({ length: 1000 }, (_, at) => ({
            package_id: `p${at}`,
            product_id: `${asked}-${at}-${'y'.repeat(5000)}`,
          })),
        }) as () => unknown
      )();
    };
    const { store, rowLength } = countedStore();
    const one = await process({}, { store });
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await until('2026-03-09T12:00:00Z');
    expect(asked).toBeGreaterThan(4);
    expect(await rowLength()).toBeLessThan(100_000);
  });

  it('a flight that began long before anybody registered it is not asked for from its start', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf({ start: '0001-01-01T00:00:00Z', end: '9999-01-01T00:00:00Z' });
    seller.delivery = atMost(1000, () => ({ errors: [] }));
    const one = await process();
    await one.reconciler.start();
    await one.registrations.adopt({ agentUrl: AGENT, mediaBuyId: BUY, reporting: { frequency: 'daily' } });
    await until('2026-03-01T13:00:00Z');
    expect(seller.asked('get_media_buy_delivery').length).toBeLessThan(500);
    expect((await one.reconciler.account()).streams[0]?.missing.length).toBeLessThan(500);
  });

  it('hours that cannot be had are told as one run', async () => {
    const { until, process, seller } = begin();
    const flight = { start: '2025-12-01T00:00:00Z', end: '2026-03-06T00:00:00Z' };
    seller.buys = buysOf(flight);
    const one = await process();
    await one.reconciler.start();
    await one.registrations.adopt({ agentUrl: AGENT, mediaBuyId: BUY, reporting: { frequency: 'hourly' } });
    await until('2026-03-01T12:30:00Z');
    expect(one.alarms.filter(({ code }) => code === 'report_unrecoverable')).toHaveLength(1);
  });

  it('a pause that is said after the fact does not take back what was agreed when it was asked', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT, { updated_at: '2026-03-01T12:00:00Z', revision: 1 });
    const one = await process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    // It is asked about before the second is pulled.
    await until('2026-03-03T12:00:00Z');
    seller.buys = buysOf(FLIGHT, { status: 'paused', updated_at: '1970-01-01T00:00:00Z', revision: 2 });
    await until('2026-03-08T00:00:00Z');
    const { streams } = await one.reconciler.account();
    expect(streams[0]?.missing.map(({ start }) => start.slice(0, 10))).toEqual(['2026-03-02']);
  });
});

describe('reports of media buys that nobody bought', () => {
  const rows = (count: number, id: (n: number) => string, row: object = {}) =>
    Array.from({ length: count }, (_, n) => ({
      media_buy_id: id(n),
      status: 'active',
      totals: { impressions: 1, spend: 1 },
      by_package: [],
      ...row,
    }));

  it('are handled, and make a thousand accounts a seller at most; then there is an alarm', async () => {
    const { process } = begin();
    const { store, rowsOfStreams } = countedStore();
    const one = await process({}, { store });
    const report = (key: string, ids: string) => {
      const media_buy_deliveries = rows(900, (n) => `${ids}-${n}`);
      return one.report(day(1), { key, report: { media_buy_deliveries } });
    };
    expect((await report('first-0123456789abcdef', 'nobodys')).kind).toBe('accepted');
    const caps = () => one.alarms.filter(({ code }) => code === 'cap_near');
    expect(caps()).toEqual([]);
    for (const key of ['second', 'third']) {
      expect((await report(`${key}-0123456789abcdef`, key)).kind).toBe('accepted');
    }
    expect(await rowsOfStreams()).toBe(1000);
    expect(caps()).toMatchObject([{ limit: 'unknown-media-buys', sender: AGENT }]);
  });

  it.each([
    ['of another year', { start: '2031-01-01T00:00:00Z', end: '2031-01-02T00:00:00Z' }, {}],
    ['without data', day(1), { status: 'reporting_delayed' }],
  ])('make no account where they are %s', async (_name, period, row) => {
    const { process } = begin();
    const { store, rowsOfStreams } = countedStore();
    const one = await process({}, { store });
    const media_buy_deliveries = rows(50, (n) => `nobodys-${n}`, row);
    expect((await one.report(period, { report: { media_buy_deliveries } })).kind).toBe('accepted');
    expect(await rowsOfStreams()).toBe(0);
  });

  it('nor where their ids are long', async () => {
    const { process } = begin();
    const { store, rowsOfStreams } = countedStore();
    const one = await process({}, { store });
    const media_buy_deliveries = rows(3, (n) => `${n}`.repeat(50_000));
    expect((await one.report(day(1), { report: { media_buy_deliveries } })).kind).toBe('accepted');
    expect(await rowsOfStreams()).toBe(0);
  });
});

it.each([
  ['active', 'reporting_delayed'],
  ['reporting_delayed', 'active'],
])(
  'a media buy that is twice in a report has its window by the row that has data: %s, %s',
  async (...statuses) => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    const one = await process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await until('2026-03-03T00:30:00Z');
    const media_buy_deliveries = statuses.map((status) => ({
      media_buy_id: BUY,
      status,
      totals: { impressions: 1, spend: 1 },
      by_package: [],
    }));
    await one.report(day(2), { report: { media_buy_deliveries } });
    expect(await one.reconciler.account()).toMatchObject({ streams: [{ windows: { byWebhook: 1 } }] });
  },
);
