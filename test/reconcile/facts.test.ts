import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/index.ts';
import { isOlder, withFacts, withSchedule } from '../../src/reconcile/for-tests.ts';
import { askedReports, type BuyStream, spansOf } from '../../src/registrations/for-tests.ts';
import { BUY, DAY_MS, streamOf, mediaBuyFacts } from './kit.ts';

const ms = (instant: string): number => Date.parse(instant);
const START = '2026-03-01T00:00:00Z';
const END = '2026-04-01T00:00:00Z';
const FLIGHT = { start: ms(START), end: ms(END) };
const webhook = { url: 'https://buyer.example/r', reporting_frequency: 'daily', authentication: {} };

describe('what a call asks to be reported', () => {
  const args = { start_time: START, end_time: END, reporting_webhook: webhook };

  it('of a create_media_buy: frequency, flight, products, and when packages are active; no credential', () => {
    const packages = [
      { product_id: 'p1', start_time: '2026-03-05T00:00:00Z' },
      { product_id: 'p2', paused: true },
      { product_id: 'p1', canceled: true },
      { product_id: 'p3', end_time: '2026-03-20T00:00:00+01:00' },
    ];
    expect(askedReports('create_media_buy', { ...args, packages })).toEqual({
      frequency: 'daily',
      metrics: null,
      ...FLIGHT,
      products: ['p1', 'p2', 'p3'],
      packages: [{ start: ms('2026-03-05T00:00:00Z') }, { end: ms('2026-03-19T23:00:00Z') }],
    });
  });

  it('a start that is relative is not known yet', () => {
    expect(askedReports('create_media_buy', { ...args, start_time: 'asap' })).toEqual({
      frequency: 'daily',
      metrics: null,
      end: FLIGHT.end,
      products: [],
    });
  });

  it('of an update_media_buy: the buy, and the frequency where it says one', () => {
    const update = { media_buy_id: BUY, packages: [{ package_id: 'a', product_id: 'p9' }] };
    expect(askedReports('update_media_buy', update)).toEqual({ mediaBuyId: BUY, products: ['p9'] });
    expect(askedReports('update_media_buy', { ...update, reporting_webhook: webhook })).toMatchObject({
      frequency: 'daily',
    });
    expect(askedReports('update_media_buy', { ...update, reporting_webhook: null })).toMatchObject({
      frequency: null,
    });
  });

  it.each<[string, string, object]>([
    ['another task', 'sync_creatives', args],
    ['an update without its buy', 'update_media_buy', { packages: [] }],
    ['an update of a buy that is no text', 'update_media_buy', { media_buy_id: 5 }],
    ['an update of a buy that is too long', 'update_media_buy', { media_buy_id: 'a'.repeat(100_000) }],
  ])('none: %s', (_what, taskType, given) => {
    expect(askedReports(taskType, given as never)).toBeUndefined();
  });

  it.each<[string, object]>([
    ['no webhook of reports', {}],
    ['null', { reporting_webhook: null }],
    ['a webhook that is no object', { reporting_webhook: 'daily' }],
    ['another frequency', { reporting_webhook: { reporting_frequency: 'weekly' } }],
    ['a frequency of a prototype', { reporting_webhook: { reporting_frequency: 'toString' } }],
  ])('of a create_media_buy without reports the flight: %s', (_what, given) => {
    const { frequency, ...asked } =
      askedReports('create_media_buy', { ...args, reporting_webhook: 5, ...given }) ?? {};
    expect(frequency ?? null).toBeNull();
    expect(asked).toEqual({ ...FLIGHT, products: [] });
  });

  it('packages of any shape, at most a thousand', () => {
    const hostile = [null, 5, 'p', [], { product_id: 7 }, { product_id: 'p1', start_time: 5 }];
    const asked = askedReports('create_media_buy', { ...args, packages: hostile });
    expect(asked).toMatchObject({ products: ['p1'], packages: [{}, {}] });
    expect(askedReports('create_media_buy', { ...args, packages: 'all' })).not.toHaveProperty('packages');
    const many = Array.from({ length: 5000 }, (_, at) => ({ product_id: `p${at}` }));
    expect(askedReports('create_media_buy', { ...args, packages: many })?.products).toHaveLength(1000);
  });
});

