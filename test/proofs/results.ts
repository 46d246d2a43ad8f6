// The results of the proofs: a file each, with a row for each test that passed.
// Written by `npm run proofs`; read by `npm run check:figures` and by the pages.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { format } from 'prettier';
import { proofNamed, PROOF_NAMES } from './table.ts';
import { fingerprints } from './code.ts';

/** One test of a proof that passed, with its figures. */
export interface ProofRow {
  /** The test's full name. */
  readonly test: string;
  /** ISO 8601, the day. */
  readonly date: string;
  /** The commit that was checked out, abbreviated. */
  readonly commit: string;
  /** The fingerprint of the code that the proof is about (`fingerprints`). */
  readonly code: string;
  /** Cores and memory, e.g. `2 cores, 24 GiB, node 24.21.0`. */
  readonly machine: string;
  readonly seconds: number;
  /** What the test told (`tell`), e.g. its seed; empty for a test that tells nothing. */
  readonly figures: Readonly<Record<string, unknown>>;
}

const root = new URL('../../', import.meta.url);
const src = new URL('src', root).pathname;
const fileOf = (name: string): URL => new URL(`results/${name}.json`, import.meta.url);

export function rowsOf(name: string): readonly ProofRow[] {
  return existsSync(fileOf(name)) ? (JSON.parse(readFileSync(fileOf(name), 'utf8')) as ProofRow[]) : [];
}

/** Replaces rows of the same tests, and keeps the others: a proof may be run a part at a time. */
export async function addRows(name: string, rows: readonly ProofRow[]): Promise<void> {
  const ran = new Set(rows.map(({ test }) => test));
  const kept = rowsOf(name).filter(({ test }) => !ran.has(test));
  const all = [...kept, ...rows].toSorted((a, b) => a.test.localeCompare(b.test));
  writeFileSync(fileOf(name), await format(JSON.stringify(all), { parser: 'json', printWidth: 110 }));
}

/** Returns a function that gives the fingerprint of the code that a proof is about, as it is now. */
export function codesNow(): (name: string) => string {
  const codeOf = fingerprints(src);
  return (name) => codeOf(proofNamed(name).about);
}

/** The rows whose code has changed since. */
export function oldRows(): readonly { readonly name: string; readonly row: ProofRow }[] {
  const codeNow = codesNow();
  return PROOF_NAMES.flatMap((name) =>
    rowsOf(name)
      .filter(({ code }) => code !== codeNow(name))
      .map((row) => ({ name, row })),
  );
}
