import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import {
  citationProblems,
  readSpec,
  type Spec,
  type SpecName,
  SPECS,
  type Specs,
  tableProblems,
} from './spec.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

const read = (path: string): string => readFileSync(join(root, path), 'utf8');

const PLACES = ['src', 'test', 'docs', 'examples', 'vectors', 'scripts', 'bench'] as const;
const TEXT = /\.(?:[cm]?[jt]sx?|json|md|sql|lua|capnp|wat|html|ya?ml|txt)$/;

function textFiles(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : textFiles(path);
    return TEXT.test(entry.name) ? [path] : [];
  });
}

/** The repository's own texts; documents at its top too. */
const files = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...PLACES.flatMap((folder) => textFiles(folder)),
];

const specFlaws: string[] = [];
const specs = Object.fromEntries(
  SPECS.map((name) => [name, readSpec(name, read(`docs/spec/${name}.md`), specFlaws)]),
) as unknown as Specs;

const nameOf = (path: string): SpecName | undefined => SPECS.find((name) => path === `docs/spec/${name}.md`);

describe('the documents', () => {
  it('numbers every rule once, in ascending order', () => {
    expect(specFlaws).toEqual([]);
  });

  it('is cited by numbers that exist and are not planned, and nothing outside the repository is', () => {
    expect(files.length).toBeGreaterThan(500);
    expect(files.flatMap((path) => citationProblems(path, read(path), specs, nameOf(path)))).toEqual([]);
  });

  it('has a row for every built rule and for no other, with files that exist', () => {
    expect(tableProblems(read('docs/spec/rules.md'), specs, (file) => existsSync(join(root, file)))).toEqual(
      [],
    );
  });

  it('is not in the package, whose pages state its rules', () => {
    const { files: shipped } = JSON.parse(read('package.json')) as { readonly files: readonly string[] };
    expect(shipped).toEqual(expect.arrayContaining(['docs', '!docs/spec']));
  });
});

const NONE: Spec = { sections: ['1'], rules: [{ number: '1.1', mark: undefined }] };

/** What a document is refused for. */
function flaws(text: string): string[] {
  const problems: string[] = [];
  readSpec('contract', text, problems);
  return problems;
}

describe('a broken document is noticed', () => {
  it.each([
    ['a number twice', '## 1. A\n### 1.1 B\n### 1.1 C', 'rules are not unique and ascending'],
    ['numbers out of order', '## 1. A\n### 1.10 B\n### 1.9 C', 'rules are not unique and ascending'],
    ['a letter out of order', '## 2. A\n### 2.9a B\n### 2.9 C', 'rules are not unique and ascending'],
    ['a section twice', '## 1. A\n### 1.1 B\n## 1. C', 'sections are not unique and ascending'],
    ['a rule of another section', '## 1. A\n### 1.1 B\n### 2.1 C', '2.1 stands in another section'],
    ['a rule without a number', '## 1. A\n### 1.1 B\n### C', '"### C" has no number'],
    ['a deeper heading', '## 1. A\n### 1.1 B\n#### 1.1.1 C', '"#### 1.1.1 C" has no number'],
    ['a mark in another form', '## 1. A\n### 1.1 B [planned]', 'has its mark in another form'],
    ['no rule at all', '## 1. A', 'no rules'],
  ])('%s', (_name, text, problem) => {
    expect(flaws(text)).toEqual([expect.stringContaining(problem)]);
  });

  it('9a stands between 9 and 10, and headings in a fenced block do not count', () => {
    expect(flaws('## 2. A\n### 2.9 B\n```\n### x\n```\n### 2.9a C (planned)\n### 2.10 D')).toEqual([]);
  });
});

const sample: Specs = {
  admission: NONE,
  calls: NONE,
  contract: NONE,
  owed: NONE,
  subscriptions: NONE,
  told: NONE,
  serve: NONE,
  dev: NONE,
  verification: {
    sections: ['1', '2'],
    rules: [
      { number: '1.1', mark: undefined },
      { number: '1.2', mark: 'planned' },
      { number: '1.3', mark: 'informative' },
      { number: '2.9a', mark: undefined },
    ],
  },
};

/** Written so that this file has no citation of a rule that is not there. */
const cite = (rest: string, name = 'verification'): string => `${name}.md${rest}`;

