import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, it } from 'vitest';

const src = fileURLToPath(new URL('../../src', import.meta.url));

/** Where `JSON.parse` is called, and why it may be: V8's can confuse member names (`src/codec/json-reader.ts`). */
const ALLOWED: Readonly<Record<string, string>> = {
  'cli/explain/body.ts': 'whether it is JSON; the value is not looked at',
  'cli/explain/json.ts': 'single strings',
  'codec/json-reader.ts': 'single strings, numbers and literals',
  'codec/strict-json.ts': 'text in which no name is written with a backslash',
  'stores/driver/row-data.ts': 'rows that this package has written',
  'stores/mysql/backend.ts': 'what our own procedures answer',
  'stores/postgres/backend.ts': 'what our own functions answer',
  'stores/redis/takeover.ts': 'what our own script answers',
  'stores/text.ts': 'single strings',
  'testing/seller-documents.ts': "a fake seller's own documents",
};

function uses(node: ts.Node): boolean {
  if (ts.isPropertyAccessExpression(node) && node.getText() === 'JSON.parse') return true;
  return ts.forEachChild(node, uses) ?? false;
}

it('JSON.parse sees no text of others in which a member name may be written with a backslash', () => {
  const using = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((name) => {
    if (!name.endsWith('.ts')) return false;
    const text = readFileSync(join(src, name), 'utf8');
    return text.includes('JSON') && uses(ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true));
  });
  expect(using.toSorted()).toEqual(Object.keys(ALLOWED));
});
