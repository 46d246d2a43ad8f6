import * as fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/index.ts';
import { type BuyTotals, CompareError, type ReconcilerOptions } from '../../src/reconcile/index.ts';
import { differences, theirTotals, totalsArguments, triedAgain } from '../../src/reconcile/for-tests.ts';
import { type JsonObject, SellerBusyError } from '../../src/registrations/index.ts';
import { AGENT } from '../receiver/setup.ts';
import { BUY, buy, buysOf, day, type Process, streamOf, world, type World } from './kit.ts';

let here: World | undefined;
afterEach(() => here?.end());

const DAY_MS = 86_400_000;
const TOLERANCE = { impressions: 0.02, spend: 0.01 };

const differ = (ours: BuyTotals, theirs: BuyTotals, tolerance = TOLERANCE): boolean =>
  differences(ours, theirs, tolerance).length > 0;

describe('totals differ', () => {
  it.each([
    ['at the tolerance, below', { impressions: 980_000 }, { impressions: 1_000_000 }, false],
    ['at the tolerance, above', { impressions: 1_020_000 }, { impressions: 1_000_000 }, false],
    ['one beyond it, below', { impressions: 979_999 }, { impressions: 1_000_000 }, true],
    ['one beyond it, above', { impressions: 1_020_001 }, { impressions: 1_000_000 }, true],
    ['spend at the tolerance, below', { spend: 99 }, { spend: 100 }, false],
    ['spend at the tolerance, above', { spend: 101 }, { spend: 100 }, false],
    ['spend a cent beyond it, below', { spend: 98.99 }, { spend: 100 }, true],
    ['spend a cent beyond it, above', { spend: 101.01 }, { spend: 100 }, true],
    ['a sum of tenths at the tolerance', { spend: 0.1 + 0.2 + 100.7 }, { spend: 100 }, false],
    ['fractions at the tolerance', { spend: 70.7 }, { spend: 70 }, false],
    ['fractions at the tolerance, whose product is not', { spend: 1.1 * 1.01 }, { spend: 1.1 }, false],
    ['nothing and nothing', { impressions: 0, spend: 0 }, { impressions: 0, spend: 0 }, false],
    ['something and nothing', { impressions: 1 }, { impressions: 0 }, true],
    ['nothing and something', { spend: 0 }, { spend: 0.01 }, true],
    ['what one side does not have', { impressions: 5 }, { spend: 7 }, false],
    ['currencies', { spend: 1, currency: 'USD' }, { spend: 1, currency: 'EUR' }, true],
    ['letters of currencies', { spend: 1, currency: 'usd' }, { spend: 1, currency: 'USD' }, false],
    ['a currency that one side does not say', { spend: 1, currency: 'USD' }, { spend: 1 }, false],
    ['numbers of forty digits', { spend: 1e39 }, { spend: 1e39 }, false],
    ['the smallest number', { spend: 5e-324 }, { spend: 1 }, true],
  ])('%s', (_what, ours, theirs, expected) => {
    expect(differ(ours, theirs)).toBe(expected);
  });

  it('as whole numbers do, for any of them', () => {
    const counts = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
    const near = fc.tuple(counts, fc.integer({ min: -3, max: 3 }), fc.integer({ min: 0, max: 1000 }));
    fc.assert(
      fc.property(near, fc.boolean(), ([theirs, off, share], isAbove) => {
        const edge = (BigInt(theirs) * BigInt(share)) / 1000n;
        const ours = Number(BigInt(theirs) + (isAbove ? edge : -edge)) + off;
        fc.pre(Number.isSafeInteger(ours) && ours >= 0);
        const apart = BigInt(ours) - BigInt(theirs);
        const expected = (apart < 0n ? -apart : apart) * 1000n > BigInt(theirs) * BigInt(share);
        expect(
          differ({ impressions: ours }, { impressions: theirs }, { ...TOLERANCE, impressions: share / 1000 }),
        ).toBe(expected);
      }),
    );
  });

  it('as whole cents do, for any amounts of them', () => {
    const cents = fc.integer({ min: 0, max: 10_000_000_000 });
    fc.assert(
      fc.property(cents, fc.integer({ min: -2, max: 2 }), fc.boolean(), (theirs, off, isAbove) => {
        const ours = theirs + (isAbove ? 1 : -1) * Math.floor(theirs / 100) + off;
        fc.pre(ours >= 0);
        const expected = Math.abs(ours - theirs) * 100 > theirs;
        expect(differ({ spend: ours / 100 }, { spend: theirs / 100 })).toBe(expected);
      }),
    );
  });

  it('by no tolerance at all', () => {
    const none = { impressions: 0, spend: 0 };
    expect(differ({ spend: 12.5 }, { spend: 12.5 }, none)).toBe(false);
    expect(differ({ spend: 12.5 }, { spend: 12.51 }, none)).toBe(true);
  });
});

