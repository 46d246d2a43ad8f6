import type { Config } from '../config/resolve.ts';

/**
 * The back-off step after run `attempt` (from 1) failed, for which workers leave an event alone: `baseMs` after the
 * first, twice that after the second, and so on up to `maxMs`, or down to half of that at random, so that what failed
 * together does not come back together. Not less: attempts, and runs for bytes that came before, are counted by steps. A
 * seller's retry does not wait. Whole ms.
 * @param random in [0, 1).
 */
export function backoffMs(
  attempt: number,
  { baseMs, maxMs }: Pick<Config['retry'], 'baseMs' | 'maxMs'>,
  random: () => number,
): number {
  const longest = Math.min(maxMs, baseMs * 2 ** Math.min(attempt - 1, 40));
  return Math.floor((longest * (1 + random())) / 2);
}
