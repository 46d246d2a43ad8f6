import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { expectedSeconds, longestFirst, mergedDurations, readDurations } from '../support/durations.ts';
import {
  GROUPS,
  groupNamed,
  groupOf,
  included,
  RULE_PATTERNS,
  testFiles,
  type Group,
} from '../support/groups.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const names = Object.keys(GROUPS) as Group[];
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>;
};

/** Files that a test file imports, however indirectly, by path from the top; packages by their names. */
function dependencies(file: string, seen = new Set<string>()): Set<string> {
  for (const { fileName } of ts.preProcessFile(readFileSync(join(root, file), 'utf8')).importedFiles) {
    const isFile = fileName.startsWith('.');
    const used = isFile ? relative(root, resolve(root, dirname(file), fileName)) : fileName;
    if (seen.has(used)) continue;
    seen.add(used);
    // The package itself imports no test.
    if (/^(?!src\/).*\.[cm]?ts$/.test(used) && existsSync(join(root, used))) dependencies(used, seen);
  }
  return seen;
}

/** What starts or installs a server, or is there only once the package was built or packed. */
const NOT_FOR_UNITS =
  /^(test\/support\/(apt|better-sqlite3|mariadb|nginx|packed|postgres|redis-server)\.ts$|test\/cli\/run-cli\.ts$|dist\/|proto-webhooks(\/|$))/;

const unfit = (file: string): string[] =>
  [...dependencies(`test/${file}`)].filter((used) => NOT_FOR_UNITS.test(used));

describe('groups of tests', () => {
  it('every test file is in exactly one, and none is empty', () => {
    const each = names.map((name) => testFiles(name));
    expect(each.flat().toSorted()).toEqual(testFiles());
    for (const files of each) expect(files.length).toBeGreaterThan(0);
  });

  it('all of them together are what vitest runs without a group', () => {
    expect(included(undefined)).toEqual(['test/**/*.test.ts']);
    expect(names.flatMap((name) => included(name)).toSorted()).toEqual(
      testFiles().map((file) => join('test', file)),
    );
    expect(() => included('units')).toThrow('unit, stores, integration, reliability');
    expect(() => groupNamed('toString')).toThrow('no group');
  });

  it('no file that looks like a test is left out', () => {
    const strays = ['bench', 'examples', 'scripts', 'src', 'test', 'vectors'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.(test|spec)\.[cm]?[jt]sx?$/.test(file) && !/node_modules/.test(file))
        .map((file) => join(folder, file)),
    );
    expect(strays.toSorted()).toEqual(testFiles().map((file) => join('test', file)));
  });

  it.each(names)('%s: an npm script says what it runs, and runs it', (name) => {
    expect(scripts[`pretest:${name}`]).toContain(`announce.ts ${name}`);
    expect(` ${scripts[`test:${name}`]}`).toContain(` TEST_GROUP=${name} vitest run`);
  });

  it('every rule names files that there are', () => {
    const idle = RULE_PATTERNS.filter((pattern) => !testFiles().some((file) => pattern.test(file)));
    expect(idle).toEqual([]);
  });

  it('units need no server and no built package: a file that does belongs to another group', () => {
    const found = testFiles('unit').flatMap((file) => unfit(file).map((used) => `${file} uses ${used}`));
    expect(found).toEqual([]);
    expect(scripts['pretest:unit']).not.toContain('build');
  });

  it('what has a long form is run in it: it is among the reliability tests', () => {
    const long = testFiles().filter((file) => dependencies(`test/${file}`).has('test/reliability/form.ts'));
    expect(long).toContain('reliability/kill/kill.test.ts');
    expect(long.filter((file) => groupOf(file) !== 'reliability')).toEqual([]);
  });

  it('would see it: what the tests before rest on', () => {
    expect(unfit('stores/redis.test.ts')).toContain('test/support/redis-server.ts');
    expect(unfit('bench/breakdown.test.ts')).toContain('dist/rfc9421.js');
    expect(unfit('consumers/consumers.test.ts')).toContain('test/support/packed.ts');
    expect(groupOf('made/up.test.ts')).toBe('unit');
  });
});

describe('how long tests take', () => {
  const durations = { 'a.test.ts': 2, 'b.test.ts': 60, 'c.test.ts': 10 };

  it('the longest begin first, and before them what was not measured yet', () => {
    const files = ['a.test.ts', 'new.test.ts', 'b.test.ts', 'newer.test.ts', 'c.test.ts'];
    const sorted = ['new.test.ts', 'newer.test.ts', 'b.test.ts', 'c.test.ts', 'a.test.ts'];
    expect(files.toSorted(longestFirst(durations))).toEqual(sorted);
  });

  it('a run takes as long as its longest file, or as all of them, three at a time', () => {
    expect(expectedSeconds(Object.keys(durations), durations)).toBe(60);
    expect(expectedSeconds(['a.test.ts', 'c.test.ts', 'new.test.ts'], durations)).toBe(10);
    expect(expectedSeconds(['x.test.ts', 'y.test.ts', 'a.test.ts', 'z.test.ts'], { 'a.test.ts': 3 })).toBe(3);
    const alike = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`${index}.test.ts`, 4]));
    expect(expectedSeconds(Object.keys(alike), alike)).toBe(12);
    expect(expectedSeconds([], durations)).toBe(0);
  });

  it('a part that is measured again leaves the rest; files that are gone go', () => {
    const [one = '', other = ''] = testFiles();
    const merged = mergedDurations({ [one]: 1, [other]: 2, 'gone.test.ts': 3 }, { [other]: 5 });
    expect(merged).toEqual({ [one]: 1, [other]: 5 });
  });

  it('most files were measured, in seconds', () => {
    const durations = readDurations();
    const measured = testFiles().filter((file) => file in durations);
    expect(measured.length).toBeGreaterThan(testFiles().length / 2);
    for (const seconds of Object.values(durations)) expect(seconds).toBeGreaterThanOrEqual(0);
  });
});
