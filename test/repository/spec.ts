/** The documents of docs/spec: what is cited as `<name>.md §<number>`. */
export type SpecName =
  'contract' | 'verification' | 'admission' | 'calls' | 'owed' | 'subscriptions' | 'told' | 'serve' | 'dev';

export const SPECS: readonly SpecName[] = [
  'contract',
  'verification',
  'admission',
  'calls',
  'owed',
  'subscriptions',
  'told',
  'serve',
  'dev',
];

/** `(planned)`: not built, cited by no code. `(informative)`: binds others or explains; there is nothing to build. */
type Mark = 'planned' | 'informative';

interface Rule {
  /** e.g. `2.9a`. */
  readonly number: string;
  readonly mark: Mark | undefined;
}

/** One document, read. */
export interface Spec {
  readonly sections: readonly string[];
  readonly rules: readonly Rule[];
}

export type Specs = Readonly<Record<SpecName, Spec>>;

const NUMBER = String.raw`\d+\.\d+[a-z]?`;

/** `2.9` < `2.9a` < `2.10`. */
function compareNumbers(a: string, b: string): number {
  const [left, right] = [a, b].map((number) => /^(\d+)(?:\.(\d+)([a-z]?))?$/.exec(number) ?? []);
  const parts = [1, 2].map((at) => Number(left?.[at] ?? 0) - Number(right?.[at] ?? 0));
  return parts.find((part) => part !== 0) ?? (left?.[3] ?? '').localeCompare(right?.[3] ?? '');
}

const isAscending = (numbers: readonly string[]): boolean =>
  numbers.every((number, at) => at === 0 || compareNumbers(numbers[at - 1] ?? '', number) < 0);

/** Headings outside fenced blocks. */
function headingsOf(text: string): readonly string[] {
  return text.replace(/^```[^]*?^```$/gm, '').match(/^#{2,} .*$/gm) ?? [];
}

const SECTION = /^## (\d+)\. \S/;
const RULE = new RegExp(`^### (${NUMBER}) \\S.*?(?: \\((planned|informative)\\))?$`);

/** @param problems what is wrong with the document is added. */
export function readSpec(name: SpecName, text: string, problems: string[]): Spec {
  const sections: string[] = [];
  const rules: Rule[] = [];
  for (const heading of headingsOf(text)) {
    const section = SECTION.exec(heading)?.[1];
    const [, number, mark] = RULE.exec(heading) ?? [];
    if (section !== undefined) sections.push(section);
    else if (number === undefined) problems.push(`${name}: "${heading}" has no number`);
    else if (!number.startsWith(`${sections.at(-1)}.`)) {
      problems.push(`${name}: ${number} stands in another section`);
    } else rules.push({ number, mark: mark as Mark | undefined });
    const rest = heading.replace(/ \((?:planned|informative)\)$/, '');
    if (/planned|informative/i.test(rest))
      problems.push(`${name}: "${heading}" has its mark in another form`);
  }
  if (rules.length === 0) problems.push(`${name}: no rules`);
  if (!isAscending(sections)) problems.push(`${name}: sections are not unique and ascending`);
  if (!isAscending(rules.map(({ number }) => number))) {
    problems.push(`${name}: rules are not unique and ascending`);
  }
  return { sections, rules };
}

/** White space, also where a comment goes on in the next line. */
const GAP = String.raw`(?:[ \t]|\n[ \t]*(?:\*|\/\/|--|#|>)?[ \t]*)+`;
const SIGN = String.raw`§(${NUMBER}|\d+)`;
const LIST = `${SIGN}(?:(?:,${GAP}|${GAP}(?:and|or|to)${GAP}|,${GAP}and${GAP})${SIGN})*`;
const MENTION = new RegExp(String.raw`(?<![\w-])(${SPECS.join('|')})\.md(?:${GAP}(${LIST}))?`, 'g');
const OF_LIST = new RegExp(`(${GAP}to${GAP})?${SIGN}`, 'g');
/** What stood outside the repository. */
const GONE = /(?<![\w-])(?:interface|design|facts)\.md/g;

const isBetween = (number: string, from: string, to: string): boolean =>
  compareNumbers(from, number) < 0 && compareNumbers(number, to) < 0;

/** The numbers that a list names; of a range those in between too. */
function numbersOf(list: string, spec: Spec): readonly string[] {
  const numbers: string[] = [];
  for (const [, to, number = ''] of list.matchAll(OF_LIST)) {
    const from = numbers.at(-1) ?? number;
    const between = to === undefined ? [] : spec.rules.filter((rule) => isBetween(rule.number, from, number));
    numbers.push(...between.map((rule) => rule.number), number);
  }
  return numbers;
}

const lineOf = (text: string, at: number): number => text.slice(0, at).split('\n').length;

/** What is wrong with a number that is cited; undefined: nothing. */
function flawOf(number: string, { sections, rules }: Spec, mayCitePlanned: boolean): string | undefined {
  if (sections.includes(number)) return undefined;
  const rule = rules.find((one) => one.number === number);
  if (!rule) return 'does not exist';
  return rule.mark === 'planned' && !mayCitePlanned ? 'is planned' : undefined;
}

/**
 * What is wrong with the citations of a file: a number that does not exist or is planned, no number at all, a document
 * that is not in the repository. Paths (`docs/spec/…`) are links, and no citations.
 * @param own the document that `text` is: its own rules are cited by number alone, and planned ones may be.
 */
export function citationProblems(path: string, text: string, specs: Specs, own?: SpecName): string[] {
  const problems: string[] = [];
  const report = (at: number, what: string): void =>
    void problems.push(`${path}:${lineOf(text, at)}: ${what}`);
  for (const { index, 0: gone } of text.matchAll(GONE)) report(index, `${gone} is not in the repository`);
  for (const { index, 1: name, 2: list } of text.matchAll(MENTION)) {
    const isLink =
      text[index - 1] === '/' || text.slice(index - 2, index) === '](' || text[index - 1] === '[';
    if (list === undefined && !isLink) report(index, `${name}.md without the number of a rule`);
    const spec = specs[name as SpecName];
    for (const number of list === undefined ? [] : numbersOf(list, spec)) {
      const flaw = flawOf(number, spec, own !== undefined);
      if (flaw !== undefined) report(index, `${name}.md §${number} ${flaw}`);
    }
  }
  return own === undefined ? problems : [...problems, ...ownProblems(path, text, specs[own])];
}

/** Numbers alone, which mean the document that they stand in, or an RFC. */
function ownProblems(path: string, text: string, spec: Spec): string[] {
  const alone = text.replace(MENTION, '').replace(new RegExp(String.raw`RFC \d+ ${LIST}`, 'g'), '');
  return [...alone.matchAll(new RegExp(LIST, 'g'))]
    .flatMap(([list]) => numbersOf(list, spec))
    .filter((number) => flawOf(number, spec, true) !== undefined)
    .map((number) => `${path}: §${number} does not exist`);
}

interface Row {
  readonly spec: SpecName;
  readonly number: string;
  readonly files: readonly string[];
  readonly tests: readonly string[];
}

const ROW = new RegExp(String.raw`^\| §(${NUMBER}) +\| (.+?) +\| (.+?) +\|$`);
const HEAD = /^\| (?:Rule +\| Built in +\| Held by +|-[ |-]*)\|$/;
const FILE = /^`[^`]+`$/;

/** The table of rules.md: under the linked name of a document its rules, the files that build each, the tests that hold it. */
function rowsOf(text: string, problems: string[]): readonly Row[] {
  const rows: Row[] = [];
  let spec: SpecName | undefined;
  for (const line of text.split('\n')) {
    spec = SPECS.find((name) => line === `## [${name}.md](${name}.md)`) ?? spec;
    if (!line.startsWith('|') || HEAD.test(line)) continue;
    const [, number, files = '', tests = ''] = ROW.exec(line) ?? [];
    const cells = [files, tests].map((cell) => cell.split(', '));
    if (number === undefined || spec === undefined || !cells.flat().every((file) => FILE.test(file))) {
      problems.push(`rules.md: no row: ${line}`);
      continue;
    }
    const [built = [], held = []] = cells.map((cell) => cell.map((file) => file.slice(1, -1)));
    rows.push({ spec, number, files: built, tests: held });
  }
  return rows;
}

