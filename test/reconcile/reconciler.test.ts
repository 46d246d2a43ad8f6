import assert from 'node:assert/strict';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { DeliveryReportEvent, Event } from '../../src/events/index.ts';
import { PermanentError } from '../../src/index.ts';
import { withFacts } from '../../src/reconcile/for-tests.ts';
import type { BuyStream } from '../../src/registrations/for-tests.ts';
import { AGENT } from '../receiver/setup.ts';
import {
  BUY,
  buy,
  buysOf,
  day,
  daysDelivery,
  type Process,
  streamOf,
  world,
  type World,
  mediaBuyFacts,
} from './kit.ts';
import { gate } from '../support/gate.ts';

let here: World | undefined;
afterEach(() => here?.end());

const FLIGHT = { start: '2026-03-02T00:00:00Z', end: '2026-03-06T00:00:00Z' };

const begin = (): World => (here = world('2026-03-01T12:00:00Z'));

const reportsOf = ({ seen }: Process): readonly DeliveryReportEvent[] =>
  seen.map(({ event }) => event).filter((event: Event) => event.kind === 'delivery-report');

describe('the account of a media buy', () => {
  it('is complete where every report comes, and asks for no delivery', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    const one = await process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    for (const n of [2, 3, 4, 5]) {
      await until(`2026-03-0${n + 1}T00:30:00Z`);
      await one.report(day(n));
    }
    await until('2026-03-10T00:00:00Z');
    const account = await one.reconciler.account();
    expect(account).toMatchObject({
      complete: true,
      streams: [
        {
          agentUrl: AGENT,
          mediaBuyId: BUY,
          frequency: 'daily',
          zone: { value: 'UTC', source: 'default' },
          windows: { due: 4, byWebhook: 4, byPull: 0, repeated: 0 },
          missing: [],
          held: [],
          closed: false,
        },
      ],
    });
    expect(seller.asked('get_media_buy_delivery')).toEqual([]);
    expect(reportsOf(one).map(({ windows }) => windows?.[0])).toEqual(
      [2, 3, 4, 5].map((n) => ({
        mediaBuyId: BUY,
        start: `2026-03-0${n}T00:00:00.000Z`,
        end: `2026-03-0${n + 1}T00:00:00.000Z`,
        repeated: false,
      })),
    );
  });

  it('a report that is lost is pulled once it is due, into the same handler; the webhook that comes later is repeated', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    seller.delivery = daysDelivery;
    const one = await process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    for (const n of [2, 4, 5]) {
      await until(`2026-03-0${n + 1}T00:30:00Z`);
      await one.report(day(n));
    }
    await until('2026-03-10T00:00:00Z');
    const pulled = reportsOf(one).filter(({ source }) => source === 'pull');
    expect(pulled).toHaveLength(1);
    expect(pulled[0]).toMatchObject({
      report: {
        notification_type: 'scheduled',
        reporting_period: { start: '2026-03-03T00:00:00.000Z', end: '2026-03-04T00:00:00.000Z' },
        media_buy_deliveries: [{ media_buy_id: BUY, totals: { impressions: 2, spend: 2 } }],
      },
      windows: [{ mediaBuyId: BUY, repeated: false }],
    });
    const [question] = seller.asked('get_media_buy_delivery');
    expect(question?.args).toEqual({
      media_buy_ids: [BUY],
      start_date: '2026-03-03',
      end_date: '2026-03-04',
    });
    // Its end, an hour, and five minutes; within a look.
    expect(question?.at).toBeGreaterThanOrEqual(Date.parse('2026-03-04T01:05:00Z'));
    expect(question?.at).toBeLessThanOrEqual(Date.parse('2026-03-04T01:15:00Z'));
    await one.report(day(3));
    expect(reportsOf(one).at(-1)).toMatchObject({ source: 'webhook', windows: [{ repeated: true }] });
    expect(await one.reconciler.account()).toMatchObject({
      complete: true,
      streams: [{ windows: { due: 4, byWebhook: 3, byPull: 1, repeated: 1 }, missing: [] }],
    });
  });

  it('hours that only days can be had of are named, once, and not asked for', async () => {
    const { until, process, seller } = begin();
    const flight = { start: '2026-03-02T00:00:00Z', end: '2026-03-02T04:00:00Z' };
    seller.buys = buysOf(flight);
    const one = await process();
    await one.reconciler.start();
    await buy(one, flight, 'hourly');
    await until('2026-03-02T01:10:00Z');
    await one.report({ start: '2026-03-02T00:00:00Z', end: '2026-03-02T00:59:59Z' });
    await until('2026-03-05T00:00:00Z');
    const { complete, streams } = await one.reconciler.account();
    expect(complete).toBe(false);
    expect(streams[0]?.missing.map(({ start, recoverable }) => [start.slice(11, 16), recoverable])).toEqual([
      ['01:00', false],
      ['02:00', false],
      ['03:00', false],
    ]);
    expect(seller.asked('get_media_buy_delivery')).toEqual([]);
    const told = one.alarms.filter(({ code }) => code === 'report_unrecoverable');
    expect(told.length).toBeGreaterThanOrEqual(1);
    expect(told.length).toBeLessThanOrEqual(3);
  });

  it('a handler that fails keeps the window its own: a worker runs the event again, and nothing is pulled', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    seller.delivery = daysDelivery;
    let fails = 2;
    const one = await process(
      {},
      {
        mode: 'inline',
        handler: ({ kind }) => {
          if (kind === 'delivery-report') fails -= 1;
          if (kind === 'delivery-report' && fails >= 0) throw new Error('the database is away');
        },
      },
    );
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await until('2026-03-03T00:30:00Z');
    expect((await one.report(day(2))).kind).not.toBe('accepted');
    expect(await one.reconciler.account()).toMatchObject({ streams: [{ windows: { byWebhook: 0 } }] });
    await until('2026-03-03T02:00:00Z');
    // It is safe by now: a worker looks for what is due by a clock of its own.
    await vi.waitFor(
      async () =>
        expect(await one.reconciler.account()).toMatchObject({
          complete: true,
          streams: [{ windows: { due: 1, byWebhook: 1, byPull: 0 }, missing: [], held: [] }],
        }),
      { timeout: 30_000 },
    );
    expect(seller.asked('get_media_buy_delivery')).toEqual([]);
    expect(reportsOf(one).length).toBe(3);
  });

  it('a DEAD event holds its window; once it is discarded, the window is pulled', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    seller.delivery = daysDelivery;
    let isBroken = true;
    const one = await process(
      {},
      {
        handler: ({ kind }) => {
          if (isBroken && kind === 'delivery-report') throw new PermanentError('never');
        },
      },
    );
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await until('2026-03-03T00:30:00Z');
    await one.report(day(2), { key: 'report-of-the-second' });
    await until('2026-03-03T12:00:00Z');
    expect(await one.reconciler.account()).toMatchObject({
      complete: false,
      streams: [{ missing: [], held: [{ start: '2026-03-02T00:00:00.000Z', key: 'report-of-the-second' }] }],
    });
    expect(seller.asked('get_media_buy_delivery')).toEqual([]);
    isBroken = false;
    await one.receiver.inbox.discard(AGENT, 'report-of-the-second');
    await until('2026-03-04T00:00:00Z');
    expect(await one.reconciler.account()).toMatchObject({
      complete: true,
      streams: [{ windows: { due: 1, byWebhook: 0, byPull: 1 }, missing: [], held: [] }],
    });
  });

  it('a buy that was paused meanwhile owes nothing for that time: it is asked before it is pulled', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT, { updated_at: '2026-03-01T12:00:00Z', revision: 1 });
    seller.delivery = daysDelivery;
    const one = await process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await until('2026-03-03T00:30:00Z');
    await one.report(day(2));
    seller.buys = buysOf(FLIGHT, { status: 'paused', updated_at: '2026-03-03T09:00:00Z', revision: 2 });
    await until('2026-03-04T12:00:00Z');
    expect(await one.reconciler.account()).toMatchObject({
      complete: true,
      streams: [{ windows: { due: 1 } }],
    });
    expect(seller.asked('get_media_buy_delivery')).toEqual([]);
    // It goes on, by somebody else's hand: a buy that is paused is asked about once a day, and owes what ends from then on.
    seller.buys = buysOf(FLIGHT, { updated_at: '2026-03-04T13:00:00Z', revision: 3 });
    await until('2026-03-08T00:00:00Z');
    expect(seller.asked('get_media_buy_delivery').map(({ args }) => args['start_date'])).toEqual([
      '2026-03-04',
      '2026-03-05',
    ]);
    expect(await one.reconciler.account()).toMatchObject({
      complete: true,
      streams: [{ windows: { due: 3, byWebhook: 1, byPull: 2 } }],
    });
  });

  it('an answer that is older than the last one takes no window away', async () => {
    const { until, process, seller } = begin();
    const said = (revision: number, status: string, updated: string) =>
      buysOf(FLIGHT, { revision, status, updated_at: updated });
    seller.buys = said(1, 'active', '2026-03-01T12:00:00Z');
    seller.delivery = daysDelivery;
    const one = await process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await until('2026-03-03T22:00:00Z');
    const paused = said(2, 'paused', '2026-03-03T22:00:00Z');
    seller.buys = paused;
    await until('2026-03-03T23:00:00Z');
    const goesOn = said(3, 'active', '2026-03-03T23:00:00Z');
    seller.buys = goesOn;
    await until('2026-03-04T00:00:00Z');
    // A machine of the seller's is behind, and answers when a window has ended.
    seller.buys = paused;
    await until('2026-03-04T00:20:00Z');
    seller.buys = goesOn;
    await until('2026-03-10T00:00:00Z');
    expect(await one.reconciler.account()).toMatchObject({
      complete: true,
      streams: [{ windows: { due: 4, byPull: 4 }, missing: [] }],
    });
  });

  it('an answer that stays older than the last one is believed within a day', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT, { revision: 7, updated_at: '2026-03-01T12:00:00Z' });
    seller.delivery = daysDelivery;
    const one = await process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await until('2026-03-03T12:00:00Z');
    // The seller counts anew.
    seller.buys = buysOf(FLIGHT, { revision: 1, status: 'canceled' });
    await until('2026-03-10T00:00:00Z');
    expect(await one.reconciler.account()).toMatchObject({
      complete: true,
      streams: [{ windows: { due: 1, byPull: 1 }, missing: [] }],
    });
    const questions = seller
      .asked('get_media_buys')
      .filter(({ args, at }) => !args['pagination'] && at > Date.parse('2026-03-03T12:00:00Z'));
    expect(questions.length).toBeLessThanOrEqual(12);
  });

  it('a seller that cannot be reached is asked again, less and less often; after a week the window is unrecoverable', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    seller.delivery = () => {
      throw new Error('connection refused');
    };
    const one = await process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    for (const n of [3, 4, 5]) {
      await until(`2026-03-0${n + 1}T00:30:00Z`);
      await one.report(day(n));
    }
    const { streams } = await one.reconciler.account();
    expect(streams[0]?.missing).toMatchObject([
      { start: '2026-03-02T00:00:00.000Z', lastError: 'connection refused', recoverable: true },
    ]);
    await until('2026-03-14T00:00:00Z');
    const codes = one.alarms.map(({ code }) => code).filter((code) => code.startsWith('report_'));
    expect(codes).toEqual(['report_missing', 'report_unrecoverable']);
    expect(seller.asked('get_media_buy_delivery').length).toBeLessThan(15);
    expect(await one.reconciler.account()).toMatchObject({
      complete: false,
      streams: [{ missing: [{ start: '2026-03-02T00:00:00.000Z', recoverable: false }] }],
    });
    // It counts if it comes all the same.
    await one.report(day(2));
    expect(await one.reconciler.account()).toMatchObject({ complete: true });
  });

  it('a running media buy that is adopted: what it owes is asked for', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    seller.delivery = daysDelivery;
    const one = await process();
    await one.reconciler.start();
    await until('2026-03-03T00:30:00Z');
    await one.report(day(2));
    await one.registrations.adopt({ agentUrl: AGENT, mediaBuyId: BUY, reporting: { frequency: 'daily' } });
    await until('2026-03-05T12:00:00Z');
    expect(await one.reconciler.account()).toMatchObject({
      complete: true,
      streams: [{ windows: { due: 3, byWebhook: 1, byPull: 2 } }],
    });
  });

  it('is not complete before it is known what the buy owes; what the owner knows of it is enough', async () => {
    const { until, process, seller } = begin();
    const adoption = { agentUrl: AGENT, mediaBuyId: BUY, reporting: { frequency: 'daily' } } as const;
    const one = await process();
    await one.registrations.adopt(adoption);
    expect(await one.reconciler.account()).toMatchObject({
      complete: false,
      streams: [{ unverifiable: expect.stringContaining('has not said') as string }],
    });
    // Its seller does not know it.
    await one.reconciler.start();
    await until('2026-03-03T00:00:00Z');
    const unverifiable = 'the answer does not have the media buy';
    expect(await one.reconciler.account()).toMatchObject({ complete: false, streams: [{ unverifiable }] });
    expect(one.alarms.filter(({ code }) => code === 'stream_unverifiable')).toEqual([
      expect.objectContaining({
        sender: AGENT,
        mediaBuyId: BUY,
        message: `Which reports media buy buy-1 owes is not known: get_media_buys fails (${unverifiable}). Give start, end and frequency by the option schedule, or ask the seller.`,
      }),
    ]);
    await one.reconciler.stop();
    seller.delivery = daysDelivery;
    const two = await process({ schedule: () => FLIGHT });
    await two.reconciler.start();
    await until('2026-03-05T00:00:00Z');
    const { complete, streams } = await two.reconciler.account();
    expect(streams).toMatchObject([{ windows: { due: 2, byPull: 2 }, missing: [] }]);
    expect([complete, streams[0]?.unverifiable]).toEqual([true, undefined]);
  });

  it('begins with an update that asks for reports, where the order did not', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    const one = await process();
    await one.reconciler.start();
    const updated = async (more: object): Promise<void> => {
      const made = await one.registrations.create({
        agentUrl: AGENT,
        taskType: 'update_media_buy',
        arguments: { media_buy_id: BUY, ...more },
      });
      await made.settle({ media_buy_id: BUY, status: 'completed', packages: [] });
    };
    await updated({ paused: false });
    expect((await one.reconciler.account()).streams).toEqual([]);
    const url = 'https://buyer.example/webhooks/r';
    await updated({ reporting_webhook: { url, reporting_frequency: 'daily' } });
    await until('2026-03-03T00:30:00Z');
    await one.report(day(2));
    await until('2026-03-03T12:00:00Z');
    expect(await one.reconciler.account()).toMatchObject({
      complete: true,
      streams: [{ frequency: 'daily', windows: { due: 1, byWebhook: 1 } }],
    });
  });

  it('asks once more where an update is acknowledged while it asks: the answer may be older', async () => {
    const { until, process, seller } = begin();
    const one = await process();
    const { start: start_time, end: end_time } = FLIGHT;
    const url = 'https://buyer.example/webhooks/r';
    // Of an edition without snapshots: nothing else asks about media buys.
    const edition = '3.0';
    const made = await one.registrations.create({
      agentUrl: AGENT,
      edition,
      taskType: 'create_media_buy',
      arguments: {
        start_time,
        end_time,
        packages: [],
        reporting_webhook: { url, reporting_frequency: 'hourly' },
      },
    });
    await made.settle({ media_buy_id: BUY, status: 'completed', packages: [] });
    const answering = gate();
    seller.buys = async () => {
      await answering.opened;
      return buysOf(FLIGHT, { status: 'paused' })({});
    };
    await one.reconciler.start();
    await until('2026-03-01T12:00:05Z');
    const resumed = await one.registrations.create({
      agentUrl: AGENT,
      edition,
      taskType: 'update_media_buy',
      arguments: { media_buy_id: BUY, paused: false },
    });
    await resumed.settle({ media_buy_id: BUY, status: 'completed', packages: [] });
    await until('2026-03-01T12:00:06Z');
    seller.buys = buysOf(FLIGHT);
    answering.open();
    await until('2026-03-10T00:00:00Z');
    const { streams } = await one.reconciler.account();
    expect(streams).toMatchObject([{ windows: { due: 96 } }]);
  });

  it('a correction whose handler fails is run by a worker, also after the media buy is closed', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT, { status: 'completed' });
    let fails = 0;
    const handler = ({ kind }: Event): void => {
      if (kind === 'delivery-report' && fails > 0) {
        fails -= 1;
        throw new Error('the database is unreachable');
      }
    };
    const one = await process({}, { mode: 'inline', handler });
    await one.reconciler.start();
    await buy(one, FLIGHT);
    for (const n of [2, 3, 4, 5]) {
      await until(`2026-03-0${n + 1}T00:30:00Z`);
      await one.report(day(n));
    }
    await until('2026-03-10T00:00:00Z');
    expect((await one.reconciler.account()).streams).toMatchObject([{ closed: true }]);
    fails = 1;
    expect((await one.report(day(3), { type: 'adjusted' })).kind).not.toBe('accepted');
    await until('2026-03-10T01:00:00Z');
    await vi.waitFor(() => expect(reportsOf(one)).toHaveLength(6), { timeout: 30_000 });
    expect(reportsOf(one).at(-1)).toMatchObject({ report: { notification_type: 'adjusted' } });
  });

  it('a report that its seller puts off for ever is missing an interval and seven days after it was due', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    const one = await process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await until('2026-03-03T00:30:00Z');
    await one.report(day(2), { report: { next_expected_at: '2027-01-01T00:00:00Z' } });
    // The third of March is due an hour and five minutes after its end.
    await until('2026-03-12T01:00:00Z');
    expect(await one.reconciler.account()).toMatchObject({
      complete: true,
      streams: [{ windows: { due: 1 } }],
    });
    await until('2026-03-12T01:20:00Z');
    expect(await one.reconciler.account()).toMatchObject({
      complete: false,
      streams: [{ windows: { due: 2 }, missing: [{ start: '2026-03-03T00:00:00.000Z', tries: 1 }] }],
    });
  });

  it('days that are of UTC, and not of the zone of schedule, set the clock: one alarm, and nothing is missing', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    const one = await process({ schedule: () => ({ timeZone: 'America/New_York' }) });
    await one.reconciler.start();
    await buy(one, FLIGHT);
    for (const n of [3, 4, 5]) {
      await until(`2026-03-0${n + 1}T00:30:00Z`);
      if (n === 3) await one.report(day(2));
      await one.report(day(n));
    }
    await until('2026-03-12T00:00:00Z');
    expect(await one.reconciler.account()).toMatchObject({
      complete: true,
      streams: [
        { zone: { value: 'UTC', source: 'reports' }, windows: { due: 4, byWebhook: 4 }, unaligned: [] },
      ],
    });
    const alarms = one.alarms.filter(({ code }) => code === 'misconfigured');
    expect(alarms).toHaveLength(1);
    expect(alarms[0]).toMatchObject({
      mediaBuyId: BUY,
      message: expect.stringContaining('America/New_York') as string,
    });
  });

  it('health names the media buy, if no process reconciles it for an hour', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    const one = await process();
    await buy(one, FLIGHT);
    await until('2026-03-01T12:30:00Z');
    expect(await one.receiver.health()).not.toHaveProperty('unreconciled');
    await until('2026-03-01T13:30:00Z');
    expect((await one.receiver.health()).unreconciled).toEqual([
      { agentUrl: AGENT, mediaBuyId: BUY, dueAt: Date.parse('2026-03-01T12:00:00Z') },
    ]);
    await one.reconciler.start();
    await until('2026-03-01T14:00:00Z');
    expect(await one.receiver.health()).not.toHaveProperty('unreconciled');
  });

  it('of two processes one pulls', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    seller.delivery = daysDelivery;
    const [one, two] = [await process(), await process()];
    await one.reconciler.start();
    await two.reconciler.start();
    await buy(one, FLIGHT);
    await until('2026-03-10T00:00:00Z');
    expect(seller.asked('get_media_buy_delivery')).toHaveLength(4);
    expect(await two.reconciler.account()).toMatchObject({
      complete: true,
      streams: [{ windows: { due: 4, byPull: 4 } }],
    });
    expect(reportsOf(one).length + reportsOf(two).length).toBe(4);
  });
});

