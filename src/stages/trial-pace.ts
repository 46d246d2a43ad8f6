// Bounds the trials of `clock-trial.ts` and `url-trial.ts` to one a second per name (verification.md §2.34,
// §2.35).
// Made by `misconfiguration.ts`, one for each kind of trial and base.

import type { PublicUrl } from '../config/public-url.ts';
import type { Config } from '../config/resolve-options.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';
import { putBounded } from '../shared/bounded.ts';
import { singleFlight } from '../shared/single-flight.ts';
import type { Store } from '../stores/store.ts';

/** Facts about the receiver's set-up that verified signatures have shown. */
export interface SetUpKnowledge {
  /** Arrival of the last delivery inside its window. Receiver's clock, Unix ms. */
  insideAt: number | undefined;
  /**
   * Correction to be added to the clock, if it was found to be wrong. Ms. Holds until a delivery is inside
   * its window without it.
   */
  offsetMs: number | undefined;
}

/** Facts that verified signatures have shown about one base. */
export interface BaseKnowledge {
  readonly base: PublicUrl;
  /**
   * Agent URLs of senders with a signature that verified for this base. One URL per sender is enough, even if
   * the base ends in `/*`. Its paths come from the request, so only its origin can be wrong, and any verified
   * path proves the origin.
   */
  readonly urlRight: Set<string>;
}

export interface SetUpParts {
  readonly config: Pick<Config, 'bases' | 'allowLoopback'>;
  readonly raiseAlarm: RaiseAlarm;
  readonly store: Pick<Store, 'name' | 'clock'>;
  /** Unix ms. */
  readonly now: () => number;
}

/**
 * Allows at most one trial a second per name, so that forged requests cannot multiply signature checks.
 * Trials accept nothing. One with a finding is not counted: the finding holds, and may be looked for again
 * once it does not.
 */
export interface TrialPace {
  /**
   * Runs `find`, unless a trial of that name found nothing within the second before `at` (receiver's clock,
   * Unix ms). A delivery that comes during a trial waits for its end.
   */
  readonly once: <T>(name: string, at: number, find: () => Promise<T | undefined>) => Promise<T | undefined>;
}

/** Minimum time between two trials of one name: a sender causes at most a few verifications a second. */
const EVERY_MS = 1_000;
/** Most names remembered. A forgotten one may be tried once more. */
const MAX_NAMES = 10_000;

export function createTrialPace(): TrialPace {
  /** Time of each name's last trial, noted before it begins and removed if it finds something. */
  const tried = new Map<string, number>();
  const running = new Map<string, Promise<unknown>>();

  async function once<T>(
    name: string,
    at: number,
    find: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    // If the trial that is waited for cannot decide, those that wait fail with it.
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
