import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  anchorsOf,
  deadLinks,
  linksOf,
  missingFiles,
  missingNames,
  missingScripts,
  strangePages,
  unexplained,
} from '../support/links.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (page: string): string => readFileSync(join(root, page), 'utf8');

const below = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file));

const pages = [
  ...readdirSync(root),
  ...['docs', 'examples', 'src', 'test', 'vectors'].flatMap(below),
  'bench/results.md',
].filter((file) => file.endsWith('.md') && !file.includes('node_modules'));

describe('documents of the repository', () => {
  it('these are among them', () => {
    for (const page of ['README.md', 'CHANGELOG.md', 'docs/keys.md', 'test/README.md'])
      expect(pages).toContain(page);
  });

  it.each(pages)('%s: each link leads somewhere', (page) => {
    expect(deadLinks(root, page)).toEqual([]);
  });

  it.each(pages.filter((page) => !/^(examples|vectors)\//.test(page)))(
    '%s: each file that it names is there',
    (page) => {
      expect(missingFiles(root, read(page))).toEqual([]);
    },
  );

  it.each(pages.filter((page) => !page.startsWith('examples/')))(
    '%s: each npm script that it names is there',
    (page) => {
      const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: object };
      expect(missingScripts(read(page), scripts)).toEqual([]);
    },
  );

  it.each([
    ['ARCHITECTURE.md', 'src'],
    ['test/README.md', 'test'],
  ])('%s: each folder of %s is in it', (page, folder) => {
    const folders = readdirSync(join(root, folder), { withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    );
    const named = new Set(read(page).match(/`[\w/.-]+`/g));
    expect(folders.map(({ name }) => `\`${name}\``).filter((name) => !named.has(name))).toEqual([]);
  });

  it('ARCHITECTURE.md: each name in it is one of the code', () => {
    const code = ['src', 'test']
      .flatMap(below)
      .filter((file) => /\.(ts|js)$/.test(file) && !file.includes('node_modules'));
    const folders = [...below('src'), ...readdirSync(root)].join('\n');
    expect(missingNames(read('ARCHITECTURE.md'), `${code.map(read).join('\n')}\n${folders}`)).toEqual([]);
  });
});

describe('the checker of links finds what is broken', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-links-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const write = (page: string, text: string): void => {
    mkdirSync(dirname(join(folder, page)), { recursive: true });
    writeFileSync(join(folder, page), text);
  };

  it('sound links of every form', () => {
    write('docs/other.md', '# The other\n\n## Twice\n\n## Twice\n\n<a id="by-hand"></a>\n');
    write(
      'README.md',
      [
        '# Top, `code` & [link](docs/other.md)!',
        '[a](docs/other.md) [b](docs/other.md#twice-1 "title") [c](#top-code--link) [d](./docs/)',
        '[e](https://seller.example/x#y) [f](mailto:a@seller.example) ![g](<docs/other.md>)',
        '[h](docs/other.md#by-hand) <a href="docs/other.md#the-other">i</a> [j][label]',
        '',
        '[label]: docs/other.md',
        '```md\n[not a link](gone.md)\n```',
        'and `[neither](gone.md)`',
      ].join('\n'),
    );
    expect(linksOf(readFileSync(join(folder, 'README.md'), 'utf8'))).toHaveLength(11);
    expect(deadLinks(folder, 'README.md')).toEqual([]);
  });

  it.each([
    ['[a](gone.md)', 'gone.md is not there'],
    ['[a](docs/other.md#gone)', 'docs/other.md#gone has no such heading'],
    ['[a](docs/other.md#twice-2)', 'docs/other.md#twice-2 has no such heading'],
    ['[a](#gone)', '#gone has no such heading'],
    ['[a](../outside.md)', '../outside.md is not there'],
    ['[a](/docs/other.md)', '/docs/other.md is not relative'],
    ['![a](gone.svg)', 'gone.svg is not there'],
    ['[a][b]\n\n[b]: gone.md', 'gone.md is not there'],
    ['<img alt="x" src="gone.png">', 'gone.png is not there'],
    ['[`code`](gone.md)', 'gone.md is not there'],
    ['[Title of code](docs/other.md#a-comment)\n', 'docs/other.md#a-comment has no such heading'],
  ])('%s', (text, fault) => {
    write('docs/other.md', '# Other\n\n## Twice\n\n## Twice\n\n```sh\n# a comment\n```\n');
    write('README.md', text);
    expect(deadLinks(folder, 'README.md')).toEqual([`README.md: ${fault}`]);
  });

  it('headings are named as GitHub names them', () => {
    expect([...anchorsOf('# A–B: `x_y` (Z)!\n## Ünï 2 #\n###### Six\n####### seven')]).toEqual([
      'ab-x_y-z',
      'ünï-2',
      'six',
    ]);
  });
});

describe('the checker of citations finds what a reader of the package cannot find', () => {
  it.each([
    ['See `test/reliability/kill`.', ['test/reliability/kill']],
    ['Run `npm run demo`, then `npm test`.', ['npm run demo', 'npm test']],
    ['```sh\nnpm ci && npm run demo\n```', ['npm run demo']],
    ['See CONTRIBUTING.md.', ['CONTRIBUTING.md']],
    ['The repository has `src/stores`.\n\n- `bench/run.ts`', ['bench/run.ts']],
    ['`examples/next`\n\nThe repository has `examples/next`.', ['examples/next']],
  ])('%s', (text, cited) => {
    expect(unexplained(text)).toEqual(cited);
  });

  it.each([
    'In the repository `test/x.test.ts` proves it.',
    'The repository has `test/` and `npm test`.\n\n| a |\n| --- |\n| `test/y.test.ts`, `npm run test:unit` |',
    'In a clone of the repository:\n\n```sh\nnpm ci && npm run demo\n```',
    'https://seller.example/test/x, my-examples/x, @scope/src/x, `npm ci`, `src/routes/+server.ts`',
  ])('told, or none: %s', (text) => {
    expect(unexplained(text)).toEqual([]);
  });

  it('documents that are not among the pages', () => {
    const text = 'profile.md, line 5; docs/keys.md#alarms; other.md; test/README.md; CONTRIBUTING.md';
    expect(strangePages(text, ['docs/keys.md', 'docs/spec/profile.md'])).toEqual(['other.md']);
  });

  it('files that are not there', () => {
    const text =
      '`src/receiver/receiver.ts` `src/gone.ts` `test/*/links.test.ts` `test/repository/l*s.test.ts` `a/b` `src/` `GONE.md`';
    expect(missingFiles(root, text)).toEqual(['src/gone.ts', 'test/*/links.test.ts', 'GONE.md']);
    expect(existsSync(join(root, 'GONE.md'))).toBe(false);
  });

  it('scripts and names that are not there', () => {
    expect(missingScripts('`npm run build` and `npm run gone`', { build: 'tsup' })).toEqual(['gone']);
    expect(missingNames('`createParts` `gone` `a.b`\n```\n`x`\n```', 'function createParts() {}')).toEqual([
      'gone',
    ]);
  });
});
