import { describe, expect, it } from 'vitest';
import type { Model } from './explore.ts';
import { explore, told } from './explore.ts';
import { differingFutures } from './soundness.ts';

/** A counter that goes up by one or doubles, up to 100. */
const COUNTER: Model<number> = {
  initial: 1,
  next: (n) => [
    ...(n < 100 ? [{ label: `${n} + 1`, state: n + 1 }] : []),
    ...(n <= 50 ? [{ label: `${n} × 2`, state: n * 2 }] : []),
  ],
  key: String,
  check: () => undefined,
};

describe('explore', () => {
  it('visits every reachable state once, and counts its steps', () => {
    // Nearest first: 100 is 8 steps away (1 2 3 6 12 24 25 50 100), 95 is the farthest.
    expect(explore(COUNTER)).toEqual({ states: 100, steps: 149, depth: 11 });
  });

  it('gives a shortest way to the nearest state that does not hold', () => {
    const isBad = (n: number): boolean => n === 10 || n === 99;
    const { breach } = explore({
      ...COUNTER,
      check: (n) => (isBad(n) ? { invariant: 'good', detail: `${n} is bad` } : undefined),
    });
    expect(breach && told(breach).split('\n')).toEqual([
      'good: 10 is bad',
      '   1. 1 + 1',
      '   2. 2 × 2',
      '   3. 4 + 1',
      '   4. 5 × 2',
    ]);
  });

  it('counts states with one key as one', () => {
    expect(explore({ ...COUNTER, key: (n) => String(Math.min(n, 10)) }).states).toBe(10);
  });

  it('refuses a world that is too large rather than to visit a part of it', () => {
    expect(() => explore(COUNTER, 99)).toThrow('more than 99 states');
  });
});

describe('differingFutures', () => {
  it('is empty where states with one key can go on alike', () => {
    expect(differingFutures(COUNTER, String)).toEqual({ forms: 100, keys: 100, differing: [] });
    const ring: Model<number> = {
      ...COUNTER,
      next: (n) => [{ label: 'on', state: (n + 1) % 10 }],
      key: (n) => String(n % 2),
    };
    expect(differingFutures(ring, String)).toEqual({ forms: 10, keys: 2, differing: [] });
  });

  it('names the keys whose states cannot', () => {
    const coarse = { ...COUNTER, key: (n: number) => (n < 5 ? String(n) : 'many') };
    expect(differingFutures(coarse, String).differing).toEqual(['many']);
  });
});
