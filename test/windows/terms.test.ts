import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Clock,
  clockOf,
  type Frequency,
  joined,
  owedRuns,
  type Runs,
  type Terms,
  UTC,
  windowAt,
  windowPeriod,
  withTerms,
} from '../../src/windows/for-tests.ts';

const at = Date.parse;
const span = (start: string, end: string): { start: number; end: number } => ({
  start: at(start),
  end: at(end),
});
const zone = (name: string): Clock => {
  const found = clockOf(name);
  expect.assert(found);
  return found;
};
/** Starts of owed windows, as text. */
const startsOf = (terms: readonly Terms[], frequency: Frequency, clock: Clock, until: string): string[] =>
  owedRuns(terms, frequency, clock, at(until)).flatMap(([first, end]) =>
    Array.from({ length: end - first }, (_, step) =>
      new Date(windowPeriod(frequency, clock, first + step).start).toISOString().slice(0, 16),
    ),
  );

const always = (
  frequency: Frequency,
  ...spans: readonly { start: number; end: number }[]
): readonly Terms[] => [{ from: at('2026-03-01T09:00:00Z'), frequency, spans: joined(spans) }];

describe('which windows are owed (owed.md §1.4)', () => {
  it('the flight decides, its first and last day whole or cut', () => {
    const terms = always('daily', span('2026-03-02T15:00:00Z', '2026-03-04T06:30:00Z'));
    expect(startsOf(terms, 'daily', UTC, '2026-03-10T00:00:00Z')).toEqual([
      '2026-03-02T00:00',
      '2026-03-03T00:00',
      '2026-03-04T00:00',
    ]);
    expect(startsOf(terms, 'hourly', UTC, '2026-03-10T00:00:00Z')).toEqual([]);
  });

  it('a flight that ends at midnight owes no day behind it', () => {
    const terms = always('daily', span('2026-03-02T05:00:00Z', '2026-03-04T05:00:00Z'));
    const newYork = zone('America/New_York');
    expect(startsOf(terms, 'daily', newYork, '2026-03-10T00:00:00Z')).toEqual([
      '2026-03-02T05:00',
      '2026-03-03T05:00',
    ]);
  });

  it('none before it has ended', () => {
    const terms = always('daily', span('2026-03-02T00:00:00Z', '2026-03-09T00:00:00Z'));
    expect(startsOf(terms, 'daily', UTC, '2026-03-01T23:59:59Z')).toEqual([]);
    expect(startsOf(terms, 'daily', UTC, '2026-03-02T23:59:59.999Z')).toEqual([]);
    expect(startsOf(terms, 'daily', UTC, '2026-03-03T00:00:00Z')).toEqual(['2026-03-02T00:00']);
  });

  it('packages that are not active leave gaps', () => {
    const terms = always(
      'daily',
      span('2026-03-02T00:00:00Z', '2026-03-03T12:00:00Z'),
      span('2026-03-05T00:00:00Z', '2026-03-06T00:00:00Z'),
    );
    expect(startsOf(terms, 'daily', UTC, '2026-03-20T00:00:00Z')).toEqual([
      '2026-03-02T00:00',
      '2026-03-03T00:00',
      '2026-03-05T00:00',
    ]);
  });

  it('a buy that is paused within an hour does not owe it, and owes again from the hour in which it goes on', () => {
    const flight = span('2026-03-02T08:00:00Z', '2026-03-02T16:00:00Z');
    let terms = always('hourly', flight);
    terms = withTerms(terms, { from: at('2026-03-02T10:30:00Z'), frequency: 'hourly', spans: [] });
    terms = withTerms(terms, {
      from: at('2026-03-02T13:30:00Z'),
      frequency: 'hourly',
      spans: [{ start: at('2026-03-02T13:30:00Z'), end: flight.end }],
    });
    expect(startsOf(terms, 'hourly', UTC, '2026-03-03T00:00:00Z').map((text) => text.slice(11))).toEqual([
      '08:00',
      '09:00',
      '13:00',
      '14:00',
      '15:00',
    ]);
  });

  it('a buy that completes by itself owes its last, cut day', () => {
    const flight = span('2026-03-02T00:00:00Z', '2026-03-03T15:30:00Z');
    const terms = withTerms(always('daily', flight), {
      from: at('2026-03-03T15:30:05Z'),
      frequency: 'daily',
      spans: [],
    });
    expect(startsOf(terms, 'daily', UTC, '2026-03-20T00:00:00Z')).toEqual([
      '2026-03-02T00:00',
      '2026-03-03T00:00',
    ]);
  });

  it('another frequency holds from the window that ends under it', () => {
    const flight = span('2026-03-02T00:00:00Z', '2026-03-06T00:00:00Z');
    const terms = withTerms(always('daily', flight), {
      from: at('2026-03-04T12:00:00Z'),
      frequency: 'hourly',
      spans: [flight],
    });
    expect(startsOf(terms, 'daily', UTC, '2026-03-20T00:00:00Z')).toEqual([
      '2026-03-02T00:00',
      '2026-03-03T00:00',
    ]);
    const hours = startsOf(terms, 'hourly', UTC, '2026-03-20T00:00:00Z');
    expect([hours[0], hours.length]).toEqual(['2026-03-04T12:00', 36]);
  });

  it('an open end owes on and on', () => {
    const terms = always('monthly', { start: at('2026-01-20T00:00:00Z'), end: Infinity });
    expect(startsOf(terms, 'monthly', zone('Europe/Berlin'), '2026-04-10T00:00:00Z')).toEqual([
      '2025-12-31T23:00',
      '2026-01-31T23:00',
      '2026-02-28T23:00',
    ]);
  });

  it('terms that say the same as the last are not kept', () => {
    const terms = always('daily', span('2026-03-02T00:00:00Z', '2026-03-09T00:00:00Z'));
    const [first] = terms;
    expect.assert(first);
    expect(withTerms(terms, { ...first, from: at('2026-03-05T00:00:00Z') })).toEqual(terms);
  });

  it('spans of a thousand packages apart are a hundred', () => {
    const apart = Array.from({ length: 1000 }, (_, at) => ({ start: 2 * at, end: 2 * at + 1 }));
    const spans = joined(apart);
    expect(spans.length).toBe(100);
    expect(spans.at(-1)).toEqual({ start: 198, end: 1999 });
  });

  it('is what counting window by window gives, in any zone, whatever terms follow one another', () => {
    const hour = 3_600_000;
    const base = at('2026-03-01T00:00:00Z');
    const instant = fc.integer({ min: 0, max: 40 * 24 * 4 }).map((quarter) => base + (quarter * hour) / 4);
    const period = fc
      .tuple(instant, fc.integer({ min: 1, max: 12 * 24 * 4 }))
      .map(([start, quarters]) => ({ start, end: start + (quarters * hour) / 4 }));
    const one = fc.record({
      from: instant,
      frequency: fc.constantFrom<Frequency | null>('hourly', 'daily', null),
      spans: fc.array(period, { maxLength: 3 }).map(joined),
    });
    const zones = fc.constantFrom('UTC', 'America/New_York', 'Europe/Berlin', 'Asia/Kolkata');
    fc.assert(
      fc.property(fc.array(one, { minLength: 1, maxLength: 4 }), zones, instant, (list, name, until) => {
        const clock = zone(name);
        const terms = list
          .toSorted((a, b) => a.from - b.from)
          .reduce<readonly Terms[]>((known, next) => withTerms(known, next), []);
        for (const frequency of ['hourly', 'daily'] as const) {
          expect(owedRuns(terms, frequency, clock, until).flatMap(expand)).toEqual(
            byHand(terms, frequency, clock, until),
          );
        }
      }),
      { numRuns: 60 },
    );
  });
});

const expand = ([first, end]: Runs[number]): number[] =>
  Array.from({ length: end - first }, (_, at) => first + at);

/** Window by window, as the rule is written. */
function byHand(terms: readonly Terms[], frequency: Frequency, clock: Clock, until: number): number[] {
  const owed: number[] = [];
  const first = windowAt(frequency, clock, at('2026-02-27T00:00:00Z'));
  for (let number = first; windowPeriod(frequency, clock, number).end <= until; number += 1) {
    const window = windowPeriod(frequency, clock, number);
    const isOwed = terms.some((is, index) => {
      const lastEnd = is.spans.at(-1)?.end ?? -Infinity;
      const end = Math.min(window.end, lastEnd);
      const next = terms[index + 1]?.from ?? Infinity;
      const isInForce = (index === 0 || end > is.from) && end <= next;
      const isActive = is.spans.some((one) => one.start < window.end && window.start < one.end);
      return is.frequency === frequency && isInForce && isActive;
    });
    if (isOwed) owed.push(number);
  }
  return owed;
}
