import { createHash } from 'node:crypto';

/** Numbers from a text: the same text gives them again. */
export interface Dice {
  /** A whole number, 0 ≤ n < `most`. */
  readonly below: (most: number) => number;
  /** True so many times in a hundred. */
  readonly percent: (share: number) => boolean;
}

/** SHA-256 in counter mode. */
export function diceOf(text: string): Dice {
  let count = 0;
  const below = (most: number): number => {
    const block = createHash('sha256').update(`${text} ${count}`).digest();
    count += 1;
    return block.readUIntBE(0, 6) % most;
  };
  return { below, percent: (share) => below(100) < share };
}