describe('when at least one package is active', () => {
  const day = (n: number): number => FLIGHT.start + n * DAY_MS;

  it('within the flight, joined where packages touch', () => {
    const packages = [
      { start: day(-5), end: day(3) },
      { start: day(2), end: day(4) },
      { start: day(10), end: day(100) },
    ];
    expect(spansOf({ ...FLIGHT, packages }, 0)).toEqual([
      { start: FLIGHT.start, end: day(4) },
      { start: day(10), end: FLIGHT.end },
    ]);
  });

  it('from now on where no start is known, without an end where none is', () => {
    expect(spansOf({}, day(2))).toEqual([{ start: day(2), end: Infinity }]);
  });

  it('never, with packages that are all stopped, or a flight that ends before it begins', () => {
    expect(spansOf({ ...FLIGHT, packages: [] }, 0)).toEqual([]);
    expect(spansOf({ start: FLIGHT.end, end: FLIGHT.start }, 0)).toEqual([]);
  });
});

const buyRow = (more: object = {}): object => ({
  media_buy_id: BUY,
  status: 'active',
  start_time: START,
  end_time: END,
  packages: [{ package_id: 'a', product_id: 'p1' }],
  ...more,
});

describe('what a seller says of a media buy', () => {
  const factsOf = (more: object) => mediaBuyFacts({ media_buys: [buyRow(more)] }, BUY);

  it('status, flight, products, and what tells that it has changed', () => {
    expect(factsOf({ updated_at: '2026-03-02T10:00:00Z' })).toEqual({
      status: 'active',
      revision: '2026-03-02T10:00:00Z',
      updatedAt: ms('2026-03-02T10:00:00Z'),
      flight: { ...FLIGHT, packages: [{}] },
      products: ['p1'],
    });
    expect(factsOf({ revision: 7, updated_at: '2026-03-02T10:00:00Z' })).toMatchObject({
      revision: '2026-03-02T10:00:00Z 7',
    });
    expect(factsOf({ revision: null })).not.toHaveProperty('revision');
    expect(factsOf({ cancellation: { canceled_at: '2026-03-04T00:00:00Z' } })).toMatchObject({
      canceledAt: ms('2026-03-04T00:00:00Z'),
    });
  });

  it('by its id alone, in whichever list it stands', () => {
    const rows = [buyRow({ media_buy_id: 'buy-2', status: 'paused' }), buyRow()];
    expect(mediaBuyFacts({ items: rows }, BUY)).toMatchObject({ status: 'active' });
    expect(mediaBuyFacts({ errors: [{ media_buy_id: BUY }], media_buys: rows }, BUY)).toMatchObject({
      status: 'active',
    });
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'active'],
    ['a list', [buyRow()]],
    ['an empty list', { media_buys: [] }],
    ['another buy', { media_buys: [buyRow({ media_buy_id: 'buy-2' })] }],
    ['no status', { media_buys: [buyRow({ status: undefined })] }],
    ['a status that is no text', { media_buys: [buyRow({ status: 1 })] }],
    ['rows that are no objects', { media_buys: [null, 1, 'a', []] }],
  ])('none: %s', (_what, data) => {
    expect(mediaBuyFacts(data, BUY)).toBeUndefined();
  });

  it('keeps no more of a revision than it needs', () => {
    const { revision = '' } = factsOf({ revision: 'r'.repeat(10_000) }) ?? {};
    expect(revision.length).toBeLessThanOrEqual(128);
    expect(factsOf({ start_time: 'soon', end_time: 5, packages: {}, updated_at: {} })).toMatchObject({
      flight: {},
      products: [],
    });
  });
});

