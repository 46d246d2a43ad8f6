import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { testFiles } from '../support/groups.ts';
import { FOLDERS, sampledLines, sources } from './sample.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values } = parseArgs({
  options: {
    /** About four mutants to five lines. */
    lines: { type: 'string', default: '380' },
    seed: { type: 'string', default: new Date().toISOString().slice(0, 10) },
    /** Whole files that differ from this commit, in place of the sample: for a pull request. */
    since: { type: 'string' },
  },
});

/** What differs from that commit, of the folders that are mutated. */
function changedSince(commit: string): readonly string[] {
  const differing = ['diff', '--name-only', '--diff-filter=d', commit, '--', 'src'];
  const names = new Set(execFileSync('git', differing, { cwd: root, encoding: 'utf8' }).split('\n'));
  return sources(root).filter((file) => names.has(file));
}

/** The part of Stryker's report that is read here. */
interface Report {
  readonly files: Readonly<Record<string, { readonly mutants: readonly { readonly status: string }[] }>>;
}

/** `subscriptions` tests a part of `registrations`, and files beside the folders a part of `shared`. */
const TESTS = new RegExp(`^(?:(?:${FOLDERS.join('|')}|subscriptions)/|[^/]+$)`);

// Not under node_modules, where vitest looks for no test.
const CACHE = '.cache/stryker';
const REPORT = `${CACHE}/report.json`;
const CONFIG = `${CACHE}/config.json`;

function mutationRun(mutate: readonly string[]): Report {
  const config = {
    mutate,
    testRunner: 'vitest',
    testFiles: testFiles('unit')
      .filter((file) => TESTS.test(file))
      .map((file) => `test/${file}`),
    coverageAnalysis: 'perTest',
    ignoreStatic: true,
    concurrency: 2,
    timeoutMS: 20_000,
    reporters: ['clear-text', 'json', 'progress-append-only'],
    jsonReporter: { fileName: REPORT },
    tempDirName: `${CACHE}/sandbox`,
  };
  mkdirSync(join(root, CACHE), { recursive: true });
  writeFileSync(join(root, CONFIG), JSON.stringify(config));
  const env = { ...process.env, TEST_GROUP: 'unit' };
  execFileSync('stryker', ['run', CONFIG], { cwd: root, env, stdio: 'inherit' });
  return JSON.parse(readFileSync(join(root, REPORT), 'utf8')) as Report;
}

/** Mutants that tests could find, and those that they found. A mutant that is static is tried by no single test. */
function scored({ files }: Report): { readonly all: number; readonly found: number } {
  const statuses = Object.values(files).flatMap(({ mutants }) => mutants.map(({ status }) => status));
  const count = (...wanted: readonly string[]): number =>
    statuses.filter((status) => wanted.includes(status)).length;
  const found = count('Killed', 'Timeout');
  return { found, all: found + count('Survived', 'NoCoverage') };
}

const { lines, seed, since } = values;
const mutate =
  since === undefined ? sampledLines(root, sources(root), Number(lines), seed) : changedSince(since);
console.log(
  since === undefined
    ? `${mutate.length} lines, seed ${seed}`
    : `changed since ${since}: ${mutate.length} files`,
);
if (mutate.length > 0) {
  const { all, found } = scored(mutationRun(mutate));
  console.log(`${found} of ${all} mutants found: ${((100 * found) / Math.max(1, all)).toFixed(1)} %`);
}
