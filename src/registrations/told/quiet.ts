// Computes when a media buy has left a URL, and when a URL is quiet, i.e. no longer needed (told.md §3.4, §3.5). It is
// pure. The state of URLs, their check, and `recordedOf` use it. Times are Unix ms on the store's clock.

/** The time for which a seller repeats a delivery, if it declares none. Ms. */
export const HORIZON_MS = 86_400_000;

/** The time for which sellers delay impairments, to send them together. Ms. */
const COALESCENCE_MS = 300_000;

/** The possible error of the time of a delivery: it is rounded to the minute, and stored once a minute. Ms. */
const NOTED_MS = 120_000;

/** The longest reporting interval. Ms. */
export const MONTH_MS: number = 31 * 86_400_000;

/** The use of one of our URLs, or of a former credential. */
export interface UrlUse {
  /** The URL in the form for messages. */
  readonly url: string;
  /** The number of operations, media buys and subscriptions that use it. */
  readonly recorded: number;
  /** The time at which it was given to the seller, or at which the last of its users left it. */
  readonly since?: number | undefined;
  /** The time of its last authentic delivery. */
  readonly heardAt?: number | undefined;
  /** The time at which its credentials were used at another URL (told.md §5.3). */
  readonly usedAt?: number | undefined;
  /** The longest `delivery_retry_horizon_seconds` of the sellers that use it; absent: unknown. Ms. */
  readonly horizonMs?: number | undefined;
  /** The longest reporting interval of the media buys that have left it; absent: none of them has reports. Ms. */
  readonly intervalMs?: number | undefined;
}

/**
 * Returns the time from which the URL is no longer needed, if no more deliveries come. Infinity while something uses
 * it.
 */
export function quietAt(use: UrlUse): number {
  const { recorded, since = 0, heardAt = 0, usedAt, horizonMs = HORIZON_MS, intervalMs = 0 } = use;
  if (recorded > 0) return Infinity;
  const noted = heardAt === 0 ? 0 : heardAt + NOTED_MS;
  const quiet = Math.max(since, noted) + Math.max(COALESCENCE_MS, horizonMs, intervalMs);
  // If the seller still signs with the former credentials, its next delivery may come after one interval, and be
  // repeated for the horizon.
  return usedAt === undefined ? quiet : Math.max(quiet, usedAt + NOTED_MS + MONTH_MS + horizonMs);
}

/** True if the URL is no longer needed. */
export const isQuiet = (use: UrlUse, now: number): boolean => now >= quietAt(use);

/** A URL that a seller was given for a media buy, with the times that tell if the buy has left it. */
export interface LeavableUrl {
  readonly channel: string;
  /** The time at which the call that names it was registered. */
  readonly at: number;
  /** The time at which that call had ended and was done. */
  readonly ackedAt?: number;
  /** The time at which it was replaced by another URL, or by none. */
  readonly formerAt?: number;
  /** The time of the media buy's last event at this URL. */
  readonly heardAt?: number;
}

/** The facts that are needed besides the URLs. */
export interface Leaving {
  /** The time at which the media buy became terminal; absent: the buy is running. */
  readonly endedAt?: number | undefined;
  /** The time for which the seller repeats deliveries; absent: unknown. Ms. */
  readonly horizonMs?: number | undefined;
}

/**
 * Returns the time from which a media buy no longer uses one of its URLs; undefined while it uses it. A terminal buy
 * has left the URL at its end, once the horizon after it is over. A running buy leaves a former URL with the first
 * event at the URL that replaced it. The returned time is the one at which the former URL was replaced, because events
 * before it may still be repeated for the horizon.
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
  // The reports were ended, or go to another party's URL, so no event of the buy will come to any of our URLs.
  if (later.length === 0) return now >= formerAt + horizonMs ? formerAt : undefined;
  const isHeard = later.some(({ ackedAt = Infinity, heardAt = -Infinity }) => heardAt >= ackedAt);
  return isHeard ? formerAt : undefined;
}

const isLater = (
  { channel, at, ackedAt }: Pick<LeavableUrl, 'channel' | 'at'> & { readonly ackedAt: number | undefined },
  one: LeavableUrl,
): boolean => channel === one.channel && at > one.at && ackedAt !== undefined;
