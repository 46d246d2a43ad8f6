import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';

/** A block of code in a page. */
export interface Sample {
  /** `docs/keys.md:12` */
  readonly place: string;
  readonly code: string;
}

/** A fenced block of any language. */
export interface Block extends Sample {
  /** As after its fence; empty for a diagram. */
  readonly language: string;
}

/** Text of a file, by its path from the top. */
export const textOf = (file: string): string =>
  readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

/** README and the pages of docs. */
export const PAGES: readonly string[] = [
  'README.md',
  ...readdirSync(new URL('../../docs/', import.meta.url))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

/** A page's fenced blocks, in order; of one inside a list without the list's indent. */
export function blocksOf(file: string): readonly Block[] {
  const text = textOf(file);
  return fencedIn(text).map(({ at, language, code }) => ({
    place: `${file}:${text.slice(0, at).split('\n').length}`,
    language,
    code,
  }));
}

/** The fenced blocks of a text, and at which character each begins. */
function fencedIn(
  text: string,
): readonly { readonly at: number; readonly language: string; readonly code: string }[] {
  return [...text.matchAll(/^( *)```(\w*)\n([^]*?)^\1```$/gm)].map((found) => {
    const [, indent = '', language = '', code = ''] = found;
    return { at: found.index, language, code: code.replaceAll(new RegExp(`^${indent}`, 'gm'), '') };
  });
}

/** Files of src, by their path from the top. */
const SOURCES: readonly string[] = readdirSync(new URL('../../src/', import.meta.url), { recursive: true })
  .map((file) => `src/${String(file)}`)
  .filter((file) => file.endsWith('.ts'));

/** The `@example` blocks of docstrings in src, as their readers see them: without the comment's border. */
export function examples(): readonly Block[] {
  return SOURCES.flatMap((file) =>
    [...textOf(file).matchAll(/^ *\* @example\n((?: *\*(?! @| *\/).*\n)*)/gm)].flatMap((found) => {
      const bare = (found[1] ?? '').replaceAll(/^ *\* ?/gm, '');
      const line = textOf(file).slice(0, found.index).split('\n').length;
      return fencedIn(bare).map(({ language, code }) => ({ place: `${file}:${line}`, language, code }));
    }),
  );
}

/** Blocks of JavaScript and TypeScript. */
export function samplesOf(file: string): readonly Sample[] {
  return blocksOf(file)
    .filter(({ language }) => language === 'ts' || language === 'js')
    .map(({ place, code }) => ({ place, code }));
}

/**
 * Finds the block of a page that a test runs. `test/repository/samples.test.ts` reads the calls of this from the tests, so
 * both arguments are literals.
 * @param text that no other block of the page has.
 * @returns its code, no character of it changed.
 */
export function asWritten(page: string, text: string): string {
  return blockWith(page, text).code;
}

/** @throws Error where not exactly one block of the page has the text. */
export function blockWith(page: string, text: string): Block {
  const [block, ...others] = blocksOf(page).filter(
    ({ language, code }) => language !== 'yaml' && code.includes(text),
  );
  if (block === undefined || others.length > 0)
    throw new Error(`${others.length + (block ? 1 : 0)} blocks of ${page} have ${text}`);
  return block;
}

/** The program's faults; a label is one, for it is what an object's member becomes outside of an object. */
export function faultsOf(code: string): readonly string[] {
  const { diagnostics = [] } = ts.transpileModule(code, {
    reportDiagnostics: true,
    compilerOptions: {
      target: ts.ScriptTarget.ESNext,
      module: ts.ModuleKind.ESNext,
      experimentalDecorators: true,
    },
  });
  const source = ts.createSourceFile('sample.ts', code, ts.ScriptTarget.ESNext);
  const labels = source.statements.filter((statement) => ts.isLabeledStatement(statement));
  return [
    ...diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' ')),
    ...labels.map((label) => `label ${label.label.text}`),
  ];
}

const IMPORTS = /^import [^]*? from '[^']+';$\n/gm;

/** A block as a program, as members of an object of options, and as objects of a list: one of them is what it is. */
export function asForms(code: string): readonly [program: string, options: string, list: string] {
  const found = code.match(IMPORTS) ?? [];
  const rest = code.replace(IMPORTS, '').trim();
  const objects = rest.replaceAll(/^(\{.*\})(\s*\/\/.*)?$/gm, '$1,$2');
  return [code, `${found.join('')}({\n${rest}\n});`, `[\n${objects}\n];`];
}

/** Names of values that are imported from this package, by specifier. */
export function imported(code: string): readonly { readonly from: string; readonly name: string }[] {
  const source = ts.createSourceFile('sample.ts', code, ts.ScriptTarget.ESNext);
  return source.statements.filter(ts.isImportDeclaration).flatMap(({ importClause, moduleSpecifier }) => {
    const from = (moduleSpecifier as ts.StringLiteral).text;
    const named = importClause?.namedBindings;
    if (!/^proto-webhooks(\/|$)/.test(from) || importClause?.isTypeOnly) return [];
    if (!named || !ts.isNamedImports(named)) return [];
    return named.elements.map(({ name, propertyName = name }) => ({ from, name: propertyName.text }));
  });
}