describe('the terms of a stream, by what its seller says', () => {
  const bought = ms('2026-02-20T00:00:00Z');
  const asked: BuyStream = streamOf({
    since: bought,
    terms: [{ from: bought, frequency: 'daily', spans: [FLIGHT] }],
  });
  const facts = (more: object) => {
    const is = mediaBuyFacts({ media_buys: [buyRow(more)] }, BUY);
    if (!is) throw new Error('no facts');
    return is;
  };
  const at = (instant: string, stream: BuyStream, more: object): BuyStream =>
    withFacts(stream, facts(more), ms(instant));
  const first = at('2026-02-20T00:01:00Z', asked, { revision: 1 });

  it('a first answer that says the same changes nothing', () => {
    expect(first.terms).toEqual(asked.terms);
    expect(first).toMatchObject({ status: 'active', revision: '1', askedAt: ms('2026-02-20T00:01:00Z') });
  });

  it('an answer that is old, as it says, does not put off what it did not know yet', () => {
    const old = at('2026-03-05T06:00:00Z', first, { revision: 1, status_as_of: '2026-03-05T03:00:00Z' });
    const more = { revision: 2, status: 'canceled', updated_at: '2026-03-05T04:00:00Z' };
    const canceled = at('2026-03-05T09:00:00Z', old, more);
    expect(canceled.terms.at(-1)).toMatchObject({ from: ms('2026-03-05T04:00:00Z'), spans: [] });
    expect(canceled).not.toHaveProperty('saidAt');
  });

  it('an answer that is old and does not say so does not put off what it did not know yet', () => {
    const at1 = at('2026-03-05T23:30:00Z', first, {
      revision: 2,
      status: 'paused',
      updated_at: '2026-03-05T20:00:00Z',
    });
    const on = at('2026-03-06T02:00:00Z', at1, { revision: 3, updated_at: '2026-03-05T22:30:00Z' });
    expect(on.terms.at(-1)).toMatchObject({ from: ms('2026-03-05T22:30:00Z'), spans: [FLIGHT] });
    // An end takes windows away: it is no earlier than the last answer.
    const ended = { revision: 3, status: 'canceled', updated_at: '2026-03-04T22:30:00Z' };
    const before = at('2026-03-05T00:00:00Z', first, { revision: 2, updated_at: START });
    expect(at('2026-03-06T00:00:00Z', before, ended).terms.at(-1)?.from).toBe(ms('2026-03-05T00:00:00Z'));
  });

  it.each<[string, object, object, boolean]>([
    ['a lower revision', { revision: 5 }, { revision: 4 }, true],
    ['a higher revision', { revision: 9 }, { revision: 10 }, false],
    ['the same revision, whatever else it says', { revision: 5 }, { revision: 5, status: 'paused' }, false],
    ['a revision that is a text', { revision: 'b' }, { revision: 'a' }, false],
    ['an earlier updated_at', { updated_at: '2026-03-02T00:00:00Z' }, { updated_at: START }, true],
    ['a later updated_at', { updated_at: START }, { updated_at: '2026-03-02T00:00:00Z' }, false],
    ['an earlier status_as_of', { status_as_of: '2026-03-02T00:00:00Z' }, { status_as_of: START }, true],
    ['a later status_as_of', { status_as_of: START }, { status_as_of: '2026-03-02T00:00:00Z' }, false],
    [
      'a lower revision with a later updated_at',
      { revision: 5, updated_at: START },
      { revision: 4, updated_at: '2026-03-02T00:00:00Z' },
      false,
    ],
    ['a status_as_of where the last one had none', {}, { status_as_of: '2026-02-01T00:00:00Z' }, false],
    ['no word of its age', { revision: 5, status_as_of: START }, {}, false],
  ])('whether an answer is older than the last one, by %s', (_what, last, next, wanted) => {
    const stream = at('2026-03-05T00:00:00Z', asked, last);
    expect(isOlder(stream, facts(next))).toBe(wanted);
  });

  it('a first answer is never older', () => {
    expect(isOlder(asked, facts({ revision: 0, updated_at: '2020-01-01T00:00:00Z' }))).toBe(false);
  });

  it('the same revision again keeps the terms, whatever else it says', () => {
    const again = at('2026-03-10T00:00:00Z', first, { revision: 1, end_time: START });
    expect(again.terms).toBe(first.terms);
    expect(again.askedAt).toBe(ms('2026-03-10T00:00:00Z'));
  });

  it('a new revision holds from updated_at, else from when it was asked', () => {
    const longer = { revision: 2, end_time: '2026-05-01T00:00:00Z' };
    const said = at('2026-03-10T00:00:00Z', first, { ...longer, updated_at: '2026-03-08T12:00:00Z' });
    expect(said.terms).toHaveLength(2);
    expect(said.terms[1]).toEqual({
      from: ms('2026-03-08T12:00:00Z'),
      frequency: 'daily',
      spans: [{ start: FLIGHT.start, end: ms('2026-05-01T00:00:00Z') }],
    });
    expect(at('2026-03-10T00:00:00Z', first, longer).terms[1]?.from).toBe(ms('2026-03-10T00:00:00Z'));
    // No seller changes what is to come.
    const ahead = at('2026-03-10T00:00:00Z', first, { ...longer, updated_at: '2027-01-01T00:00:00Z' });
    expect(ahead.terms[1]?.from).toBe(ms('2026-03-10T00:00:00Z'));
  });

  it('paused, canceled and rejected: nothing is owed from then on; active again: it is', () => {
    const paused = at('2026-03-10T00:00:00Z', first, { revision: 2, status: 'paused' });
    expect(paused.terms.at(-1)).toMatchObject({ spans: [] });
    const on = at('2026-03-12T00:00:00Z', paused, { revision: 3 });
    expect(on.terms.at(-1)).toMatchObject({ from: ms('2026-03-12T00:00:00Z'), spans: [FLIGHT] });
    expect(on.terms).toHaveLength(3);
    const cancellation = { canceled_at: '2026-03-11T00:00:00Z' };
    const canceled = at('2026-03-12T00:00:00Z', first, { revision: 2, status: 'canceled', cancellation });
    expect(canceled.terms.at(-1)).toEqual({
      from: ms('2026-03-11T00:00:00Z'),
      frequency: 'daily',
      spans: [],
    });
    expect(at('2026-03-12T00:00:00Z', first, { revision: 2, status: 'rejected' }).terms.at(-1)).toMatchObject(
      {
        spans: [],
      },
    );
  });

  it('completed at the end of its flight owes what it owed; completed before, nothing from then on', () => {
    const after = at('2026-04-02T00:00:00Z', first, { revision: 2, status: 'completed' });
    expect(after.terms).toEqual(first.terms);
    const early = at('2026-03-15T00:00:00Z', first, { revision: 2, status: 'completed' });
    expect(early.terms.at(-1)).toMatchObject({ from: ms('2026-03-15T00:00:00Z'), spans: [] });
  });

  it('an answer makes a stream verifiable, and learns its products', () => {
    const lost = streamOf({ unverifiable: 'away', products: ['p0'], since: bought });
    const is = at('2026-03-10T00:00:00Z', lost, {});
    expect(is).not.toHaveProperty('unverifiable');
    expect(is.products).toEqual(['p0', 'p1']);
    expect(is.terms).toMatchObject([{ frequency: 'daily', spans: [FLIGHT] }]);
  });
});

