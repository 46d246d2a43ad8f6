import { putBounded } from '../bounded.ts';

/**
 * Trials that accept nothing: one in a second for each name, or whoever forges would have more verified than he sends.
 * One that finds something is not counted: what was found holds, and may be looked for again once it does not.
 */
export interface TrialPace {
  /**
   * Runs `find`, unless a trial of that name has found nothing within the second before `at` (receiver's clock, Unix
   * ms). Whoever comes while one is under way waits for its end: what comes in a burst is as good as its first.
   */
  readonly once: <T>(name: string, at: number, find: () => Promise<T | undefined>) => Promise<T | undefined>;
}

const EVERY_MS = 1_000;
/** Names remembered. One that is forgotten may be tried once more. */
const MAX_NAMES = 10_000;

interface Tried {
  readonly at: number;
  readonly running: Promise<unknown> | undefined;
}

/** @param shared whether one delivery may wait for what another began (`requestsMayShare`). */
export function createTrialPace(shared: boolean): TrialPace {
  const tried = new Map<string, Tried>();
  return {
    async once(name, at, find) {
      const last = tried.get(name);
      if (last?.running) {
        // What keeps that one from being decided keeps this one from it too.
        await last.running;
        return undefined;
      }
      if (last && Math.abs(at - last.at) < EVERY_MS) return undefined;
      // Noted before it begins.
      const running = Promise.resolve().then(find);
      putBounded(tried, name, { at, running: shared ? running : undefined }, MAX_NAMES);
      let nothing = false;
      try {
        const found = await running;
        nothing = found === undefined;
        return found;
      } finally {
        if (nothing) putBounded(tried, name, { at, running: undefined }, MAX_NAMES);
        else tried.delete(name);
      }
    },
  };
}
