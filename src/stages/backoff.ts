import type { Config } from '../config/resolve.ts';

/**
 * How long workers leave an event alone after its run `attempt` (from 1) failed: anything up to `baseMs` after the
 * first, twice that after the second, and so on up to `maxMs` (full jitter, so that what failed together does not
 * come back together). A seller's retry does not wait. Whole ms.
 * @param random in [0, 1).
 */
export function backoffMs(
  attempt: number,
  { baseMs, maxMs }: Pick<Config['retry'], 'baseMs' | 'maxMs'>,
  random: () => number,
): number {
  return Math.floor(random() * Math.min(maxMs, baseMs * 2 ** Math.min(attempt - 1, 40)));
}
