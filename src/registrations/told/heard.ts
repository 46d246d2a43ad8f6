// Stores the time at which an authentic delivery last used a webhook URL (told.md §1.3). The receiver calls this for
// each delivery, and does not wait for the write. A process writes a URL at most once a minute, one URL after the
// other. A failed write is repeated with the next delivery.
import type { Hashes } from '../../crypto/engine.ts';
import type { EventRegistrations } from '../../events/event-registration.ts';
import type { RaiseAlarm } from '../../shared/alarms.ts';
import { putBounded } from '../../shared/bounded.ts';
import { requestsMayShare } from '../../shared/single-flight.ts';
import type { StoreRegistrations } from '../../stores/store.ts';
import type { OurUrl } from '../../windows/told.ts';
import { noteOther, noteOwn } from './own-routes.ts';
import { type GivenUrl, givenAt, saveGiven } from './url-row.ts';

/**
 * The most URLs of which this process remembers the latest write. A use of any other URL is written with each delivery.
 */
const MOST_URLS = 10_000;
/** The shortest interval between two writes of one URL. Ms. */
const EVERY_MS = 60_000;
const DAY_MS = 86_400_000;
/**
 * The time limit of a write. Some runtimes stop a write together with the request that began it, so a later delivery
 * begins another write. Ms.
 */
const WRITE_MS = 30_000;
/**
 * After this many failed writes, the remaining ones are postponed: the store is unavailable, and deliveries fail as
 * well.
 */
const MOST_FAILED = 8;
/** The pause after a failed write. Ms. */
const AGAIN_MS = 1000;

export interface HeardOptions {
  readonly registrations: StoreRegistrations;
  readonly hashes: Pick<Hashes, 'sha256Hex'>;
  /** Returns base URL and route of a webhook URL; undefined if no seller was given the URL. */
  readonly given: (url: string) => OurUrl | undefined;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  readonly raise: RaiseAlarm;
}

/** A URL that was used, but whose use is not written yet. */
interface Unwritten {
  readonly sender: string;
  readonly by: Credentials;
  readonly url: OurUrl;
}

/**
 * The credentials with which a delivery was authenticated. `own`: those of the URL's route. `other`: those of another
 * route, which this URL accepts too (told.md §1.4). `none`: the delivery was signed. `retired`: retired credentials,
 * which do not prove the sender.
 */
type Credentials = 'own' | 'other' | 'none' | 'retired';

type Heard = ReturnType<NonNullable<EventRegistrations['heard']>>;

export interface HeardUrls {
  /** Notes an authentic delivery at a URL; implements `EventRegistrations.heard`. */
  readonly heard: NonNullable<EventRegistrations['heard']>;
  /**
   * Notes a delivery with a retired credential. Such a delivery may raise an alarm, but does not count as a use of the
   * URL.
   */
  readonly used: NonNullable<EventRegistrations['heard']>;
}

export function heardUrls({ registrations, hashes, given, now, raise }: HeardOptions): HeardUrls {
  /** A cache of base URL and route by the URL's text, so that the token in a URL is decoded only once. */
  const known = new Map<string, OurUrl>();
  const urlOf = (text: string): OurUrl | undefined => {
    const found = known.get(text) ?? given(text);
    return found && putBounded(known, text, found, MOST_URLS);
  };
  /** The time of the latest write, for each seller, URL and credentials. */
  const heardAt = new Map<string, number>();
  const unwritten = new Map<string, Unwritten>();
  /**
   * The end of the running write's time limit. Until then, a delivery begins no second write, because the running one
   * also writes the new use. Exception: runtimes that may stop a write together with its request.
   */
  let busyUntil = -Infinity;
  /** No write begins before this time, because a write has failed. Milliseconds of the clock `now`. */
  let pausedUntil = -Infinity;

  const write = async ({ sender, url, by }: Unwritten): Promise<void> => {
    const used = await registrations.run(sender, (rows, at): boolean => {
      const given = givenAt(rows, url, hashes);
      if (!given) return false;
      const isAuthentic = by !== 'retired';
      const isUsed = (!isAuthentic || given.retiredAt !== undefined) && isNewToday(given, at);
      if (!isAuthentic && !isUsed) return false;
      if (by === 'own') noteOwn(rows, given);
      if (by === 'other') noteOther(rows, given, at);
      const heardAt = Math.max(given.heardAt ?? 0, at);
      saveGiven(
        rows,
        sender,
        { ...given, ...(isAuthentic && { heardAt }), ...(isUsed && { usedAlarmAt: at }) },
        hashes,
      );
      return isUsed;
    });
    if (used) raise(usedAlarm(sender, url, by));
  };
  const writeAll = async (): Promise<void> => {
    const failed: (readonly [string, Unwritten])[] = [];
    for (const [key, one] of unwritten) {
      busyUntil = now() + WRITE_MS;
      await write(one).catch(() => failed.push([key, one]));
      unwritten.delete(key);
      if (failed.length === MOST_FAILED) break;
    }
    // Uses whose write failed go to the end of the queue. The next delivery after the pause writes them.
    for (const [key, one] of failed) putBounded(unwritten, key, one, MOST_URLS);
    if (failed.length > 0) pausedUntil = now() + AGAIN_MS;
    busyUntil = -Infinity;
  };

  const note = (text: string, sender: string, by: Credentials): Heard => {
    const url = urlOf(text);
    if (!url) return undefined;
    const key = JSON.stringify([sender, url.base, url.route, by]);
    const at = now();
    const isNews = at - (heardAt.get(key) ?? -Infinity) >= EVERY_MS;
    if (isNews) {
      putBounded(heardAt, key, at, MOST_URLS);
      putBounded(unwritten, key, { sender, url, by }, MOST_URLS);
    }
    if (unwritten.size === 0 || at < pausedUntil) return { url };
    if (at < busyUntil && (requestsMayShare() || !isNews)) return { url };
    return { url, written: writeAll() };
  };
  return {
    heard: (text, sender, isPrevious) => note(text, sender, credentialsOf(isPrevious)),
    used: (text, sender) => note(text, sender, 'retired'),
  };
}

function credentialsOf(isPrevious: boolean | undefined): Credentials {
  if (isPrevious === undefined) return 'none';
  return isPrevious ? 'other' : 'own';
}

/** True if no alarm about a use of this retired URL was raised in the last 24 hours (told.md §4.2). */
const isNewToday = ({ usedAlarmAt = -Infinity }: GivenUrl, now: number): boolean =>
  now - usedAlarmAt >= DAY_MS;

/**
 * Returns the alarm about a use of a retired URL. The message leaves out the URL itself, whose last segment is secret.
 */
const usedAlarm = (sender: string, { base, route }: OurUrl, by: Credentials): Parameters<RaiseAlarm>[0] => ({
  code: 'retired_url_used',
  sender,
  base,
  route,
  message: `The seller sends ${by === 'retired' ? `to a URL below ${base} under credentials that were` : `to a URL below ${base} that was`} retired. Ask it to use what it was told since.`,
});
