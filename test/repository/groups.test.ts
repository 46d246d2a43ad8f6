import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import {
  expectedSeconds,
  faultsOf,
  longestFirst,
  mergedDurations,
  MOST_SECONDS,
  readDurations,
} from '../support/durations.ts';
import {
  EVERY_FORM,
  filesOf,
  GROUPS,
  groupOf,
  LONG_TOO,
  ROWS_ONLY,
  RULE_PATTERNS,
  selectionOf,
  testFiles,
  type Form,
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
  /^(test\/support\/(apt|mariadb|nginx|packed|postgres|redis-server)\.ts$|test\/cli\/run-cli\.ts$|dist\/|proto-webhooks(\/|$))/;

const unfit = (file: string): string[] =>
  [...dependencies(`test/${file}`)].filter((used) => NOT_FOR_UNITS.test(used));

describe('groups of tests', () => {
  it('every test file is in exactly one, and none is empty', () => {
    const each = names.map((name) => testFiles(name));
    expect(each.flat().toSorted()).toEqual(testFiles());
    for (const files of each) expect(files.length).toBeGreaterThan(0);
  });

  it('a run is chosen by TEST_FORM and TEST_GROUP', () => {
    expect(selectionOf({})).toEqual({ form: 'short', group: undefined });
    expect(selectionOf({ TEST_FORM: 'rows', TEST_GROUP: 'unit' })).toEqual({ form: 'rows', group: 'unit' });
    expect(() => selectionOf({ TEST_GROUP: 'units' })).toThrow('unit, stores, integration, reliability');
    expect(() => selectionOf({ TEST_GROUP: 'toString' })).toThrow('no group');
    expect(() => selectionOf({ TEST_FORM: 'longer' })).toThrow('short, rows, long');
  });

  it('no file that looks like a test is left out', () => {
    const strays = ['bench', 'examples', 'scripts', 'src', 'test', 'vectors'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.(test|spec)\.[cm]?[jt]sx?$/.test(file) && !/node_modules/.test(file))
        .map((file) => join(folder, file)),
    );
    expect(strays.toSorted()).toEqual(testFiles().map((file) => join('test', file)));
  });

  it.each(names.filter((name) => name !== 'reliability'))(
    '%s: an npm script says what it runs, and runs it',
    (name) => {
      expect(scripts[`pretest:${name}`]).toContain(`TEST_GROUP=${name} node test/support/announce.ts`);
      expect(scripts[`test:${name}`]).toBe(`TEST_GROUP=${name} vitest run`);
    },
  );

  it('every rule names files that there are', () => {
    const patterns = [
      ...RULE_PATTERNS,
      ...[...ROWS_ONLY, ...EVERY_FORM, ...LONG_TOO].map(([pattern]) => pattern),
    ];
    const idle = patterns.filter((pattern) => !testFiles().some((file) => pattern.test(file)));
    expect(idle).toEqual([]);
  });

  it('units need no server and no built package: a file that does belongs to another group', () => {
    const found = testFiles('unit').flatMap((file) => unfit(file).map((used) => `${file} uses ${used}`));
    expect(found).toEqual([]);
    expect(scripts['pretest:unit']).not.toContain('build');
  });

  it('would see it: what the tests before rest on', () => {
    expect(unfit('stores/redis.test.ts')).toContain('test/support/redis-server.ts');
    expect(unfit('bench/breakdown.test.ts')).toContain('dist/rfc9421.js');
    expect(unfit('consumers/consumers.test.ts')).toContain('test/support/packed.ts');
    expect(groupOf('made/up.test.ts')).toBe('unit');
  });
});

describe('forms of tests', () => {
  const FORM_FILE = 'test/reliability/form.ts';

  it('every file is in the short form or in the rows', () => {
    const run = new Set([...filesOf('short'), ...filesOf('rows')]);
    expect(testFiles().filter((file) => !run.has(file))).toEqual([]);
  });

  it('a group of a form is its share of the form', () => {
    for (const form of ['short', 'rows', 'long'] as const) {
      expect(names.flatMap((name) => filesOf(form, name)).toSorted()).toEqual(filesOf(form).toSorted());
      expect(filesOf(form).length).toBeGreaterThan(0);
    }
  });

  it.each(['rows', 'long'] as const)('%s: an npm script says what it runs, and runs it', (form: Form) => {
    expect(scripts[`pretest:${form}`]).toContain(`TEST_FORM=${form} node test/support/announce.ts`);
    expect(scripts[`test:${form}`]).toBe(`TEST_FORM=${form} vitest run`);
  });

  it('a file whose sizes depend on the form is run in the long one', () => {
    const long = new Set(filesOf('long'));
    const chooses = (file: string): boolean =>
      dependencies(`test/${file}`, new Set(['test/support/groups.ts', 'test/support/durations.ts'])).has(
        FORM_FILE,
      );
    const choosing = testFiles().filter(chooses);
    expect(choosing).toContain('reliability/kill/kill.test.ts');
    expect(choosing.filter((file) => !long.has(file))).toEqual([]);
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
    const merged = mergedDurations(testFiles(), { [one]: 1, [other]: 2, 'gone.test.ts': 3 }, { [other]: 5 });
    expect(merged).toEqual({ [one]: 1, [other]: 5 });
  });

  it('a file that was not measured is a fault, and so is a sum over the bound', () => {
    expect(faultsOf('short', ['a.test.ts', 'b.test.ts'], durations)).toEqual([]);
    expect(faultsOf('short', ['a.test.ts', 'new.test.ts'], durations)).toEqual([
      'new.test.ts was not measured in the form short: TEST_FORM=short npm run test:durations -- test/new.test.ts',
    ]);
    const [fault] = faultsOf('short', ['a.test.ts', 'long.test.ts'], {
      ...durations,
      'long.test.ts': MOST_SECONDS.short - 1,
    });
    expect(fault).toContain(`take ${MOST_SECONDS.short + 1} s together, ${MOST_SECONDS.short} s is the most`);
  });

  it('times are seconds', () => {
    for (const seconds of Object.values(readDurations()).flatMap((form) => Object.values(form))) {
      expect(seconds).toBeGreaterThanOrEqual(0);
    }
  });
});
