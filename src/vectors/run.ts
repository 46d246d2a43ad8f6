// Runs vectors, or registers them as tests, and prints their results. The entry `proto-webhooks/vectors` exports these
// functions; the command `proto-webhooks vectors` calls them.
import { onlyKnown } from '../config/validate.ts';
import type { CryptoEngine } from '../crypto/engine.ts';
import { type ReadCase, type Skipped, type VectorCase, VectorError } from './vector-case.ts';
import { judge, lacking, type VectorResult } from './judge.ts';
import { librarySubject } from './library.ts';
import { type LoadOptions, loadVectors } from './load.ts';
import type { Subject } from './subject.ts';
import { printableText } from '../codec/printable.ts';

/**
 * Options of `formatReport` and `formatResult`, which print the results of `runVectors`: colours, and the lines to
 * show.
 */
export interface ReportOptions {
  /** If true, uses ANSI colours, for terminals. Default: false. */
  readonly colour?: boolean;
  /** If true, shows only failures, skipped items, and the summary. Default: false. */
  readonly failuresOnly?: boolean;
  /** The skipped items, as `onSkipped` received them. */
  readonly skipped?: readonly Skipped[];
}

type Paint = (text: string) => string;

const PLAIN: Paint = (text) => text;
const ansi =
  (code: number): Paint =>
  (text) =>
    `\u001B[${code}m${text}\u001B[0m`;

/** Removes control characters. Vectors come from others, and their text must not control a terminal. */
const harmless = (text: string): string =>
  text
    .split('\n')
    .map((line) => printableText(line))
    .join('\n');
const indented = (text: string): string => harmless(text).replace(/^/gm, '    ');

/**
 * Returns one line for a result, with its notes below it. A failure also shows the expected and the actual answer, and
 * details.
 */
function lineOf(
  { passed, kind, name, file, expected, actual, detail, notes = [] }: VectorResult,
  paint: (passed: boolean) => Paint,
): string {
  const head = `${paint(passed)(passed ? 'ok  ' : 'FAIL')} ${kind} ${printableText(name.replace(/\s+/g, ' '))}`;
  const lines = notes.map((note) => `note     ${note}`);
  if (!passed) {
    lines.unshift(`file     ${file}`, `expected ${expected}`, `actual   ${actual}`);
    if (detail !== undefined) lines.splice(3, 0, detail);
  }
  return [head, ...lines.map(indented)].join('\n');
}

/**
 * Formats the result of one conformance vector as text.
 *
 * @example
 * ```ts
 * import { formatResult, runVectors } from 'proto-webhooks/vectors';
 *
 * for (const result of await runVectors()) if (!result.passed) console.log(formatResult(result));
 * ```
 */
export function formatResult(result: VectorResult, { colour = false }: ReportOptions = {}): string {
  return lineOf(result, (passed) => (colour ? ansi(passed ? 32 : 31) : PLAIN));
}

/**
 * Returns the lines about skipped items. Vectors that were skipped for the same reason share a line, as do members of
 * the same name. Each file has its own line.
 */
