// npm run proofs [-- name …] [--only pattern]: runs the proofs, and writes a row for each test that passes.
// It runs one after the other, on a tree without changes: a row names the commit that it is of.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { writeProofPages } from './page.ts';
import { addRun, codesNow, type ProofRow, type TestName } from './results.ts';
import { type Proof, proofNamed, PROOF_NAMES } from './table.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string' } },
});

const git = (...args: readonly string[]): string => execFileSync('git', args, { encoding: 'utf8' }).trim();

/** Results and pages may differ: they are what is written. */
const changed = git(
  'status',
  '--porcelain',
  '--',
  'src',
  'test',
  ':!test/proofs/results',
  ':!test/proofs/README.md',
);
if (changed !== '') throw new Error(`Commit first: a row names the commit that it is of.\n${changed}`);
const commit = git('rev-parse', '--short=8', 'HEAD');
const machine = `${cpus().length} cores, ${Math.round(totalmem() / 1024 ** 3)} GiB, node ${process.versions.node}`;

/** The part of vitest's report that is read here. */
interface Report {
  readonly testResults: readonly {
    /** The file's path. */
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly title: string;
      readonly status: string;
      readonly duration?: number;
    }[];
  }[];
}

type Figures = Readonly<Record<string, unknown>>;

/** Without the seed, which is new each time. */
const nameOf = (test: string): string => test.replace(/,? \(?seed \d{4,}\)?/, '');

function told(file: string): ReadonlyMap<string, Figures> {
  if (!existsSync(file)) return new Map();
  const lines = readFileSync(file, 'utf8').trim().split('\n').filter(Boolean);
  return new Map(
    lines.map((line) => {
      const { test, ...figures } = JSON.parse(line) as { test: string };
      return [test, figures];
    }),
  );
}

/** One test of the report, with its file's path in the repository. */
interface Ran {
  readonly file: string;
  readonly test: string;
  readonly status: string;
  readonly duration: number;
}

/** Vitest matches its pattern against the titles with spaces between them. */
const matches = ({ test }: Ran, pattern: string): boolean =>
  new RegExp(pattern).test(test.replaceAll(' > ', ' '));

/**
 * The tests of a report. One counts as passed only if nothing else failed in its file: a hook, an error that nobody
 * caught, or a process that ended.
 */
function testsIn({ testResults }: Report): readonly Ran[] {
  return testResults.flatMap(({ name, status, assertionResults }) => {
    const isExplained = assertionResults.some((one) => one.status === 'failed');
    const isBroken = status === 'failed' && !isExplained;
    return assertionResults.map((one) => ({
      file: relative(process.cwd(), name),
      test: [...one.ancestorTitles, one.title].join(' > '),
      status: isBroken ? 'failed' : one.status,
      duration: one.duration ?? 0,
    }));
  });
}

/** @returns how many tests did not pass. */
async function prove(name: string): Promise<number> {
  const { tests, only = '', form = 'long' }: Proof = proofNamed(name);
  const wanted = values.only ?? '';
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-proof-'));
  const report = join(folder, 'report.json');
  const figures = join(folder, 'figures.jsonl');
  const flags = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`, '--maxWorkers=1'];
  const args = ['vitest', 'run', tests, ...flags, '-t', `(?=.*${only})(?=.*${wanted})`];
  const env = { ...process.env, TEST_FORM: form, PROOF_FIGURES: figures };
  const { status: exit } = spawnSync('npx', args, { env, stdio: 'inherit' });
  const read = JSON.parse(readFileSync(report, 'utf8')) as Report;
  const lines = told(figures);
  rmSync(folder, { recursive: true });
  const all = testsIn(read).filter((one) => matches(one, only));
  const ran = all.filter((one) => matches(one, wanted));
  // A file that could not be loaded has no tests in the report: their rows would be dropped.
  const isUnread = read.testResults.some(
    (one) => one.status === 'failed' && one.assertionResults.length === 0,
  );
  if (isUnread || ran.length === 0) return 1;
  const passed = ran.filter(({ status }) => status === 'passed');
  // What failed outside of every test may be of each.
  const isClean = exit === 0 || passed.length < ran.length;
  const date = new Date().toISOString().slice(0, 10);
  const code = codesNow()(name);
  const rows = (isClean ? passed : []).map(({ file, test, duration }): ProofRow => {
    const seconds = Math.round(duration / 100) / 10;
    const of = { date, commit, code, machine, seconds, figures: lines.get(test) ?? {} };
    return { file, test: nameOf(test), ...of };
  });
  const names = (some: readonly Ran[]): readonly TestName[] =>
    some.map(({ file, test }) => ({ file, test: nameOf(test) }));
  await addRun(name, { tests: names(all), ran: names(ran), passed: rows });
  await writeProofPages();
  return ran.length - rows.length;
}

let failed = 0;
for (const name of positionals.length > 0 ? positionals : PROOF_NAMES) failed += await prove(name);
console.log(failed === 0 ? 'All of them passed.' : `${failed} tests did not pass: they have no row.`);
process.exitCode = failed === 0 ? 0 : 1;