describe('a broken citation is noticed', () => {
  it.each([
    ['a rule that does not exist', cite(' §1.4'), '§1.4 does not exist'],
    ['a section that does not exist', cite(' §3'), '§3 does not exist'],
    ['a planned rule', cite(' §1.2'), '§1.2 is planned'],
    ['the second of a list', cite(' §1.1, §1.2'), '§1.2 is planned'],
    ['the last of a list', cite(' §1.1, §1.3 and §2.1'), '§2.1 does not exist'],
    ['a planned rule inside a range', cite(' §1.1 to §1.3'), '§1.2 is planned'],
    ['in the next line of a comment', cite('\n * §1.4'), '§1.4 does not exist'],
    ['a list that goes on there', cite(' §1.1,\n// §1.2'), '§1.2 is planned'],
    ['no number', cite(', section 5'), 'without the number of a rule'],
    ['another document', cite(' §2.9a', 'contract'), '§2.9a does not exist'],
    ['a text outside the repository', cite(', "Limits"', 'interface'), 'is not in the repository'],
    ['another one', cite('', 'design'), 'is not in the repository'],
    ['a third one', cite(' says', 'facts'), 'is not in the repository'],
  ])('%s', (_name, text, problem) => {
    expect(citationProblems('src/x.ts', `\n/** ${text} */`, sample)).toEqual([
      expect.stringMatching(new RegExp(`^src/x\\.ts:2: .*${problem}`)),
    ]);
  });

  it('a sound one is not, nor is a link', () => {
    const sound = [
      cite(' §1.1'),
      cite(' §1'),
      cite(' §2.9a; RFC 9421 §2.2.2'),
      `[it](docs/spec/${cite('')})`,
    ];
    expect(sound.flatMap((text) => citationProblems('src/x.ts', text, sample))).toEqual([]);
  });

  it('a document cites its own planned rules, but none that do not exist', () => {
    const path = 'docs/spec/verification.md';
    expect(citationProblems(path, `§1.2, ${cite(' §1.2')}, RFC 9421 §2.5`, sample, 'verification')).toEqual(
      [],
    );
    expect(citationProblems(path, '§1.2 to §1.9', sample, 'verification')).toEqual([
      expect.stringContaining('§1.9 does not exist'),
    ]);
  });
});

const row = (number: string, file = '`src/a.ts`', test = '`test/a.test.ts`'): string =>
  `| §${number} | ${file} | ${test} |`;

function table(...verification: readonly string[]): string {
  const head = ['| Rule | Built in | Held by |', '| --- | --- | --- |'];
  const others = ['calls', 'contract', 'admission', 'owed', 'subscriptions', 'told', 'serve', 'dev'].flatMap(
    (name) => [`## [${name}.md](${name}.md)`, ...head, row('1.1')],
  );
  return [...others, `## [${cite('')}](${cite('')})`, ...head, ...verification].join('\n');
}

describe('a broken table is noticed', () => {
  const exists = (file: string): boolean => !file.includes('gone');
  const rows = (...verification: readonly string[]): string[] =>
    tableProblems(table(...verification), sample, exists);

  it.each([
    ['a built rule without a row', [row('1.1')], '§2.9a is built and has no row'],
    ['a planned rule with a row', [row('1.1'), row('1.2'), row('2.9a')], '§1.2 is planned and has a row'],
    ['an informative one', [row('1.1'), row('1.3'), row('2.9a')], '§1.3 is informative and has a row'],
    ['a rule that is not there', [row('1.1'), row('2.9a'), row('2.10')], '§2.10 does not exist'],
    ['a row twice', [row('1.1'), row('1.1'), row('2.9a')], 'not unique and ascending'],
    [
      'a file that is gone',
      [row('1.1', '`src/a.ts`, `src/gone.ts`'), row('2.9a')],
      'src/gone.ts does not exist',
    ],
    ['a test that is gone', [row('1.1', '`src/a.ts`', '`test/gone.test.ts`'), row('2.9a')], 'does not exist'],
    ['a test that is none', [row('1.1', '`src/a.ts`', '`src/b.ts`'), row('2.9a')], 'src/b.ts is no test'],
    ['a file that is a test', [row('1.1', '`test/a.test.ts`'), row('2.9a')], 'test/a.test.ts is a test'],
    ['a row without files', [row('1.1'), '| §2.9a | | |', row('2.9a')], 'no row'],
  ])('%s', (_name, given, problem) => {
    expect(rows(...given)).toEqual([expect.stringContaining(problem)]);
  });

  it('a sound one is not', () => {
    expect(rows(row('1.1', '`src/a.ts`, `src/b.ts`'), row('2.9a'))).toEqual([]);
  });
});
