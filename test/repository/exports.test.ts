import { builtinModules } from 'node:module';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  name: string;
  exports: Record<string, string | { types: string; default: string }>;
};
const readme = readFileSync(join(root, 'README.md'), 'utf8');

const subpaths = Object.entries(manifest.exports).flatMap(([subpath, target]) =>
  typeof target === 'string' ? [] : [{ subpath, ...target }],
);

interface PublicName {
  readonly name: string;
  readonly doc: string;
  /** The class that it extends; undefined for what extends none. */
  readonly base: string | undefined;
  /** A program may use it at run time, by what the declarations say. */
  readonly isValue: boolean;
}

/** `export { type X }` or `export type { X }`: nothing at run time, whatever X is. */
function isTypeOnly(symbol: ts.Symbol): boolean {
  return (symbol.declarations ?? []).some(
    (declaration) =>
      ts.isExportSpecifier(declaration) && (declaration.isTypeOnly || declaration.parent.parent.isTypeOnly),
  );
}

/** One program for all entries: to read the declarations again for each is most of what this file costs. */
const program = ts.createProgram(
  subpaths.map(({ types }) => join(root, types)),
  {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    skipLibCheck: true,
  },
);
const checker = program.getTypeChecker();

function baseOf(symbol: ts.Symbol): string | undefined {
  const { valueDeclaration: declared } = symbol;
  const clauses = declared && ts.isClassDeclaration(declared) ? (declared.heritageClauses ?? []) : [];
  return clauses.find(({ token }) => token === ts.SyntaxKind.ExtendsKeyword)?.types[0]?.expression.getText();
}

/** Every exported name of an entry's declarations. */
function publicNames(declarations: string): readonly PublicName[] {
  const source = program.getSourceFile(declarations);
  const module = source && checker.getSymbolAtLocation(source);
  if (!module) throw new Error(`${declarations} is no module`);
  return checker.getExportsOfModule(module).map((symbol) => {
    const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    return {
      name: symbol.name,
      base: baseOf(target),
      doc: ts.displayPartsToString(target.getDocumentationComment(checker)),
      isValue: (target.flags & ts.SymbolFlags.Value) !== 0 && !isTypeOnly(symbol),
    };
  });
}

describe('package exports', () => {
  it('has the subpaths that the design names, so far', () => {
    expect(subpaths.map(({ subpath }) => subpath)).toEqual([
      '.',
      './node',
      './express',
      './fastify',
      './hono',
      './fetch',
      './lambda',
      './memory',
      './sqlite',
      './store',
      './postgres',
      './mysql',
      './redis',
      './bullmq',
      './pg-boss',
      './rfc9421',
      './events',
      './sender',
      './registry',
      './registrations',
      './mcp',
      './a2a',
      './poller',
      './testing',
      './vectors',
      './otel',
    ]);
  });

  it.each(subpaths)('$subpath exists, has types, and is named in the README', (entry) => {
    expect(existsSync(join(root, entry.default)), entry.default).toBe(true);
    expect(existsSync(join(root, entry.types)), entry.types).toBe(true);
    expect(readme).toContain(`${manifest.name}${entry.subpath.slice(1)}`);
  });

  it.each(subpaths)('$subpath documents every public name', (entry) => {
    const names = publicNames(join(root, entry.types));
    expect(names.length).toBeGreaterThan(0);
    expect(names.filter(({ doc }) => doc.trim() === '').map(({ name }) => name)).toEqual([]);
  });

  it('have the class that each error of theirs extends', () => {
    const names = subpaths.flatMap(({ types }) => publicNames(join(root, types)));
    const known = new Set([...names.map(({ name }) => name), 'Error']);
    const bases = new Set(names.flatMap(({ base }) => base ?? []));
    expect(bases).toContain('PrintableError');
    expect([...bases].filter((base) => !known.has(base))).toEqual([]);
  });

  it.each(subpaths)(
    '$subpath: each value that it declares exists at run time, and no other',
    async (entry) => {
      const declared = publicNames(join(root, entry.types)).flatMap(({ name, isValue }) =>
        isValue ? [name] : [],
      );
      const module = (await import(pathToFileURL(join(root, entry.default)).href)) as object;
      expect(declared.length).toBeGreaterThan(0);
      expect(declared.toSorted()).toEqual(Object.keys(module).toSorted());
    },
  );

  it('has a dist in which every file can be imported', async () => {
    const files = readdirSync(join(root, 'dist')).filter((file) => file.endsWith('.js'));
    expect(files.length).toBeGreaterThan(subpaths.length);
    for (const file of files) {
      const loaded: unknown = await import(pathToFileURL(join(root, 'dist', file)).href);
      expect(loaded, file).toBeTypeOf('object');
    }
  });

  it('keeps the node: protocol of built-in modules in dist', () => {
    const bare = new Set(builtinModules.filter((name) => !/^(?:_|node:)/.test(name)));
    const imported = readdirSync(join(root, 'dist'))
      .filter((file) => file.endsWith('.js'))
      .flatMap((file) => ts.preProcessFile(readFileSync(join(root, 'dist', file), 'utf8')).importedFiles)
      .map(({ fileName }) => fileName);
    expect(imported).toContain('node:http');
    expect(imported.filter((name) => bare.has(name) || name === 'sqlite')).toEqual([]);
    // In a chunk: the command line shares the store.
    const files = readdirSync(join(root, 'dist')).filter((file) => file.endsWith('.js'));
    const whole = files.map((file) => readFileSync(join(root, 'dist', file), 'utf8')).join('\n');
    expect(whole).toContain('"node:sqlite"');
  });
});
