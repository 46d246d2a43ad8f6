import { describe, expect, it } from 'vitest';
import {
  type Claimed,
  claimedIn,
  completedIn,
  count,
  emptyStream,
  hadIn,
  placedAnew,
  type Reported,
  standsIn,
  type Stream,
  streamIn,
  streamText,
  type Terms,
} from '../../src/windows/for-tests.ts';

const at = Date.parse;
const NOW = at('2026-04-01T00:00:00Z');
const everything = { now: NOW, isThere: () => true };
const FLIGHT = { start: at('2026-03-02T15:00:00Z'), end: at('2026-03-20T06:30:00Z') };

function stream(frequency: Terms['frequency'], zone = 'UTC', flight = FLIGHT): Stream {
  return {
    ...emptyStream('buy-1'),
    terms: [{ from: at('2026-03-01T00:00:00Z'), frequency, spans: [flight] }],
    clock: { zone, source: zone === 'UTC' ? 'default' : 'product' },
  };
}

let keys = 0;
function reported(start: string, end: string, more: Partial<Reported> = {}): Reported {
  keys += 1;
  return { start: at(start), end: at(end), stage: '', key: `event-${keys}`, isRevision: false, ...more };
}

const startOf = ({ window }: Claimed): string | undefined =>
  window && new Date(window.start).toISOString().slice(0, 16);

describe('the window of a period (owed.md §2)', () => {
  it.each([
    ['half open', '2026-03-05T00:00:00Z', '2026-03-06T00:00:00Z'],
    ['to the second', '2026-03-05T00:00:00Z', '2026-03-05T23:59:59Z'],
    ['to the millisecond', '2026-03-05T00:00:00Z', '2026-03-05T23:59:59.999Z'],
    ['to the minute', '2026-03-05T00:00:00Z', '2026-03-05T23:59:00Z'],
  ])('an end %s is the day', (_name, start, end) => {
    expect(startOf(claimedIn(stream('daily'), reported(start, end), everything))).toBe('2026-03-05T00:00');
  });

  it.each([
    ['the first day, cut', '2026-03-02T15:00:00Z', '2026-03-03T00:00:00Z', '2026-03-02T00:00'],
    ['the first day, whole', '2026-03-02T00:00:00Z', '2026-03-03T00:00:00Z', '2026-03-02T00:00'],
    ['the last day, cut', '2026-03-20T00:00:00Z', '2026-03-20T06:30:00Z', '2026-03-20T00:00'],
    ['the last day, cut to the second', '2026-03-20T00:00:00Z', '2026-03-20T06:29:59Z', '2026-03-20T00:00'],
    ['the last day, whole', '2026-03-20T00:00:00Z', '2026-03-20T23:59:59Z', '2026-03-20T00:00'],
    ['a day that is not owed', '2026-03-01T00:00:00Z', '2026-03-02T00:00:00Z', '2026-03-01T00:00'],
  ])('%s', (_name, start, end, window) => {
    expect(startOf(claimedIn(stream('daily'), reported(start, end), everything))).toBe(window);
  });

  it.each([
    ['half a day', '2026-03-05T00:00:00Z', '2026-03-05T12:00:00Z'],
    ['two days', '2026-03-05T00:00:00Z', '2026-03-07T00:00:00Z'],
    ['drift', '2026-03-05T00:07:00Z', '2026-03-06T00:07:00Z'],
    ['an end over a minute short', '2026-03-05T00:00:00Z', '2026-03-05T23:58:59Z'],
    ['an end past the boundary', '2026-03-05T00:00:00Z', '2026-03-06T00:00:01Z'],
    ['backwards', '2026-03-06T00:00:00Z', '2026-03-05T00:00:00Z'],
    ['a day of another year', '2019-03-05T00:00:00Z', '2019-03-06T00:00:00Z'],
  ])('%s fits none, and is kept to look at', (_name, start, end) => {
    const { stream: after, window } = claimedIn(stream('daily'), reported(start, end), everything);
    expect(window).toBeUndefined();
    expect(after.claims).toEqual([]);
    expect(after.unplaced).toHaveLength(1);
  });

  it('a day of an hourly stream has none of its hours', () => {
    const day = reported('2026-03-05T00:00:00Z', '2026-03-06T00:00:00Z');
    expect(claimedIn(stream('hourly'), day, everything).window).toBeUndefined();
  });

  it('what lies ahead is no window, and not kept', () => {
    const ahead = reported('2026-04-09T00:00:00Z', '2026-04-10T00:00:00Z');
    const before = stream('daily');
    expect(claimedIn(before, ahead, everything)).toEqual({ stream: before, isRepeated: false });
  });

  it('keeps the last 20 that fit nothing', () => {
    let is = stream('daily');
    for (let hour = 0; hour < 30; hour += 1) {
      const start = at('2026-03-05T00:07:00Z') + hour * 3_600_000;
      is = claimedIn(
        is,
        { start, end: start + 60_000, stage: '', key: `k${hour}`, isRevision: false },
        everything,
      ).stream;
    }
    expect(is.unplaced).toHaveLength(20);
    expect(is.unplaced.at(-1)?.key).toBe('k29');
  });
});

