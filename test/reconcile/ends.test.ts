import { afterEach, describe, expect, it } from 'vitest';
import type { DeliveryReportEvent, Event } from '../../src/events/index.ts';
import { PermanentError } from '../../src/index.ts';
import type { Account, StreamAccount } from '../../src/reconcile/index.ts';
import type { JsonObject } from '../../src/registrations/index.ts';
import { AGENT, payloads } from '../receiver/setup.ts';
import { BUY, buy, buysOf, day, daysDelivery, type Process, world, type World } from './kit.ts';

let here: World | undefined;
afterEach(() => here?.end());

const FLIGHT = { start: '2026-03-02T00:00:00Z', end: '2026-03-06T00:00:00Z' };

/** Snapshots are rare: here it is the question about one media buy that says what became of it. */
function begin(): World {
  const at = world('2026-03-01T12:00:00Z');
  here = at;
  const process: World['process'] = (options, receiving) =>
    at.process({ snapshotMs: 86_400_000, ...options }, receiving);
  return { ...at, process };
}

const streamOf = async ({ reconciler }: Process): Promise<StreamAccount | undefined> =>
  (await reconciler.account({ agentUrl: AGENT, mediaBuyId: BUY })).streams[0];

const closedOf = async (one: Process) => {
  const { closed, closedAt, final } = (await streamOf(one)) ?? {};
  return { closed, ...(closedAt !== undefined && { closedAt }), ...(final && { final }) };
};

const alarmsOf = ({ alarms }: Process, code: string) => alarms.filter((one) => one.code === code);

const reportsOf = ({ seen }: Process): readonly DeliveryReportEvent[] =>
  seen.map(({ event }) => event).filter((event: Event) => event.kind === 'delivery-report');

const completed = { status: 'completed', updated_at: FLIGHT.end };

/** A media buy of four days whose reports come, the last of them as it is said. */
async function flown(at: World, options: Parameters<World['process']>[0] = {}): Promise<Process> {
  at.seller.buys = buysOf(FLIGHT);
  const one = await at.process(options);
  await one.reconciler.start();
  await buy(one, FLIGHT);
  for (const n of [2, 3, 4]) {
    await at.until(`2026-03-0${n + 1}T00:10:00Z`);
    await one.report(day(n));
  }
  await at.until('2026-03-06T00:10:00Z');
  return one;
}

/** The end is said by a call of ours. */
async function updated({ registrations }: Process, answer: JsonObject): Promise<void> {
  const made = await registrations.create({
    agentUrl: AGENT,
    taskType: 'update_media_buy',
    arguments: { media_buy_id: BUY, canceled: true },
  });
  await made.settle(answer);
}