describe('the seller’s totals', () => {
  const answer = (totals: unknown, more: JsonObject = {}): unknown => ({
    currency: 'USD',
    media_buy_deliveries: [
      { media_buy_id: 'other', totals: { spend: 9 } },
      { media_buy_id: BUY, totals, ...more },
    ],
  });

  it.each([
    ['as they are', { impressions: 5, spend: 1.5 }, { impressions: 5, spend: 1.5, currency: 'USD' }],
    ['a text is no number', { impressions: '5', spend: '12.50' }, { currency: 'USD' }],
    [
      'one that is negative, and one that is not finite',
      { impressions: -1, spend: Infinity },
      { currency: 'USD' },
    ],
    ['null is none', { impressions: null, spend: 2 }, { spend: 2, currency: 'USD' }],
  ])('%s', (_what, totals, expected) => {
    expect(theirTotals(answer(totals), BUY)).toStrictEqual(expected);
  });

  it.each([
    ['the row', { currency: 'EUR' }, {}, { spend: 2, currency: 'EUR' }],
    ['the answer, before the row', { currency: 'EUR' }, { currency: 'USD' }, { spend: 2, currency: 'USD' }],
    ['nothing', {}, {}, { spend: 2 }],
    ['a code that is empty', {}, { currency: '' }, { spend: 2 }],
    ['a code that is too long', {}, { currency: 'U'.repeat(17) }, { spend: 2 }],
    ['a number', {}, { currency: 840 }, { spend: 2 }],
  ])('have their currency from %s', (_what, ofRow, ofAnswer, expected) => {
    const deliveries = [{ media_buy_id: BUY, totals: { spend: 2 }, ...ofRow }];
    // Strictly: what is not told is no member, not even one that is undefined.
    expect(theirTotals({ media_buy_deliveries: deliveries, ...ofAnswer }, BUY)).toStrictEqual(expected);
  });

  it.each([
    ['no totals', undefined],
    ['a list', [1]],
    ['a text', 'all'],
  ])('are not there: %s', (_what, totals) => {
    expect(theirTotals(answer(totals), BUY)).toBeUndefined();
  });

  it.each(['reporting_delayed', 'failed'])('are not there yet: the row is %s', (status) => {
    expect(theirTotals(answer({ spend: 1 }, { status }), BUY)).toBeUndefined();
    expect(theirTotals(answer({ spend: 1 }, { status: 'completed' }), BUY)).toMatchObject({ spend: 1 });
  });

  it('are asked for over the flight, in days of its clock, as far as it has gone', () => {
    const at = Date.parse;
    const span = { start: at('2026-03-02T02:00:00Z'), end: at('2026-03-06T12:00:00Z') };
    const terms = [{ from: span.start, frequency: 'daily' as const, spans: [span] }];
    const stream = streamOf({ terms, account: '{"account_id":"a"}' });
    const later = at('2026-05-01T00:00:00Z');
    const base = { account: { account_id: 'a' }, media_buy_ids: [BUY] };
    expect(totalsArguments(stream, later)).toEqual({
      ...base,
      start_date: '2026-03-02',
      end_date: '2026-03-07',
    });
    const clock = { zone: 'America/New_York', source: 'product' } as const;
    expect(totalsArguments({ ...stream, clock }, later)).toEqual({
      ...base,
      start_date: '2026-03-01',
      end_date: '2026-03-07',
    });
    expect(totalsArguments(stream, at('2026-03-04T01:00:00Z'))).toMatchObject({ end_date: '2026-03-05' });
    expect(totalsArguments({ ...stream, endedAt: at('2026-03-04T00:00:00Z') }, later)).toMatchObject({
      end_date: '2026-03-04',
    });
    const open = [{ ...terms[0], spans: [{ ...span, end: Infinity }] }] as typeof terms;
    expect(totalsArguments({ ...stream, terms: open }, at('2026-03-09T00:00:00Z'))).toMatchObject({
      end_date: '2026-03-09',
    });
    for (const lifetime of [
      { ...stream, hasRanges: false },
      { ...stream, terms: [] },
    ]) {
      expect(totalsArguments(lifetime, later)).toEqual(base);
    }
  });

  it('that cannot be had are asked for after an hour, doubled, at most a day, for seven days', () => {
    const waits: number[] = [];
    let now = 0;
    for (let is = triedAgain(undefined, 'no', now); ; is = triedAgain(is, 'no', now)) {
      if (is.nextAt === undefined) break;
      waits.push((is.nextAt - now) / 3_600_000);
      now = is.nextAt;
    }
    expect(waits.slice(0, 7)).toEqual([1, 2, 4, 8, 16, 24, 24]);
    expect(now).toBeGreaterThanOrEqual(7 * DAY_MS);
    expect(now).toBeLessThan(8 * DAY_MS + 1);
  });
});

