import type { PublicUrl } from '../config/public-url.ts';
import type { Config } from '../config/resolve-options.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';
import { putBounded } from '../shared/bounded.ts';
import { singleFlight } from '../shared/single-flight.ts';
import type { Store } from '../stores/store.ts';

/** What signatures that verified have shown of a receiver's set-up. */
export interface SetUpKnowledge {
  /** When one was inside its window last. Receiver's clock, Unix ms. */
  insideAt: number | undefined;
  /** What has to be added to the clock, where it was found to be wrong. Ms. Holds until one is inside without it. */
  offsetMs: number | undefined;
}

/** What they have shown of one base. */
export interface BaseKnowledge {
  readonly base: PublicUrl;
  /**
   * Agent URLs of senders one of whose signatures verified for it. With one that ends in `/*` too: its paths are
   * the request's, without end, and all that can be wrong about it is its origin, which one under any of them proves.
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
 * Trials that accept nothing: one in a second for each name, or a forger would cause more verifications than he sends requests.
 * One that finds something is not counted: what was found holds, and may be looked for again once it does not.
 */
export interface TrialPace {
  /**
   * Runs `find`, unless a trial of that name has found nothing within the second before `at` (receiver's clock, Unix
   * ms). A delivery that comes while one is under way waits for its end.
   */
  readonly once: <T>(name: string, at: number, find: () => Promise<T | undefined>) => Promise<T | undefined>;
}

/** What a sender may cause at most: a few verifications a second. */
const EVERY_MS = 1_000;
/** Names remembered. One that is forgotten may be tried once more. */
const MAX_NAMES = 10_000;

export function createTrialPace(): TrialPace {
  /** When a name was last tried; noted before the trial begins, and forgotten where that finds something. */
  const tried = new Map<string, number>();
  const running = new Map<string, Promise<unknown>>();

  async function once<T>(
    name: string,
    at: number,
    find: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    // What keeps one from being decided keeps those from it too that wait for its end.
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