describe('a stream is closed', () => {
  it('once get_media_buys says that the media buy is completed, its windows are had, and final has come', async () => {
    const at = begin();
    const one = await flown(at);
    at.seller.buys = buysOf(FLIGHT, completed);
    await one.report(day(5), { row: { status: 'completed' } });
    // The word of a report makes it asked about at once; final is not known yet.
    await at.until('2026-03-06T00:25:00Z');
    expect(at.seller.asked('get_media_buys').at(-1)?.at).toBeGreaterThan(Date.parse('2026-03-06T00:10:00Z'));
    expect(await closedOf(one)).toEqual({ closed: false });
    await one.report(FLIGHT, { type: 'final', row: { status: 'completed' } });
    // The last window is due an hour and five minutes after its end.
    await at.until('2026-03-06T01:30:00Z');
    const { closedAt = '' } = (await streamOf(one)) ?? {};
    expect(await closedOf(one)).toEqual({ closed: true, closedAt, final: 'received' });
    expect(Date.parse(closedAt)).toBeGreaterThanOrEqual(Date.parse('2026-03-06T01:05:00Z'));
    expect(alarmsOf(one, 'final_absent')).toEqual([]);
    expect(at.seller.asked('get_media_buy_delivery')).toEqual([]);
  });

  it('and its account says the same for as long as it is kept; then it is gone', async () => {
    const at = begin();
    const one = await flown(at, { keepMs: 100 * 86_400_000 });
    at.seller.buys = buysOf(FLIGHT, completed);
    at.seller.delivery = () => ({ error: { code: 'DATE_RANGE_NOT_SUPPORTED', message: 'no' } });
    await one.report({ start: '2026-03-05T01:00:00Z', end: '2026-03-05T02:00:00Z' });
    await at.until('2026-03-10T00:00:00Z');
    await one.reconciler.stop();
    const account = await one.reconciler.account();
    expect(account).toMatchObject({
      complete: false,
      streams: [
        {
          windows: { due: 4, byWebhook: 3 },
          missing: [{ start: '2026-03-05T00:00:00.000Z', recoverable: false }],
          unaligned: [],
          final: 'absent',
          closed: true,
        },
      ],
    });
    const { streams: says } = account;
    await at.until('2026-06-13T00:00:00Z');
    expect((await one.reconciler.account()).streams).toEqual(says);
    await at.until('2026-06-15T00:00:00Z');
    expect((await one.reconciler.account()).streams).toEqual([]);
  });

  it('30 days after the end of its flight where nobody says that it has ended; final is absent then, and told once', async () => {
    const at = begin();
    const one = await flown(at);
    await one.report(day(5));
    await at.until('2026-04-04T23:00:00Z');
    expect(await closedOf(one)).toEqual({ closed: false });
    expect(alarmsOf(one, 'final_absent')).toEqual([]);
    await at.until('2026-04-06T01:00:00Z');
    expect(await closedOf(one)).toMatchObject({ closed: true, final: 'absent' });
    expect(alarmsOf(one, 'final_absent')).toMatchObject([{ sender: AGENT, mediaBuyId: BUY }]);
    // It has not left the URL that its seller was told (told.md §3.4).
    expect((await one.registrations.state()).urls).toMatchObject([{ mediaBuys: [BUY] }]);
    // It comes after all.
    await one.report(FLIGHT, { type: 'final' });
    await at.until('2026-04-06T02:00:00Z');
    expect(await closedOf(one)).toMatchObject({ closed: true, final: 'received' });
    expect(alarmsOf(one, 'final_absent')).toHaveLength(1);
  });

  it('not while a window is missing, or the event of one is DEAD; once with two processes', async () => {
    const at = begin();
    at.seller.buys = buysOf(FLIGHT);
    let isBroken = true;
    const options = { perSeller: 1 };
    const receiving = {
      mode: 'inbox' as const,
      handler: ({ kind }: Event) => {
        if (kind === 'delivery-report' && isBroken) throw new PermanentError('the table is gone');
      },
    };
    const one = await at.process(options, receiving);
    const two = await at.process(options, receiving);
    await Promise.all([one.reconciler.start(), two.reconciler.start()]);
    await buy(one, FLIGHT);
    await at.until('2026-03-05T00:10:00Z');
    await one.report(day(2));
    await at.clock.settled();
    isBroken = false;
    await one.report(day(3));
    at.seller.delivery = () => {
      throw new Error('connection refused');
    };
    at.seller.buys = buysOf(FLIGHT, { status: 'completed', updated_at: day(4).end });
    await one.report(FLIGHT, { type: 'final', row: { status: 'completed' } });
    await at.until('2026-03-07T00:00:00Z');
    expect(await streamOf(one)).toMatchObject({ closed: false, held: [{}], missing: [{}] });
    at.seller.delivery = daysDelivery;
    await at.until('2026-03-09T00:00:00Z');
    expect(await streamOf(one)).toMatchObject({ closed: false, held: [{}], missing: [] });
    const [dead] = (await one.receiver.inbox.list({ state: 'dead', limit: 1 })).records;
    await one.receiver.inbox.redrive(AGENT, dead?.key ?? '');
    await at.until('2026-03-10T00:00:00Z');
    expect(await streamOf(one)).toMatchObject({
      closed: true,
      windows: { due: 3, byWebhook: 2, byPull: 1 },
      final: 'received',
    });
    expect([...one.alarms, ...two.alarms].filter(({ code }) => code === 'final_absent')).toEqual([]);
  });

  it.each<[string, JsonObject | undefined]>([
    ['answers', {}],
    ['does not answer any more', undefined],
    ['answers from before its webhook was due', { status_as_of: '2026-03-05T23:05:00Z' }],
  ])('not before an impairment that was open is told as ended: its seller %s', async (_what, more) => {
    const at = begin();
    at.seller.buys = buysOf(FLIGHT);
    const one = await flown(at, { snapshotMs: 3_600_000 });
    const observed_at = '2026-03-05T23:00:00Z';
    await one.deliver({ ...payloads.family('impairment'), observed_at, media_buy_id: BUY });
    await one.report(day(5));
    await one.report(FLIGHT, { type: 'final', row: { status: 'completed' } });
    at.seller.buys = (args) => {
      if (!more) throw new Error('busy');
      return buysOf(FLIGHT, { ...completed, ...more })(args);
    };
    const isEnded = (): readonly boolean[] =>
      one.seen.flatMap(({ event }) => (event.kind === 'other' ? [event.state?.ended === true] : []));
    await at.until('2026-03-06T00:12:00Z');
    expect(isEnded()).toEqual([false]);
    expect(await streamOf(one)).toMatchObject({ closed: false, final: 'received', impairments: [{}] });
    await at.until('2026-03-06T12:00:00Z');
    expect(isEnded()).toEqual([false, true]);
    expect(await closedOf(one)).toMatchObject({ closed: true, final: 'received' });
  });

  it('also where it was bought without reports: it has no final', async () => {
    const at = begin();
    at.seller.buys = buysOf(FLIGHT);
    const one = await at.process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await at.until('2026-03-03T00:10:00Z');
    await one.report(day(2));
    const made = await one.registrations.create({
      agentUrl: AGENT,
      taskType: 'update_media_buy',
      arguments: { media_buy_id: BUY, reporting_webhook: null },
    });
    await made.settle({ media_buy_id: BUY, media_buy_status: 'active', status: 'completed' });
    await at.until('2026-03-05T00:00:00Z');
    at.seller.buys = buysOf(FLIGHT, completed);
    await at.until('2026-03-08T00:00:00Z');
    expect(await closedOf(one)).toMatchObject({ closed: true });
    expect(await streamOf(one)).not.toHaveProperty('final');
    expect(alarmsOf(one, 'final_absent')).toEqual([]);
  });
});

