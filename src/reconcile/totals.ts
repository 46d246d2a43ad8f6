// Reads the totals of a media buy, from the owner and the seller, and compares them exactly (owed.md §8). It is pure.
// The comparison of totals calls it.
import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { printableText } from '../codec/printable.ts';
import { notANumber, onlyKnown } from '../config/validate.ts';
import { ConfigError } from '../shared/errors.ts';
import { accountArgument } from '../registrations/operation-rows.ts';
import type { JsonObject as Arguments } from '../registrations/answer-json.ts';
import type { BuyStream, BuyTotals, TotalsTried } from '../registrations/streams.ts';
import { rowsOf } from '../registrations/media-buy-rows.ts';
import { DAY_MS, HOUR_MS } from '../windows/calendar.ts';
import { WITHOUT_DATA } from '../stages/reported-windows.ts';
import { clockIn } from '../windows/stream.ts';
import { dateOf } from './pull.ts';

/** The media buy whose totals are requested. It is passed to the option `ours`. */
export interface BookedBuy {
  /** The agent URL of the seller. */
  readonly agentUrl: string;
  readonly mediaBuyId: string;
  /** Your own reference for the operation that made the media buy. */
  readonly ref?: string;
}

/** The largest allowed differences between the totals, as a share of the seller's: 0.02 is 2 %. */
export interface TotalsTolerance {
  /** Default: 0.02. */
  readonly impressions?: number | undefined;
  /** Default: 0.01. */
  readonly spend?: number | undefined;
}

const TOLERANCE = { impressions: 0.02, spend: 0.01 };

/** Checks the tolerance. @throws ConfigError */
export function givenTolerance(given: TotalsTolerance = {}): TotalsMargins {
  onlyKnown('tolerance', given, TOLERANCE);
  const share = (name: Counted): number => {
    const value: unknown = given[name] ?? TOLERANCE[name];
    if (typeof value === 'number' && value >= 0 && value <= 1) return value;
    throw new ConfigError(`tolerance.${name}: ${notANumber(value)} not a number from 0 to 1. 2 % is 0.02.`);
  };
  return { impressions: share('impressions'), spend: share('spend') };
}

const COUNTED = ['impressions', 'spend'] as const;
type Counted = (typeof COUNTED)[number];

/** The tolerance for each number, as a share. */
export type TotalsMargins = Readonly<Record<Counted, number>>;

const KNOWN: Readonly<Record<keyof BuyTotals, true>> = { impressions: true, spend: true, currency: true };

/** The longest text of a currency. Codes have three letters. */
const MAX_CURRENCY = 16;

/**
 * Checks the owner's totals.
 * @param given the result of the owner's function.
 * @returns undefined if the owner has booked nothing.
 * @throws ConfigError
 */
export function givenTotals(given: unknown): BuyTotals | undefined {
  if (given === undefined || given === null) return undefined;
  if (!isJsonObject(given)) {
    throw new ConfigError('ours: returned no object. Return { impressions, spend, currency }, or undefined.');
  }
  onlyKnown('ours', given, KNOWN);
  for (const name of COUNTED) {
    const value = present(given, name);
    if (value !== undefined && !isAmount(value)) {
      throw new ConfigError(`ours: ${name}: ${notANumber(value)} not a finite number from 0 on.`);
    }
  }
  const currency = present(given, 'currency');
  if (currency !== undefined && currencyOf(currency) === undefined) {
    throw new ConfigError('ours: currency: is not a code. Return e.g. USD, or leave it out.');
  }
  return totalsOf(given, currency);
}

const isAmount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;

const currencyOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value.length <= MAX_CURRENCY ? value : undefined;

/** Returns the members of totals that have a valid value. */
function totalsOf(of: JsonObject, said: unknown): BuyTotals {
  const [impressions, spend] = COUNTED.map((name) => present(of, name));
  const currency = currencyOf(said);
  return {
    ...(isAmount(impressions) && { impressions }),
    ...(isAmount(spend) && { spend }),
    ...(currency !== undefined && { currency }),
  };
}

/**
 * Returns the arguments of the request for a media buy's totals, from the start of its flight until now. The request is
 * for the whole lifetime if the seller supports nothing else, or if the flight is unknown.
 */
