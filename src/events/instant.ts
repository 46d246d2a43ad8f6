// Parses RFC 3339 timestamps into a sortable text and Unix ms (admission.md §5.2).
// Called for the time of events, and for times in key documents and answers.

/**
 * The time of an event in two forms: a text that sorts by time with all fraction digits, and Unix ms. `readEvent`
 * reads it from the body's RFC 3339 timestamp; stores order events by it.
 */
export interface Instant {
  /**
   * A text that sorts by plain byte comparison: seconds since year 0 in 12 digits, then the fraction without trailing
   * zeros. A leap second is written as the second before it with a `:` in front of the fraction, because `:` sorts
   * after every digit.
   */
  readonly key: string;
  /** The instant in Unix ms, rounded down. */
  readonly ms: number;
}

/** Seconds from the year 0 to 1970, and one day for zone offsets, so that keys are never negative. */
const EPOCH_OFFSET_S = 62_167_219_200 + 86_400;

/** Days of each month; February has those of a leap year. */
const DAYS: readonly number[] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function isDate(year: number, month: number, day: number): boolean {
  if (month < 1 || day < 1 || day > (DAYS[month - 1] ?? 0)) return false;
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return month !== 2 || day < 29 || leap;
}

const DAY_S = 86_400;

/**
 * Unix seconds at the beginning of a day. `Date.UTC` reads years under 100 as 19xx, so these are shifted by 400
 * years.
 */
function startOfDay(year: number, month: number, day: number): number {
  if (year >= 100) return Date.UTC(year, month - 1, day) / 1000;
  // All periods of 400 years have the same number of days.
  return Date.UTC(year + 400, month - 1, day) / 1000 - 146_097 * DAY_S;
}

/** Parses an ISO 8601 / RFC 3339 date-time with a zone; undefined for other text. */
export function parseInstant(text: string): Instant | undefined {
  const year = digits(text, 0, 4);
  const month = digits(text, 5, 2);
  const day = digits(text, 8, 2);
  const hour = digits(text, 11, 2);
  const minute = digits(text, 14, 2);
  const second = digits(text, 17, 2);
  if (!hasSeparators(text) || Number.isNaN(year + month + day + hour + minute + second)) return undefined;
  if (!isDate(year, month, day) || hour > 23 || minute > 59 || second > 60) return undefined;
  const end = fractionEnd(text);
  const zone = end === undefined ? undefined : zoneSeconds(text, end);
  if (zone === undefined) return undefined;
  const time = hour * 3600 + minute * 60 + Math.min(second, 59);
  const seconds = startOfDay(year, month, day) + time - zone;
  const fraction = withoutTrailingZeros(text.slice(SECONDS_END + 1, end));
  return {
    key: `${String(seconds + EPOCH_OFFSET_S).padStart(12, '0')}.${second === 60 ? ':' : ''}${fraction}`,
    ms: seconds * 1000 + Number(fraction.slice(0, 3).padEnd(3, '0')),
  };
}

/** Returns the number made of `count` digits. NaN if there is another character among them. */
function digits(text: string, from: number, count: number): number {
  let number = 0;
  for (let at = from; at < from + count; at += 1) {
    const digit = text.charCodeAt(at) - 0x30;
    number = digit >= 0 && digit <= 9 ? number * 10 + digit : Number.NaN;
  }
  return number;
}

/** True for the separators `-  -  T  :  :`; `T` may be in lower case or a space (RFC 3339 §5.6). */
function hasSeparators(text: string): boolean {
  const between = text[10];
  return (
    text[4] === '-' &&
    text[7] === '-' &&
    (between === 'T' || between === 't' || between === ' ') &&
    text[13] === ':' &&
    text[16] === ':'
  );
}

/** Index after the seconds, where a fraction or the zone begins. */
const SECONDS_END = 19;

/**
 * The largest number of digits of a fraction. Nanoseconds have 9. Stores keep the digits as text, so there must be a
 * limit.
 */
const MAX_FRACTION = 64;

/**
 * Returns the index after the fraction, or after the seconds if there is no fraction. Undefined if the fraction has no
 * digit or too many.
 */
function fractionEnd(text: string): number | undefined {
  if (text[SECONDS_END] !== '.') return SECONDS_END;
  const from = SECONDS_END + 1;
  let end = from;
  while (!Number.isNaN(digits(text, end, 1))) end += 1;
  return end === from || end - from > MAX_FRACTION ? undefined : end;
}

function withoutTrailingZeros(fraction: string): string {
  let end = fraction.length;
  while (end > 0 && fraction.endsWith('0', end)) end -= 1;
  return fraction.slice(0, end);
}

/**
 * Returns the offset from UTC of the zone that ends the text: `Z`, `+hh:mm` or `+hhmm`. Undefined for anything else.
 */
function zoneSeconds(text: string, at: number): number | undefined {
  const sign = text[at];
  if (sign === 'Z' || sign === 'z') return text.length === at + 1 ? 0 : undefined;
  if (sign !== '+' && sign !== '-') return undefined;
  const minuteAt = text[at + 3] === ':' ? at + 4 : at + 3;
  const hour = digits(text, at + 1, 2);
  const minute = digits(text, minuteAt, 2);
  if (text.length !== minuteAt + 2 || !(hour <= 23) || !(minute <= 59)) return undefined;
  return (hour * 60 + minute) * (sign === '-' ? -60 : 60);
}
