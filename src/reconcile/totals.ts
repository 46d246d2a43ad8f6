// Checks the totals of a media buy that the option `ours` and the seller return, and compares them exactly
// (owed.md §8). The functions are pure. compare-totals.ts calls them.
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

/** The largest allowed differences between your totals and the seller's, as a share of the seller's: 0.02 is 2 %. */
export interface TotalsTolerance {
  /** The allowed difference in impressions, as a share of the seller's number. Default: 0.02. */
  readonly impressions?: number | undefined;
  /** The allowed difference in spend, as a share of the seller's number. Default: 0.01. */
  readonly spend?: number | undefined;
}

const TOLERANCE = { impressions: 0.02, spend: 0.01 };

/** Checks the option `tolerance`, and fills in the defaults. @throws ConfigError */
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

/** The largest allowed difference for each figure, as a share of the seller's. */
export type TotalsMargins = Readonly<Record<Counted, number>>;

const KNOWN: Readonly<Record<keyof BuyTotals, true>> = { impressions: true, spend: true, currency: true };

/** The most characters of a currency that are accepted. Currency codes have three letters. */
const MAX_CURRENCY = 16;

/**
 * Checks the totals that the option `ours` returned.
 * @param given the result of `ours`.
 * @returns undefined if `ours` returned nothing.
 * @throws ConfigError if the totals are invalid.
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

/** Returns the impressions, the spend and the currency that are valid; others are left out. */
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
 * Returns the arguments of the request for a media buy's totals, from the start of its booked period until now. The
 * request is for the whole lifetime if the seller supports nothing else, or if the booked period is unknown.
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

/**
 * Returns the seller's totals in an answer of `get_media_buy_delivery`; undefined if the answer has none for the media
 * buy.
 */
export function theirTotals(data: unknown, mediaBuyId: string): BuyTotals | undefined {
  const row = rowsOf(data, mediaBuyId).find((one) => isJsonObject(present(one, 'totals')));
  // The status of the row says that its data will come later, so its totals do not count.
  if (row && WITHOUT_DATA.has(textMember(row, 'status'))) return undefined;
  const totals = row && present(row, 'totals');
  if (!isJsonObject(data) || !isJsonObject(totals)) return undefined;
  return totalsOf(totals, textMember(data, 'currency') ?? textMember(row ?? {}, 'currency'));
}

export type TotalsMember = keyof BuyTotals;

/** Returns the names of the totals that differ by more than the tolerance (owed.md §8.3). */
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
 * True if `ours` differs from `theirs` by more than this share of `theirs`. The computation is exact, so a difference
 * equal to the tolerance is accepted.
 */
function isBeyond(ours: number, theirs: number, share: number): boolean {
  const [own, other, part] = [decimalOf(ours), decimalOf(theirs), decimalOf(share)];
  const scale = Math.max(own.scale, other.scale);
  const [a, b] = [scaled(own, scale), scaled(other, scale)];
  const apart = a < b ? b - a : a - b;
  return apart * 10n ** BigInt(part.scale) > b * part.digits;
}

/** A decimal number: `digits` divided by 10 to the power of `scale`. */
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

/** The wait after the first failed comparison. It doubles with each further failure, up to a day. Ms. */
const FIRST_WAIT_MS = HOUR_MS;
/** The time after the first failure at which a comparison is given up. Ms. */
const GIVE_UP_MS = 7 * DAY_MS;

/** The longest error text that is stored for a media buy, in characters. */
const MAX_ERROR = 300;

/**
 * Returns the record of failed comparisons with one more failure, and with the time of the next attempt unless it is
 * given up (owed.md §8.2).
 */
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
