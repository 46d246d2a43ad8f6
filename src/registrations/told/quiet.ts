// Computes when a media buy has stopped using a webhook URL, and when a URL is quiet, i.e. no longer needed (told.md
// §3.4, §3.5). Pure functions. Times are Unix ms on the store's clock.

/** The time for which a seller is assumed to repeat a failed delivery, if it declares none. Ms. */
export const HORIZON_MS = 86_400_000;

/** The time for which sellers may hold back impairments, to send several together. Ms. */
const COALESCENCE_MS = 300_000;

/**
 * The possible error of a stored delivery time: times are rounded to the minute, and stored at most once a minute. Ms.
 */
const NOTED_MS = 120_000;

/** The longest reporting interval. Ms. */
export const MONTH_MS: number = 31 * 86_400_000;

/** The facts about the use of one webhook URL that tell when the URL is no longer needed. */
export interface UrlUse {
  /** A form of the URL without its secret, for messages. */
  readonly url: string;
  /** The number of calls, media buys and subscriptions that use the URL now. */
  readonly recorded: number;
  /**
   * The time at which the seller was given the URL, or at which its last user (call, media buy or subscription) stopped
   * using it.
   */
  readonly since?: number | undefined;
  /** The time of the last authentic delivery at the URL. */
  readonly heardAt?: number | undefined;
  /** The latest time at which the URL's credentials may have been used at another URL (told.md §5.3). */
  readonly usedAt?: number | undefined;
  /** The longest `delivery_retry_horizon_seconds` of the sellers that use the URL, in ms; absent: unknown. */
  readonly horizonMs?: number | undefined;
  /**
   * The longest reporting interval of the media buys that no longer use the URL; absent: none of them has reports. Ms.
   */
  readonly intervalMs?: number | undefined;
}

/**
 * Returns the time from which the URL is no longer needed, if no more deliveries come. Infinity while a call, media buy
 * or subscription uses it.
 */
export function quietAt(use: UrlUse): number {
  const { recorded, since = 0, heardAt = 0, usedAt, horizonMs = HORIZON_MS, intervalMs = 0 } = use;
  if (recorded > 0) return Infinity;
  const noted = heardAt === 0 ? 0 : heardAt + NOTED_MS;
  const quiet = Math.max(since, noted) + Math.max(COALESCENCE_MS, horizonMs, intervalMs);
  // A seller that used the URL's credentials at another URL may do so again after one reporting interval, and may
  // repeat that delivery for `horizonMs`.
  return usedAt === undefined ? quiet : Math.max(quiet, usedAt + NOTED_MS + MONTH_MS + horizonMs);
}

/** True if the URL is no longer needed. */
export const isQuiet = (use: UrlUse, now: number): boolean => now >= quietAt(use);

/** A URL that a seller was given for a media buy, with the times that tell if the media buy still uses the URL. */
export interface LeavableUrl {
  readonly channel: string;
  /** The time at which the call that gave the seller the URL was registered. */
  readonly at: number;
  /** The time at which the call that gave the seller the URL was successfully completed; absent before. */
  readonly ackedAt?: number;
  /** The time at which another URL replaced this one, or at which the seller was told to stop sending. */
  readonly formerAt?: number;
  /** The time of the media buy's last event at this URL. */
  readonly heardAt?: number;
}

/** The facts about a media buy, besides its URLs, that `leftAt` needs. */
export interface Leaving {
  /** The time at which the media buy became terminal; absent: the buy is running. */
  readonly endedAt?: number | undefined;
  /** The time for which the seller repeats deliveries; absent: unknown. Ms. */
  readonly horizonMs?: number | undefined;
}

/**
 * Returns the time from which a media buy no longer uses one of its URLs; undefined while it uses the URL. A terminal
 * media buy has left the URL at its end, once the seller no longer repeats deliveries. A running one leaves a former
 * URL with the first event at the URL that replaced it. The result is then the time of the replacement, because earlier
 * events may still be repeated.
 * @param told all URLs of the media buy.
 */
export function leftAt<T extends LeavableUrl>(
  one: T,
  told: readonly T[],
  { endedAt, horizonMs = HORIZON_MS }: Leaving,
  now: number,
): number | undefined {
  if (endedAt !== undefined && now >= endedAt + horizonMs) return endedAt;
  const { formerAt } = one;
  if (formerAt === undefined) return undefined;
  const later = told.filter(({ channel, at, ackedAt }) => isLater({ channel, at, ackedAt }, one));
  // Without a later URL, the seller was told to stop sending, or to send to another party. No event can confirm that
  // the seller has done so, so the retry horizon decides.
  if (later.length === 0) return now >= formerAt + horizonMs ? formerAt : undefined;
  const isHeard = later.some(({ ackedAt = Infinity, heardAt = -Infinity }) => heardAt >= ackedAt);
  return isHeard ? formerAt : undefined;
}

const isLater = (
  { channel, at, ackedAt }: Pick<LeavableUrl, 'channel' | 'at'> & { readonly ackedAt: number | undefined },
  one: LeavableUrl,
): boolean => channel === one.channel && at > one.at && ackedAt !== undefined;
