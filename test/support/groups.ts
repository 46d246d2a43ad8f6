import { readdirSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What one `npm run test:<group>` runs; `npm test` runs them all. */
export type Group = 'unit' | 'stores' | 'integration' | 'reliability';

/** By group: what is in it, for who starts it. */
export const GROUPS: Readonly<Record<Group, string>> = {
  unit: 'one part at a time: no server, nothing is built or installed',
  stores: 'every store and queue on its real server (Redis, Postgres, MariaDB)',
  integration: 'the built package: frameworks, examples, consumers, runtimes, the command line',
  reliability: 'crashes, kills, faults, hostile senders, and the model of the store',
};

/** Files by path from `test/`. The first rule that fits decides; what none names is a unit test. */
const RULES: readonly (readonly [RegExp, Group])[] = [
  [/^(fuzz|reliability)\//, 'reliability'],
  [/^(stores|queues)\//, 'stores'],
  [/^cli\/inbox\//, 'stores'],
  [/^repository\/budget(-registrations)?\.test\.ts$/, 'stores'],
  [/^receiver\/(late-query|stuck-transaction)\.test\.ts$/, 'stores'],
  [/^(adapters|bench|consumers|examples|runtimes)\//, 'integration'],
  [/^cli\/((process|refused|registry)\.test\.ts$|probe\/)/, 'integration'],
  [/^repository\/(exports|packed|samples|sizes)\.test\.ts$/, 'integration'],
  [/^vectors\/docs\.test\.ts$/, 'integration'],
];

export const RULE_PATTERNS: readonly RegExp[] = RULES.map(([pattern]) => pattern);

export function groupOf(file: string): Group {
  return RULES.find(([pattern]) => pattern.test(file))?.[1] ?? 'unit';
}

/** The folder `test/`. */
export const TEST_FOLDER: string = fileURLToPath(new URL('..', import.meta.url));

/** Every test file, by its path from `test/`, or those of one group. */
export function testFiles(group?: Group): readonly string[] {
  return readdirSync(TEST_FOLDER, { recursive: true, encoding: 'utf8' })
    .map((file) => file.split(sep).join('/'))
    .filter((file) => file.endsWith('.test.ts') && (group === undefined || groupOf(file) === group))
    .toSorted();
}

/** @throws Error for a name that is none. */
export function groupNamed(name: string): Group {
  if (Object.hasOwn(GROUPS, name)) return name as Group;
  throw new Error(`no group of tests is named ${name}: ${Object.keys(GROUPS).join(', ')}`);
}

/** What vitest looks for: `TEST_GROUP`'s files, or all. */
export function included(name: string | undefined): string[] {
  if (name === undefined || name === '') return ['test/**/*.test.ts'];
  return testFiles(groupNamed(name)).map((file) => join('test', file));
}
