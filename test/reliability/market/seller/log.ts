import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import type { SellerLine } from '../wire.ts';

/** Without its time. */
export type Said<L = SellerLine> = L extends SellerLine ? Omit<L, 'at'> : never;

/** A seller's memory: what is written is there for who comes after it. */
export interface SellerLog {
  readonly before: readonly SellerLine[];
  readonly write: (line: Said) => void;
}

export function logIn(file: string): SellerLog {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const before = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as SellerLine);
  return {
    before,
    write: (line) => appendFileSync(file, `${JSON.stringify({ at: Date.now(), ...line })}\n`),
  };
}