describe('the clock of a stream (owed.md §2.2)', () => {
  const utcDay = (day: number): Reported =>
    reported(`2026-03-0${day}T00:00:00Z`, `2026-03-0${day + 1}T00:00:00Z`);

  it('is UTC once two days running fit it and not the declared zone; the first is placed then too', () => {
    const first = claimedIn(stream('daily', 'America/New_York'), utcDay(5), everything);
    expect(first.window).toBeUndefined();
    const done = completedIn(first.stream, first.stream.unplaced[0]?.key ?? '');
    const second = claimedIn(done, utcDay(6), everything);
    expect(second.stream.clock).toEqual({ zone: 'UTC', source: 'reports', declared: 'America/New_York' });
    expect(startOf(second)).toBe('2026-03-06T00:00');
    expect(count(hadIn(second.stream, 'daily'))).toBe(1);
    expect(second.stream.claims).toHaveLength(1);
    expect(second.stream.unplaced).toEqual([]);
  });

  it('stays for two days that do not follow each other', () => {
    const apart = claimedIn(
      claimedIn(stream('daily', 'America/New_York'), utcDay(3), everything).stream,
      utcDay(5),
      everything,
    );
    expect(apart.stream.clock.zone).toBe('America/New_York');
  });

  it('places days of 23 hours', () => {
    const day = reported('2026-03-08T05:00:00Z', '2026-03-09T03:59:59Z');
    expect(startOf(claimedIn(stream('daily', 'America/New_York'), day, everything))).toBe('2026-03-08T05:00');
  });
});