const FLIGHT = { start: '2026-03-02T00:00:00Z', end: '2026-03-04T00:00:00Z' };
const OURS = { impressions: 100, spend: 10, currency: 'USD' };

const totalsAnswer = (totals: JsonObject, more: JsonObject = {}) => ({
  reporting_period: FLIGHT,
  currency: 'USD',
  media_buy_deliveries: [{ media_buy_id: BUY, status: 'completed', totals }],
  ...more,
});

/** A media buy that has ended, and whose reports have all come. */
async function ended(
  ours: ReconcilerOptions['ours'],
  delivery: World['seller']['delivery'],
  more: Partial<ReconcilerOptions> = {},
): Promise<{ readonly at: World; readonly one: Process }> {
  const at = (here = world('2026-03-01T12:00:00Z'));
  at.seller.buys = buysOf(FLIGHT, { status: 'completed', updated_at: FLIGHT.end });
  at.seller.delivery = delivery;
  const one = await at.process({ ours, ...more });
  await buy(one, FLIGHT);
  await at.until('2026-03-04T00:10:00Z');
  for (const n of [2, 3]) await one.report(day(n));
  await one.report(FLIGHT, { type: 'final', row: { status: 'completed' } });
  await one.reconciler.start();
  return { at, one };
}

const busy = (): Error => new SellerBusyError(429, 7_200_000);

const streamIn = async ({ reconciler }: Process) => (await reconciler.account()).streams[0];
const codesIn = ({ alarms }: Process) =>
  alarms.map(({ code }) => code).filter((code) => code === 'totals_differ' || code === 'misconfigured');

