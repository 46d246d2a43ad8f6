import { describe, expect, it } from 'vitest';
import { backoffMs } from '../../src/stages/for-tests.ts';

const RETRY = { baseMs: 1_000, maxMs: 300_000 };
const nearlyOne = (): number => 1 - 2 ** -53;

describe('backoffMs: 1 s · 2ⁿ, at most 5 min, of which half is jitter', () => {
  it('doubles from baseMs to maxMs', () => {
    const longest = [1, 2, 3, 8, 9, 10, 12, 1_000].map((attempt) => backoffMs(attempt, RETRY, nearlyOne));
    expect(longest).toEqual([1_000, 2_000, 4_000, 128_000, 256_000, 300_000, 300_000, 300_000]);
  });

  it('is at least half of that, so that repetitions are bounded by the step', () => {
    expect([0, 0.25, 0.5].map((random) => backoffMs(3, RETRY, () => random))).toEqual([2_000, 2_500, 3_000]);
  });

  it('never exceeds maxMs where that is under baseMs', () => {
    expect(backoffMs(1, { baseMs: 5_000, maxMs: 10 }, nearlyOne)).toBe(10);
  });
});