describe('what the owner knows of a media buy', () => {
  const terms = [{ from: 0, frequency: 'daily' as const, spans: [FLIGHT] }];

  it('nothing changes nothing', () => {
    const stream = streamOf({ terms });
    expect(withSchedule(stream, undefined)).toBe(stream);
    expect(withSchedule(stream, null)).toBe(stream);
    expect(withSchedule(stream, {})).toEqual(stream);
  });

  it('zone, delay, granularities and ranges of the product', () => {
    const given = {
      timeZone: 'Europe/Berlin',
      expectedDelayMinutes: 90,
      windowedPullGranularities: ['daily', 'weekly', 'hourly'],
      dateRangeSupport: 'lifetime_only',
    };
    expect(withSchedule(streamOf({ terms }), given)).toMatchObject({
      clock: { zone: 'Europe/Berlin', source: 'product' },
      delayMs: 90 * 60_000,
      granularities: ['hourly', 'daily'],
      hasRanges: false,
    });
    expect(withSchedule(streamOf({ hasRanges: false }), { dateRangeSupport: 'date_range' })).toMatchObject({
      hasRanges: true,
    });
  });

  it('a zone that reports have contradicted stays so; another one is tried', () => {
    const clock = { zone: 'UTC', source: 'reports', declared: 'America/New_York' } as const;
    const stream = streamOf({ terms, clock });
    expect(withSchedule(stream, { timeZone: 'America/New_York' }).clock).toEqual(clock);
    expect(withSchedule(stream, { timeZone: 'America/Chicago' }).clock).toEqual({
      zone: 'America/Chicago',
      source: 'product',
    });
  });

  it('frequency and flight, in place of the seller’s', () => {
    expect(withSchedule(streamOf({ terms }), { frequency: 'monthly' })).toMatchObject({
      frequency: 'monthly',
      terms: [{ frequency: 'monthly', spans: [FLIGHT] }],
    });
    const flight = { start: '2026-05-01T00:00:00+02:00', end: '2026-06-01T00:00:00Z' };
    expect(withSchedule(streamOf(), flight).terms).toEqual([
      {
        from: ms('2026-04-30T22:00:00Z'),
        frequency: 'daily',
        spans: [{ start: ms('2026-04-30T22:00:00Z'), end: ms('2026-06-01T00:00:00Z') }],
      },
    ]);
  });

  it.each<[unknown, RegExp]>([
    ['UTC', /schedule: returned no object\. Return \{ timeZone, … \}, or undefined/],
    [[], /returned no object/],
    [5, /returned no object/],
    [{ timeZone: 'Mars/Base' }, /timeZone "Mars\/Base" is not a time zone of this runtime/],
    [{ timeZone: '\u001b[31m' }, /timeZone "[ -~]*" is not a time zone/],
    [{ timeZone: 5 }, /timeZone 5 is not a time zone/],
    [{ timezone: 'UTC' }, /timezone is not known\. Known: timeZone,/],
    [{ expectedDelayMinutes: -1 }, /expectedDelayMinutes is not a number of minutes/],
    [{ expectedDelayMinutes: '90' }, /expectedDelayMinutes is not a number of minutes/],
    [{ expectedDelayMinutes: Infinity }, /expectedDelayMinutes is not a number of minutes/],
    [{ windowedPullGranularities: 'hourly' }, /windowedPullGranularities is not a list/],
    [{ dateRangeSupport: 'none' }, /dateRangeSupport is not date_range or lifetime_only/],
    [{ frequency: 'weekly' }, /frequency is not hourly, daily or monthly/],
    [{ start: START }, /start and end are not RFC 3339 date-times with a zone, one before the other/],
    [{ start: END, end: START }, /one before the other/],
    [{ start: '2026-03-01', end: END }, /RFC 3339 date-times/],
    [{ start: 5, end: END }, /RFC 3339 date-times/],
  ])('%j is refused, with what to return', (given, message) => {
    expect(() => withSchedule(streamOf({ terms }), given)).toThrow(ConfigError);
    expect(() => withSchedule(streamOf({ terms }), given)).toThrow(message);
  });
});
