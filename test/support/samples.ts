import { readFileSync } from 'node:fs';
import ts from 'typescript';

/** A block of code in a page. */
export interface Sample {
  /** `docs/keys.md:12` */
  readonly place: string;
  readonly code: string;
}

/** Text of a file, by its path from the top. */
export const textOf = (file: string): string =>
  readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

export function samplesOf(file: string): readonly Sample[] {
  const text = textOf(file);
  return [...text.matchAll(/^```(?:ts|js)\n([^]*?)^```$/gm)].map(({ 1: code = '', index }) => {
    const line = text.slice(0, index).split('\n').length;
    return { place: `${file}:${line}`, code };
  });
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
