/*
 * When a media buy has left a URL that it was told before, and when nobody needs that URL any more (told.md §3.4, §3.5). Pure.
 * Times are Unix ms on the store's clock.
 */

/** The time for which a seller delivers an event again, where it declares none. Ms. */
export const HORIZON_MS = 86_400_000;

/** Impairments are held back for so long, to be sent together. Ms. */
const COALESCENCE_MS = 300_000;

/** A delivery is noted to the minute, and a process stores it once a minute. Ms. */
const NOTED_MS = 120_000;

/** The longest reporting interval. Ms. */
export const MONTH_MS: number = 31 * 86_400_000;

/** How a URL of ours, or a former credential, is used. */
export interface UrlUse {
  /** As it was given, for messages. */
  readonly url: string;
  /** How many operations, media buys and subscriptions are on it. */
  readonly recorded: number;
  /** When it was given, or when the last one has left it. */
  readonly since?: number | undefined;
  /** The last authentic delivery by it. */
  readonly heardAt?: number | undefined;
  /** Its credentials were used by another URL then (told.md §5.3). */
  readonly usedAt?: number | undefined;
  /** The longest `delivery_retry_horizon_seconds` of its sellers; absent: unknown. Ms. */
  readonly horizonMs?: number | undefined;
  /** The longest reporting interval of the media buys that have left it; absent: none reports. Ms. */
  readonly intervalMs?: number | undefined;
}

/** When it is quiet, if nothing comes by it until then; Infinity while somebody is on it. */
export function quietAt(use: UrlUse): number {
  const { recorded, since = 0, heardAt = 0, usedAt, horizonMs = HORIZON_MS, intervalMs = 0 } = use;
  if (recorded > 0) return Infinity;
  const noted = heardAt === 0 ? 0 : heardAt + NOTED_MS;
  const quiet = Math.max(since, noted) + Math.max(COALESCENCE_MS, horizonMs, intervalMs);
  // Who signs with them goes on to: the next delivery comes after an interval, and is repeated for the horizon.
  return usedAt === undefined ? quiet : Math.max(quiet, usedAt + NOTED_MS + MONTH_MS + horizonMs);
}

/** Whether nobody needs it any more. */
export const isQuiet = (use: UrlUse, now: number): boolean => now >= quietAt(use);

/** A URL that a media buy was told, as far as leaving it goes. */
export interface LeavableUrl {
  readonly channel: string;
  /** When the call that names it was registered. */
  readonly at: number;
  /** When that call had ended, and was done. */
  readonly ackedAt?: number;
  /** When another one, or none, had taken its place. */
  readonly formerAt?: number;
  /** The last event of the media buy by it. */
  readonly heardAt?: number;
}

/** What leaving depends on beside the URLs. */
export interface Leaving {
  /** When the media buy became terminal; absent: it runs. */
  readonly endedAt?: number | undefined;
  /** The seller's; absent: unknown. Ms. */
  readonly horizonMs?: number | undefined;
}

/**
 * From when on it counts that a media buy has left one of its URLs: its end, or when another URL took the place; undefined: it is on
 * it. One that runs leaves a former URL with the first event by the URL that took its place, and the time that counts is the acknowledgement:
 * what was sent before may be delivered again for the horizon.
 * @param told all that the media buy was told.
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
  // Its reports were taken away, or go to another's URL: no event of the media buy will come by one of ours.
  if (later.length === 0) return now >= formerAt + horizonMs ? formerAt : undefined;
  const isHeard = later.some(({ ackedAt = Infinity, heardAt = -Infinity }) => heardAt >= ackedAt);
  return isHeard ? formerAt : undefined;
}

const isLater = (
  { channel, at, ackedAt }: Pick<LeavableUrl, 'channel' | 'at'> & { readonly ackedAt: number | undefined },
  one: LeavableUrl,
): boolean => channel === one.channel && at > one.at && ackedAt !== undefined;
