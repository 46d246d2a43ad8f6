// The receiver's URLs to which the seller of a media buy was asked to send events, as the media buy's account keeps
// them (told.md §1). Pure.
// Called by the rules of reports, which save each use of a URL, and by registrations.
import type { RouteScheme } from '../registrations/seller.ts';

/** A URL of the receiver: a base URL, and the route below it. */
export interface OurUrl {
  /** The base URL, without a `/` at its end. */
  readonly base: string;
  /**
   * The random part of the token in the URL's last segment, which is the id of the route's row. For a URL without a
   * token, the path below the base.
   */
  readonly route: string;
}

/** A URL of the receiver that a call names, so that the seller sends events there. */
export interface ToldUrl extends OurUrl {
  /** The scheme by which the seller was asked to authenticate at the URL. */
  readonly scheme: RouteScheme;
}

/**
 * The kind of events that a URL is for: the reports of a media buy, or the status and impairments of the buy itself.
 */
export type ToldChannel = 'reports' | 'push';

export const TOLD_CHANNELS: readonly ToldChannel[] = ['reports', 'push'];

/**
 * The URLs to which a call asks its seller to send events, by channel. Null: the call names a URL of somebody else, or
 * ends the sending. Absent: the call does not mention the channel.
 */
export type CallTold = { readonly [C in ToldChannel]?: ToldUrl | null };

/** A URL to which the seller of a media buy was asked to send. Times are Unix ms on the store's clock. */
export interface Told extends ToldUrl {
  readonly channel: ToldChannel;
  /** The time at which the call that names the URL was registered. */
  readonly at: number;
  /** The time at which the call that names the URL was successfully completed; absent before. */
  readonly ackedAt?: number;
  /** The time at which a later call was completed that named another URL, or none. Absent while the URL is in use. */
  readonly formerAt?: number;
  /**
   * The time at which an event of the media buy arrived at the URL. Saved at most once a minute, and for the first
   * event after `ackedAt`.
   */
  readonly heardAt?: number;
}

/**
 * The largest number of URLs kept for one media buy. Each move of the media buy to another URL adds one. The former URL
 * is removed when no more events come to it.
 */
const MOST_TOLD = 32;
const MINUTE_MS = 60_000;

export const isSameUrl = (a: OurUrl, b: OurUrl): boolean => a.route === b.route && a.base === b.base;

/** The times at which a call was registered, and was successfully completed. */
export interface ToldTimes {
  readonly at: number;
  readonly ackedAt?: number;
}

/** Returns the URLs after a call that names URLs was registered or completed. URLs that the call replaces are kept. */
export function withTold(known: readonly Told[], call: CallTold, times: ToldTimes): readonly Told[] {
  return TOLD_CHANNELS.reduce((all, channel) => {
    const url = call[channel];
    return url === undefined ? all : withChannel(all, channel, url, times);
  }, known);
}

function withChannel(
  known: readonly Told[],
  channel: ToldChannel,
  url: ToldUrl | null,
  { at, ackedAt }: ToldTimes,
): readonly Told[] {
  const isIt = (one: Told): boolean =>
    url !== null && one.channel === channel && one.scheme === url.scheme && isSameUrl(one, url);
  const others = known.flatMap((one) => {
    if (isIt(one)) return [];
    const isReplaced = one.channel === channel && one.formerAt === undefined && ackedAt !== undefined;
    // The call that was registered later decides which URL replaces the other, even if that call is completed first.
    return [isReplaced && one.at <= at ? { ...one, formerAt: ackedAt } : one];
  });
  if (url === null) return others;
  const was = known.find(isIt);
  // A URL that is named again, after another URL had replaced it, starts with new times.
  const is = was && was.formerAt === undefined ? was : { ...url, channel, at, ...heardOf(was) };
  const acked = is.ackedAt ?? ackedAt;
  return [...others, acked === undefined ? is : { ...is, ackedAt: acked }].slice(-MOST_TOLD);
}

const heardOf = (was: Told | undefined): Pick<Told, 'heardAt'> =>
  was?.heardAt === undefined ? {} : { heardAt: was.heardAt };

/**
 * Records that an event of the media buy arrived at a URL.
 *
 * @returns the URLs, with `now` as the time of the last event at `url`. The same list if `url` is not in it, or has a
 *   time in this minute already. But a time from before the URL was acknowledged is replaced.
 */
export function withHeard(told: readonly Told[], url: OurUrl, now: number): readonly Told[] {
  const isNews = (one: Told): boolean => isSameUrl(one, url) && !isHeard(one, now);
  return told.some(isNews) ? told.map((one) => (isNews(one) ? { ...one, heardAt: now } : one)) : told;
}

const isHeard = ({ heardAt, ackedAt }: Told, now: number): boolean =>
  heardAt !== undefined &&
  Math.floor(heardAt / MINUTE_MS) >= Math.floor(now / MINUTE_MS) &&
  (ackedAt === undefined || heardAt >= ackedAt);
