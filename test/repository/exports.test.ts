import { builtinModules } from 'node:module';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { cliProgram } from '../../src/cli/for-tests.ts';
import { CODES } from '../../src/for-tests.ts';
import { isHeadless } from '../support/comments.ts';

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

const docOf = (symbol: ts.Symbol): string =>
  ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim();

/** Documented members that a reader sees in an editor: of interfaces, classes, and objects in types; inherited ones too. */
function documentedMembers(symbol: ts.Symbol): readonly (readonly [path: string, doc: string])[] {
  const found = new Set<ts.Symbol>();
  const visit = (node: ts.Node): void => {
    const isMember =
      ts.isPropertySignature(node) ||
      ts.isMethodSignature(node) ||
      ts.isPropertyDeclaration(node) ||
      ts.isMethodDeclaration(node) ||
      ts.isGetAccessor(node);
    const member = isMember ? checker.getSymbolAtLocation(node.name) : undefined;
    if (member) found.add(member);
    ts.forEachChild(node, visit);
  };
  for (const declaration of symbol.declarations ?? []) visit(declaration);
  if (symbol.flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.Class)) {
    for (const member of checker.getDeclaredTypeOfSymbol(symbol).getProperties())
      if (isOurs(member)) found.add(member);
  }
  return [...found].map((member) => [`${symbol.name}.${member.name}`, docOf(member)] as const);
}

const isOurs = ({ declarations = [] }: ts.Symbol): boolean =>
  declarations.every((declaration) => declaration.getSourceFile().fileName.startsWith(join(root, 'dist')));

/** Of a function; undefined for anything else. */
function examplesOf(symbol: ts.Symbol): readonly string[] | undefined {
  const [declared] = symbol.declarations ?? [];
  const isFunction = declared && checker.getTypeOfSymbol(symbol).getCallSignatures().length > 0;
  if ((symbol.flags & ts.SymbolFlags.Value) === 0 || !isFunction) return undefined;
  return symbol
    .getJsDocTags(checker)
    .flatMap(({ name, text }) => (name === 'example' ? ts.displayPartsToString(text) : []));
}

const resolved = (symbol: ts.Symbol): ts.Symbol =>
  symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;

/** What an entry's declarations export, by the path in package.json. */
function exportsOf(types: string): readonly ts.Symbol[] {
  const source = program.getSourceFile(join(root, types));
  const module = source && checker.getSymbolAtLocation(source);
  if (!module) throw new Error(`${types} is no module`);
  return checker.getExportsOfModule(module);
}

/** Every exported name of an entry's declarations. */
function publicNames(types: string): readonly PublicName[] {
  return exportsOf(types).map((symbol) => {
    const target = resolved(symbol);
    return {
      name: symbol.name,
      base: baseOf(target),
      doc: docOf(target),
      isValue: (target.flags & ts.SymbolFlags.Value) !== 0 && !isTypeOnly(symbol),
    };
  });
}

/** A type that a declaration names, and the node where it does. */
interface Named {
  readonly target: ts.Symbol;
  readonly at: ts.Node;
}

/** Types that members, parameters and results name; not what an interface extends, which its members are seen through. */
function typesNamedIn(node: ts.Node): readonly Named[] {
  if (ts.isHeritageClause(node)) return [];
  const inside: Named[] = [];
  ts.forEachChild(node, (child) => void inside.push(...typesNamedIn(child)));
  if (!ts.isTypeReferenceNode(node)) return inside;
  const symbol = checker.getSymbolAtLocation(node.typeName);
  return symbol ? [...inside, { target: resolved(symbol), at: node }] : inside;
}

/** A type of this package that a user may want to name: no parameter, no helper that computes one from others. */
function isNameable({ declarations: [first] = [] }: ts.Symbol): boolean {
  if (!first?.getSourceFile().fileName.startsWith(join(root, 'dist'))) return false;
  if (ts.isTypeAliasDeclaration(first))
    return first.typeParameters === undefined && ts.isTypeLiteralNode(first.type);
  return (
    (ts.isInterfaceDeclaration(first) && first.typeParameters === undefined) || ts.isClassDeclaration(first)
  );
}

