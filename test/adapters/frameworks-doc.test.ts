import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';

const page = readFileSync(new URL('../../docs/frameworks.md', import.meta.url), 'utf8');

const blocks = [...page.matchAll(/^```(js|ts)\n([^]*?)^```$/gm)].map(([, language = '', code = '']) => ({
  language,
  code,
  line: code.split('\n', 1)[0] ?? '',
}));

/** Names that a block imports from this package, with the subpath. */
function imported(code: string): readonly { readonly from: string; readonly name: string }[] {
  const source = ts.createSourceFile('block.ts', code, ts.ScriptTarget.Latest);
  return source.statements.filter(ts.isImportDeclaration).flatMap((statement) => {
    const from = (statement.moduleSpecifier as ts.StringLiteral).text;
    const named = statement.importClause?.namedBindings;
    if (!/^proto-webhooks(\/|$)/.test(from) || !named || !ts.isNamedImports(named)) return [];
    return named.elements.map(({ name }) => ({ from, name: name.text }));
  });
}

describe('docs/frameworks.md', () => {
  test('has a block for every door', () => {
    const doors = new Set(blocks.flatMap(({ code }) => imported(code).map(({ from }) => from)));
    const wanted = ['node', 'express', 'fastify', 'hono', 'fetch', 'lambda'];
    expect([...doors].sort()).toEqual(wanted.map((name) => `proto-webhooks/${name}`).sort());
  });

  test.each(blocks)('$line: is a program, and what it imports from here is there', async ({ code }) => {
    const { diagnostics = [] } = ts.transpileModule(code, {
      reportDiagnostics: true,
      compilerOptions: {
        target: ts.ScriptTarget.ESNext,
        module: ts.ModuleKind.ESNext,
        experimentalDecorators: true,
      },
    });
    expect(diagnostics.map(({ messageText }) => messageText)).toEqual([]);
    for (const { from, name } of imported(code)) {
      const module = (await import(from)) as Record<string, unknown>;
      expect(module[name], `${name} of ${from}`).toBeTypeOf('function');
    }
  });
});