function skippedLines(skipped: readonly Skipped[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { what, name, why } of skipped) {
    const alike = `${what === 'vector' ? '' : ` ${name}`}: ${why}`;
    const line = `${what}\n${alike}`;
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return [...counts].map(([line, count]) => {
    const [what = '', alike = ''] = line.split('\n');
    const verb = what === 'member' ? 'ignored' : 'not judged';
    return `${verb}: ${count} ${what}${count === 1 ? '' : 's'}${alike}`;
  });
}

/** Returns the summary: the numbers of passed and failed vectors, of skipped vectors, and of vectors with notes. */
function summaryOf(results: readonly VectorResult[], skipped: readonly Skipped[]): string {
  const failed = results.filter(({ passed }) => !passed).length;
  const noted = results.filter(({ notes }) => notes !== undefined).length;
  // Skipped members are not vectors; their own lines count them.
  const left = skipped.filter(({ what }) => what !== 'member').length;
  return [
    `${results.length - failed} passed`,
    `${failed} failed`,
    ...(left > 0 ? [`${left} not judged`] : []),
    ...(noted > 0 ? [`${noted} with a note`] : []),
  ].join(', ');
}

/** Returns the end of a report: the skipped items, and the summary. */
export function formatEnd(results: readonly VectorResult[], skipped: readonly Skipped[] = []): string {
  return [...skippedLines(skipped).map((line) => harmless(line)), summaryOf(results, skipped)].join('\n');
}

/**
 * Formats the results of `runVectors` as text: one line for each vector, then the skipped items, and at the end
 * `N passed, N failed`.
 *
 * @example
 * ```ts
 * import { formatReport, runVectors, type Skipped } from 'proto-webhooks/vectors';
 *
 * const skipped: Skipped[] = [];
 * const results = await runVectors({ onSkipped: (item) => skipped.push(item) });
 * console.log(formatReport(results, { skipped, failuresOnly: true }));
 * ```
 */
export function formatReport(results: readonly VectorResult[], options: ReportOptions = {}): string {
  const shown = results.filter(({ passed }) => !passed || options.failuresOnly !== true);
  return [...shown.map((result) => formatResult(result, options)), formatEnd(results, options.skipped)].join(
    '\n',
  );
}

/**
 * Options of `runVectors`: the vectors, and the implementation to test. All are optional: by default this package's
 * own vectors test this library.
 */
export interface RunVectorsOptions extends LoadOptions {
  /** The implementation to test. Default: this library. */
  readonly subject?: Subject;
  /** The library's crypto engine: `native`, `webcrypto` or `noble`. Default: the fastest of the runtime. */
  readonly engine?: CryptoEngine['name'];
}

const OPTION_NAMES: Readonly<Record<keyof RunVectorsOptions | 'test', true>> = {
  dir: true,
  files: true,
  protocol: true,
  edition: true,
  codeOf: true,
  subject: true,
  engine: true,
  ignore: true,
  onSkipped: true,
  test: true,
};

/** The function `test` of vitest, jest or `node:test`, which `runVectors({ test })` calls for each vector. */
export type TestFunction = (name: string, run: () => Promise<void>) => unknown;

async function check(vector: VectorCase, subject: Subject): Promise<void> {
  const result = await judge(vector, subject);
  if (!result.passed) throw new Error(formatResult(result));
}

interface Prepared {
  readonly subject: Subject;
  /** The vectors for which the subject (the implementation under test) has the needed function. */
  readonly vectors: readonly VectorCase[];
}

function runs(
  vector: ReadCase,
  subject: Subject,
  onSkipped: RunVectorsOptions['onSkipped'],
): vector is VectorCase {
  const { kind, name, file } = vector;
  if (kind === 'not-judged') {
    onSkipped?.({ what: vector.what, name, file, why: vector.reason });
    return false;
  }
  const needed = lacking(vector, subject);
  if (needed === undefined) return true;
  onSkipped?.({ what: 'vector', name, file, why: `${kind}: the subject has no ${needed}` });
  return false;
}

/** Makes the error for a run in which no vector can be judged. */
function noVector(found: readonly ReadCase[]): VectorError {
  const [first] = found;
  return new VectorError(
    first?.kind === 'not-judged' && found.every(({ kind }) => kind === 'not-judged')
      ? `${first.file}: nothing in it can be judged (${first.reason})`
      : 'subject: no vector can be run: expected open, targetUri or extract',
  );
}

/** Prepares a run. @throws VectorError if there is no vector to run, ConfigError for an unknown option. */
function prepare(options: RunVectorsOptions): Prepared {
  // Without this check, a misspelt `dir` or `subject` would be ignored. Then this package's own vectors would test this
  // package, and pass.
  onlyKnown('runVectors', options, OPTION_NAMES);
  const { engine, subject = librarySubject(engine) } = options;
  const found = loadVectors(options);
  const vectors = found.filter((vector) => runs(vector, subject, options.onSkipped));
  if (vectors.length === 0) throw noVector(found);
  return { subject, vectors };
}

function register(test: TestFunction, options: RunVectorsOptions): void {
  const { subject, vectors } = prepare(options);
  for (const vector of vectors) test(`${vector.kind}: ${vector.name}`, () => check(vector, subject));
}

async function runAll(options: RunVectorsOptions): Promise<readonly VectorResult[]> {
  const { subject, vectors } = prepare(options);
  const results: VectorResult[] = [];
  for (const vector of vectors) results.push(await judge(vector, subject));
  return results;
}

/**
 * Tests this library, or your own (`subject`), by conformance vectors: requests with the answers that a receiver must
 * give. With `test` of vitest, jest or `node:test` it registers one test for each vector, synchronously. It throws the
 * same errors with which the form without `test` rejects.
 *
 * @example
 * ```ts
 * import { test } from 'node:test';
 * import { runVectors } from 'proto-webhooks/vectors';
 *
 * runVectors({ test });
 * ```
 */
export function runVectors(options: RunVectorsOptions & { readonly test: TestFunction }): void;
/**
 * Runs the vectors one after the other if there is no `test`, and resolves with their results.
 * @returns a result for each vector, failed or passed; `formatReport` turns them into text.
 * @throws VectorError (rejects) for a folder or file that cannot be read or has no vectors. It rejects with ConfigError
 * for a wrong `protocol` or `edition`, or an unknown option.
 * @example
 * ```ts
 * import { formatReport, runVectors } from 'proto-webhooks/vectors';
 *
 * const results = await runVectors({ dir: 'vectors' });
 * console.log(formatReport(results));
 * ```
 */
export function runVectors(options?: RunVectorsOptions): Promise<readonly VectorResult[]>;
export function runVectors(
  options: RunVectorsOptions & { readonly test?: TestFunction } = {},
): Promise<readonly VectorResult[]> | void {
  if (!options.test) return runAll(options);
  register(options.test, options);
}