describe('the end that is said where get_media_buys fails (owed.md §7.1)', () => {
  const fails = (): never => {
    throw new Error('connection refused');
  };

  it('by a final report counts from the end of its period, after three questions', async () => {
    const at = begin();
    at.seller.buys = buysOf(FLIGHT);
    const one = await at.process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await at.until('2026-03-03T00:10:00Z');
    await one.report(day(2));
    await at.until('2026-03-04T00:10:00Z');
    await one.report(day(3));
    at.seller.buys = fails;
    const before = at.seller.asked('get_media_buys').length;
    await one.report(
      { start: FLIGHT.start, end: day(3).end },
      { type: 'final', row: { status: 'canceled' } },
    );
    await at.until('2026-03-04T00:11:30Z');
    expect(at.seller.asked('get_media_buys').length - before).toBeLessThan(3);
    await at.until('2026-03-08T00:00:00Z');
    expect(await streamOf(one)).toMatchObject({
      windows: { due: 2, byWebhook: 2 },
      missing: [],
      closed: true,
      final: 'received',
    });
    expect(at.seller.asked('get_media_buy_delivery')).toEqual([]);
  });

  it('not before the end of a window that is had, and no more once the seller answers anything else', async () => {
    const at = begin();
    at.seller.buys = buysOf(FLIGHT, { revision: 1 });
    at.seller.delivery = daysDelivery;
    const one = await at.process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await at.until('2026-03-04T00:10:00Z');
    await one.report(day(3));
    at.seller.buys = fails;
    await one.report(day(2), { row: { status: 'canceled' } });
    await at.until('2026-03-04T12:00:00Z');
    expect(await streamOf(one)).toMatchObject({ windows: { due: 2 }, final: 'absent' });
    at.seller.buys = buysOf(FLIGHT, { revision: 1 });
    await one.report(day(4), { row: { status: 'canceled' } });
    await at.until('2026-03-10T00:00:00Z');
    const stream = await streamOf(one);
    expect(stream).toMatchObject({ windows: { due: 4, byWebhook: 2, byPull: 2 }, closed: false });
    expect(stream).not.toHaveProperty('final');
  });

  it('by the answer of our own call, where that says it of the media buy', async () => {
    const at = begin();
    at.seller.buys = buysOf(FLIGHT);
    const one = await at.process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await at.until('2026-03-03T00:10:00Z');
    await one.report(day(2));
    await at.until('2026-03-04T00:10:00Z');
    await one.report(day(3));
    at.seller.buys = fails;
    await updated(one, { media_buy_id: BUY, media_buy_status: 'canceled', status: 'completed' });
    await at.until('2026-03-08T00:00:00Z');
    expect(await streamOf(one)).toMatchObject({
      windows: { due: 2, byWebhook: 2 },
      missing: [],
      closed: true,
      final: 'absent',
    });
  });

  it('by the end of our own call, which its webhook tells', async () => {
    const at = begin();
    at.seller.buys = buysOf(FLIGHT);
    const one = await at.process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await at.until('2026-03-03T00:10:00Z');
    await one.report(day(2));
    await updated(one, { status: 'submitted', task_id: 'task-1' });
    await at.until('2026-03-04T00:10:00Z');
    await one.report(day(3));
    at.seller.buys = fails;
    const result = { media_buy_id: BUY, media_buy_status: 'canceled' };
    const end = payloads.tool('completed', {
      task_id: 'task-1',
      task_type: 'update_media_buy',
      operation_id: undefined,
      result,
    });
    expect(await one.deliver(end)).toMatchObject({ kind: 'accepted' });
    await at.until('2026-03-08T00:00:00Z');
    expect(await streamOf(one)).toMatchObject({
      windows: { due: 2, byWebhook: 2 },
      missing: [],
      closed: true,
    });
  });

  it.each([
    ['a status that may be the task’s', { media_buy_id: BUY, status: 'canceled' }],
    [
      'that of another media buy',
      { media_buy_id: 'buy-2', media_buy_status: 'canceled', status: 'completed' },
    ],
    ['one that is not an end', { media_buy_id: BUY, media_buy_status: 'paused', status: 'completed' }],
  ])('not by %s', async (_what, answer) => {
    const at = begin();
    at.seller.buys = buysOf(FLIGHT);
    const one = await at.process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await at.until('2026-03-04T00:10:00Z');
    at.seller.buys = fails;
    await updated(one, answer);
    await at.until('2026-03-07T00:00:00Z');
    expect(await streamOf(one)).toMatchObject({ windows: { due: 4 }, closed: false });
  });
});

