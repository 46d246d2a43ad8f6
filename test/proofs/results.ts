// The results of the proofs: a file each, with its tests, and a row for each test that passed.
// Written by `npm run proofs`; read by `npm run check:figures` and by the pages.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { format } from 'prettier';
import { proofNamed, PROOF_NAMES } from './table.ts';
import { fingerprints } from './code.ts';

/** A test. */
export interface TestName {
  /** Its file's path in the repository: tests of several files may have one name. */
  readonly file: string;
  /** Its titles, without a seed that is new each time. */
  readonly test: string;
}

/** One test of a proof that passed, with its figures. */
export interface ProofRow extends TestName {
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
  /** All tests that the proof had at its last run, also of those that did not run or failed. */
  readonly tests: readonly TestName[];
  readonly rows: readonly ProofRow[];
}

const NOT_RUN: Results = { tests: [], rows: [] };

const resultsOf = (name: string): Results =>
  existsSync(fileOf(name)) ? (JSON.parse(readFileSync(fileOf(name), 'utf8')) as Results) : NOT_RUN;

export const rowsOf = (name: string): readonly ProofRow[] => resultsOf(name).rows;

/** The tests of a proof that have no row: they failed at their last run, or did not run yet. */
export const withoutRow = (name: string): readonly TestName[] => withoutRowIn(resultsOf(name));

const isIn = (some: readonly TestName[], { file, test }: TestName): boolean =>
  some.some((one) => one.file === file && one.test === test);

export const withoutRowIn = ({ tests, rows }: Results): readonly TestName[] =>
  tests.filter((one) => !isIn(rows, one));

/** What a run of a proof, or of a part of it, came to. */
export interface ProofRun {
  /** All tests of the proof. */
  readonly tests: readonly TestName[];
  /** Those that should have run. */
  readonly ran: readonly TestName[];
  /** A row for each of these that passed. */
  readonly passed: readonly ProofRow[];
}

/** Replaces the rows of tests that ran, keeps those of other tests, and drops those of tests that are gone. */
export function after({ rows }: Results, { tests, ran, passed }: ProofRun): Results {
  const kept = rows.filter((row) => isIn(tests, row) && !isIn(ran, row));
  const inOrder = (a: TestName, b: TestName): number =>
    a.test.localeCompare(b.test) || a.file.localeCompare(b.file);
  return { tests: tests.toSorted(inOrder), rows: [...kept, ...passed].toSorted(inOrder) };
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
