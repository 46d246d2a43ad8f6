// Limits the trials of `clock-trial.ts` and `url-trial.ts` to one a second for each name (verification.md §2.34,
// §2.35). A trial checks if a signature failed because of the receiver's own clock or URL.
// Made by `misconfiguration.ts`: one for the clock, and one for each base URL.

import type { PublicUrl } from '../config/public-url.ts';
import type { Config } from '../config/resolve-options.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';
import { putBounded } from '../shared/bounded.ts';
import { singleFlight } from '../shared/single-flight.ts';
import type { Store } from '../stores/store.ts';

/** Facts about the receiver's clock that verified signatures have proved. */
export interface SetUpKnowledge {
  /** Arrival of the last delivery whose signature was inside its time window, on the receiver's clock in Unix ms. */
  insideAt: number | undefined;
  /**
   * Correction to be added to the clock, if the clock was found to be wrong. Ms. It is used until a delivery is inside
   * its time window without the correction.
   */
  offsetMs: number | undefined;
}

/** Facts about one base URL that verified signatures have proved. */
export interface BaseKnowledge {
  readonly base: PublicUrl;
  /**
   * Agent URLs of senders with a signature that verified for this base URL. One verified URL per sender is enough,
   * even if the base ends in `/*`. Paths come from the request, so only the origin can be wrong, and any verified
   * path proves the origin.
   */
  readonly urlRight: Set<string>;
}

export interface SetUpParts {
  readonly config: Pick<Config, 'bases' | 'allowLoopback'>;
  readonly raiseAlarm: RaiseAlarm;
  readonly store: Pick<Store, 'name' | 'clock'>;
  /** Returns the time of the receiver's clock, Unix ms. */
  readonly now: () => number;
}

/**
 * Allows at most one trial a second for each name, e.g. the agent URL of a sender. Otherwise a forger would cause more
 * signature checks than it sends requests. Trials accept no delivery. A trial that found a mistake does not count: its
 * result is used, and may be looked for again when it no longer applies.
 */
export interface TrialPace {
  /**
   * Calls `find`, unless a trial of that name found nothing within the second before `at` (receiver's clock, Unix
   * ms). A delivery that arrives during a trial waits for that trial to end.
   */
  readonly once: <T>(name: string, at: number, find: () => Promise<T | undefined>) => Promise<T | undefined>;
}

/** Minimum time between two trials of one name. So a sender causes at most a few verifications a second. Ms. */
const EVERY_MS = 1_000;
/** The largest number of names whose last trial is remembered. A trial for a forgotten name may be repeated. */
const MAX_NAMES = 10_000;

export function createTrialPace(): TrialPace {
  /**
   * Time of each name's last trial (`at`), stored before the trial begins. It is removed if the trial finds something
   * or fails.
   */
  const tried = new Map<string, number>();
  const running = new Map<string, Promise<unknown>>();

  async function once<T>(
    name: string,
    at: number,
    find: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    // If the awaited trial rejects, all deliveries that wait for it reject too.
    for (let under = running.get(name); under; under = running.get(name)) await under;
    const last = tried.get(name);
    if (last !== undefined && Math.abs(at - last) < EVERY_MS) return undefined;
    putBounded(tried, name, at, MAX_NAMES);
    let found: T | undefined;
    await singleFlight(running, name, async () => {
      let foundNothing = false;
      try {
        found = await find();
        foundNothing = found === undefined;
      } finally {
        if (!foundNothing) tried.delete(name);
      }
    });
    return found;
  }

  return { once };
}