describe('at the close', () => {
  it('they are compared once, over the flight, and kept', async () => {
    const asked: unknown[] = [];
    const ours = async (of: unknown) => {
      asked.push(of);
      return OURS;
    };
    const { at, one } = await ended(ours, () => totalsAnswer({ impressions: 102, spend: 10.1 }));
    await at.until('2026-03-06T00:00:00Z');
    const theirs = { impressions: 102, spend: 10.1, currency: 'USD' };
    const stream = await streamIn(one);
    expect(stream).toMatchObject({ closed: true, totals: { ours: OURS, theirs, differs: false } });
    expect(asked).toEqual([{ agentUrl: AGENT, mediaBuyId: BUY }]);
    expect(at.seller.asked('get_media_buy_delivery').map(({ args }) => args)).toEqual([
      { media_buy_ids: [BUY], start_date: '2026-03-02', end_date: '2026-03-04' },
    ]);
    expect(codesIn(one)).toEqual([]);
  });

  it('an alarm has both where they differ, once; the account is complete all the same', async () => {
    const { at, one } = await ended(
      () => OURS,
      () => totalsAnswer({ impressions: 103, spend: 11 }, { currency: 'EUR' }),
    );
    await at.until('2026-03-08T00:00:00Z');
    const theirs = { impressions: 103, spend: 11, currency: 'EUR' };
    expect(one.alarms.filter(({ code }) => code === 'totals_differ')).toMatchObject([
      { sender: AGENT, mediaBuyId: BUY, ours: OURS, theirs },
    ]);
    expect(await one.reconciler.account()).toMatchObject({
      complete: true,
      streams: [{ closed: true, totals: { ours: OURS, theirs, differs: true } }],
    });
    expect(at.seller.asked('get_media_buy_delivery')).toHaveLength(1);
  });

  it('nobody is asked where nothing is booked', async () => {
    const { at, one } = await ended(
      () => undefined,
      () => totalsAnswer({ spend: 1 }),
    );
    await at.until('2026-03-06T00:00:00Z');
    expect(await streamIn(one)).toMatchObject({ closed: true });
    expect(await streamIn(one)).not.toHaveProperty('totals');
    expect(at.seller.asked('get_media_buy_delivery')).toEqual([]);
  });

  it('a seller without ranges of dates is asked for the lifetime', async () => {
    const { at, one } = await ended(
      () => OURS,
      (args) =>
        'start_date' in args
          ? { errors: [{ code: 'UNSUPPORTED_FEATURE', message: 'lifetime only' }] }
          : totalsAnswer({ impressions: 100, spend: 10 }),
    );
    await at.until('2026-03-06T00:00:00Z');
    expect(await streamIn(one)).toMatchObject({ closed: true, totals: { differs: false } });
    expect(at.seller.asked('get_media_buy_delivery').map(({ args }) => 'start_date' in args)).toEqual([
      true,
      false,
    ]);
  });

  it('a seller that cannot be asked keeps it open, for a week; the account says why', async () => {
    const { at, one } = await ended(
      () => OURS,
      () => {
        throw new Error('connection refused');
      },
    );
    await at.until('2026-03-09T00:00:00Z');
    expect(await streamIn(one)).toMatchObject({ closed: false, totals: { error: 'connection refused' } });
    await at.until('2026-03-13T00:00:00Z');
    expect(await streamIn(one)).toMatchObject({ closed: true, totals: { error: 'connection refused' } });
    const asked = at.seller.asked('get_media_buy_delivery').length;
    expect(asked).toBeGreaterThanOrEqual(10);
    expect(asked).toBeLessThanOrEqual(13);
    expect(codesIn(one)).toEqual([]);
  });

  it('one that asks for a pause is left alone, and asked again behind it', async () => {
    let isBusy = true;
    const { at, one } = await ended(
      () => OURS,
      () => {
        if (!isBusy) return totalsAnswer({ impressions: 100, spend: 10 });
        isBusy = false;
        throw busy();
      },
    );
    await at.until('2026-03-06T00:00:00Z');
    const times = at.seller.asked('get_media_buy_delivery').map((one) => one.at);
    expect(times).toHaveLength(2);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(7_200_000);
    expect(await streamIn(one)).toMatchObject({ closed: true, totals: { differs: false } });
  });

  it.each([
    ['throws', () => Promise.reject(new Error('the books are locked')), /ours failed: the books are locked/],
    ['throws no error', () => Promise.reject(7), /ours failed: 7/],
    ['gives a text', () => ({ spend: '12.50' }), /ours: spend: "12.50" is a string, not a finite number/],
    ['gives NaN', () => ({ impressions: Number.NaN }), /ours: impressions: NaN is not a finite number/],
    ['gives less than nothing', () => ({ spend: -1 }), /ours: spend: -1 is not a finite number from 0 on/],
    ['gives a bigint', () => ({ impressions: 5n }), /ours: impressions: 5 is a bigint, not a finite number/],
    ['gives a list', () => [1], /ours: returned no object\. Return \{ impressions, spend, currency \}/],
    [
      'gives a name that is not known',
      () => ({ clicks: 1 }),
      /ours: clicks is not known\. Known: impressions/,
    ],
    ['gives no currency', () => ({ currency: 5 }), /ours: currency: is not a code\. Return e\.g\. USD/],
  ])('ours that %s is an alarm, and asked again; the seller is not', async (_what, wrong, message) => {
    let isWrong = true;
    const ours = (() => (isWrong ? wrong() : OURS)) as unknown as NonNullable<ReconcilerOptions['ours']>;
    const { at, one } = await ended(ours, () => totalsAnswer({ impressions: 100, spend: 10 }));
    await at.until('2026-03-04T01:30:00Z');
    const [alarm] = one.alarms.filter(({ code }) => code === 'misconfigured');
    expect(alarm?.message).toMatch(message);
    expect(await streamIn(one)).toMatchObject({
      closed: false,
      totals: { error: expect.stringMatching(message) as string },
    });
    expect(at.seller.asked('get_media_buy_delivery')).toEqual([]);
    isWrong = false;
    await at.until('2026-03-04T02:30:00Z');
    expect(await streamIn(one)).toMatchObject({ closed: true, totals: { differs: false } });
  });

  it('ours that never comes back is given up after half a question’s time, and holds nothing up', async () => {
    let isHanging = true;
    const { at, one } = await ended(
      () => (isHanging ? new Promise(() => {}) : Promise.resolve(OURS)),
      () => totalsAnswer({ impressions: 100, spend: 10 }),
      { callMs: 20 },
    );
    await at.until('2026-03-04T01:10:00Z');
    // A slow machine gives it up more than once.
    await expect.poll(() => [...new Set(codesIn(one))]).toEqual(['misconfigured']);
    isHanging = false;
    await at.until('2026-03-05T00:00:00Z');
    expect(await streamIn(one)).toMatchObject({ closed: true, totals: { differs: false } });
  });
});

