// Finds the delivery reports that a call requests, their media buy, and the buy's flight, i.e. its start and end
// (owed.md §1.2, §1.3). The operation keeps them unencrypted until a media buy is named, so they contain no credential.
import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { MAX_TEXT } from '../codec/printable.ts';
import { parseInstant } from '../events/instant.ts';
import { DAY_MS, FREQUENCIES, type Frequency, type Period } from '../windows/calendar.ts';
import { joined } from '../windows/terms.ts';

/** The delivery reports that a call requests for the media buy that it makes or updates. */
export interface AskedReports {
  /** null: the call ends the reports of the media buy. Absent: the call does not mention reports. */
  readonly frequency?: Frequency | null;
  /**
   * The requested metrics; null: the seller chooses. Absent: the call requests something that an update of ours could
   * not repeat.
   */
  readonly metrics?: readonly string[] | null;
  /** The media buy that the call updates; absent if the call makes a new one. */
  readonly mediaBuyId?: string;
  /** The start of the media buy. Absent: not given, or relative (`asap`). */
  readonly start?: number;
  readonly end?: number;
  /**
   * The times in which the buy's packages are active; absent: the whole flight. A start or end that is not known is
   * left out.
   */
  readonly packages?: readonly Partial<Period>[];
  readonly products: readonly string[];
}

/** The most packages of a media buy that are read. */
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

/** Returns the products of packages, each product once. */
export const productsIn = (packages: readonly JsonObject[]): readonly string[] => [
  ...new Set(packages.flatMap((one) => textMember(one, 'product_id') ?? [])),
];

/**
 * Returns the frequency that `reporting_webhook` requests. null: the call removes it. Undefined: it is absent, or its
 * frequency is unknown.
 */
function frequencyIn(args: JsonObject): Frequency | null | undefined {
  if (Object.hasOwn(args, 'reporting_webhook') && args['reporting_webhook'] === null) return null;
  const webhook = present(args, 'reporting_webhook');
  if (!isJsonObject(webhook)) return undefined;
  const word = textMember(webhook, 'reporting_frequency') ?? textMember(webhook, 'frequency');
  return FREQUENCIES.find((one) => one === word);
}

/** The members of `reporting_webhook` that a later update of ours can repeat. */
const REPEATABLE: ReadonlySet<string> = new Set([
  'url',
  'authentication',
  'reporting_frequency',
  'frequency',
  'requested_metrics',
]);

/** The largest number of metrics that are kept. */
const MOST_METRICS = 100;

/**
 * Returns the requested metrics if they can be repeated. An update replaces the whole `reporting_webhook`, so one with
 * further members could not be sent again.
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

/** Returns the start and end of a media buy or a package. One that is not given is left out. */
export function flightIn(of: JsonObject): Partial<Period> {
  const [start, end] = [instantIn(of, 'start_time'), instantIn(of, 'end_time')];
  return { ...(start !== undefined && { start }), ...(end !== undefined && { end }) };
}

/** Returns the times in which packages are active. Paused and canceled packages are left out. */
export function activePackages(packages: readonly JsonObject[]): readonly Partial<Period>[] {
  const isStopped = (one: JsonObject): boolean =>
    ['paused', 'canceled'].some((name) => present(one, name) === true);
  return packages.filter((one) => !isStopped(one)).map(flightIn);
}

/** The start and end of a media buy, as far as they are known. */
export interface Flight extends Partial<Period> {
  readonly packages?: readonly Partial<Period>[];
}

/**
 * The longest time before the registration for which reports are expected. Without it a seller could name any year. Ms.
 */
const MOST_BEFORE_MS = 400 * DAY_MS;

/**
 * Returns the periods in which at least one package is active (owed.md §1.3).
 * @param now the start if none is known: the media buy begins when it is agreed.
 * @param since the time of registration. Reports of long before it are not expected.
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