describe('final', () => {
  it.each([
    ['before the last window', ['final', 'last']],
    ['after it', ['last', 'final']],
    ['twice', ['final', 'last', 'final']],
  ] as const)('%s: it is received, and the stream closed once', async (_when, order) => {
    const at = begin();
    const one = await flown(at);
    at.seller.buys = buysOf(FLIGHT, completed);
    for (const what of order) {
      if (what === 'last') await one.report(day(5));
      else await one.report(FLIGHT, { type: 'final', row: { status: 'completed' } });
    }
    await at.until('2026-03-08T00:00:00Z');
    expect(await closedOf(one)).toMatchObject({ closed: true, final: 'received' });
    expect(alarmsOf(one, 'final_absent')).toEqual([]);
  });

  it('never: it is absent once the report of the last window would be missing, and no event is made up for it', async () => {
    const at = begin();
    const one = await flown(at);
    at.seller.buys = buysOf(FLIGHT, completed);
    await one.report(day(5), { row: { status: 'completed' } });
    await at.until('2026-03-06T01:00:00Z');
    expect(await closedOf(one)).toEqual({ closed: false });
    await at.until('2026-03-06T01:20:00Z');
    expect(await closedOf(one)).toMatchObject({ closed: true, final: 'absent' });
    expect(alarmsOf(one, 'final_absent')).toHaveLength(1);
    expect(reportsOf(one)).toHaveLength(4);
  });

  it.each([
    ['before it was adopted is absent without an alarm', '2026-02-28T00:00:00Z', 0],
    ['after it was adopted is absent with one', '2026-03-02T00:00:00Z', 1],
  ])('of a media buy that ended %s', async (_what, end, alarms) => {
    const at = begin();
    at.seller.buys = buysOf({ start: '2026-02-27T00:00:00Z', end }, { status: 'completed' });
    at.seller.delivery = daysDelivery;
    const one = await at.process();
    await one.reconciler.start();
    await one.registrations.adopt({ agentUrl: AGENT, mediaBuyId: BUY, reporting: { frequency: 'daily' } });
    await at.until('2026-03-03T00:00:00Z');
    expect(await closedOf(one)).toMatchObject({ closed: true, final: 'absent' });
    expect(alarmsOf(one, 'final_absent')).toHaveLength(alarms);
  });

  it('without a period that can be read counts as well', async () => {
    const at = begin();
    const one = await flown(at);
    at.seller.buys = buysOf(FLIGHT, completed);
    await one.report(day(5));
    await one.report(FLIGHT, { type: 'final', report: { reporting_period: { start: 'then', end: 'now' } } });
    await at.until('2026-03-08T00:00:00Z');
    expect(await closedOf(one)).toMatchObject({ closed: true, final: 'received' });
  });

  it('what comes by webhook after it has the warning and the alarm; what is pulled has neither', async () => {
    const at = begin();
    const one = await flown(at);
    at.seller.buys = buysOf(FLIGHT, completed);
    at.seller.delivery = daysDelivery;
    await one.report(FLIGHT, { type: 'final', row: { status: 'completed' } });
    await at.until('2026-03-07T00:00:00Z');
    const [pulled] = reportsOf(one).filter(({ source }) => source === 'pull');
    expect(pulled?.warnings).toEqual([]);
    expect(alarmsOf(one, 'nonconforming_sender')).toEqual([]);
    await one.report(day(5));
    expect(reportsOf(one).at(-1)).toMatchObject({
      source: 'webhook',
      warnings: [{ code: 'report_after_final' }],
    });
    expect(alarmsOf(one, 'nonconforming_sender')).toMatchObject([{ warning: 'report_after_final' }]);
    await at.until('2026-03-07T01:00:00Z');
    expect(await closedOf(one)).toMatchObject({ closed: true });
  });
});

