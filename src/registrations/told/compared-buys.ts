// Compares the `webhook_activity` that a seller shows for a media buy with the URLs that the seller was given (told.md
// §2.2). Pure functions. The seller's rows are untrusted input.
import { isJsonObject, type JsonObject, present, textMember } from '../../codec/members.ts';
import { instantIn } from '../asked-reports.ts';
import { type Told, TOLD_CHANNELS, type ToldChannel } from '../../windows/told.ts';
import { HORIZON_MS, leftAt } from './quiet.ts';
import { isShownBelow, shownText, type ShownUrl, shownUrl } from './shown-url.ts';

/** The most activity records of a media buy that are read. */
const MOST_RECORDS = 200;

const REPORTS: readonly ToldChannel[] = ['reports'];
const PUSH: readonly ToldChannel[] = ['push'];

/**
 * The channels by which each type of notification is sent: `reports`, or `push` (status and impairments). Any other
 * type may use both.
 */
const CHANNELS: ReadonlyMap<unknown, readonly ToldChannel[]> = new Map([
  ['scheduled', REPORTS],
  ['final', REPORTS],
  ['delayed', REPORTS],
  ['adjusted', REPORTS],
  ['window_update', REPORTS],
  ['impairment', PUSH],
]);

/** The facts about a media buy that are needed for the comparison. Times are Unix ms on the store's clock. */
export interface ToldBuy {
  readonly told: readonly Told[];
  /** True if reports were requested, at a URL of this application or of another party. */
  readonly hasReports: boolean;
  readonly endedAt: number | undefined;
  /** The seller's `delivery_retry_horizon_seconds`, in ms; undefined: unknown. */
  readonly horizonMs: number | undefined;
  readonly now: number;
}

/** A URL that the seller was given for a media buy, and the different URL that the seller shows. */
export interface Difference {
  readonly told: Told;
  readonly shown: string;
}

interface Fire {
  readonly channels: readonly ToldChannel[];
  readonly at: number | undefined;
  readonly url: ShownUrl;
}

/**
 * Returns the differences in a media buy's row of `get_media_buys`; undefined if the row has no activity that can be
 * compared.
 */
export function buyDifferences(buy: ToldBuy, row: JsonObject): readonly Difference[] | undefined {
  const activity = present(row, 'webhook_activity');
  const fires = (Array.isArray(activity) ? activity.slice(0, MOST_RECORDS) : []).flatMap(fireIn);
  const judged = fires.flatMap((fire) => judgedOf(buy, fire) ?? []);
  return judged.length === 0 ? undefined : judged.flatMap(({ differences }) => differences);
}

function fireIn(record: unknown): readonly Fire[] {
  const url = isJsonObject(record) ? shownUrl(present(record, 'url')) : undefined;
  if (!isJsonObject(record) || !url) return [];
  const channels = CHANNELS.get(textMember(record, 'notification_type')) ?? TOLD_CHANNELS;
  return [{ channels, at: instantIn(record, 'fired_at'), url }];
}

/**
 * Returns the differences that one activity record shows. Undefined if the record may concern another party's URL, or
 * is older than the current URL.
 */
function judgedOf(
  buy: ToldBuy,
  { channels, at, url }: Fire,
): { readonly differences: readonly Difference[] } | undefined {
  const told = buy.told.filter(({ channel }) => channels.includes(channel));
  const current = told.filter(({ formerAt }) => formerAt === undefined);
  const isAnothers = (channel: ToldChannel): boolean =>
    (channel === 'push' || buy.hasReports) && !current.some((one) => one.channel === channel);
  const since = Math.min(...current.map((one) => one.ackedAt ?? one.at));
  if (current.length === 0 || channels.some(isAnothers) || (at ?? Infinity) < since) return undefined;
  const counts = told.filter((one) => mayBeUsed(buy, one, at));
  if (counts.some(({ base }) => isShownBelow(url, base))) return { differences: [] };
  return { differences: current.map((one) => ({ told: one, shown: shownText(url, one.base) })) };
}

/**
 * True if the seller may have sent an event to the URL `one` at the time `at`. @param at undefined: the time is
 * unknown.
 */
function mayBeUsed(buy: ToldBuy, one: Told, at: number | undefined): boolean {
  const { told, endedAt, horizonMs = HORIZON_MS, now } = buy;
  const { formerAt } = one;
  if (formerAt === undefined || at === undefined || at < formerAt + horizonMs) return true;
  return leftAt(one, told, { endedAt, horizonMs }, now) === undefined;
}
