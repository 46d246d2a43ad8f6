// The results of the proofs: a file each, with its tests, and a row for each test that passed.
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

/** The result file of a proof. */
interface Results {
  /** The names of all tests that the proof had at its last run, also of those that did not run or failed. */
  readonly tests: readonly string[];
  readonly rows: readonly ProofRow[];
}

const NOT_RUN: Results = { tests: [], rows: [] };

const resultsOf = (name: string): Results =>
  existsSync(fileOf(name)) ? (JSON.parse(readFileSync(fileOf(name), 'utf8')) as Results) : NOT_RUN;

export const rowsOf = (name: string): readonly ProofRow[] => resultsOf(name).rows;

/** The tests of a proof that have no row: they failed at their last run, or did not run yet. */
export const withoutRow = (name: string): readonly string[] => withoutRowIn(resultsOf(name));

export const withoutRowIn = ({ tests, rows }: Results): readonly string[] =>
  tests.filter((one) => !rows.some(({ test }) => test === one));

/** What a run of a proof, or of a part of it, came to. */
export interface ProofRun {
  /** The names of all tests of the proof. */
  readonly tests: readonly string[];
  /** The names of those that ran. */
  readonly ran: readonly string[];
  /** A row for each of these that passed. */
  readonly passed: readonly ProofRow[];
}

/** Replaces the rows of tests that ran, keeps those of other tests, and drops those of tests that are gone. */
export function after({ rows }: Results, { tests, ran, passed }: ProofRun): Results {
  const kept = rows.filter(({ test }) => tests.includes(test) && !ran.includes(test));
  return { tests, rows: [...kept, ...passed].toSorted((a, b) => a.test.localeCompare(b.test)) };
}

export async function addRun(name: string, run: ProofRun): Promise<void> {
  const text = JSON.stringify(after(resultsOf(name), run));
  writeFileSync(fileOf(name), await format(text, { parser: 'json', printWidth: 110 }));
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
