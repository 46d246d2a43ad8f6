import { describe, expect, it } from 'vitest';
import { pullCall, pulledWindows, unpullable } from '../../src/reconcile/for-tests.ts';
import type { BuyStream } from '../../src/registrations/for-tests.ts';
import { type Frequency, windowAt, clockOf, UTC } from '../../src/windows/for-tests.ts';
import { BUY, streamOf } from './kit.ts';

const NEW_YORK = { zone: 'America/New_York', source: 'product' } as const;

/** The number of the window in which an instant lies. */
const at = (instant: string, frequency: Frequency = 'daily', zone = 'UTC'): number =>
  windowAt(frequency, clockOf(zone) ?? UTC, Date.parse(instant));

const callOf = (stream: BuyStream, first: string, count = 1, frequency: Frequency = 'daily') => {
  const number = at(first, frequency, stream.clock.zone);
  return pullCall(stream, frequency, [number, number + count]);
};

describe('how missing windows are asked for', () => {
  it('a day, by its date in the clock of the stream and the next one', () => {
    const { arguments: args, isWindowed, run } = callOf(streamOf(), '2026-03-08T00:00:00Z', 5);
    expect(args).toEqual({ media_buy_ids: [BUY], start_date: '2026-03-08', end_date: '2026-03-09' });
    expect([isWindowed, run[1] - run[0]]).toEqual([false, 1]);
    // The day has 23 hours there, and begins at 05:00 UTC.
    const there = callOf(streamOf({ clock: NEW_YORK }), '2026-03-08T06:00:00Z');
    expect(there.arguments).toMatchObject({ start_date: '2026-03-08', end_date: '2026-03-09' });
  });

  it('a month, by its first day and the first of the next', () => {
    const { arguments: args } = callOf(streamOf({ clock: NEW_YORK }), '2026-12-15T00:00:00Z', 1, 'monthly');
    expect(args).toMatchObject({ start_date: '2026-12-01', end_date: '2027-01-01' });
  });

  it('declared granularities, several windows in a call, with the account of the buy', () => {
    const account = JSON.stringify({ account_id: 'a1' });
    const stream = streamOf({ granularities: ['hourly', 'daily', 'monthly'], account, clock: NEW_YORK });
    expect(callOf(stream, '2026-03-08T06:00:00Z', 40).arguments).toEqual({
      account: { account_id: 'a1' },
      media_buy_ids: [BUY],
      start_date: '2026-03-08',
      end_date: '2026-04-08',
      time_granularity: 'daily',
      include_window_breakdown: true,
    });
    // Hours are those of UTC, whatever the clock of the stream is.
    const hours = callOf(stream, '2026-03-08T23:00:00Z', 2, 'hourly');
    expect(hours.arguments).toMatchObject({ start_date: '2026-03-08', end_date: '2026-03-10' });
    expect(hours.run[1] - hours.run[0]).toBe(2);
    const week = callOf(stream, '2026-03-01T00:00:00Z', 1000, 'hourly');
    expect(week.run[1] - week.run[0]).toBe(168);
    const year = callOf(stream, '2026-03-02T00:00:00Z', 1000, 'monthly');
    expect(year.run[1] - year.run[0]).toBe(12);
  });

  it.each<[Partial<BuyStream>, Frequency, RegExp | undefined]>([
    [{}, 'daily', undefined],
    [{}, 'monthly', undefined],
    [{}, 'hourly', /declares no hourly windows: only whole days/],
    [{ granularities: ['daily'] }, 'hourly', /declares no hourly windows/],
    [{ granularities: ['hourly'] }, 'hourly', undefined],
    [{ hasRanges: false }, 'daily', /for the lifetime of a media buy alone/],
    [{ hasRanges: false }, 'hourly', /for the lifetime of a media buy alone/],
    [{ hasRanges: false, granularities: ['daily'] }, 'daily', undefined],
  ])('%j, %s: %s', (more, frequency, reason) => {
    const cannot = unpullable(streamOf(more), frequency);
    if (reason) expect(cannot).toMatch(reason);
    else expect(cannot).toBeUndefined();
  });
});