const isTest = (file: string): boolean =>
  /^test\/.*\.test\.ts$/.test(file) || file.startsWith('src/testing/store-contract/');

/** What is wrong with rules.md: built rules without a row, rows of others, files that are not there. */
export function tableProblems(text: string, specs: Specs, exists: (file: string) => boolean): string[] {
  const problems: string[] = [];
  const rows = rowsOf(text, problems);
  for (const { spec, number, files, tests } of rows) {
    for (const file of [...files, ...tests].filter((one) => !exists(one))) {
      problems.push(`rules.md: ${spec}.md §${number}: ${file} does not exist`);
    }
    for (const file of tests.filter((one) => !isTest(one))) {
      problems.push(`rules.md: ${spec}.md §${number}: ${file} is no test`);
    }
    for (const file of files.filter(isTest)) {
      problems.push(`rules.md: ${spec}.md §${number}: ${file} is a test`);
    }
  }
  for (const name of SPECS) problems.push(...rowProblems(name, specs[name], rows));
  return problems;
}

function rowProblems(name: SpecName, { rules }: Spec, rows: readonly Row[]): string[] {
  const numbers = rows.filter(({ spec }) => spec === name).map(({ number }) => number);
  const problems = rules.flatMap(({ number, mark }) => {
    const has = numbers.includes(number);
    if (mark === undefined && !has) return [`rules.md: ${name}.md §${number} is built and has no row`];
    return mark !== undefined && has ? [`rules.md: ${name}.md §${number} is ${mark} and has a row`] : [];
  });
  const unknown = numbers.filter((number) => !rules.some((rule) => rule.number === number));
  problems.push(...unknown.map((number) => `rules.md: ${name}.md §${number} does not exist`));
  if (!isAscending(numbers)) problems.push(`rules.md: ${name}.md: rows are not unique and ascending`);
  return problems;
}
