import { describe, expect, it } from 'vitest';
import { backoffMs } from '../../src/stages/backoff.ts';

const RETRY = { baseMs: 1_000, maxMs: 300_000 };
const nearlyOne = (): number => 1 - 2 ** -53;

describe('backoffMs: 1 s · 2ⁿ, at most 5 min, full jitter', () => {
  it('doubles from baseMs to maxMs', () => {
    const longest = [1, 2, 3, 8, 9, 10, 12, 1_000].map((attempt) => backoffMs(attempt, RETRY, nearlyOne));
    expect(longest).toEqual([999, 1_999, 3_999, 127_999, 255_999, 299_999, 299_999, 299_999]);
  });

  it('is anything below that', () => {
    expect([0, 0.25, 0.5].map((random) => backoffMs(3, RETRY, () => random))).toEqual([0, 1_000, 2_000]);
  });

  it('never exceeds maxMs where that is under baseMs', () => {
    expect(backoffMs(1, { baseMs: 5_000, maxMs: 10 }, nearlyOne)).toBe(9);
  });
});
