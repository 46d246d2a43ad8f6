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

/** Reads an ISO 8601 / RFC 3339 date-time with a zone; undefined where it is none. A leap second counts as :59. */
export function parseInstant(text: string): Instant | undefined {
  const match = RFC3339.exec(text);
  if (!match) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', sign, zoneHour = '0', zoneMinute = '0'] =
    match;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  const valid =
    date.getUTCMonth() === Number(month) - 1 &&
    date.getUTCDate() === Number(day) &&
    Number(hour) < 24 &&
    Number(minute) < 60 &&
    Number(second) <= 60 &&
    Number(zoneHour) < 24 &&
    Number(zoneMinute) < 60;
  if (!valid) return undefined;
  const zone = (Number(zoneHour) * 60 + Number(zoneMinute)) * 60 * (sign === '-' ? -1 : 1);
  const seconds =
    date.getTime() / 1000 + Number(hour) * 3600 + Number(minute) * 60 + Math.min(Number(second), 59) - zone;
  const digits = fraction.replace(/0+$/, '');
  return {
    key: `${String(seconds + EPOCH_OFFSET_S).padStart(12, '0')}.${digits}`,
    ms: seconds * 1000 + Number(digits.padEnd(3, '0').slice(0, 3)),
  };
}