export function totalsArguments(stream: BuyStream, now: number): Arguments {
  const { account, mediaBuyId, hasRanges, terms, endedAt = Infinity } = stream;
  const spans = terms.flatMap((is) => is.spans);
  const start = Math.min(...spans.map((span) => span.start));
  const end = Math.min(Math.max(...spans.map((span) => span.end)), endedAt, now);
  const clock = clockIn(stream);
  return {
    ...accountArgument(account),
    media_buy_ids: [mediaBuyId],
    ...(hasRanges !== false &&
      start < end && {
        start_date: dateOf(start, 'daily', clock),
        end_date: dateOf(end - 1, 'daily', clock, 1),
      }),
  };
}

/** Returns the seller's totals in an answer of `get_media_buy_delivery`; undefined if it has none for the media buy. */
export function theirTotals(data: unknown, mediaBuyId: string): BuyTotals | undefined {
  const row = rowsOf(data, mediaBuyId).find((one) => isJsonObject(present(one, 'totals')));
  // The row's status says that its data will come later.
  if (row && WITHOUT_DATA.has(textMember(row, 'status'))) return undefined;
  const totals = row && present(row, 'totals');
  if (!isJsonObject(data) || !isJsonObject(totals)) return undefined;
  return totalsOf(totals, textMember(data, 'currency') ?? textMember(row ?? {}, 'currency'));
}

/** A member of totals. */
export type TotalsMember = keyof BuyTotals;

/** Returns the members of totals that differ by more than the tolerance (owed.md §8.3). */
export function differences(
  ours: BuyTotals,
  theirs: BuyTotals,
  tolerance: TotalsMargins,
): readonly TotalsMember[] {
  const beyond = COUNTED.filter((name) => {
    const [own, other] = [ours[name], theirs[name]];
    return own !== undefined && other !== undefined && isBeyond(own, other, tolerance[name]);
  });
  const [own, other] = [ours.currency?.toUpperCase(), theirs.currency?.toUpperCase()];
  return own !== undefined && other !== undefined && own !== other ? [...beyond, 'currency'] : beyond;
}

/**
 * True if two numbers differ by more than a share. The computation is exact: a difference equal to the tolerance is
 * accepted, without errors by rounding.
 */
function isBeyond(ours: number, theirs: number, share: number): boolean {
  const [own, other, part] = [decimalOf(ours), decimalOf(theirs), decimalOf(share)];
  const scale = Math.max(own.scale, other.scale);
  const [a, b] = [scaled(own, scale), scaled(other, scale)];
  const apart = a < b ? b - a : a - b;
  return apart * 10n ** BigInt(part.scale) > b * part.digits;
}

/** A number as decimal digits, divided by a power of ten. */
interface Decimal {
  readonly digits: bigint;
  readonly scale: number;
}

const scaled = ({ digits, scale }: Decimal, to: number): bigint => digits * 10n ** BigInt(to - scale);

/** The number of digits that a double represents exactly. Later digits come from rounding in sums of fractions. */
const EXACT_DIGITS = 15;

function decimalOf(value: number): Decimal {
  if (Number.isInteger(value)) return { digits: BigInt(value), scale: 0 };
  const [mantissa = '', exponent = '0'] = value.toExponential(EXACT_DIGITS - 1).split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const scale = fraction.length - Number(exponent);
  const digits = BigInt(whole + fraction);
  return scale < 0 ? { digits: digits * 10n ** BigInt(-scale), scale: 0 } : { digits, scale };
}

/** The wait after the first failed try. It doubles with each further one, up to a day. Ms. */
const FIRST_WAIT_MS = HOUR_MS;
/** The time after which a comparison is given up. Ms. */
const GIVE_UP_MS = 7 * DAY_MS;

/** The longest error text that is stored with the stream, in characters. */
const MAX_ERROR = 300;

/** Returns the tries after one more failure (owed.md §8.2). */
export function triedAgain(before: TotalsTried | undefined, error: string, now: number): TotalsTried {
  const { tries = 0, since } = before ?? {};
  const first = since ?? now;
  const waitMs = Math.min(FIRST_WAIT_MS * 2 ** Math.min(tries, 5), DAY_MS);
  return {
    tries: tries + 1,
    since: first,
    error: printableText(error, MAX_ERROR),
    ...(now - first < GIVE_UP_MS && { nextAt: now + waitMs }),
  };
}
