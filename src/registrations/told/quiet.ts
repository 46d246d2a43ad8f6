// Computes when a media buy has left a URL, and when nobody needs that URL any more (told.md §3.4, §3.5). Pure. The
// state of URLs, the check and the reading of who is on them use it. Times are Unix ms on the store's clock.

/** The time for which a seller repeats a delivery, if it declares none. Ms. */
export const HORIZON_MS = 86_400_000;

/** The time for which sellers hold impairments back, to send them together. Ms. */
const COALESCENCE_MS = 300_000;

/** The inaccuracy of a noted delivery: it is noted to the minute, and stored once a minute. Ms. */
const NOTED_MS = 120_000;

/** The longest reporting interval. Ms. */
export const MONTH_MS: number = 31 * 86_400_000;

/** The use of a URL of ours, or of a former credential. */
export interface UrlUse {
  /** The URL as it was given, for messages. */
  readonly url: string;
  /** The number of operations, media buys and subscriptions that are on it. */
  readonly recorded: number;
  /** The time at which it was given, or the last of them left it. */
  readonly since?: number | undefined;
  /** The time of its last authentic delivery. */
  readonly heardAt?: number | undefined;
  /** The time at which its credentials were used at another URL (told.md §5.3). */
  readonly usedAt?: number | undefined;
  /** The longest `delivery_retry_horizon_seconds` of its sellers; absent: unknown. Ms. */
  readonly horizonMs?: number | undefined;
  /** The longest reporting interval of the media buys that have left it; absent: none reports. Ms. */
  readonly intervalMs?: number | undefined;
}

/** The time from which it is quiet, if nothing more comes; Infinity while somebody is on it. */
export function quietAt(use: UrlUse): number {
  const { recorded, since = 0, heardAt = 0, usedAt, horizonMs = HORIZON_MS, intervalMs = 0 } = use;
  if (recorded > 0) return Infinity;
  const noted = heardAt === 0 ? 0 : heardAt + NOTED_MS;
  const quiet = Math.max(since, noted) + Math.max(COALESCENCE_MS, horizonMs, intervalMs);
  // A seller that still signs with them goes on: the next delivery comes after an interval, and is repeated for the
  // horizon.
  return usedAt === undefined ? quiet : Math.max(quiet, usedAt + NOTED_MS + MONTH_MS + horizonMs);
}

/** True if nobody needs it any more. */
export const isQuiet = (use: UrlUse, now: number): boolean => now >= quietAt(use);

/** A URL that a seller was given for a media buy, with the facts about leaving it. */
export interface LeavableUrl {
  readonly channel: string;
  /** The time at which the call that names it was registered. */
  readonly at: number;
  /** The time at which that call had ended, and was done. */
  readonly ackedAt?: number;
  /** The time at which another URL, or none, had replaced it. */
  readonly formerAt?: number;
  /** The time of the last event of the media buy at it. */
  readonly heardAt?: number;
}

/** The facts about leaving that are not the URL's. */
export interface Leaving {
  /** The time at which the media buy became terminal; absent: it runs. */
  readonly endedAt?: number | undefined;
  /** The seller's horizon; absent: unknown. Ms. */
  readonly horizonMs?: number | undefined;
}

/**
 * The time from which a media buy counts as gone from one of its URLs; undefined while it is on it. A terminal buy has
 * left at its end.
 * A running buy leaves a former URL with the first event at the URL that replaced it. The time that counts is the
 * acknowledgement, because earlier events may be repeated for the horizon.
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
  // Its reports were ended, or go to another's URL: none of our URLs will have an event of it.
  if (later.length === 0) return now >= formerAt + horizonMs ? formerAt : undefined;
  const isHeard = later.some(({ ackedAt = Infinity, heardAt = -Infinity }) => heardAt >= ackedAt);
  return isHeard ? formerAt : undefined;
}

const isLater = (
  { channel, at, ackedAt }: Pick<LeavableUrl, 'channel' | 'at'> & { readonly ackedAt: number | undefined },
  one: LeavableUrl,
): boolean => channel === one.channel && at > one.at && ackedAt !== undefined;
