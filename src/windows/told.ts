import type { RouteScheme } from '../registrations/seller.ts';

/*
 * By which URLs of ours a media buy's seller was told to send (told.md §1.1), as its stream keeps it, and what changes it. Pure: the
 * rules of the store note in their step by which one an event came.
 */

/** A URL of ours: one of the bases, and the route below it. */
export interface OurUrl {
  /** Without a `/` at its end. */
  readonly base: string;
  /** The random part of the token in its last segment, which names the route's row; of a URL without a token what stands below the base. */
  readonly route: string;
}

/** One that a call names. */
export interface ToldUrl extends OurUrl {
  /** By which the seller was asked to authenticate there. */
  readonly scheme: RouteScheme;
}

/** What a media buy sends: its reports, or the status and the impairments of the buy itself. */
export type ToldChannel = 'reports' | 'push';

export const TOLD_CHANNELS: readonly ToldChannel[] = ['reports', 'push'];

/** By which URLs a call asks its seller to send. null: by another's, or by none any more. Absent: it does not say. */
export type CallTold = { readonly [C in ToldChannel]?: ToldUrl | null };

/** A URL that a media buy's seller was told. Times are Unix ms on the store's clock. */
export interface Told extends ToldUrl {
  readonly channel: ToldChannel;
  /** When the call that names it was registered. */
  readonly at: number;
  /** When that call had ended, and was done. */
  readonly ackedAt?: number;
  /** Another one took its place, or none did, and that was acknowledged then. */
  readonly formerAt?: number;
  /** An event of the media buy came by it then: the first of a minute, and the first after `ackedAt`. */
  readonly heardAt?: number;
}

/** Of one stream. Each move adds one, and takes the former one away when it is quiet. */
const MOST_TOLD = 32;
const MINUTE_MS = 60_000;

export const isSameUrl = (a: OurUrl, b: OurUrl): boolean => a.route === b.route && a.base === b.base;

/** When a call was registered, and when it was done. */
export interface ToldTimes {
  readonly at: number;
  readonly ackedAt?: number;
}

/** What is kept after a call, or its end. Former URLs stay. */
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
    // A call that is registered later counts, whichever of the two is acknowledged first.
    return [isReplaced && one.at <= at ? { ...one, formerAt: ackedAt } : one];
  });
  if (url === null) return others;
  const was = known.find(isIt);
  // One that is told again after another one had its place begins anew.
  const is = was && was.formerAt === undefined ? was : { ...url, channel, at, ...heardOf(was) };
  const acked = is.ackedAt ?? ackedAt;
  return [...others, acked === undefined ? is : { ...is, ackedAt: acked }].slice(-MOST_TOLD);
}

const heardOf = (was: Told | undefined): Pick<Told, 'heardAt'> =>
  was?.heardAt === undefined ? {} : { heardAt: was.heardAt };

/**
 * An event of the media buy came by a URL.
 * @returns the same list where that is known: in the same minute, and since it was acknowledged.
 */
export function withHeard(told: readonly Told[], url: OurUrl, now: number): readonly Told[] {
  const isNews = (one: Told): boolean => isSameUrl(one, url) && !isHeard(one, now);
  return told.some(isNews) ? told.map((one) => (isNews(one) ? { ...one, heardAt: now } : one)) : told;
}

const isHeard = ({ heardAt, ackedAt }: Told, now: number): boolean =>
  heardAt !== undefined &&
  Math.floor(heardAt / MINUTE_MS) >= Math.floor(now / MINUTE_MS) &&
  (ackedAt === undefined || heardAt >= ackedAt);
