// The receiver's URLs that the seller of a media buy was told to send to, as its stream keeps them (told.md §1). Pure.
// Called by the rules of reports, which note each use of a URL, and by registrations.
import type { RouteScheme } from '../registrations/seller.ts';

/** A URL of the receiver: one of its bases, and the route below it. */
export interface OurUrl {
  /** The base, without a `/` at its end. */
  readonly base: string;
  /**
   * The random part of the token in the last segment, which names the route's row. A URL without a token has the path
   * below the base.
   */
  readonly route: string;
}

/** A URL that a call names. */
export interface ToldUrl extends OurUrl {
  /** The scheme by which the seller was asked to authenticate there. */
  readonly scheme: RouteScheme;
}

/** The events that a media buy sends: its reports, or the status and the impairments of the buy itself. */
export type ToldChannel = 'reports' | 'push';

export const TOLD_CHANNELS: readonly ToldChannel[] = ['reports', 'push'];

/**
 * The URLs to which a call asks its seller to send. Null: to somebody else's URL, or to none any more. Absent: the call
 * does not say.
 */
export type CallTold = { readonly [C in ToldChannel]?: ToldUrl | null };

/** A URL that a media buy's seller was told. Times are Unix ms on the store's clock. */
export interface Told extends ToldUrl {
  readonly channel: ToldChannel;
  /** The time at which the call that names it was registered. */
  readonly at: number;
  /** The time at which that call had ended, and was done. */
  readonly ackedAt?: number;
  /** The time at which a call was acknowledged that named another URL, or none. */
  readonly formerAt?: number;
  /** The time at which an event of the media buy came by it: the first of a minute, and the first after `ackedAt`. */
  readonly heardAt?: number;
}

/** The most URLs of one stream. Each move adds one, and takes the former one away when it is quiet. */
const MOST_TOLD = 32;
const MINUTE_MS = 60_000;

export const isSameUrl = (a: OurUrl, b: OurUrl): boolean => a.route === b.route && a.base === b.base;

/** The time at which a call was registered, and the time at which it was done. */
export interface ToldTimes {
  readonly at: number;
  readonly ackedAt?: number;
}

/** Returns the URLs after a call, or its end. Former URLs stay. */
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
    // The call that is registered later counts, whichever of the two is acknowledged first.
    return [isReplaced && one.at <= at ? { ...one, formerAt: ackedAt } : one];
  });
  if (url === null) return others;
  const was = known.find(isIt);
  // A URL that is told again, after another one had its place, begins anew.
  const is = was && was.formerAt === undefined ? was : { ...url, channel, at, ...heardOf(was) };
  const acked = is.ackedAt ?? ackedAt;
  return [...others, acked === undefined ? is : { ...is, ackedAt: acked }].slice(-MOST_TOLD);
}

const heardOf = (was: Told | undefined): Pick<Told, 'heardAt'> =>
  was?.heardAt === undefined ? {} : { heardAt: was.heardAt };

/**
 * Notes that an event of the media buy came by a URL.
 *
 * @returns the same list if that is known: in the same minute, and since it was acknowledged.
 */
export function withHeard(told: readonly Told[], url: OurUrl, now: number): readonly Told[] {
  const isNews = (one: Told): boolean => isSameUrl(one, url) && !isHeard(one, now);
  return told.some(isNews) ? told.map((one) => (isNews(one) ? { ...one, heardAt: now } : one)) : told;
}

const isHeard = ({ heardAt, ackedAt }: Told, now: number): boolean =>
  heardAt !== undefined &&
  Math.floor(heardAt / MINUTE_MS) >= Math.floor(now / MINUTE_MS) &&
  (ackedAt === undefined || heardAt >= ackedAt);