it('a media buy without reports is compared, too', async () => {
  const at = (here = world('2026-03-01T12:00:00Z'));
  at.seller.buys = buysOf(FLIGHT);
  at.seller.delivery = () => totalsAnswer({ impressions: 100, spend: 11 });
  const one = await at.process({ ours: () => OURS });
  const made = await one.registrations.create({
    agentUrl: AGENT,
    taskType: 'create_media_buy',
    arguments: { start_time: FLIGHT.start, end_time: FLIGHT.end, packages: [{ product_id: 'p', budget: 1 }] },
  });
  await made.settle({ media_buy_id: BUY, status: 'completed', packages: [] });
  await one.reconciler.start();
  await at.until('2026-03-05T00:00:00Z');
  expect(await streamIn(one)).toMatchObject({ closed: false });
  at.seller.buys = buysOf(FLIGHT, { status: 'completed', updated_at: FLIGHT.end });
  const canceled = await one.registrations.create({
    agentUrl: AGENT,
    taskType: 'update_media_buy',
    arguments: { media_buy_id: BUY, canceled: true },
  });
  await canceled.settle({ media_buy_id: BUY, media_buy_status: 'completed', status: 'completed' });
  await at.until('2026-03-05T02:00:00Z');
  const stream = await streamIn(one);
  expect(stream).toMatchObject({ frequency: null, closed: true, totals: { differs: true } });
  expect(stream).not.toHaveProperty('final');
  expect(codesIn(one)).toEqual(['totals_differ']);
});

