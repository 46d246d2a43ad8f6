import { existsSync, readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
const files = ['README.md', ...readdirSync(new URL('docs/', root)).map((name) => `docs/${name}`)].filter(
  (file) => file.endsWith('.md'),
);

const samples = files.flatMap((file) => {
  const text = readFileSync(new URL(file, root), 'utf8');
  return [...text.matchAll(/^```(?:ts|js)\n([^]*?)^```$/gm)].map(({ 1: code = '', index }) => {
    const line = text.slice(0, index).split('\n').length;
    return { place: `${file}:${line}`, code };
  });
});

/** The program's faults; a label is one, for it is what an object's member becomes outside of an object. */
function faultsOf(code: string): string[] {
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

const imports = /^import [^]*? from '[^']+';$\n/gm;

/** A program; or options to copy: members of an object, or objects of a list. */
function forms(code: string): string[] {
  const found = code.match(imports) ?? [];
  const rest = code.replace(imports, '').trim();
  const objects = rest.replaceAll(/^(\{.*\})(\s*\/\/.*)?$/gm, '$1,$2');
  return [code, `${found.join('')}({\n${rest}\n});`, `[\n${objects}\n];`];
}

/** Names that are imported from this package, by specifier. */
function imported(code: string): { from: string; name: string }[] {
  return [...code.matchAll(/^import (?:type )?\{([^}]*)\} from '(proto-webhooks[^']*)'/gm)].flatMap(
    ([statement, names = '', from = '']) =>
      statement.startsWith('import type')
        ? []
        : names.split(',').map((name) => ({ from, name: name.trim().split(' as ')[0] ?? '' })),
  );
}

describe('samples of README and docs can be copied', () => {
  it('there are some in each of these', () => {
    const places = new Set(samples.map(({ place }) => place.replace(/:\d+$/, '')));
    for (const file of ['README.md', 'docs/keys.md', 'docs/queues.md']) expect(places).toContain(file);
  });

  it.each(samples)('$place is a program, or options as they go into one', async ({ code }) => {
    const faults = forms(code).map(faultsOf);
    if (!faults.some((found) => found.length === 0)) expect(faults[0]).toEqual([]);
    for (const { from, name } of imported(code)) {
      const module = (await import(from)) as Record<string, unknown>;
      expect(module[name], `${name} of ${from}`).toBeDefined();
    }
  });

  it('the examples that they name are there', () => {
    const text = files.map((file) => readFileSync(new URL(file, root), 'utf8')).join('\n');
    const named = [...text.matchAll(/\bexamples\/[\w./-]*\w/g)].map(([path]) => path);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((path) => !existsSync(new URL(path, root)))).toEqual([]);
  });
});
