import { onlyKnown } from '../config/validate.ts';
import type { CryptoEngine } from '../crypto/engine.ts';
import type { VectorCase } from './case.ts';
import { VectorError } from './case.ts';
import { judge, lacking, type VectorResult } from './judge.ts';
import { librarySubject } from './library.ts';
import { loadVectors, type LoadOptions } from './load.ts';
import { formatResult } from './report.ts';
import type { Subject } from './subject.ts';

/** `runVectors`' options. None is needed: without any, this package's own vectors run against this library. */
export interface RunVectorsOptions extends LoadOptions {
  /** What is tested, if not this library: an implementation of yours. */
  readonly subject?: Subject;
  /** The library's crypto engine: `native`, `webcrypto` or `noble`. The fastest of the runtime by default. */
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

/** `test` of vitest, jest or node:test. */
export type TestFunction = (name: string, run: () => Promise<void>) => unknown;

async function check(vector: VectorCase, subject: Subject): Promise<void> {
  const result = await judge(vector, subject);
  if (!result.passed) throw new Error(formatResult(result));
}

interface Prepared {
  readonly subject: Subject;
  /** Those that the subject has a function for. */
  readonly vectors: readonly VectorCase[];
}

function runs(vector: VectorCase, subject: Subject, onSkipped: RunVectorsOptions['onSkipped']): boolean {
  const { kind, name, file } = vector;
  const needed = lacking(vector, subject);
  if (needed === undefined) return true;
  onSkipped?.({ what: 'vector', name, file, why: `${kind}: the subject has no ${needed}` });
  return false;
}

/** @throws VectorError where there is nothing to run, ConfigError for an option that does not exist. */
function prepare(options: RunVectorsOptions): Prepared {
  // A misspelt `dir` or `subject` would run this package's own vectors against itself, and pass.
  onlyKnown('runVectors', options, OPTION_NAMES);
  const { engine, subject = librarySubject(engine) } = options;
  const vectors = loadVectors(options).filter((vector) => runs(vector, subject, options.onSkipped));
  if (vectors.length === 0) {
    throw new VectorError('subject: no vector can be run: expected one with open, targetUri or extract');
  }
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
 * Registers one test a vector, at once, with the `test` of vitest, jest or node:test; throws where the other rejects.
 *
 *     import { test } from 'vitest';
 *     import { runVectors } from 'proto-webhooks/vectors';
 *     runVectors({ test });
 */
export function runVectors(options: RunVectorsOptions & { readonly test: TestFunction }): void;
/**
 * Runs conformance vectors, one after the other.
 *
 *     const results = await runVectors();
 *     console.log(formatReport(results));
 *
 * @returns a result for each vector, failed or passed; `formatReport` makes text of them.
 * @throws VectorError (rejects) for a folder or file that cannot be read or has no vectors, ConfigError for a wrong
 * `protocol` or `edition`, or an option that does not exist.
 */
export function runVectors(options?: RunVectorsOptions): Promise<readonly VectorResult[]>;
export function runVectors(
  options: RunVectorsOptions & { readonly test?: TestFunction } = {},
): Promise<readonly VectorResult[]> | void {
  if (!options.test) return runAll(options);
  register(options.test, options);
}
