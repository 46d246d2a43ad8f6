import { existsSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { testFiles } from '../support/groups.ts';
import {
  asForms,
  type Block,
  blocksOf,
  blockWith,
  faultsOf,
  imported,
  PAGES,
  samplesOf,
  textOf,
} from '../support/samples.ts';

const root = new URL('../../', import.meta.url);
const files = PAGES;

const samples = files.flatMap(samplesOf);

describe('samples of README and docs can be copied', () => {
  it('there are some in each of these', () => {
    const places = new Set(samples.map(({ place }) => place.replace(/:\d+$/, '')));
    for (const file of ['README.md', 'docs/keys.md', 'docs/queues.md']) expect(places).toContain(file);
  });

  it.each(samples)('$place is a program, or options as they go into one', async ({ code }) => {
    const faults = asForms(code).map(faultsOf);
    if (!faults.some((found) => found.length === 0)) expect(faults[0]).toEqual([]);
    for (const { from, name } of imported(code)) {
      const module = (await import(from)) as Record<string, unknown>;
      expect(module[name], `${name} of ${from}`).toBeDefined();
    }
  });

  it('the examples that they name are there', () => {
    const text = files.map(textOf).join('\n');
    const named = [...text.matchAll(/\bexamples\/[\w./-]*\w/g)].map(([path]) => path);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((path) => !existsSync(new URL(path, root)))).toEqual([]);
  });
});

/** Blocks that claim to run and are run by no call of `asWritten`, by a text that they have, with the reason. */
const NOT_RUN: readonly (readonly [page: string, text: string, reason: string])[] = [
  [
    'README.md',
    'npm install proto-webhooks',
    'npm has no release yet: every test installs the packed package',
  ],
  ['docs/register-with-a-seller.md', 'npm install proto-webhooks pg', 'the same'],
  ['docs/serve.md', 'npm install proto-webhooks', 'the same'],
  [
    'docs/dev.md',
    'npx proto-webhooks dev',
    'its ports are those of whoever works here: test/examples/dev.test.ts runs both with others',
  ],
  [
    'docs/typescript-and-jest.md',
    'npx jest',
    'test/consumers runs Jest with that flag on two versions of Node',
  ],
  [
    'docs/cli.md',
    'npx proto-webhooks explain',
    'one of each verb: those below it are run, and test/cli runs the verbs',
  ],
  [
    'docs/cli.md',
    '$ proto-webhooks owed',
    'a month of reports of a seller: test/cli/owed.test.ts runs the verb on four days of one',
  ],
];

const isCommand = ({ language }: Block): boolean => language === 'sh' || language === 'console';
const claimsToRun = (block: Block): boolean =>
  isCommand(block) ||
  block.language === 'python' ||
  (/^[jt]s$/.test(block.language) && /^import [^]*? from 'proto-webhooks[/']/m.test(block.code));

/** Places of the blocks that tests run as they are written. */
function placesRun(): ReadonlySet<string> {
  const calls = testFiles().flatMap((file) => [
    ...textOf(`test/${file}`).matchAll(/\basWritten\(\s*'([^']+)',\s*(?:'([^']+)'|"([^"]+)"),?\s*\)/g),
  ]);
  return new Set(calls.map(([, page = '', single, double]) => blockWith(page, single ?? double ?? '').place));
}

describe('blocks that claim to run are run as written', () => {
  const claims = files.flatMap(blocksOf).filter(claimsToRun);
  const excused = NOT_RUN.map(([page, text]) => {
    const [block, ...others] = claims.filter(
      ({ place, code }) => place.startsWith(`${page}:`) && code.includes(text),
    );
    if (!block || others.length > 0) throw new Error(`not one block of ${page} has ${text}`);
    return block.place;
  });

  it('each is run by a test, or stands in the list with its reason', () => {
    const run = placesRun();
    expect(run.size).toBeGreaterThan(40);
    const places = claims.map(({ place }) => place);
    expect(places.filter((place) => !run.has(place) && !excused.includes(place))).toEqual([]);
    expect(excused.filter((place) => run.has(place) || !places.includes(place))).toEqual([]);
  });

  it('every other block is of a language that nobody runs, or is compiled where it stands', () => {
    const known = /^(json|yaml|sql|mermaid|ts|js|)$/;
    const others = files
      .flatMap(blocksOf)
      .filter((block) => !isCommand(block) && block.language !== 'python');
    expect(others.filter(({ language }) => !known.test(language))).toEqual([]);
    for (const { code } of others.filter(({ language }) => language === 'json')) JSON.parse(code);
  });
});

describe('the protocol’s name is no setting (verification.md §1.1)', () => {
  const examples = (readdirSync(new URL('examples/', root), { recursive: true }) as string[])
    .filter((name) => /\.(?:md|[mc]?[jt]sx?)$/.test(name) && !name.includes('node_modules'))
    .map((name) => `examples/${name}`);

  it.each([...files, ...examples])('%s sets none', (file) => {
    // The version of HTTP, in an event of Lambda.
    const text = textOf(file).replaceAll(/protocol: 'HTTP\/[\d.]+'/g, '');
    expect(text).not.toMatch(/\bprotocol:/);
  });

  it('looks at examples too', () => expect(examples).toContain('examples/media-buy/buyer.ts'));
});
