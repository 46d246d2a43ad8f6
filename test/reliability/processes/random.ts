/** Numbers that a seed gives again. */
export interface Random {
  /** 0 ≤ n < 1. */
  readonly next: () => number;
  /** A whole number, 0 ≤ n < `most`. */
  readonly below: (most: number) => number;
  /** @throws Error where there is nothing to pick. */
  readonly pick: <T>(from: readonly T[]) => T;
}

/** mulberry32. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (most: number): number => Math.floor(next() * most);
  return {
    next,
    below,
    pick: (from) => {
      if (from.length === 0) throw new Error('nothing to pick');
      return from[below(from.length)] as (typeof from)[number];
    },
  };
}
