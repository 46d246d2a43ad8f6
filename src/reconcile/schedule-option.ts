// Adds the facts that the option `schedule` returned to the stream (record) of a media buy (owed.md §1.2).
// ask-seller.ts calls it.
import { isJsonObject } from '../codec/members.ts';
import { printableValue } from '../codec/printable-value.ts';
import { onlyKnown } from '../config/validate.ts';
import { parseInstant } from '../events/instant.ts';
import { ConfigError } from '../shared/errors.ts';
import type { BuyStream } from '../registrations/streams.ts';
import { clockOf, FREQUENCIES, type Frequency } from '../windows/calendar.ts';
import { joined, withTerms } from '../windows/terms.ts';
import { placedAnew } from '../windows/stream.ts';

/** The media buy for which the option `schedule` is called. */
export interface ScheduledBuy {
  /** The agent URL of the seller. */
  readonly agentUrl: string;
  readonly mediaBuyId: string;
  /** The ids of the products in the media buy's packages, as far as they are known. */
  readonly productIds: readonly string[];
  /** Your own reference for the operation that made the media buy. */
  readonly ref?: string;
}

/**
 * The result of the option `schedule`: facts about a media buy's reports that the library cannot know. Most are in the
 * product's `reporting_capabilities`, which sellers give with products but not with media buys. Absent members keep
 * their known values.
 */
export interface ReportSchedule {
  /**
   * The time zone in which days and months begin (the product's `timezone`), e.g. `America/New_York`. Default: `UTC`.
   */
  readonly timeZone?: string;
  /** The product's `expected_delay_minutes`. Default: the option `expectedDelayMs`. */
  readonly expectedDelayMinutes?: number;
  /** The product's `windowed_pull_granularities`. Default: none. */
  readonly windowedPullGranularities?: readonly string[];
  /** The product's `date_range_support`. Default: `date_range`. */
  readonly dateRangeSupport?: 'date_range' | 'lifetime_only';
  /** The frequency of the reports, instead of the registered one. */
  readonly frequency?: Frequency;
  /** The start of the booked period (flight), ISO 8601 with a zone, instead of the seller's. Requires `end`. */
  readonly start?: string;
  readonly end?: string;
}

const fail = (what: string): never => {
  throw new ConfigError(`schedule: ${what}`);
};

const KNOWN: Readonly<Record<keyof ReportSchedule, true>> = {
  timeZone: true,
  expectedDelayMinutes: true,
  windowedPullGranularities: true,
  dateRangeSupport: true,
  frequency: true,
  start: true,
  end: true,
};

/**
 * Returns the media buy's record with the facts that the option `schedule` returned.
 * @param given the result of `schedule`.
 * @throws ConfigError if the result is invalid.
 */
export function withSchedule(stream: BuyStream, given: unknown): BuyStream {
  if (given === undefined || given === null) return stream;
  if (!isJsonObject(given)) return fail('returned no object. Return { timeZone, … }, or undefined.');
  onlyKnown('schedule', given, KNOWN);
  const schedule = given as ReportSchedule;
  return placedAnew(withFlight(withZone(withPulls(stream, schedule), schedule), schedule));
}

function withPulls(
  stream: BuyStream,
  {
    expectedDelayMinutes: delay,
    windowedPullGranularities: granularities,
    dateRangeSupport: support,
  }: ReportSchedule,
): BuyStream {
  if (delay !== undefined && !(Number.isFinite(delay) && delay >= 0)) {
    fail('expectedDelayMinutes is not a number of minutes.');
  }
  if (granularities !== undefined && !Array.isArray(granularities)) {
    fail("windowedPullGranularities is not a list. Return e.g. ['hourly', 'daily'].");
  }
  if (support !== undefined && support !== 'date_range' && support !== 'lifetime_only') {
    fail('dateRangeSupport is not date_range or lifetime_only.');
  }
  return {
    ...stream,
    ...(delay !== undefined && { delayMs: delay * 60_000 }),
    ...(granularities && { granularities: FREQUENCIES.filter((one) => granularities.includes(one)) }),
    ...(support && { hasRanges: support !== 'lifetime_only' }),
  };
}

function withZone(stream: BuyStream, { timeZone }: ReportSchedule): BuyStream {
  if (timeZone === undefined) return stream;
  if (typeof timeZone !== 'string' || !clockOf(timeZone)) {
    return fail(`timeZone ${JSON.stringify(printableValue(timeZone))} is not a time zone of this runtime.`);
  }
  // If reports have shown that the seller does not use this time zone, the zone that fits the reports is kept.
  if (stream.clock.source === 'reports' && stream.clock.declared === timeZone) return stream;
  return { ...stream, clock: { zone: timeZone, source: 'product' } };
}

function withFlight(stream: BuyStream, { start, end, frequency: given }: ReportSchedule): BuyStream {
  const frequency = given ?? stream.frequency;
  if (frequency !== null && !FREQUENCIES.includes(frequency)) {
    return fail('frequency is not hourly, daily or monthly.');
  }
  if (start === undefined && end === undefined && frequency === stream.frequency) return stream;
  const [from, until] = [start, end].map((text) =>
    typeof text === 'string' ? parseInstant(text)?.ms : undefined,
  );
  if (start === undefined && end === undefined) {
    return { ...stream, frequency, terms: stream.terms.map((is) => ({ ...is, frequency })) };
  }
  if (from === undefined || until === undefined || from >= until) {
    return fail('start and end are not RFC 3339 date-times with a zone, one before the other.');
  }
  const spans = joined([{ start: from, end: until }]);
  return { ...stream, frequency, terms: withTerms([], { from, frequency, spans }) };
}
