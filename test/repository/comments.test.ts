import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { commentsOf, faultsOf, isHeadless, sentencesOf } from '../support/comments.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Every file of `src` with code: a new folder is held too. */
const filesOfSrc = (): string[] =>
  readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => `src/${name.replaceAll('\\', '/')}`);

describe('comments of src', () => {
  it('begin each file, begin with a subject, and have at most 25 words a sentence', () => {
    const files = filesOfSrc();
    expect(files).toEqual(
      expect.arrayContaining(['src/index.ts', 'src/dev/page/page.tsx', 'src/cli/main.ts']),
    );
    expect(files.flatMap((file) => faultsOf(file, readFileSync(join(root, file), 'utf8')))).toEqual([]);
  });

  const HEAD = '// Adds numbers for callers.\n';

  it.each([
    ['const a = 1;\n', 'file:1: begins with no sentence that says what it is'],
    ['/** Adds numbers. */\nconst a = 1;\n', 'file:1: begins with no sentence that says what it is'],
    [`${HEAD}/** What it adds. */\nconst a = 1;\n`, 'file:2: begins as a clause: What it adds.'],
    [`${HEAD}f(\n  1, // of bytes\n);\n`, 'file:3: begins as a clause: of bytes'],
    [`${HEAD}const a = {\n  // Whether it adds.\n};\n`, 'file:3: begins as a clause: Whether it adds.'],
    [`${HEAD}// Word${' word'.repeat(25)}.\n`, `file:1: 26 words: Word${' word'.repeat(25)}.`],
    [
      `${HEAD}\n/**\n * Adds.\n *\n * Word${' word'.repeat(13)}\n * word${' word'.repeat(11)}.\n */\nf();\n`,
      `file:3: 26 words: Word${' word'.repeat(25)}.`,
    ],
  ])('are found where they break a rule: %j', (text, fault) => {
    expect(faultsOf('file', text)).toEqual([fault]);
  });

  it('may stand behind a line for the shell', () => {
    expect(faultsOf('file', `#!/usr/bin/env node\n${HEAD}f();\n`)).toEqual([]);
    expect(faultsOf('file', '#!/usr/bin/env node\nf();\n')).toEqual([
      'file:1: begins with no sentence that says what it is',
    ]);
  });

  it('are not found in strings, templates and patterns', () => {
    const code = "const a = ['// What', `/* Which ${1} // Who */`, /\\/\\/ Of/];\n// It adds.\n";
    expect(commentsOf('file', code).map(({ text }) => text)).toEqual(['It adds.']);
    expect(faultsOf('file', `${HEAD}${code}`)).toEqual([]);
  });

  it('end a sentence at its point, and leave out code', () => {
    const text =
      'By §5.4 of a.md (and `x`). It adds: a, b. `f` too.\n- one\n- two\n\n    f  code\n    g  code\n\n@example\n```ts\nf();\n```\n';
    expect(sentencesOf(text)).toEqual([
      'By §5.4 of a.md (and `x`).',
      'It adds: a, b.',
      '`f` too.',
      '- one',
      '- two',
    ]);
  });

  it('begin as a clause where a word says so', () => {
    const clauses = [
      'What it does.',
      'Whether it is.',
      'of an event: its id',
      'Returns what it has.',
      'By name.',
    ];
    expect(clauses.filter((text) => !isHeadless(text))).toEqual([]);
    const sentences = ['Returns the text.', 'Whatever comes is kept.', 'Offers a place.', 'True if it is.'];
    expect(sentences.filter((text) => isHeadless(text))).toEqual([]);
  });
});