describe('compare', () => {
  const query = { agentUrl: AGENT, mediaBuyId: BUY };

  it('compares now; the account of a closed media buy keeps it', async () => {
    let spend = 10;
    const { at, one } = await ended(
      () => ({ ...OURS, spend }),
      () => totalsAnswer({ impressions: 100, spend: 12 }),
    );
    await at.until('2026-03-06T00:00:00Z');
    expect(await streamIn(one)).toMatchObject({ closed: true, totals: { differs: true } });
    spend = 12;
    const compared = await one.reconciler.compare(query);
    expect(compared).toEqual({
      ours: { ...OURS, spend: 12 },
      theirs: { impressions: 100, spend: 12, currency: 'USD' },
      differs: false,
      at: Date.now(),
    });
    expect(await streamIn(one)).toMatchObject({ totals: { ours: { spend: 12 }, differs: false } });
    spend = 99;
    expect(await one.reconciler.compare(query)).toMatchObject({ differs: true });
    expect(codesIn(one)).toEqual(['totals_differ', 'totals_differ']);
  });

  it('one that fails leaves the account of a closed media buy as it was', async () => {
    let isLocked = false;
    const { at, one } = await ended(
      () => {
        if (isLocked) throw new Error('the books are locked');
        return OURS;
      },
      () => totalsAnswer({ impressions: 100, spend: 10 }),
    );
    await at.until('2026-03-06T00:00:00Z');
    const before = await streamIn(one);
    expect(before).toMatchObject({ closed: true, totals: { ours: OURS, differs: false } });
    isLocked = true;
    await expect(one.reconciler.compare(query)).rejects.toThrow(CompareError);
    expect((await streamIn(one))?.totals).toEqual(before?.totals);
  });

  it('a media buy that runs, in a process that does not reconcile; it is compared at its close all the same', async () => {
    const at = (here = world('2026-03-01T12:00:00Z'));
    at.seller.delivery = () => totalsAnswer({ spend: 5 });
    const one = await at.process({ ours: () => undefined });
    await buy(one, FLIGHT);
    await at.until('2026-03-03T12:00:00Z');
    const theirs = { spend: 5, currency: 'USD' };
    expect(await one.reconciler.compare(query)).toMatchObject({ ours: {}, theirs, differs: false });
    expect(at.seller.asked('get_media_buy_delivery')[0]?.args).toMatchObject({
      start_date: '2026-03-02',
      end_date: '2026-03-04',
    });
    expect(await streamIn(one)).not.toHaveProperty('totals');
  });

  it('takes a place of the seller, and waits for it as long as a question may take', async () => {
    const at = (here = world('2026-03-01T12:00:00Z'));
    const one = await at.process({ ours: () => OURS, perSeller: 1, callMs: 10_000 });
    await buy(one, FLIGHT);
    await at.until('2026-03-03T12:00:00Z');
    let answer = (_answer: unknown): void => undefined;
    at.seller.delivery = () => new Promise((resolve) => (answer = resolve));
    const first = one.reconciler.compare(query);
    await at.clock.settled();
    const second = one.reconciler.compare(query);
    await at.clock.settled();
    expect(at.seller.asked('get_media_buy_delivery')).toHaveLength(1);
    at.seller.delivery = () => totalsAnswer({ spend: 10 });
    answer(totalsAnswer({ spend: 10 }));
    await first;
    await at.clock.pass(5_000);
    expect(await second).toMatchObject({ differs: false });
    at.seller.delivery = () => {
      throw busy();
    };
    await expect(one.reconciler.compare(query)).rejects.toThrow(/429: it is busy/);
    const refused = one.reconciler.compare(query);
    await expect(refused).rejects.toThrow(CompareError);
    await expect(refused).rejects.toThrow(/the seller is not to be asked for 7200000 ms\. Try again then/);
  });

  it.each([
    ['refuses', () => ({ errors: [{ code: 'ACCOUNT_NOT_FOUND', message: 'who?' }] }), /ACCOUNT_NOT_FOUND/],
    ['has no row', () => ({ media_buy_deliveries: [] }), /the answer has no totals of the media buy/],
  ])('rejects with a stable code where the seller %s', async (_what, delivery, message) => {
    const at = (here = world('2026-03-01T12:00:00Z'));
    at.seller.delivery = delivery;
    const one = await at.process({ ours: () => OURS });
    await buy(one, FLIGHT);
    const compared = one.reconciler.compare(query);
    await expect(compared).rejects.toMatchObject({ code: 'compare_failed', name: 'CompareError' });
    await expect(compared).rejects.toThrow(message);
  });

  it('rejects for a media buy that is not known, for ours that fails, and for arguments that are wrong', async () => {
    const at = (here = world('2026-03-01T12:00:00Z'));
    const without = await at.process();
    await expect(without.reconciler.compare(query)).rejects.toThrow(ConfigError);
    await expect(without.reconciler.compare(query)).rejects.toThrow(
      /needs the option ours of createReconciler/,
    );
    const one = await at.process({ ours: () => Promise.reject(new Error('no books')) });
    await expect(one.reconciler.compare(query)).rejects.toThrow(/the media buy is not known/);
    await buy(one, FLIGHT);
    await expect(one.reconciler.compare(query)).rejects.toMatchObject({
      code: 'compare_failed',
      cause: { message: 'no books' },
    });
    for (const [wrong, message] of [
      [{ agentUrl: AGENT }, /mediaBuyId: undefined is not a non-empty string/],
      [{ ...query, since: 1 }, /compare: since is not known/],
      [undefined, /compare: is not an object/],
    ] as const) {
      await expect(one.reconciler.compare(wrong as never)).rejects.toThrow(message);
    }
  });
});
