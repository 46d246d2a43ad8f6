/** An RFC 3339 instant, compared with every fraction digit (design.md, "The store", Ordering). */
export interface Instant {
  /** Sorts by plain byte comparison: seconds since year 0, 12 digits, then the fraction without trailing zeros. */
  readonly key: string;
  /** Unix ms, rounded down. */
  readonly ms: number;
}

const RFC3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,64}))?(?:[Zz]|([+-])(\d{2}):?(\d{2}))$/;

/** Seconds from year 0 to 1970, so that keys are never negative. */
const EPOCH_OFFSET_S = 62_167_219_200 + 86_400;

/** Days of each month; February's in a leap year. */
const DAYS: readonly number[] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function isDate(year: number, month: number, day: number): boolean {
  if (month < 1 || day < 1 || day > (DAYS[month - 1] ?? 0)) return false;
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return month !== 2 || day < 29 || leap;
}

const DAY_S = 86_400;

/** Unix seconds at which a day begins. `Date.UTC` takes years under 100 for those of the last century. */
function startOfDay(year: number, month: number, day: number): number {
  if (year >= 100) return Date.UTC(year, month - 1, day) / 1000;
  // 400 years are as many days, whichever they are.
  return Date.UTC(year + 400, month - 1, day) / 1000 - 146_097 * DAY_S;
}

function withoutTrailingZeros(digits: string): string {
  let end = digits.length;
  while (end > 0 && digits.endsWith('0', end)) end -= 1;
  return digits.slice(0, end);
}

/** Reads an ISO 8601 / RFC 3339 date-time with a zone; undefined where it is none. A leap second counts as :59. */
export function parseInstant(text: string): Instant | undefined {
  const match = RFC3339.exec(text);
  if (!match) return undefined;
  const year = Number(match[1]);
  const month = Number(match[2]);
  const day = Number(match[3]);
  const hour = Number(match[4]);
  const minute = Number(match[5]);
  const second = Number(match[6]);
  const zone = zoneSeconds(match[8], match[9], match[10]);
  if (!isDate(year, month, day) || hour > 23 || minute > 59 || second > 60) return undefined;
  if (zone === undefined) return undefined;
  const time = hour * 3600 + minute * 60 + Math.min(second, 59);
  const seconds = startOfDay(year, month, day) + time - zone;
  const digits = withoutTrailingZeros(match[7] ?? '');
  return {
    key: `${String(seconds + EPOCH_OFFSET_S).padStart(12, '0')}.${digits}`,
    ms: seconds * 1000 + Number(digits.slice(0, 3).padEnd(3, '0')),
  };
}

/** Offset from UTC; undefined where there is none such. */
function zoneSeconds(sign: string | undefined, hour = '0', minute = '0'): number | undefined {
  if (Number(hour) > 23 || Number(minute) > 59) return undefined;
  return (Number(hour) * 60 + Number(minute)) * (sign === '-' ? -60 : 60);
}