describe('a seller that means harm, or is wrong', () => {
  it('says completed and goes on: the stream is open again, and owes what it owed', async () => {
    const at = begin();
    at.seller.buys = buysOf(FLIGHT, { revision: 1 });
    const one = await at.process();
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await at.until('2026-03-03T00:10:00Z');
    at.seller.buys = buysOf(FLIGHT, { revision: 2, status: 'canceled', updated_at: day(2).end });
    await one.report(day(2), { type: 'final', row: { status: 'canceled' } });
    await at.until('2026-03-04T00:10:00Z');
    const { closedAt } = (await streamOf(one)) ?? {};
    expect(await closedOf(one)).toEqual({ closed: true, closedAt, final: 'received' });
    // Its reports are handled, and it is closed since then all the same.
    await one.report(day(3));
    await at.until('2026-03-04T01:00:00Z');
    expect(await closedOf(one)).toEqual({ closed: true, closedAt, final: 'received' });
    at.seller.buys = buysOf(FLIGHT, { revision: 3 });
    await updated(one, { media_buy_id: BUY, media_buy_status: 'active', status: 'completed' });
    await at.until('2026-03-05T12:00:00Z');
    expect(await closedOf(one)).toEqual({ closed: false, final: 'received' });
    expect((await streamOf(one))?.missing.map(({ start }) => start.slice(0, 10))).toContain('2026-03-04');
  });

  it('goes on saying so while it is asked: its answer counts', async () => {
    const at = begin();
    at.seller.buys = buysOf(FLIGHT);
    const one = await at.process({ callMs: 300_000 });
    await one.reconciler.start();
    await buy(one, FLIGHT);
    await at.until('2026-03-04T00:10:00Z');
    let answer = (_answer: unknown): void => undefined;
    at.seller.buys = () => new Promise((resolve) => (answer = resolve));
    const before = at.seller.asked('get_media_buys').length;
    await one.report(day(2), { row: { status: 'completed' } });
    // Within the lease of the one that asks.
    await at.until('2026-03-04T00:15:00Z');
    for (let count = 0; count < 20; count += 1) await one.report(day(3), { row: { status: 'completed' } });
    at.seller.buys = buysOf(FLIGHT);
    answer(buysOf(FLIGHT)({}));
    await at.until('2026-03-04T00:45:00Z');
    expect(at.seller.asked('get_media_buys').length - before).toBe(1);
    await one.report(day(3), { row: { status: 'completed' } });
    await at.until('2026-03-04T01:00:00Z');
    expect(at.seller.asked('get_media_buys').length - before).toBe(2);
  });

  it('of rows with numbers of forty digits, and of a next report in the year 9999', async () => {
    const at = begin();
    const one = await flown(at);
    at.seller.buys = buysOf(FLIGHT, completed);
    const report = { next_expected_at: '9999-12-31T23:59:59Z' };
    const row = { status: 'completed', totals: { impressions: 1e39, spend: 1e39 } };
    await one.report(day(5), { type: 'final', report, row });
    await at.until('2026-03-08T00:00:00Z');
    expect(await closedOf(one)).toMatchObject({ closed: true, final: 'received' });
  });

  it('a final of a media buy that is not ours, and one of a period to come', async () => {
    const at = begin();
    const one = await flown(at);
    await one.report(FLIGHT, { type: 'final', mediaBuyId: 'buy-of-others', row: { status: 'completed' } });
    expect(await closedOf(one)).toEqual({ closed: false });
    const { streams }: Account = await one.reconciler.account();
    expect(streams.map(({ mediaBuyId }) => mediaBuyId)).toEqual([BUY]);
    await one.report({ start: '2026-03-05T00:00:00Z', end: '2027-03-06T00:00:00Z' }, { type: 'final' });
    // Its seller says that it is active: nothing has ended before its time.
    await at.until('2026-03-06T06:00:00Z');
    expect(await closedOf(one)).toEqual({ closed: false, final: 'received' });
    expect((await streamOf(one))?.missing).toMatchObject([{ start: '2026-03-05T00:00:00.000Z' }]);
  });
});
