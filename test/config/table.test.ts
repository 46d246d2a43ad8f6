import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { numbersIn, OPTIONS } from '../../src/config/table.ts';
import type { ReceiverOptions } from '../../src/options.ts';

const file = new URL('../../src/options.ts', import.meta.url);
const source = ts.createSourceFile('options.ts', readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);

/** What the docstring of each option says. */
function docs(): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const node of source.statements) {
    if (!ts.isInterfaceDeclaration(node) || node.name.text !== 'ReceiverOptions') continue;
    for (const member of node.members) {
      const doc = ts.getJSDocCommentsAndTags(member)[0]?.getText() ?? '';
      if (member.name) found.set(member.name.getText(), doc);
    }
  }
  return found;
}

const standard = (mode: 'inline' | 'inbox') =>
  numbersIn({ mode } as Partial<ReceiverOptions> as ReceiverOptions);
const spaced = (value: number): string => value.toString().replace(/\B(?=(\d{3})+$)/g, ' ');

describe('the table of options', () => {
  const said = docs();

  it('has every option that there is', () => {
    expect(Object.keys(OPTIONS).toSorted()).toEqual([...said.keys()].toSorted());
  });

  // Said in relation to another: a quarter of leaseMs.
  const constants = Object.entries(standard('inline')).filter(([name]) => name !== 'renewMs');
  it.each(constants)('%s: the default that its docstring says', (name, value) => {
    expect(said.get(name)).toContain(spaced(value));
    const inbox = standard('inbox')[name as keyof ReturnType<typeof standard>];
    expect(said.get(name)).toContain(spaced(inbox));
  });

  it('defaults that depend on others', () => {
    expect(standard('inbox').renewMs).toBe(7_500);
    const large = numbersIn({ maxBodyBytes: 100_000_000 } as ReceiverOptions);
    expect(large.maxBufferedBytes).toBe(800_000_000);
  });
});
