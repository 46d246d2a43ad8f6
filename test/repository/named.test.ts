import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readSpec, SPECS } from './spec.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

const FOLDERS = ['.ci', 'bench', 'docs', 'examples', 'scripts', 'src', 'test', 'vectors'] as const;

/** What is built or installed. */
const NOT_OURS = /(?:^|\/)(?:node_modules|dist|build)\/|^docs\/api\//;

const files: readonly string[] = [
  ...readdirSync(root, { withFileTypes: true }).flatMap((entry) => (entry.isFile() ? [entry.name] : [])),
  ...FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
  ),
].filter((file) => !NOT_OURS.test(file));

const FENCED = /^ *(```+|~~~+)[^]*?^ *\1[ \t]*$/gm;

/** Comments of a file of code, each in its line; all of a document but its samples. */
function proseOf(file: string, text: string): string {
  if (file.endsWith('.md')) return text.replaceAll(FENCED, '');
  const mark = /\.(?:sql|lua)$/.test(file)
    ? /^.*?(?<!\S)--\s(.*)$/
    : /^(?:\s*\/?\*+|.*?(?<![^\s;,({])\/\/)\s(.*)$/;
  const lines = text.split('\n').map((line) => mark.exec(line)?.[1] ?? '');
  return lines.join('\n');
}

/** Files of code and documents, and folders of the repository. Not preceded by what makes it a part of a longer name. */
const NAMED =
  /(?<![\w./@:{}*-])(?:(?:\.{1,2}\/)*(?:[\w.-]+\/)*[\w.-]*\w\.(?:[cm]?[jt]s|sql|lua|md)\b(?!\.\w|[*/(\w])|(?:bench|examples|scripts|src|test|vectors)\/[\w./-]*\w\b(?!\.\w|[\w*/{-]))/g;

/** Names that stand for a file of somebody else's, or for any file: where, what and why. */
const OTHERS: readonly (readonly [file: RegExp, name: RegExp, why: string])[] = [
  [/./, /^000n\.sql$/, 'the next migration'],
  [/./, /^(?:\.d|\.test)\.ts$/, 'an ending'],
  [/./, /^(?:\.\/)?mine\.js$/, 'a sink of the reader’s'],
  [/./, /^(?:Node|node|Next|next|Fastify|Bull|Vue)\.js$/, 'a project'],
  [
    /^(?:README|docs\/\w[\w-]*)\.md$/,
    /^(?:(?:pages|app)\/.*|(?:\.\/)?(?:buyer|call|challenge|first|handle|handlers\.test|jest\.config|lost|main|move|order|quickstart|receiver|rehearse|server|try|verify|webhooks\.test)\.m?[jt]s)$/,
    'a file of the reader’s project',
  ],
  [/^examples\/lambda\/README\.md$/, /^dist\/index\.cjs$/, 'what the example builds'],
  [/^CONTRIBUTING\.md$/, /^test\/keys\/new\.test\.ts$/, 'a test to come'],
  [
    /^test\/repository\/|^test\/support\/links\.ts$/,
    /new\.test\.ts$|gone|\bx\.ts$/,
    'a name in a test of this kind',
  ],
];

/** Names in `file`'s comments, or in the document, that are the end of no path of `paths`. */
function namesNothing(file: string, text: string, paths: ReadonlySet<string>): readonly string[] {
  const named = [...proseOf(file, text).matchAll(NAMED)].map(([name]) => name);
  return [...new Set(named)].filter(
    (name) =>
      !paths.has(name.replace(/^(?:\.{1,2}\/)+/, '')) &&
      !OTHERS.some(([where, which]) => where.test(file) && which.test(name)),
  );
}

/** Each path, and each end of it that begins with a name. */
function endsOf(paths: readonly string[]): ReadonlySet<string> {
  return new Set(
    paths.flatMap((path) => path.split('/').map((_part, at, parts) => parts.slice(at).join('/'))),
  );
}

/** Planned rules whose heading has the name of a subpath that the package exports: a proper name, or one in a code span. */
function builtAlready(
  rules: readonly { readonly heading: string; readonly mark: string | undefined }[],
  subpaths: readonly string[],
): readonly string[] {
  const known = new Set(subpaths.map((subpath) => subpath.replace(/^\.\//, '')));
  return rules.flatMap(({ heading, mark }) => {
    const names = heading.match(/(?<=`)[^`]+(?=`)|[\w-]*[A-Z][\w-]*/g) ?? [];
    return mark === 'planned' && names.some((name) => known.has(name.toLowerCase())) ? [heading] : [];
  });
}

