import { describe, expect, it } from 'vitest';
import {
  type Clock,
  clockOf,
  type Frequency,
  UTC,
  windowAt,
  windowPeriod,
} from '../../src/windows/for-tests.ts';

const clock = (zone: string): Clock => {
  const found = clockOf(zone);
  expect.assert(found);
  return found;
};
const at = Date.parse;
/** The period of the window in which an instant lies, as text. */
const around = (frequency: Frequency, zone: string, instant: string): readonly string[] => {
  const { start, end } = windowPeriod(frequency, clock(zone), windowAt(frequency, clock(zone), at(instant)));
  return [new Date(start).toISOString(), new Date(end).toISOString()];
};

describe('windows of a clock (owed.md §2.1)', () => {
  // By hand, from the rules of each zone.
  const ROWS: readonly (readonly [Frequency, string, string, string, string])[] = [
    [
      'hourly',
      'Asia/Kolkata',
      '2026-03-08T10:59:59.999Z',
      '2026-03-08T10:00:00.000Z',
      '2026-03-08T11:00:00.000Z',
    ],
    ['daily', 'UTC', '2026-03-08T23:59:59.999Z', '2026-03-08T00:00:00.000Z', '2026-03-09T00:00:00.000Z'],
    [
      'daily',
      'America/New_York',
      '2026-03-07T12:00:00Z',
      '2026-03-07T05:00:00.000Z',
      '2026-03-08T05:00:00.000Z',
    ],
    // 23 hours: the clock goes forward at 2 o'clock.
    [
      'daily',
      'America/New_York',
      '2026-03-08T12:00:00Z',
      '2026-03-08T05:00:00.000Z',
      '2026-03-09T04:00:00.000Z',
    ],
    // 25 hours.
    [
      'daily',
      'America/New_York',
      '2026-11-01T12:00:00Z',
      '2026-11-01T04:00:00.000Z',
      '2026-11-02T05:00:00.000Z',
    ],
    [
      'daily',
      'Europe/Berlin',
      '2026-03-29T12:00:00Z',
      '2026-03-28T23:00:00.000Z',
      '2026-03-29T22:00:00.000Z',
    ],
    [
      'daily',
      'Europe/Berlin',
      '2026-10-25T12:00:00Z',
      '2026-10-24T22:00:00.000Z',
      '2026-10-25T23:00:00.000Z',
    ],
    // There is no midnight: the clock leaps from 0 to 1 o'clock.
    ['daily', 'Africa/Cairo', '2026-04-24T12:00:00Z', '2026-04-23T22:00:00.000Z', '2026-04-24T21:00:00.000Z'],
    // There are two midnights: the clock goes back from 1 to 0 o'clock.
    [
      'daily',
      'America/Havana',
      '2026-11-01T12:00:00Z',
      '2026-11-01T04:00:00.000Z',
      '2026-11-02T05:00:00.000Z',
    ],
    // 14 hours ahead, and half an hour of summer time.
    [
      'daily',
      'Pacific/Kiritimati',
      '2026-01-01T10:00:00Z',
      '2026-01-01T10:00:00.000Z',
      '2026-01-02T10:00:00.000Z',
    ],
    [
      'daily',
      'Australia/Lord_Howe',
      '2026-04-04T20:00:00Z',
      '2026-04-04T13:00:00.000Z',
      '2026-04-05T13:30:00.000Z',
    ],
    // A day that Samoa left out: the 30th of December 2011.
    ['daily', 'Pacific/Apia', '2011-12-30T09:59:59Z', '2011-12-29T10:00:00.000Z', '2011-12-30T10:00:00.000Z'],
    ['daily', '+05:30', '2026-01-01T18:29:59Z', '2025-12-31T18:30:00.000Z', '2026-01-01T18:30:00.000Z'],
    ['monthly', 'UTC', '2024-02-29T23:59:59Z', '2024-02-01T00:00:00.000Z', '2024-03-01T00:00:00.000Z'],
    [
      'monthly',
      'Europe/Berlin',
      '2026-03-31T21:59:59Z',
      '2026-02-28T23:00:00.000Z',
      '2026-03-31T22:00:00.000Z',
    ],
    [
      'monthly',
      'America/New_York',
      '2026-01-01T04:59:59Z',
      '2025-12-01T05:00:00.000Z',
      '2026-01-01T05:00:00.000Z',
    ],
  ];

  it.each(ROWS)('%s, %s: %s', (frequency, zone, instant, start, end) => {
    expect(around(frequency, zone, instant)).toEqual([start, end]);
  });

  it('leaves no gap and no overlap in any zone: a window ends where the next begins, and has what lies in it', () => {
    for (const zone of Intl.supportedValuesOf('timeZone')) {
      const by = clock(zone);
      let number = windowAt('daily', by, at('2026-01-01T00:00:00Z'));
      const last = windowAt('daily', by, at('2027-01-05T00:00:00Z'));
      let before: number | undefined;
      for (; number < last; number += 31) {
        for (const one of [number, number + 1]) {
          const { start, end } = windowPeriod('daily', by, one);
          expect(end - start, `${zone} ${one}`).toBeGreaterThanOrEqual(22 * 3_600_000);
          expect(windowAt('daily', by, start), `${zone} ${one}`).toBe(one);
          expect(windowAt('daily', by, end - 1), `${zone} ${one}`).toBe(one);
          if (one === number + 1) expect(start).toBe(before);
          before = end;
        }
      }
    }
  });

  it('knows no clock of another name', () => {
    for (const zone of ['', 'Mars/Olympus', 'UTC\0', 'x'.repeat(10_000), '__proto__']) {
      expect(clockOf(zone), zone).toBeUndefined();
    }
    expect(clockOf('UTC')).toBe(UTC);
  });
});
