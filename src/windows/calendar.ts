// The calendar of report windows: hours, days and months, numbered one after the other for each frequency (owed.md §2).
// Called by the rules of the store, registrations and the reconciler. Pure.

/** The frequency of a seller's reports. */
export type Frequency = 'hourly' | 'daily' | 'monthly';

export const FREQUENCIES: readonly Frequency[] = ['hourly', 'daily', 'monthly'];

export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;

/** A span of time, Unix ms: `start` is inclusive, `end` is exclusive. */
export interface Period {
  readonly start: number;
  readonly end: number;
}

/**
 * The clock of a time zone, which decides when days and months begin. Making a clock takes some 50 µs, a call of
 * `offsetMs` 4 µs.
 */
export interface Clock {
  /** The name of the clock's time zone, e.g. `America/New_York`. */
  readonly zone: string;
  /** Returns the ms by which the local time is ahead of UTC at an instant. */
  readonly offsetMs: (instant: number) => number;
}

export const UTC: Clock = { zone: 'UTC', offsetMs: () => 0 };

/** Makes the clock of a time zone; undefined if the runtime does not know the zone. */
export function clockOf(zone: string): Clock | undefined {
  if (zone === 'UTC') return UTC;
  const format = formatOf(zone);
  return (
    format && { zone, offsetMs: (instant) => localOf(format, instant) - Math.floor(instant / 1000) * 1000 }
  );
}

interface Scale {
  /** Returns the number of the window that contains an instant. */
  readonly numberAt: (instant: number, clock: Clock) => number;
  /** Returns the beginning of the window with a number, Unix ms. */
  readonly startOf: (number: number, clock: Clock) => number;
}

const SCALES: Readonly<Record<Frequency, Scale>> = {
  hourly: {
    numberAt: (instant) => Math.floor(instant / HOUR_MS),
    startOf: (number) => number * HOUR_MS,
  },
  daily: { numberAt: dayAt, startOf: midnight },
  monthly: {
    numberAt: (instant, clock) => {
      const date = new Date(dayAt(instant, clock) * DAY_MS);
      return date.getUTCFullYear() * 12 + date.getUTCMonth();
    },
    startOf: (number, clock) => midnight(Date.UTC(Math.floor(number / 12), number % 12) / DAY_MS, clock),
  },
};

/** Returns the number of the hour, day or month (by `frequency`) that contains an instant. */
export function windowAt(frequency: Frequency, clock: Clock, instant: number): number {
  return SCALES[frequency].numberAt(instant, clock);
}

/** Returns the start and end of the hour, day or month with a number. */
export function windowPeriod(frequency: Frequency, clock: Clock, number: number): Period {
  const { startOf } = SCALES[frequency];
  return { start: startOf(number, clock), end: startOf(number + 1, clock) };
}

/** Returns the calendar day of an instant, as days since 1 January 1970. */
function dayAt(instant: number, { offsetMs }: Clock): number {
  return Math.floor((instant + offsetMs(instant)) / DAY_MS);
}

/**
 * Returns the beginning of a calendar day: its first midnight. If the local time skips midnight, the day begins at the
 * moment of the skip. The offset may change on that day or the day before, so the offsets of both sides are tried.
 */
function midnight(day: number, { offsetMs }: Clock): number {
  const local = day * DAY_MS;
  const before = local - offsetMs(local - DAY_MS);
  const after = local - offsetMs(local + DAY_MS);
  const isMidnight = (instant: number): boolean => instant + offsetMs(instant) === local;
  const found = [Math.min(before, after), Math.max(before, after)].find(isMidnight);
  return found ?? before;
}

/** Returns the local time of an instant in the zone of `format`, as if that local time were UTC. Unix ms. */
function localOf(format: Intl.DateTimeFormat, instant: number): number {
  const parts: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
  for (const { type, value } of format.formatToParts(instant)) parts[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

function formatOf(timeZone: string): Intl.DateTimeFormat | undefined {
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  } catch {
    return undefined;
  }
}
