import { readFileSync, readdirSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const src = fileURLToPath(new URL('../../src', import.meta.url));

const root = join(src, '..');

/** Files in TypeScript of a folder at the root of the repository, and of those in it. */
const filesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => file.endsWith('.ts') && !file.includes('/node_modules/'));

const isFace = (file: string): boolean => basename(file) === 'for-tests.ts';
const faces = filesIn('src').filter(isFace);
const files = filesIn('src').filter((file) => !isFace(file));

interface Import {
  readonly from: string;
  readonly to: string;
}

/** Modules that are loaded on demand: `await import('…')`. */
function importsOnDemand(node: ts.Node): string[] {
  const found: string[] = [];
  const [specifier] =
    ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword ? node.arguments : [];
  if (specifier && ts.isStringLiteral(specifier)) found.push(specifier.text);
  ts.forEachChild(node, (child) => void found.push(...importsOnDemand(child)));
  return found;
}

/** Value imports and re-exports of a file; what is type-only is erased and binds nothing at run time. */
function valueImports(file: string): string[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest);
  const found: string[] = importsOnDemand(source);
  for (const statement of source.statements) {
    if (ts.isImportDeclaration(statement) && !statement.importClause?.isTypeOnly) {
      const named = statement.importClause?.namedBindings;
      const allTypes =
        named && ts.isNamedImports(named) && !statement.importClause?.name
          ? named.elements.every((element) => element.isTypeOnly)
          : false;
      if (!allTypes) found.push((statement.moduleSpecifier as ts.StringLiteral).text);
    }
    if (ts.isExportDeclaration(statement) && statement.moduleSpecifier && !statement.isTypeOnly) {
      found.push((statement.moduleSpecifier as ts.StringLiteral).text);
    }
  }
  return found;
}

const imports: Import[] = files.flatMap((file) =>
  valueImports(file).map((specifier) => ({
    from: relative(src, file),
    to: specifier.startsWith('.') ? relative(src, resolve(dirname(file), specifier)) : specifier,
  })),
);

/**
 * Floors of the source, top first: a file may use its own floor and those below. The first pattern that fits a file
 * decides.
 */
