import * as fc from 'fast-check';
import { expect } from 'vitest';
import { LONG } from '../form.ts';

/** The judgement of a history: `judged` and right, or `given up`, which says nothing. A wrong one is thrown. */
export type Verdict = 'judged' | 'given up';

/** One whose first 16 histories, of events and of registrations, come to every answer that has to be reached. */
export const FIXED_SEED = 648;

/** The same histories in each `npm test`; the long form makes new ones, and prints their seed. */
export const SEED: number = LONG ? Date.now() % 2 ** 31 : FIXED_SEED;

/** The long form makes so many times the histories of the others. */
export const TIMES: number = LONG ? 30 : 1;

/** Of the histories, at least so many have to be judged: a tenth may be given up, and of none nothing is shown. */
export const floorOf = (made: number): number => Math.max(1, Math.ceil(made * 0.9));

/** Random histories, and what has to be right about each. */
export interface RandomHistories<H> {
  /** Said in the line that tells how many were judged. */
  readonly name: string;
  readonly histories: fc.Arbitrary<H>;
  /** @throws Error for a history that is wrong: fast-check finds the shortest one. */
  readonly judge: (history: H) => Promise<Verdict>;
  /** Histories in the short form and in `rows`. Counted and not timed, so that a slow machine judges as many. */
  readonly count: number;
  readonly seed?: number;
}

/**
 * Makes the histories and judges each. Prints how many were judged and given up.
 * @throws Error if one is wrong, or if too few were judged.
 * @returns histories made.
 */
export async function expectHistories<H>(random: RandomHistories<H>): Promise<number> {
  const { name, histories, judge, count, seed = SEED } = random;
  const numRuns = TIMES * count;
  const verdicts: Record<Verdict, number> = { judged: 0, 'given up': 0 };
  if (numRuns > 0) {
    await fc.assert(
      fc.asyncProperty(histories, async (history) => {
        verdicts[await judge(history)] += 1;
      }),
      { seed, numRuns },
    );
  }
  const line = `${name}: ${verdicts.judged} histories judged, ${verdicts['given up']} given up (seed ${seed})`;
  console.log(line);
  expect(verdicts.judged, line).toBeGreaterThanOrEqual(floorOf(numRuns));
  return numRuns;
}