describe('what came (owed.md §3)', () => {
  const day = ['2026-03-05T00:00:00Z', '2026-03-06T00:00:00Z'] as const;

  it('a window is had once its event is done, and not before', () => {
    const report = reported(...day);
    const claimed = claimedIn(stream('daily'), report, everything);
    expect(claimed.isRepeated).toBe(false);
    expect(count(hadIn(claimed.stream, 'daily'))).toBe(0);
    const done = completedIn(claimed.stream, report.key);
    expect(count(hadIn(done, 'daily'))).toBe(1);
    expect(done.claims).toEqual([]);
    expect(completedIn(done, report.key)).toEqual(done);
  });

  it('the same event again changes nothing', () => {
    const report = reported(...day);
    const claimed = claimedIn(stream('daily'), report, everything);
    expect(claimedIn(claimed.stream, report, everything)).toEqual(claimed);
  });

  it('another event of a window is a repetition, done or not; one whose record is gone is none', () => {
    const first = reported(...day);
    const claimed = claimedIn(stream('daily'), first, everything).stream;
    expect(claimedIn(claimed, reported(...day), everything).isRepeated).toBe(true);
    expect(claimedIn(completedIn(claimed, first.key), reported(...day), everything).isRepeated).toBe(true);
    const gone = claimedIn(claimed, reported(...day), { now: NOW, isThere: (key) => key !== first.key });
    expect(gone.isRepeated).toBe(false);
    expect(gone.stream.claims.map(({ key }) => key)).not.toContain(first.key);
  });

  it('a correction repeats nothing, nor does another stage; each has the window', () => {
    const first = reported(...day);
    const claimed = completedIn(claimedIn(stream('daily'), first, everything).stream, first.key);
    expect(claimedIn(claimed, reported(...day, { isRevision: true }), everything).isRepeated).toBe(false);
    const staged = claimedIn(claimed, reported(...day, { stage: 'c3' }), everything);
    expect(staged.isRepeated).toBe(false);
    expect(claimedIn(staged.stream, reported(...day, { stage: 'c3' }), everything).isRepeated).toBe(true);
    expect(count(hadIn(completedIn(staged.stream, staged.stream.claims[0]?.key ?? ''), 'daily'))).toBe(1);
  });

  it('a pull stands back for a window that is had, or claimed by an event that is there', () => {
    const first = reported(...day);
    const period = { start: at(day[0]), end: at(day[1]) };
    const before = stream('daily');
    expect(standsIn(before, period, everything)).toBe(false);
    const claimed = claimedIn(before, first, everything).stream;
    expect(standsIn(claimed, period, everything)).toBe(true);
    expect(standsIn(claimed, period, { isThere: () => false })).toBe(false);
    expect(standsIn(completedIn(claimed, first.key), period, { isThere: () => false })).toBe(true);
  });

  it("names of stages are the seller's: nine are no more than eight, and no prototype is reached", () => {
    let is = stream('daily');
    for (const stage of ['__proto__', 'constructor', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8']) {
      const report = reported(...day, { stage });
      is = completedIn(claimedIn(is, report, everything).stream, report.key);
      is = streamIn(streamText(is));
    }
    expect(is.had.length).toBeLessThanOrEqual(9);
    expect(count(hadIn(is, 'daily'))).toBe(1);
    expect(({} as Record<string, unknown>)['daily']).toBeUndefined();
  });
});

describe('a report before its stream (owed.md §3.6)', () => {
  it('waits, and is placed once terms are known', () => {
    const [first, second] = [
      reported('2026-03-05T00:00:00Z', '2026-03-05T23:59:59Z'),
      reported('2026-03-06T00:00:00Z', '2026-03-06T23:59:59Z'),
    ];
    let is = emptyStream('buy-1');
    for (const report of [first, second]) is = claimedIn(is, report, everything).stream;
    is = completedIn(is, first.key);
    const placed = placedAnew({ ...is, terms: stream('daily').terms });
    expect(count(hadIn(placed, 'daily'))).toBe(1);
    expect(placed.claims.map(({ key }) => key)).toEqual([second.key]);
    expect(placed.unplaced).toEqual([]);
  });

  it('200 wait', () => {
    let is = emptyStream('buy-1');
    for (let hour = 0; hour < 210; hour += 1) {
      const start = FLIGHT.start + hour * 3_600_000;
      is = claimedIn(
        is,
        { start, end: start + 3_600_000, stage: '', key: `k${hour}`, isRevision: false },
        everything,
      ).stream;
    }
    expect(is.unplaced).toHaveLength(200);
    expect(is.unplaced.at(-1)?.key).toBe('k209');
  });
});

it('a stream is read as it was written, an open end too', () => {
  const open = stream('daily', 'UTC', { start: FLIGHT.start, end: Infinity });
  expect(streamIn(streamText(open))).toEqual(open);
});

describe('a key that comes anew (owed.md §3.4)', () => {
  const mine = stream('daily');
  const gone = { now: NOW, isThere: () => false };
  const claimed = (of: Stream, n: number, step = everything): Stream =>
    claimedIn(of, reported(`2026-03-${n}T00:00:00Z`, `2026-03-${n + 1}T00:00:00Z`, { key: 'again' }), step)
      .stream;

  it('does not complete the window of the event that was discarded', () => {
    const done = completedIn(claimed(claimed(mine, 10), 12, gone), 'again');
    expect(hadIn(done, 'daily').flatMap(([first, end]) => [first, end])).toEqual([
      at('2026-03-12T00:00:00Z') / 86_400_000,
      at('2026-03-13T00:00:00Z') / 86_400_000,
    ]);
  });

  it('nor the period that it brought before its media buy was known', () => {
    const waiting = claimed(claimed(emptyStream('buy-1'), 10), 12, gone);
    const placed = placedAnew({ ...completedIn(waiting, 'again'), terms: mine.terms });
    expect(count(hadIn(placed, 'daily'))).toBe(1);
    expect(placed.claims).toEqual([]);
  });
});

describe('a flood of reports of one window', () => {
  it('does not grow its account', () => {
    const flooded = Array.from({ length: 1000 }).reduce<Stream>(
      (so) => claimedIn(so, reported('2026-03-10T00:00:00Z', '2026-03-11T00:00:00Z'), everything).stream,
      stream('daily'),
    );
    expect(streamText(flooded).length).toBeLessThan(2000);
    expect(flooded.counts.repeated).toBe(999);
  });
});