const row = (more: object = {}): object => ({
  media_buy_id: BUY,
  status: 'active',
  totals: { spend: 1 },
  by_package: [{ package_id: 'p1' }],
  ...more,
});

const answer = (rows: unknown, more: object = {}): object => ({
  reporting_period: { start: '2026-03-08T00:00:00Z', end: '2026-03-09T00:00:00Z' },
  currency: 'USD',
  aggregated_totals: { spend: 1 },
  media_buy_deliveries: rows,
  ...more,
});

const DAY = '2026-03-08T00:00:00Z';
const ofDay = (data: unknown, stream = streamOf()) =>
  pulledWindows(stream, callOf(stream, DAY), data).map(({ report }) => report);

describe('what an answer about a whole day gives', () => {
  it('the row, with its period, and nothing that it has not', () => {
    expect(ofDay(answer([row({ daily_breakdown: [], extra: 1 })]))).toEqual([
      {
        notification_type: 'scheduled',
        reporting_period: { start: '2026-03-08T00:00:00.000Z', end: '2026-03-09T00:00:00.000Z' },
        currency: 'USD',
        media_buy_deliveries: [
          { media_buy_id: BUY, status: 'active', totals: { spend: 1 }, by_package: [{ package_id: 'p1' }] },
        ],
      },
    ]);
    const bare = { media_buy_id: BUY, totals: {}, currency: 'EUR', is_final: true, measurement_window: 'c3' };
    expect(ofDay(answer([bare], { currency: undefined }))).toMatchObject([
      {
        currency: 'EUR',
        media_buy_deliveries: [{ media_buy_id: BUY, totals: {}, is_final: true, measurement_window: 'c3' }],
      },
    ]);
    expect(ofDay(answer([bare]))[0]?.media_buy_deliveries?.[0]).not.toHaveProperty('by_package');
  });

  it('with the end a second or a minute short, and in the zone of the buy', () => {
    const until = (end: string): object => ({ reporting_period: { start: DAY, end } });
    expect(ofDay(answer([row()], until('2026-03-08T23:59:59Z')))).toHaveLength(1);
    expect(ofDay(answer([row()], until('2026-03-08T23:59:00Z')))).toHaveLength(1);
    const stream = streamOf({ clock: NEW_YORK });
    const call = callOf(stream, '2026-03-08T06:00:00Z');
    // The same days, said in UTC.
    expect(pulledWindows(stream, call, answer([row()]))[0]?.report.reporting_period).toEqual({
      start: '2026-03-08T05:00:00.000Z',
      end: '2026-03-09T04:00:00.000Z',
    });
    const twoDays = { reporting_period: { start: DAY, end: '2026-03-10T00:00:00Z' } };
    expect(pulledWindows(stream, call, answer([row()], twoDays))).toEqual([]);
    for (const [start, end] of [
      ['2026-03-09T00:00:00Z', '2026-03-10T00:00:00Z'],
      ['2026-03-07T00:00:00Z', '2026-03-08T00:00:00Z'],
    ]) {
      expect(pulledWindows(stream, call, answer([row()], { reporting_period: { start, end } }))).toEqual([]);
    }
  });

  it.each<[string, unknown]>([
    ['another buy', answer([row({ media_buy_id: 'buy-2' })])],
    ['no rows', answer([])],
    ['rows that are no list', answer({ [BUY]: row() })],
    ['rows that are no objects', answer([null, 5, 'row', [row()]])],
    ['a row without data', answer([{ media_buy_id: BUY, status: 'reporting_delayed' }])],
    ['totals that are no object', answer([row({ totals: 7 })])],
    ['totals that are null', answer([row({ totals: null })])],
    ['an id that is a list', answer([row({ media_buy_id: [BUY] })])],
    [
      'the day before',
      answer([row()], { reporting_period: { start: '2026-03-07T00:00:00Z', end: '2026-03-08T00:00:00Z' } }),
    ],
    ['two days', answer([row()], { reporting_period: { start: DAY, end: '2026-03-10T00:00:00Z' } })],
    [
      'the whole life of the buy',
      answer([row()], { reporting_period: { start: '2026-01-01T00:00:00Z', end: '2026-04-01T00:00:00Z' } }),
    ],
    ['no period', answer([row()], { reporting_period: undefined })],
    ['a period without its end', answer([row()], { reporting_period: { start: DAY } })],
    ['a period that is none', answer([row()], { reporting_period: { start: 'then', end: 5 } })],
    ['a list', [row()]],
    ['a text', 'no'],
    ['null', null],
    ['nothing', undefined],
  ])('%s is none', (_what, data) => {
    expect(ofDay(data)).toEqual([]);
  });

  it('the row, beside an error that names the buy', () => {
    expect(ofDay({ errors: [{ code: 'PARTIAL', media_buy_id: BUY }], ...answer([row()]) })).toHaveLength(1);
  });

  it('takes no member from a prototype', () => {
    const data = JSON.parse(
      `{"media_buy_deliveries":[{"media_buy_id":"${BUY}","__proto__":{"totals":{"spend":1}}}]}`,
    ) as unknown;
    expect(ofDay(data)).toEqual([]);
  });
});

