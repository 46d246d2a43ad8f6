import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import type { SellerLine } from '../wire.ts';

/** Without its time. */
export type Said<L = SellerLine> = L extends unknown ? Omit<L, 'at'> : never;

/** A seller's memory: what is written is there for who comes after it. */
export interface SellerLog<L = SellerLine> {
  readonly before: readonly L[];
  readonly write: (line: Said<L>) => void;
}

export function logIn<L = SellerLine>(file: string): SellerLog<L> {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const before = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as L);
  return {
    before,
    write: (line) => appendFileSync(file, `${JSON.stringify({ at: Date.now(), ...line })}\n`),
  };
}
