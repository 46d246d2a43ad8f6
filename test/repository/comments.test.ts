import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { commentsOf, faultsOf, isHeadless, sentencesOf } from '../support/comments.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Folders whose comments are held by the rules of text (CONTRIBUTING.md), each without the folders in it. */
// prettier-ignore
const FOLDERS: readonly string[] = [
  'src/stores/rules',
  'src/stores/optimistic',
  'src/stores',
  'src/stores/sql',
  'src/stores/postgres',
  'src/stores/mysql',
  'src/stores/redis',
  'src/stores/sqlite',
  'src/stores/memory',
  'src/stages',
  'src/receiver',
  'src/auth',
  'src/auth/rfc9421',
  'src/crypto',
  'src/codec',
  'src/shared',
  'src/keys',
  'src/keys/net',
  'src/events',
  'src/inbox',
  'src/queues',
  'src/adapters',
  'src/otel',
  'src/sender',
  'src/registry',
  'src/stores/rules',
  'src/stores/optimistic',
  'src/stores',
  'src/stores/sql',
  'src/stores/postgres',
  'src/stores/mysql',
  'src/stores/redis',
  'src/stores/sqlite',
  'src/stores/memory',
  'src/states',
  'src/windows',
  'src/testing/store-contract',
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
