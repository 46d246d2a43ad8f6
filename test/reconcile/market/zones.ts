/*
 * The calendar of the sellers of a market, written by hand: nothing here is computed by what the buyer computes with.
 * 2026: New York goes from UTC-5 to UTC-4 on 8 March and back on 1 November, Berlin from UTC+1 to UTC+2 on 29 March and
 * back on 25 October; 2027: on 14 March and 28 March.
 */

export type Zone = 'America/New_York' | 'Europe/Berlin' | 'UTC';

/** A period, Unix ms. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

const two = (n: number): string => String(n).padStart(2, '0');

/** Midnights from the one of 1 March to the one of 3 April 2026. */
const NEW_YORK_DAYS = [
  ...[1, 2, 3, 4, 5, 6, 7, 8].map((n) => `2026-03-${two(n)}T05:00:00Z`),
  ...[9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20].map((n) => `2026-03-${two(n)}T04:00:00Z`),
  ...[21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31].map((n) => `2026-03-${two(n)}T04:00:00Z`),
  '2026-04-01T04:00:00Z',
  '2026-04-02T04:00:00Z',
  '2026-04-03T04:00:00Z',
];

const BERLIN_DAYS = [
  '2026-02-28T23:00:00Z',
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14].map((n) => `2026-03-${two(n)}T23:00:00Z`),
  ...[15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28].map((n) => `2026-03-${two(n)}T23:00:00Z`),
  '2026-03-29T22:00:00Z',
  '2026-03-30T22:00:00Z',
  '2026-03-31T22:00:00Z',
  '2026-04-01T22:00:00Z',
  '2026-04-02T22:00:00Z',
];

/** The first of each month from March 2026 to April 2027. */
const NEW_YORK_MONTHS = [
  '2026-03-01T05:00:00Z',
  '2026-04-01T04:00:00Z',
  '2026-05-01T04:00:00Z',
  '2026-06-01T04:00:00Z',
  '2026-07-01T04:00:00Z',
  '2026-08-01T04:00:00Z',
  '2026-09-01T04:00:00Z',
  '2026-10-01T04:00:00Z',
  '2026-11-01T04:00:00Z',
  '2026-12-01T05:00:00Z',
  '2027-01-01T05:00:00Z',
  '2027-02-01T05:00:00Z',
  '2027-03-01T05:00:00Z',
  '2027-04-01T04:00:00Z',
];

const BERLIN_MONTHS = [
  '2026-02-28T23:00:00Z',
  '2026-03-31T22:00:00Z',
  '2026-04-30T22:00:00Z',
  '2026-05-31T22:00:00Z',
  '2026-06-30T22:00:00Z',
  '2026-07-31T22:00:00Z',
  '2026-08-31T22:00:00Z',
  '2026-09-30T22:00:00Z',
  '2026-10-31T23:00:00Z',
  '2026-11-30T23:00:00Z',
  '2026-12-31T23:00:00Z',
  '2027-01-31T23:00:00Z',
  '2027-02-28T23:00:00Z',
  '2027-03-31T22:00:00Z',
];

const UTC_DAYS = [
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16].map((n) => `2026-03-${two(n)}T00:00:00Z`),
  ...[17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31].map((n) => `2026-03-${two(n)}T00:00:00Z`),
  '2026-04-01T00:00:00Z',
  '2026-04-02T00:00:00Z',
  '2026-04-03T00:00:00Z',
];

const UTC_MONTHS = [
  ...[3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map((n) => `2026-${two(n)}-01T00:00:00Z`),
  ...[1, 2, 3, 4].map((n) => `2027-${two(n)}-01T00:00:00Z`),
];

const spans = (texts: readonly string[]): readonly Span[] => {
  const at = texts.map((text) => Date.parse(text));
  return at.slice(1).map((end, index) => ({ start: at[index] ?? end, end }));
};

const DAYS: Readonly<Record<Zone, readonly Span[]>> = {
  'America/New_York': spans(NEW_YORK_DAYS),
  'Europe/Berlin': spans(BERLIN_DAYS),
  UTC: spans(UTC_DAYS),
};

const MONTHS: Readonly<Record<Zone, readonly Span[]>> = {
  'America/New_York': spans(NEW_YORK_MONTHS),
  'Europe/Berlin': spans(BERLIN_MONTHS),
  UTC: spans(UTC_MONTHS),
};

/** The 33 days from 1 March to 2 April 2026. */
export const daysOf = (zone: Zone): readonly Span[] => DAYS[zone];

/** The 13 months from March 2026. */
export const monthsOf = (zone: Zone): readonly Span[] => MONTHS[zone];

/** The hours of those 33 days. */
export function hoursOf(zone: Zone): readonly Span[] {
  const hours: Span[] = [];
  for (const { start, end } of daysOf(zone)) {
    for (let at = start; at < end; at += 3_600_000) hours.push({ start: at, end: at + 3_600_000 });
  }
  return hours;
}

/** The calendar date on which a day of the table begins: 2026-03-01 for the first. */
export function dateOf(index: number): string {
  return index < 31 ? `2026-03-${two(index + 1)}` : `2026-04-${two(index - 30)}`;
}

/** The calendar date on which a month of the table begins. */
export function monthDateOf(index: number): string {
  return index < 10 ? `2026-${two(index + 3)}-01` : `2027-${two(index - 9)}-01`;
}
