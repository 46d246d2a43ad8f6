import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, it } from 'vitest';

const src = fileURLToPath(new URL('../../src', import.meta.url));

/** Where `JSON.parse` is called, and why it may be: V8's can confuse member names (`src/codec/json-reader.ts`). */
const ALLOWED: Readonly<Record<string, string>> = {
  'cli/explain/body-rewrites.ts': 'whether it is JSON; the value is not looked at',
  'codec/json-reader.ts': 'single strings, numbers and literals',
  'codec/strict-json.ts': 'text in which no name is written with a backslash',
  'dev/page/indent.ts': 'a text for eyes: one that the parser would change is shown as it was sent',
  'dev/page/use-model.ts': 'events that dev has written, whose names are ours',
  'reconcile/state-readers.ts': 'states that this package has written, whose names are ours',
  'registrations/snapshot-rows.ts': 'rounds that this package has written, whose names are ours',
  'states/states.ts': 'states that this package has written, whose names are ours',
  'stores/mysql/mysql-backend.ts': 'rows that this package has written',
  'stores/optimistic/row-data.ts': 'what our own procedures answer',
  'stores/postgres/postgres-backend.ts': 'what our own functions answer',
  'stores/rules/states.ts': 'operations that this package has written, whose names are ours',
  'stores/text.ts': 'single strings',
  'testing/seller-documents.ts': "a fake seller's own documents",
  'windows/stream.ts': 'accounts that this package has written, whose names are ours',
};

const OF_THE_RUNTIME =
  /^(Uint8Array|ArrayBuffer|Buffer|Error|TypeError|Promise|AbortSignal|Date|URL|Map|Set|Headers|Request|Response|Object|Array)$/;

/** Files of `src` with an expression like this in them. @param word What such a file has in it, as text. */
function filesWith(word: string, isSought: (node: ts.Node) => boolean): readonly string[] {
  const has = (node: ts.Node): boolean => isSought(node) || (ts.forEachChild(node, has) ?? false);
  const names = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((name) => {
    if (!name.endsWith('.ts')) return false;
    const text = readFileSync(join(src, name), 'utf8');
    return text.includes(word) && has(ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true));
  });
  return names.toSorted();
}

it('JSON.parse sees no text of others in which a member name may be written with a backslash', () => {
  const using = filesWith(
    'JSON',
    (node) => ts.isPropertyAccessExpression(node) && node.getText() === 'JSON.parse',
  );
  expect(using).toEqual(Object.keys(ALLOWED));
});

it('no file asks by instanceof for a kind that the runtime makes, but the one that knows other realms', () => {
  const using = filesWith(
    'instanceof',
    (node) =>
      ts.isBinaryExpression(node) &&
      node.operatorToken.kind === ts.SyntaxKind.InstanceOfKeyword &&
      OF_THE_RUNTIME.test(node.right.getText()),
  );
  expect(using).toEqual(['shared/realms.ts']);
});