const FLOORS: readonly (readonly [RegExp, number])[] = [
  [/^(cli|dev|serve|vectors|testing|adapters|otel|poll|reconcile)\//, 6],
  [/^receiver\/instruments\.ts$/, 1],
  [/^(index\.ts$|receiver\/)/, 5],
  [/^(inbox|sender|queues|registry|registrations)\//, 5],
  [/^(calls|stages)\//, 4],
  [/^config\/(sender-entry|receiver-options|reports)\.ts$/, 1],
  [/^config\//, 3],
  [/^(auth|keys|events)\//, 2],
  [/^stores\/(store|store-accept|constants)\.ts$/, 1],
  [/^stores\//, 5],
  [/^(codec|crypto|shared|states|windows)\//, 1],
];

const floorOf = (file: string): number | undefined => FLOORS.find(([pattern]) => pattern.test(file))?.[1];
const mayUseNode = (file: string): boolean =>
  /^(adapters|testing|cli|dev|serve)\/|^stores\/sqlite|^vectors\/load/.test(file);

describe('design: imports point one way', () => {
  it('knows the floor of every file', () => {
    expect(files.length).toBeGreaterThan(50);
    expect(files.map((file) => relative(src, file)).filter((file) => floorOf(file) === undefined)).toEqual(
      [],
    );
  });

  it('has no value import that points up', () => {
    const up = imports.filter(({ from, to }) => (floorOf(from) ?? 0) < (floorOf(to) ?? 0));
    expect(up).toEqual([]);
  });

  it('lets stores import nothing but stores, errors, time limits, states and the calendar of report windows', () => {
    const breaches = imports.filter(
      ({ from, to }) =>
        from.startsWith('stores/') &&
        !/^(stores\/|states\/|windows\/|shared\/(errors|realms|time-limits)\.ts$|node:)/.test(to),
    );
    expect(breaches).toEqual([]);
  });

  it('lets the calendar of report windows import nothing else: it runs inside the steps of stores', () => {
    const inWindows = imports.filter(({ from }) => from.startsWith('windows/'));
    expect(inWindows.length).toBeGreaterThan(2);
    expect(inWindows.filter(({ to }) => !to.startsWith('windows/'))).toEqual([]);
  });

  it('lets states import nothing but constants of stores: they change inside the steps of stores', () => {
    const inStates = imports.filter(({ from }) => from.startsWith('states/'));
    expect(inStates.length).toBeGreaterThan(0);
    const strangers = inStates.filter(({ to }) => !/^states\/|^stores\/constants\.ts$/.test(to));
    expect(strangers).toEqual([]);
  });

  it('lets serve import public entries alone: it is a user of the library, and none of that is in its build', () => {
    const outside = imports.filter(
      ({ from, to }) => from.startsWith('serve/') && !/^serve\/|^node:|^(?:yaml|zod)$/.test(to),
    );
    expect(outside.length).toBeGreaterThan(5);
    expect(outside.filter(({ to }) => !EXPORTS.includes(join(src, to)))).toEqual([]);
  });

  it('lets the table of wrong deliveries import nothing else: vectors and their judges share no code', () => {
    const isTable = (file: string): boolean => /^testing\/mistake(-row|s(-[a-z]+)?)\.ts$/.test(file);
    expect(imports.filter(({ from }) => isTable(from)).length).toBeGreaterThan(5);
    expect(imports.filter(({ from, to }) => isTable(from) && !isTable(to))).toEqual([]);
  });

  it('imports node: modules only in adapters, testing, the command line, dev, serve, the SQLite store and the loader of vectors', () => {
    const breaches = imports.filter(({ from, to }) => to.startsWith('node:') && !mayUseNode(from));
    expect(breaches).toEqual([]);
  });
});

describe('design: imports point one way, also those on demand', () => {
  it('sees both', () => {
    const seen = imports.map(({ from, to }) => `${from} ${to}`);
    expect(seen).toContain('receiver/inbox-on-demand.ts inbox/work.ts');
    expect(seen).toContain('inbox/worker.ts inbox/work-cycle.ts');
  });
});

const EXPORTS = (
  JSON.parse(readFileSync(join(root, 'typedoc.json'), 'utf8')) as { readonly entryPoints: readonly string[] }
).entryPoints.map((entry) => join(root, entry));

/** Modules of `src` that a file names in whatever way: an import, a type, the URL of what another process loads. */
function modulesNamed(file: string): string[] {
  const paths = readFileSync(file, 'utf8').matchAll(/(['"`])(\.{1,2}\/[^'"`\s]+\.ts)\1/g);
  return [...paths]
    .map(([, , path = '']) => resolve(dirname(file), path))
    .filter((path) => path.startsWith(`${src}/`));
}

/** What a file exports of others, as `module name`, or `module *`. */
function exportedAgain(file: string): string[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest);
  return source.statements.flatMap((statement) => {
    if (!ts.isExportDeclaration(statement) || !statement.moduleSpecifier) return [];
    const to = resolve(dirname(file), (statement.moduleSpecifier as ts.StringLiteral).text);
    const clause = statement.exportClause;
    const names = clause && ts.isNamedExports(clause) ? clause.elements : ['*'];
    return names.map((one) => {
      const name = typeof one === 'string' ? one : (one.propertyName ?? one.name).text;
      return `${relative(root, to)} ${name}`;
    });
  });
}

describe('design: no circles', () => {
  /** Files that reach themselves: by values, types, or on demand. */
  function circles(of: ReadonlyMap<string, readonly string[]>): string[] {
    const reaches = (start: string): boolean => {
      const seen = new Set<string>();
      const open = [...(of.get(start) ?? [])];
      for (let next = open.pop(); next !== undefined; next = open.pop()) {
        if (next === start) return true;
        if (!seen.has(next)) open.push(...(of.get(next) ?? []));
        seen.add(next);
      }
      return false;
    };
    return [...of.keys()].filter(reaches).map((file) => relative(src, file));
  }

  it('sees them', () => {
    const three = [
      ['a', ['b', 'd']],
      ['b', ['c']],
      ['c', ['a']],
      ['d', []],
    ] as const;
    const named = three.map(([from, to]) => [join(src, from), to.map((name) => join(src, name))] as const);
    expect(circles(new Map(named))).toEqual(['a', 'b', 'c']);
  });

  it('has no file of src that reaches itself, by types and on demand neither', () => {
    expect(circles(new Map(files.map((file) => [file, modulesNamed(file)])))).toEqual([]);
  });
});

describe('design: tests reach a folder through what it offers', () => {
  const used = ['test', 'bench', 'scripts']
    .flatMap(filesIn)
    .flatMap((from) =>
      modulesNamed(from).map((to) => ({ to, text: `${relative(root, from)} ${relative(root, to)}` })),
    );

  it('sees imports, types, and modules that another process loads', () => {
    const seen = used.map(({ text }) => text);
    expect(seen).toContain('test/receiver/setup.ts src/index.ts');
    expect(seen).toContain('test/runtimes/kit.ts src/events/index.ts');
    expect(seen).toContain('test/crypto/index.test.ts src/crypto/for-tests.ts');
    expect(faces.length).toBeGreaterThan(10);
  });

  it('imports public entries and test faces of src, and nothing else', () => {
    const inner = used.filter(({ to }) => !EXPORTS.includes(to) && !isFace(to));
    expect(inner.map(({ text }) => text)).toEqual([]);
  });

  it('has faces that src does not import', () => {
    expect(files.filter((file) => modulesNamed(file).some(isFace))).toEqual([]);
  });

  it('has faces without a name that a public entry exports', () => {
    const published = new Set(EXPORTS.flatMap(exportedAgain));
    expect(published).toContain('src/shared/errors.ts ConfigError');
    const again = faces
      .flatMap(exportedAgain)
      .filter((name) => published.has(name) || published.has(name.replace(/ .+$/, ' *')));
    expect(again).toEqual([]);
  });
});

describe('design: the core bundles for any runtime', () => {
  it.each([
    'index.ts',
    'adapters/fetch.ts',
    'adapters/hono.ts',
    'auth/rfc9421/index.ts',
    'events/index.ts',
    'registry/index.ts',
    'registrations/index.ts',
    'sender/sign.ts',
    'stores/memory.ts',
  ])('%s bundles for a browser-like target without node: modules', async (entry) => {
    const result = await build({
      entryPoints: [join(src, entry)],
      bundle: true,
      write: false,
      format: 'esm',
      platform: 'browser',
      target: 'es2022',
      metafile: true,
      splitting: true,
      outdir: 'out',
      logLevel: 'silent',
    });
    expect(result.errors).toEqual([]);
    const externals = Object.values(result.metafile.outputs).flatMap((output) =>
      output.imports.filter((used) => used.external).map((used) => used.path),
    );
    expect(externals).toEqual([]);
  });
});