const headingsOf = (text: string): readonly { heading: string; mark: string | undefined }[] =>
  [...text.matchAll(/^### (.+?)(?: \((planned|informative)\))?$/gm)].map(([, heading = '', mark]) => ({
    heading,
    mark,
  }));

describe('what comments and documents name is there', () => {
  const paths = endsOf(files);
  const texts = files.filter((file) => /\.(?:[cm]?[jt]s|sql|lua|md)$/.test(file));

  it('each file', () => {
    expect(texts.length).toBeGreaterThan(800);
    const missing = texts.flatMap((file) =>
      namesNothing(file, read(file), paths).map((name) => `${file}: ${name}`),
    );
    expect(missing).toEqual([]);
  });

  it('no planned rule is about what the package exports already', () => {
    const { exports } = JSON.parse(read('package.json')) as { readonly exports: object };
    for (const name of SPECS) {
      const text = read(`docs/spec/${name}.md`);
      const headings = headingsOf(text);
      const planned = headings.filter(({ mark }) => mark === 'planned');
      expect(planned).toHaveLength(
        readSpec(name, text, []).rules.filter(({ mark }) => mark === 'planned').length,
      );
      expect(builtAlready(headings, Object.keys(exports))).toEqual([]);
    }
  });
});

/** Paths that settings of a tool name, each up to its first wildcard. */
const pathsIn = (settings: string): readonly string[] =>
  [
    ...settings.matchAll(/(?<![\w./@-])(?:bench|examples|scripts|src|test|vectors)\/[\w./-]*(?=[*{"'\s])/g),
  ].map(([path]) => path);

describe('what the settings of tools name is there', () => {
  it.each(['.prettierignore', '.oxlintrc.json', 'typedoc.json', 'tsup.config.ts', 'tsconfig.json'])(
    '%s',
    (file) => expect(pathsIn(read(file)).filter((path) => !existsSync(join(root, path)))).toEqual([]),
  );

  it('a path that leads nowhere is noticed, and a pattern is one up to its wildcard', () => {
    expect(pathsIn('src/gone.ts\n"test/**/*.ts", \'vectors/a/*.json\' @types/src/x.ts')).toEqual([
      'src/gone.ts',
      'test/',
      'vectors/a/',
    ]);
  });
});

describe('a name that leads nowhere is noticed', () => {
  const paths = endsOf(['src/a.ts', 'src/x/b.lua', 'README.md', 'src/x']);

  it.each([
    ['src/c.ts', '/** See `gone.ts`. */', ['gone.ts']],
    ['src/c.ts', '// as gone.ts. Or src/x-gone.', ['gone.ts', 'src/x-gone']],
    ['src/c.ts', '  // as x/gone.lua does', ['x/gone.lua']],
    ['src/c.ts', 'run(); // as src/gone says', ['src/gone']],
    ['src/c.ts', ' * `a.ts`, `b.lua`, `gone.mjs`', ['gone.mjs']],
    ['src/c.sql', '-- as y/b.lua', ['y/b.lua']],
    ['docs/c.md', 'in `gone.ts`', ['gone.ts']],
  ])('%s: %s', (file, text, names) => expect(namesNothing(file, text, paths)).toEqual(names));

  it.each([
    ['src/c.ts', '/** `a.ts`, `src/a.ts`, `./x/b.lua`, src/x, README.md */'],
    ['src/c.ts', "import './gone.ts';\nconst a = 'gone.ts';"],
    ['src/c.ts', '// express.json(), brand.json, https://seller.example/test/gone.ts, @scope/src/gone'],
    ['docs/c.md', '```ts\nimport "./gone.ts";\n```\nsamples of `a.ts`'],
  ])('not in %s: %s', (file, text) => expect(namesNothing(file, text, paths)).toEqual([]));

  it('a planned rule of something that is exported', () => {
    const headings = headingsOf(
      '### 9.6 MySQL and MariaDB (planned)\n### 9.7 The events (planned)\n### 9.8 Redis\n### 9.9 `redis` (planned)',
    );
    expect(builtAlready(headings, ['.', './mysql', './redis', './events'])).toEqual([
      '9.6 MySQL and MariaDB',
      '9.9 `redis`',
    ]);
  });
});
