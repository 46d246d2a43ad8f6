import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Instant } from '../../src/events/index.ts';
import { parseInstant } from '../../src/events/for-tests.ts';

function instant(text: string): Instant {
  const parsed = parseInstant(text);
  if (!parsed) throw new Error(`${text} is not an instant`);
  return parsed;
}

describe('instants (admission.md §5.2)', () => {
  it.each([
    ['2026-03-01T12:00:00Z', Date.UTC(2026, 2, 1, 12)],
    ['2026-03-01t12:00:00z', Date.UTC(2026, 2, 1, 12)],
    ['2026-03-01 12:00:00Z', Date.UTC(2026, 2, 1, 12)],
    ['2026-03-01T12:00:00.5Z', Date.UTC(2026, 2, 1, 12, 0, 0, 500)],
    ['2026-03-01T12:00:00.0019999Z', Date.UTC(2026, 2, 1, 12, 0, 0, 1)],
    ['2026-03-01T12:00:00+02:00', Date.UTC(2026, 2, 1, 10)],
    ['2026-03-01T12:00:00-0530', Date.UTC(2026, 2, 1, 17, 30)],
    ['2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29)],
    ['1969-12-31T23:59:59.25Z', -750],
    ['0001-01-01T00:00:00Z', Date.parse('0001-01-01T00:00:00Z')],
    ['9999-12-31T23:59:59Z', Date.parse('9999-12-31T23:59:59Z')],
  ])('reads %s', (text, ms) => {
    expect(instant(text).ms).toBe(ms);
  });

  it.each([
    '',
    'now',
    '1772366400',
    '2026-03-01',
    '2026-03-01T12:00Z',
    '2026-03-01T12:00:00',
    '2026-02-29T12:00:00Z',
    '2026-02-30T12:00:00Z',
    '2026-13-01T12:00:00Z',
    '2026-00-01T12:00:00Z',
    '2026-03-00T12:00:00Z',
    '2026-03-01T24:00:00Z',
    '2026-03-01T12:60:00Z',
    '2026-03-01T12:00:61Z',
    '2026-03-01T12:00:00+24:00',
    '2026-03-01T12:00:00.Z',
    '2026-03-01T12:00:00,5Z',
    '+002026-03-01T12:00:00Z',
    ' 2026-03-01T12:00:00Z',
    '2026-03-01T12:00:00Z\n',
    '２026-03-01T12:00:00Z',
  ])('refuses %j', (text) => {
    expect(parseInstant(text)).toBeUndefined();
  });

  it('the same instant with another offset is equal', () => {
    expect(instant('2026-03-01T12:00:00Z').key).toBe(instant('2026-03-01T14:00:00.000+02:00').key);
    expect(instant('2026-03-01T00:30:00+01:00').key).toBe(instant('2026-02-28T23:30:00.0-00:00').key);
  });

  it('compares every fraction digit', () => {
    const ordered = [
      '1969-12-31T23:59:59.9Z',
      '1970-01-01T00:00:00Z',
      '2026-03-01T12:00:00Z',
      '2026-03-01T12:00:00.0000000000000000000001Z',
      '2026-03-01T12:00:00.0000000000000000000002Z',
      '2026-03-01T12:00:00.09Z',
      '2026-03-01T12:00:00.1Z',
      '2026-03-01T12:00:00.10000001Z',
      '2026-03-01T12:00:01Z',
    ].map((text) => instant(text).key);
    expect(ordered.toSorted()).toEqual(ordered);
    expect(new Set(ordered).size).toBe(ordered.length);
  });

  it('a leap second is behind all of the one before it, and before the next one', () => {
    const texts = ['23:59:59', '23:59:59.9', '23:59:59.9999999999', '23:59:60', '23:59:60.1', '23:59:60.9'];
    const keys = [...texts.map((time) => `2016-12-31T${time}Z`), '2017-01-01T00:00:00Z'].map(
      (text) => instant(text).key,
    );
    expect(keys.toSorted()).toEqual(keys);
    expect(new Set(keys).size).toBe(keys.length);
    expect(instant('2016-12-31T23:59:60.25Z').ms).toBe(instant('2016-12-31T23:59:59.25Z').ms);
  });

  it('never has a negative key, whatever the offset', () => {
    expect(instant('0000-01-01T00:00:00+23:59').key).toMatch(/^\d{12}\.$/);
    expect(instant('9999-12-31T23:59:59-23:59').key).toMatch(/^\d{12}\.$/);
  });

  it('orders keys as Date orders times', () => {
    const date = fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-30'), noInvalidDate: true });
    fc.assert(
      fc.property(date, date, (a, b) => {
        const [left, right] = [instant(a.toISOString()), instant(b.toISOString())];
        expect(left.ms).toBe(a.getTime());
        expect(left.key < right.key).toBe(a < b);
      }),
    );
  });

  it('reads what the grammar of RFC 3339 §5.6 has, and nothing else', () => {
    const grammar =
      /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,64}))?(?:[Zz]|([+-])(\d{2}):?(\d{2}))$/;
    const expected = (text: string): number | undefined => {
      const match = grammar.exec(text);
      if (!match) return undefined;
      const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
      const [fraction = '', sign = '+', zoneHour = '0', zoneMinute = '0'] = match.slice(7);
      const date = new Date(0);
      date.setUTCFullYear(year, month - 1, day);
      const exists = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
      if (!exists || hour > 23 || minute > 59 || second > 60) return undefined;
      if (Number(zoneHour) > 23 || Number(zoneMinute) > 59) return undefined;
      const zone = (Number(zoneHour) * 60 + Number(zoneMinute)) * (sign === '-' ? -60 : 60);
      const time = hour * 3600 + minute * 60 + Math.min(second, 59) - zone;
      return date.getTime() + time * 1000 + Number(fraction.slice(0, 3).padEnd(3, '0'));
    };
    const number = (digits: number) =>
      fc.oneof(
        { weight: 20, arbitrary: fc.nat(10 ** digits - 1).map((n) => String(n).padStart(digits, '0')) },
        fc.string({ unit: fc.constantFrom(...Array.from('0159-+.: Zz٣')), maxLength: digits + 1 }),
      );
    const mark = (...usual: string[]) =>
      fc.oneof({ weight: 20, arbitrary: fc.constantFrom(...usual) }, fc.constantFrom('', '/', '0', 'Z', '.'));
    const small = (max: number) => fc.nat(max).map((n) => String(n).padStart(2, '0'));
    const two = (max: number) => fc.oneof({ weight: 8, arbitrary: small(max) }, number(2));
    const fraction = fc
      .string({ unit: fc.constantFrom(...Array.from('0123456789')), maxLength: 70 })
      .map((digits) => `.${digits}`);
    const offset = fc
      .tuple(mark('+', '-'), two(24), fc.constantFrom(':', ':', ''), two(60))
      .map((parts) => parts.join(''));
    const text = fc
      .tuple(
        number(4),
        mark('-'),
        two(13),
        mark('-'),
        two(32),
        mark('T', 't', ' '),
        two(24),
        mark(':'),
        two(60),
        mark(':'),
        two(61),
        fc.oneof(fc.constant(''), fraction),
        fc.oneof(mark('Z', 'z'), offset),
      )
      .map((parts) => parts.join(''));
    let read = 0;
    fc.assert(
      fc.property(text, (candidate) => {
        const ms = parseInstant(candidate)?.ms;
        if (ms !== undefined) read += 1;
        // Without the sign of a zero.
        expect(ms === undefined ? ms : ms + 0).toBe(expected(candidate));
      }),
      { numRuns: 5000 },
    );
    expect(read).toBeGreaterThan(500);
  });
});
