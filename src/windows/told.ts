// The receiver's URLs to which the seller of a media buy was asked to send, as its stream keeps them (told.md §1).
// Pure.
// Called by the rules of reports, which save each use of a URL, and by registrations.
import type { RouteScheme } from '../registrations/seller.ts';

/** A URL of the receiver: one of its base URLs, and the route below it. */
export interface OurUrl {
  /** The base URL, without a `/` at its end. */
  readonly base: string;
  /**
   * The random part of the token in the last segment, which is the id of the route's row. For a URL without a token,
   * it is the path below the base.
   */
  readonly route: string;
}

/** A URL of the receiver that a call to the seller names. */
export interface ToldUrl extends OurUrl {
  /** The scheme by which the seller was asked to authenticate there. */
  readonly scheme: RouteScheme;
}

/** The events that a media buy sends: its reports, or the status and the impairments of the buy itself. */
export type ToldChannel = 'reports' | 'push';

export const TOLD_CHANNELS: readonly ToldChannel[] = ['reports', 'push'];

/**
 * The URLs to which a call asks its seller to send, by channel. Null: the call names a URL of somebody else, or ends
 * the sending. Absent: the call does not mention the channel.
 */
export type CallTold = { readonly [C in ToldChannel]?: ToldUrl | null };

/** A URL to which the seller of a media buy was asked to send. Times are Unix ms on the store's clock. */
export interface Told extends ToldUrl {
  readonly channel: ToldChannel;
  /** The time at which the call that names it was registered. */
  readonly at: number;
  /** The time at which that call was successfully completed; absent before. */
  readonly ackedAt?: number;
  /** The time at which a later call was completed that named another URL, or none. */
  readonly formerAt?: number;
  /**
   * The time at which an event of the media buy arrived at the URL. It is saved at most once a minute, and for the
   * first event after `ackedAt`.
   */
  readonly heardAt?: number;
}

/**
 * The most URLs of one stream. Each move to another URL adds one. The former URL is removed when no more events come.
 */
const MOST_TOLD = 32;
const MINUTE_MS = 60_000;

export const isSameUrl = (a: OurUrl, b: OurUrl): boolean => a.route === b.route && a.base === b.base;

/** The time at which a call was registered, and the time at which it was successfully completed. */
export interface ToldTimes {
  readonly at: number;
  readonly ackedAt?: number;
}

/** Returns the URLs after a call was registered or completed. Former URLs are kept. */
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
    // The call that was registered later decides, even if it is acknowledged first.
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
 * @returns the URLs, with `now` as the time of the last event at `url`. The list stays the same if `url` is not in it,
 * or has a time in this minute already. A time before the URL was acknowledged is replaced.
 */
export function withHeard(told: readonly Told[], url: OurUrl, now: number): readonly Told[] {
  const isNews = (one: Told): boolean => isSameUrl(one, url) && !isHeard(one, now);
  return told.some(isNews) ? told.map((one) => (isNews(one) ? { ...one, heardAt: now } : one)) : told;
}

const isHeard = ({ heardAt, ackedAt }: Told, now: number): boolean =>
  heardAt !== undefined &&
  Math.floor(heardAt / MINUTE_MS) >= Math.floor(now / MINUTE_MS) &&
  (ackedAt === undefined || heardAt >= ackedAt);
