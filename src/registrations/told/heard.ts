import type { Hashes } from '../../crypto/engine.ts';
import type { EventRegistrations } from '../../events/event-registration.ts';
import type { RaiseAlarm } from '../../shared/alarms.ts';
import { putBounded } from '../../shared/bounded.ts';
import { requestsMayShare } from '../../shared/single-flight.ts';
import type { StoreRegistrations } from '../../stores/store.ts';
import type { OurUrl } from '../../windows/told.ts';
import { noteOther, noteOwn } from './own-routes.ts';
import { type GivenUrl, givenAt, saveGiven } from './url-row.ts';

/*
 * When a URL was heard (told.md §1.3): noted by every authentic delivery, and written at most once a minute a URL by each process, one
 * URL after the other, behind the answers. What cannot be written is written with the next delivery.
 */

/** URLs of this process that are known; for any other the store is written again. */
const MOST_URLS = 10_000;
/** How often a URL is written. Ms. */
const EVERY_MS = 60_000;
const DAY_MS = 86_400_000;
/** A write that takes longer may have died with the request that began it: the next delivery begins another one. Ms. */
const WRITE_MS = 30_000;
/** After so many that failed the store is away, and the others wait too: deliveries fail then as well. */
const MOST_FAILED = 8;
/** After one that failed. Ms. */
const AGAIN_MS = 1000;

export interface HeardOptions {
  readonly registrations: StoreRegistrations;
  readonly hashes: Pick<Hashes, 'sha256Hex'>;
  /** The URL of ours that a text is, if a seller was given it. */
  readonly given: (url: string) => OurUrl | undefined;
  /** Ms, of a clock that is never set. */
  readonly now: () => number;
  readonly raise: RaiseAlarm;
}

/** A URL that was heard and is not written yet. */
interface Unwritten {
  readonly sender: string;
  readonly by: Credentials;
  readonly url: OurUrl;
}

/**
 * Those of its route, those of the route that it is accepted beside (told.md §1.4), none where it is signed, or retired ones: nobody knows
 * who sent that.
 */
type Credentials = 'own' | 'other' | 'none' | 'retired';

type Heard = ReturnType<NonNullable<EventRegistrations['heard']>>;

export interface HeardUrls {
  /** `EventRegistrations.heard`. */
  readonly heard: NonNullable<EventRegistrations['heard']>;
  /** Likewise a delivery by a credential that was retired: it tells of it, and notes nothing else. */
  readonly used: NonNullable<EventRegistrations['heard']>;
}

export function heardUrls({ registrations, hashes, given, now, raise }: HeardOptions): HeardUrls {
  /** By the text of the URL: its token is read once. */
  const known = new Map<string, OurUrl>();
  const urlOf = (text: string): OurUrl | undefined => {
    const found = known.get(text) ?? given(text);
    return found && putBounded(known, text, found, MOST_URLS);
  };
  /** By seller and URL. */
  const heardAt = new Map<string, number>();
  const unwritten = new Map<string, Unwritten>();
  /** A write is under way that takes what comes, and is given up then. */
  let busyUntil = -Infinity;
  /** The last write has failed: nothing is written until then. */
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
    // They are written with the next delivery, after a pause, and after all others.
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

/** No alarm told today that what was retired is used (told.md §4.2). */
const isNewToday = ({ usedAlarmAt = -Infinity }: GivenUrl, now: number): boolean =>
  now - usedAlarmAt >= DAY_MS;

/** Not the URL itself: its last segment is what keeps strangers from knowing it. */
const usedAlarm = (sender: string, { base, route }: OurUrl, by: Credentials): Parameters<RaiseAlarm>[0] => ({
  code: 'retired_url_used',
  sender,
  base,
  route,
  message: `The seller sends ${by === 'retired' ? `to a URL below ${base} under credentials that were` : `to a URL below ${base} that was`} retired. Ask it to use what it was told since.`,
});