describe('a media buy without reports', () => {
  const updated = async (one: Process, more: object): Promise<void> => {
    const made = await one.registrations.create({
      agentUrl: AGENT,
      taskType: 'update_media_buy',
      arguments: { media_buy_id: BUY, ...more },
    });
    await made.settle({ media_buy_id: BUY, status: 'completed', packages: [] });
  };
  const DAILY = {
    reporting_webhook: { url: 'https://buyer.example/webhooks/r', reporting_frequency: 'daily' },
  };
  const EMPTY = { frequency: null, windows: { due: 0 }, missing: [], held: [] };

  it('is in the account, owes nothing, and is neither asked about nor named by health', async () => {
    const { until, process, seller } = begin();
    const one = await process();
    // Of an edition without snapshots: nothing else asks about media buys.
    const { start: start_time, end: end_time } = FLIGHT;
    const made = await one.registrations.create({
      agentUrl: AGENT,
      edition: '3.0',
      taskType: 'create_media_buy',
      arguments: { start_time, end_time, packages: [] },
    });
    await made.settle({ media_buy_id: BUY, status: 'completed', packages: [] });
    expect(await one.reconciler.account()).toMatchObject({ complete: true, streams: [EMPTY] });
    await until('2026-03-04T13:30:00Z');
    expect(await one.receiver.health()).not.toHaveProperty('unreconciled');
    await one.reconciler.start();
    await updated(one, { paused: true });
    await until('2026-05-01T00:00:00Z');
    expect(seller.questions).toEqual([]);
    const { complete, streams } = await one.reconciler.account();
    expect([complete, streams[0]?.unverifiable, one.alarms]).toEqual([true, undefined, []]);
  });

  it('that is adopted, or that an adopted task names, has an account too', async () => {
    const { process } = begin();
    const one = await process();
    await one.registrations.adopt({ agentUrl: AGENT, mediaBuyId: BUY });
    const operation = await one.registrations.adopt({
      agentUrl: AGENT,
      taskId: 't-1',
      taskType: 'create_media_buy',
    });
    assert.ok(operation);
    expect(await one.reconciler.account()).toMatchObject({ complete: true, streams: [EMPTY] });
    const data = { media_buy_id: 'buy-2', packages: [] };
    await one.receiver.observe({
      sender: AGENT,
      taskId: 't-1',
      taskType: 'create_media_buy',
      status: 'completed',
      data,
      askedAt: Date.now(),
      source: 'poll',
      observation: 'change 1',
    });
    await expect.poll(async () => (await one.reconciler.account()).streams.length).toBe(2);
    const { streams } = await one.reconciler.account();
    expect(streams.map(({ mediaBuyId, frequency }) => [mediaBuyId, frequency])).toEqual([
      [BUY, null],
      ['buy-2', null],
    ]);
  });

  it('owes reports from the update on that asks for them, whatever its seller says of its age', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT, { updated_at: '2026-03-01T11:00:00Z' });
    const one = await process();
    await one.reconciler.start();
    await buy(one, FLIGHT, null);
    await until('2026-03-04T12:00:00Z');
    await updated(one, DAILY);
    await one.report(day(4));
    await until('2026-03-05T12:00:00Z');
    expect(await one.reconciler.account()).toMatchObject({
      complete: true,
      streams: [{ frequency: 'daily', windows: { due: 1, byWebhook: 1 } }],
    });
  });

  it('owes them all along where it is adopted with reports; those that came before count', async () => {
    const { until, process, seller } = begin();
    seller.buys = buysOf(FLIGHT);
    const one = await process();
    await one.reconciler.start();
    await buy(one, FLIGHT, null);
    await until('2026-03-04T00:30:00Z');
    await one.report(day(2));
    await one.report(day(3));
    await one.registrations.adopt({ agentUrl: AGENT, mediaBuyId: BUY, reporting: { frequency: 'daily' } });
    await until('2026-03-04T12:00:00Z');
    expect(await one.reconciler.account()).toMatchObject({
      complete: true,
      streams: [{ frequency: 'daily', windows: { due: 2, byWebhook: 2 }, unaligned: [] }],
    });
  });
});

it('a media buy has changed if its revision differs, or its updated_at', () => {
  const said = (status: string, more: object): BuyStream['terms'] => {
    const facts = mediaBuyFacts(buysOf(FLIGHT, { status, ...more })({}), BUY);
    return facts ? withFacts(known, facts, Date.parse('2026-03-04T12:00:00Z')).terms : [];
  };
  const at = '2026-03-01T12:00:00Z';
  const first = mediaBuyFacts(buysOf(FLIGHT, { revision: 1, updated_at: at })({}), BUY);
  assert(first);
  const known = withFacts(streamOf({ since: Date.parse(at) }), first, Date.parse(at));
  expect(said('active', { revision: 1, updated_at: at })).toEqual(known.terms);
  const later = '2026-03-04T09:00:00Z';
  for (const more of [
    { revision: 2, updated_at: later },
    { revision: 1, updated_at: later },
    { updated_at: later },
  ]) {
    expect(said('paused', more)).toEqual([
      ...known.terms,
      { from: Date.parse(later), frequency: 'daily', spans: [] },
    ]);
  }
});