/** Members of an options type, those of options in it behind a point. */
function membersOf(type: ts.Type, prefix: string, depth = 0): readonly string[] {
  return checker.getPropertiesOfType(type).flatMap((member) => {
    const name = `${prefix}.${member.name}`;
    const of = checker.getNonNullableType(checker.getTypeOfSymbol(member));
    const isOptions = depth < 3 && (of.getSymbol()?.name ?? of.aliasSymbol?.name ?? '').endsWith('Options');
    return isOptions ? [name, ...membersOf(of, name, depth + 1)] : [name];
  });
}

function* commandLines(command: Command, name: string): Iterable<string> {
  for (const { flags } of command.options) yield `command ${name} ${flags}`;
  for (const below of command.commands) {
    const named = `${name} ${below.name()}`;
    yield `command ${named} ${below.registeredArguments.map((one) => (one.required ? `<${one.name()}>` : `[${one.name()}]`)).join(' ')}`.trim();
    yield* commandLines(below, named);
  }
}

/** The public face, a name a line. */
function* faceLines(): Iterable<string> {
  const optionTypes = new Map<ts.Symbol, string>();
  for (const { subpath, types } of subpaths) {
    const symbols = exportsOf(types);
    for (const { name, isValue } of publicNames(types))
      yield `${subpath} ${isValue ? 'value' : 'type'} ${name}`;
    for (const symbol of symbols)
      if (symbol.name.endsWith('Options')) optionTypes.set(resolved(symbol), symbol.name);
  }
  // Those whose name begins with `on` are the hooks.
  for (const [symbol, name] of optionTypes) {
    for (const member of membersOf(checker.getDeclaredTypeOfSymbol(symbol), name)) yield `option ${member}`;
  }
  for (const [code, kinds] of Object.entries(CODES)) yield `code ${code} ${kinds.join(' ')}`;
  yield* commandLines(
    cliProgram(async () => undefined, process),
    'proto-webhooks',
  );
}

describe('package exports', () => {
  // A change of the face is a change of this file: `npx vitest run test/repository/exports.test.ts -u` writes it anew.
  it('have subpaths, names, options, hooks, codes and commands as the file says', async () => {
    await expect([...faceLines()].join('\n')).toMatchFileSnapshot('face.txt');
  });

  it('have each type that a signature of theirs names', () => {
    const exported = new Set(subpaths.flatMap(({ types }) => exportsOf(types).map(resolved)));
    const named = [...exported].flatMap((symbol) => (symbol.declarations ?? []).flatMap(typesNamedIn));
    const missing = named.filter(({ target }) => !exported.has(target) && isNameable(target));
    expect(named.length).toBeGreaterThan(500);
    expect([...new Set(missing.map(({ target }) => target.name))]).toEqual([]);
  });

  it.each(subpaths)('$subpath exists, has types, and is named in the README', (entry) => {
    expect(existsSync(join(root, entry.default)), entry.default).toBe(true);
    expect(existsSync(join(root, entry.types)), entry.types).toBe(true);
    expect(readme).toContain(`${manifest.name}${entry.subpath.slice(1)}`);
  });

  it.each(subpaths)('$subpath documents every public name', (entry) => {
    const names = publicNames(entry.types);
    expect(names.length).toBeGreaterThan(0);
    expect(names.filter(({ doc }) => doc.trim() === '').map(({ name }) => name)).toEqual([]);
  });

  it.each(subpaths)('$subpath: docstrings are sentences, and functions have an example', (entry) => {
    const symbols = exportsOf(entry.types).map(resolved);
    const texts = symbols.flatMap((symbol) => [
      [symbol.name, docOf(symbol)] as const,
      ...documentedMembers(symbol),
    ]);
    expect(texts.flatMap(([path, doc]) => (isHeadless(doc) ? `${path}: ${doc}` : []))).toEqual([]);
    const without = symbols.filter(
      (symbol) => !(examplesOf(symbol) ?? ['```ts']).some((text) => /^```[jt]s$/m.test(text)),
    );
    expect(without.map(({ name }) => name)).toEqual([]);
  });

  it('have the class that each error of theirs extends', () => {
    const names = subpaths.flatMap(({ types }) => publicNames(types));
    const known = new Set([...names.map(({ name }) => name), 'Error']);
    const bases = new Set(names.flatMap(({ base }) => base ?? []));
    expect(bases).toContain('PrintableError');
    expect([...bases].filter((base) => !known.has(base))).toEqual([]);
  });

  it.each(subpaths)(
    '$subpath: each value that it declares exists at run time, and no other',
    async (entry) => {
      const declared = publicNames(entry.types).flatMap(({ name, isValue }) => (isValue ? [name] : []));
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
