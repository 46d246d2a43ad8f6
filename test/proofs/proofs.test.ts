import { existsSync, globSync, mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fingerprints } from './code.ts';
import { numberOf, OLD, PROOF_PAGES, proofPageText } from './page.ts';
import { after, type ProofRow, rowsOf, type TestName, withoutRowIn } from './results.ts';
import { PROOF_NAMES, proofNamed } from './table.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Long suites that prove no promise: the tests of judges and tools. */
const TOOLS = /\/(judge|bites|takeover|explore|sizing|histories)\.test\.ts$/;

describe('the table of proofs', () => {
  it('names tests and code that are there', () => {
    const files = globSync('test/**/*.test.ts', { cwd: root });
    for (const name of PROOF_NAMES) {
      expect(
        files.some((file) => file.includes(proofNamed(name).tests)),
        name,
      ).toBe(true);
      for (const path of proofNamed(name).about) expect(existsSync(join(root, 'src', path)), path).toBe(true);
    }
  });

  it('has every suite of test/reliability', () => {
    const suites = globSync('test/reliability/**/*.test.ts', { cwd: root }).filter(
      (file) => !TOOLS.test(file),
    );
    const proven = PROOF_NAMES.map((name) => proofNamed(name).tests);
    expect(suites.length).toBeGreaterThan(20);
    expect(suites.filter((file) => !proven.some((path) => file.includes(path)))).toEqual([]);
  });

  it('refuses a name that it does not have', () => {
    expect(() => proofNamed('toString')).toThrow(/^no proof is named toString: model, /);
  });
});

describe('the fingerprint of code', () => {
  let src: string;
  beforeEach(() => {
    src = mkdtempSync(join(tmpdir(), 'proto-webhooks-code-'));
    mkdirSync(join(src, 'stores'));
    writeFileSync(join(src, 'stores/a.ts'), '/** Adds. */\nexport const a = (n: number): number => n + 1;\n');
  });
  afterEach(() => rmSync(src, { recursive: true }));
  const codeOf = (): string => fingerprints(src)(['stores']);
  const after = (text: string): string => {
    writeFileSync(join(src, 'stores/a.ts'), text);
    return codeOf();
  };

  it('stays where comments and spaces change, and differs where code does', () => {
    const before = codeOf();
    expect(after('// Adds one.\nexport const a = (n:  number): number =>\n  n + 1;\n')).toBe(before);
    expect(after('export const a = (n: number): number => n + 2;\n')).not.toBe(before);
  });

  it('differs where a file of it comes, and not where another folder changes', () => {
    const before = codeOf();
    mkdirSync(join(src, 'keys'));
    writeFileSync(join(src, 'keys/b.ts'), 'export const b = 1;\n');
    expect(codeOf()).toBe(before);
    writeFileSync(join(src, 'stores/b.lua'), 'return 1');
    expect(codeOf()).not.toBe(before);
  });

  it('fails for code that is not there', () => {
    expect(() => fingerprints(src)(['queues'])).toThrow(/ENOENT/);
  });
});

describe('a run', () => {
  const named = (test: string): TestName => ({ file: 'test/some.test.ts', test });
  const row = (test: string, commit: string): ProofRow => ({
    ...named(test),
    commit,
    date: '2026-11-27',
    code: '0123456789ab',
    machine: '2 cores',
    seconds: 1,
    figures: {},
  });
  const before = {
    tests: ['a', 'b', 'gone'].map(named),
    rows: [row('a', '1'), row('b', '1'), row('gone', '1')],
  };

  it('replaces the rows of its tests, and keeps those of tests that it left out', () => {
    const is = after(before, { tests: ['a', 'b'].map(named), ran: [named('b')], passed: [row('b', '2')] });
    expect(is.rows).toEqual([row('a', '1'), row('b', '2')]);
    expect(withoutRowIn(is)).toEqual([]);
  });

  it('leaves no row to a test that failed, whatever it came to before', () => {
    const is = after(before, {
      tests: ['a', 'b', 'c'].map(named),
      ran: ['a', 'b'].map(named),
      passed: [row('b', '2')],
    });
    expect(is.rows).toEqual([row('b', '2')]);
    expect(withoutRowIn(is)).toEqual(['a', 'c'].map(named));
  });

  it('tells tests of one name in two files apart', () => {
    const other = { file: 'test/other.test.ts', test: 'a' };
    const is = after(before, { tests: [named('a'), other], ran: [other], passed: [] });
    expect(is.rows).toEqual([row('a', '1')]);
    expect(withoutRowIn(is)).toEqual([other]);
  });
});

describe('the results', () => {
  it.each(PROOF_NAMES)(
    '%s: every row says of which commit, when and where it was run, and found nothing',
    (name) => {
      const { found = {} } = proofNamed(name);
      for (const figure of rowsOf(name).length > 0 ? Object.keys(found) : []) {
        const told = rowsOf(name).map(({ figures }) => numberOf(figures[figure]));
        expect(
          told.some((one) => one !== undefined),
          figure,
        ).toBe(true);
      }
      for (const row of rowsOf(name)) {
        expect(row).toMatchObject({
          date: expect.stringMatching(/^20\d\d-\d\d-\d\d$/),
          commit: expect.stringMatching(/^[0-9a-f]{8,}$/),
          code: expect.stringMatching(/^[0-9a-f]{12}$/),
          machine: expect.stringContaining('cores'),
        });
        for (const figure of Object.keys(found))
          expect([0, undefined], row.test).toContain(numberOf(row.figures[figure]));
      }
    },
  );

  it.each(Object.keys(PROOF_PAGES))(
    '%s has what the result files have: npm run docs:proofs',
    async (page) => {
      const text = readFileSync(join(root, page), 'utf8');
      const bare = (markdown: string): string => markdown.replaceAll(OLD, '').replaceAll(/[ -]+/g, ' ');
      // Which rows are old changes with each change of the code: `npm run check:figures` says it.
      const every = await proofPageText(page, text, () => 'another');
      expect(bare(every)).toBe(bare(text));
    },
  );
});
