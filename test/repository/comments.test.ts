import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { commentsOf, faultsOf, isHeadless, sentencesOf } from '../support/comments.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Folders whose comments are held by the rules of text (CONTRIBUTING.md), each without the folders in it. */
const FOLDERS: readonly string[] = [
  'src/registrations',
  'src/registrations/told',
  'src/registrations/subscriptions',
  'src/reconcile',
  'src/poll',
  'src/calls',
  'src/vectors',
  'src/vectors/shapes',
  'src/cli/explain',
  'src/cli/capture',
  'src/cli/keys',
  'src/cli/probe',
  'src/cli/owed',
  'src/cli/tasks',
  'src/cli/send',
  'src/cli/serve',
  'src/cli/state',
  'src/cli/inbox',
  'src/cli/registry',
  'src/cli/vectors',
  'src/serve',
  'src/serve/config',
  'src/serve/sink',
];

const filesOf = (folder: string): string[] =>
  readdirSync(join(root, folder)).flatMap((name) => (name.endsWith('.ts') ? `${folder}/${name}` : []));

describe('comments of src', () => {
  it('begin each file, begin with a subject, and have at most 25 words a sentence', () => {
    const files = FOLDERS.flatMap(filesOf);
    expect(files.flatMap((file) => faultsOf(file, readFileSync(join(root, file), 'utf8')))).toEqual([]);
  });

  const HEAD = '// Adds numbers for callers.\n';

  it.each([
    ['const a = 1;\n', 'f.ts:1: begins with no sentence that says what it is'],
    ['/** Adds numbers. */\nconst a = 1;\n', 'f.ts:1: begins with no sentence that says what it is'],
    [`${HEAD}/** What it adds. */\nconst a = 1;\n`, 'f.ts:2: begins as a clause: What it adds.'],
    [`${HEAD}f(\n  1, // of bytes\n);\n`, 'f.ts:3: begins as a clause: of bytes'],
    [`${HEAD}const a = {\n  // Whether it adds.\n};\n`, 'f.ts:3: begins as a clause: Whether it adds.'],
    [`${HEAD}// Word${' word'.repeat(25)}.\n`, `f.ts:1: 26 words: Word${' word'.repeat(25)}.`],
    [
      `${HEAD}\n/**\n * Adds.\n *\n * Word${' word'.repeat(13)}\n * word${' word'.repeat(11)}.\n */\nf();\n`,
      `f.ts:3: 26 words: Word${' word'.repeat(25)}.`,
    ],
  ])('are found where they break a rule: %j', (text, fault) => {
    expect(faultsOf('f.ts', text)).toEqual([fault]);
  });

  it('are not found in strings, templates and patterns', () => {
    const code = "const a = ['// What', `/* Which ${1} // Who */`, /\\/\\/ Of/];\n// It adds.\n";
    expect(commentsOf('f.ts', code).map(({ text }) => text)).toEqual(['It adds.']);
    expect(faultsOf('f.ts', `${HEAD}${code}`)).toEqual([]);
  });

  it('end a sentence at its point, and leave out code', () => {
    const text =
      'By §5.4 of a.md (and `x`). It adds: a, b. `f` too.\n- one\n- two\n\n@example\n```ts\nf();\n```\n';
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