describe('what an answer by windows gives', () => {
  const stream = streamOf({ granularities: ['daily'], clock: NEW_YORK });
  const call = callOf(stream, '2026-03-07T06:00:00Z', 3);
  const window = (start: string, end: string, more: object = {}): object => ({
    window_start: start,
    window_end: end,
    totals: { spend: 2 },
    ...more,
  });
  const windows = [
    window('2026-03-07T05:00:00Z', '2026-03-08T05:00:00Z', { measurement_window: 'c3', is_final: true }),
    // A day of 23 hours, with its end a second short.
    window('2026-03-08T00:00:00-05:00', '2026-03-09T03:59:59Z'),
    window('2026-03-10T00:00:00Z', '2026-03-11T00:00:00Z'),
  ];

  it('each window that was asked for and that it has, by its start and end', () => {
    const found = pulledWindows(stream, call, answer([row({ windows })]));
    expect(found.map(({ number }) => number - call.run[0])).toEqual([0, 1]);
    expect(found.map(({ report }) => report.reporting_period)).toEqual([
      { start: '2026-03-07T05:00:00.000Z', end: '2026-03-08T05:00:00.000Z' },
      { start: '2026-03-08T05:00:00.000Z', end: '2026-03-09T04:00:00.000Z' },
    ]);
    // Of the window, and not of the whole range.
    expect(found[0]?.report.media_buy_deliveries).toEqual([
      {
        media_buy_id: BUY,
        status: 'active',
        totals: { spend: 2 },
        is_final: true,
        measurement_window: 'c3',
      },
    ]);
  });

  it.each<[string, object]>([
    ['without windows', row()],
    ['windows that are no list', row({ windows: { 0: windows[0] } })],
    ['windows that are no objects', row({ windows: [1, null, 'a'] })],
    ['without data', row({ windows: [{ ...windows[0], totals: null }] })],
    ['of another length', row({ windows: [window('2026-03-07T05:00:00Z', '2026-03-07T06:00:00Z')] })],
    ['without an end', row({ windows: [{ ...windows[0], window_end: undefined }] })],
    ['that begins a second late', row({ windows: [window('2026-03-07T05:00:01Z', '2026-03-08T05:00:00Z')] })],
  ])('none: %s', (_what, one) => {
    expect(pulledWindows(stream, call, answer([one]))).toEqual([]);
  });
});
