// Finds the delivery reports that a call requests, their media buy, and the media buy's flight, i.e. its start and end
// (owed.md §1.2, §1.3). These facts are stored unencrypted until the seller names the media buy, so they contain no
// credential.
import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { MAX_TEXT } from '../codec/printable.ts';
import { parseInstant } from '../events/instant.ts';
import { DAY_MS, FREQUENCIES, type Frequency, type Period } from '../windows/calendar.ts';
import { joined } from '../windows/terms.ts';

/** The delivery reports that a call requests for the media buy that it makes or updates. */
export interface AskedReports {
  /** null: the call stops the reports of the media buy. Absent: the call does not mention reports. */
  readonly frequency?: Frequency | null;
  /**
   * The requested metrics; null: the seller chooses. Absent: the request has a part that a later update by this library
   * could not repeat.
   */
  readonly metrics?: readonly string[] | null;
  /** The media buy that the call updates; absent if the call makes a new one. */
  readonly mediaBuyId?: string;
  /** The start of the media buy, Unix ms. Absent: not given, or relative (`asap`). */
  readonly start?: number;
  readonly end?: number;
  /**
   * The periods in which the packages of the media buy are active; absent: the whole flight. A start or end that is not
   * known is left out of its period.
   */
  readonly packages?: readonly Partial<Period>[];
  readonly products: readonly string[];
}

/** The largest number of packages of a media buy that are read. */
const MOST_PACKAGES = 1000;

/**
 * Returns the reports that a call requests. @returns undefined for a call that neither makes nor changes a media buy.
 */
export function askedReports(taskType: string, args: JsonObject): AskedReports | undefined {
  if (taskType !== 'create_media_buy' && taskType !== 'update_media_buy') return undefined;
  const frequency = frequencyIn(args);
  const packages = packagesIn(args);
  const metrics = frequency ? metricsIn(args) : undefined;
  const asked = {
    ...(frequency !== undefined && { frequency }),
    ...(metrics !== undefined && { metrics }),
    products: productsIn(packages),
  };
  if (taskType === 'update_media_buy') {
    const mediaBuyId = textMember(args, 'media_buy_id');
    return mediaBuyId !== undefined && mediaBuyId.length <= MAX_TEXT ? { ...asked, mediaBuyId } : undefined;
  }
  return {
    ...asked,
    ...flightIn(args),
    ...(packages.length > 0 && { packages: activePackages(packages) }),
  };
}

/** Returns the packages of a media buy, at most `MOST_PACKAGES`. */
export function packagesIn(of: JsonObject): readonly JsonObject[] {
  const given = present(of, 'packages');
  return Array.isArray(given) ? given.slice(0, MOST_PACKAGES).filter(isJsonObject) : [];
}

/** Returns the product ids of packages, each id once. */
export const productsIn = (packages: readonly JsonObject[]): readonly string[] => [
  ...new Set(packages.flatMap((one) => textMember(one, 'product_id') ?? [])),
];

/**
 * Returns the frequency of reports that the argument `reporting_webhook` requests. null: the argument is null, which
 * stops the reports. Undefined: the argument is absent, or its frequency is unknown.
 */
function frequencyIn(args: JsonObject): Frequency | null | undefined {
  if (Object.hasOwn(args, 'reporting_webhook') && args['reporting_webhook'] === null) return null;
  const webhook = present(args, 'reporting_webhook');
  if (!isJsonObject(webhook)) return undefined;
  const word = textMember(webhook, 'reporting_frequency') ?? textMember(webhook, 'frequency');
  return FREQUENCIES.find((one) => one === word);
}

/** The members of `reporting_webhook` that a later update by this library can repeat. */
const REPEATABLE: ReadonlySet<string> = new Set([
  'url',
  'authentication',
  'reporting_frequency',
  'frequency',
  'requested_metrics',
]);

/** The largest number of metrics of a media buy that are stored. If a call requests more, none of them are stored. */
const MOST_METRICS = 100;

/**
 * Returns the requested metrics; null if the seller chooses. Undefined if `reporting_webhook` has a part that is not
 * stored. A later update must send that object whole, so this library could not repeat it.
 */
function metricsIn(args: JsonObject): readonly string[] | null | undefined {
  const webhook = present(args, 'reporting_webhook');
  if (!isJsonObject(webhook) || !Object.keys(webhook).every((name) => REPEATABLE.has(name))) return undefined;
  const metrics = present(webhook, 'requested_metrics');
  if (metrics === undefined) return null;
  const isKept = Array.isArray(metrics) && metrics.length <= MOST_METRICS && metrics.every(isName);
  return isKept ? (metrics as readonly string[]) : undefined;
}

const isName = (one: unknown): boolean => typeof one === 'string' && one.length <= MAX_TEXT;

/** Returns a member that is a date-time with a zone, as Unix ms. Returns undefined for anything else. */
export const instantIn = (of: JsonObject, name: string): number | undefined =>
  parseInstant(textMember(of, name) ?? '')?.ms;

/** Returns the start and end of a media buy or a package, Unix ms. A time that is not given is left out. */
export function flightIn(of: JsonObject): Partial<Period> {
  const [start, end] = [instantIn(of, 'start_time'), instantIn(of, 'end_time')];
  return { ...(start !== undefined && { start }), ...(end !== undefined && { end }) };
}

/** Returns the period of each package that is neither paused nor canceled. */
export function activePackages(packages: readonly JsonObject[]): readonly Partial<Period>[] {
  const isStopped = (one: JsonObject): boolean =>
    ['paused', 'canceled'].some((name) => present(one, name) === true);
  return packages.filter((one) => !isStopped(one)).map(flightIn);
}

/** The start and end of a media buy and of its active packages, as far as they are known. */
export interface Flight extends Partial<Period> {
  readonly packages?: readonly Partial<Period>[];
}

/**
 * The longest time before the registration for which reports are expected. Without this limit a seller could name a
 * start in any year. Ms.
 */
const MOST_BEFORE_MS = 400 * DAY_MS;

/**
 * Returns the periods in which at least one package is active (owed.md §1.3).
 * @param now the assumed start of a media buy whose start is unknown: such a media buy begins when it is agreed.
 * @param since the time of registration. Periods begin at most `MOST_BEFORE_MS` before it.
 */
export function spansOf(
  { start = NaN, end = Infinity, packages = [{}] }: Flight,
  now: number,
  since: number = now,
): readonly Period[] {
  const from = Math.max(Number.isNaN(start) ? now : start, since - MOST_BEFORE_MS);
  return joined(
    packages.map((one) => ({
      start: Math.max(one.start ?? from, from),
      end: Math.min(one.end ?? end, end),
    })),
  );
}
