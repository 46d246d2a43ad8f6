import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { ADVANCED, numbersIn, OPTIONS, RETRY, WORKER } from '../../src/config/for-tests.ts';

const src = fileURLToPath(new URL('../../src', import.meta.url));

/** What the docstring of each member of an interface says, whichever file has it. */
function docs(of = 'ReceiverOptions'): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const texts = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(src, name), 'utf8'))
    .filter((text) => text.includes(`export interface ${of} `) || text.includes(`export interface ${of}<`));
  expect(texts).toHaveLength(1);
  for (const node of ts.createSourceFile(of, texts.join(''), ts.ScriptTarget.Latest, true).statements) {
    if (!ts.isInterfaceDeclaration(node) || node.name.text !== of) continue;
    for (const member of node.members) {
      const doc = ts.getJSDocCommentsAndTags(member)[0]?.getText() ?? '';
      if (member.name) found.set(member.name.getText(), doc);
    }
  }
  return found;
}

const standard = (mode: 'inline' | 'inbox') => numbersIn({ mode });
const spaced = (value: number): string => value.toString().replace(/\B(?=(\d{3})+$)/g, ' ');

describe('the table of options', () => {
  const said = new Map([...docs(), ...docs('AdvancedOptions')]);

  it('has every option', () => {
    expect(Object.keys(OPTIONS).toSorted()).toEqual([...docs().keys()].toSorted());
    expect(Object.keys(ADVANCED).toSorted()).toEqual([...docs('AdvancedOptions').keys()].toSorted());
  });

  // Said in relation to another: a quarter of leaseMs, twice handlerDeadlineMs.
  const derived = ['renewMs', 'waitMs', 'maxRunMs'];
  const constants = Object.entries(standard('inline')).filter(([name]) => !derived.includes(name));
  it.each(constants)('%s: has the default of its docstring', (name, value) => {
    expect(said.get(name)).toContain(spaced(value));
    const inbox = standard('inbox')[name as keyof ReturnType<typeof standard>];
    expect(said.get(name)).toContain(spaced(inbox));
  });

  const choices = Object.entries(OPTIONS).flatMap(([name, rule]) =>
    rule.kind === 'choice' && rule.standard !== undefined ? [[name, rule.standard] as const] : [],
  );
  it.each(choices)('%s: has the word that its docstring gives as default', (name, value) => {
    expect(said.get(name)).toMatch(new RegExp(`Default: \`${value}\`\\.\\s*\\*/$`));
  });

  it.each([
    ['RetryOptions', RETRY],
    ['WorkerOptions', WORKER],
  ])('%s: has the defaults of its docstrings', (name, rules) => {
    const members = docs(name);
    for (const [member, { standard: value }] of Object.entries(rules).filter(([one]) => one !== 'batch'))
      expect(members.get(member)).toContain(spaced(value));
  });

  // Of waits that have to end also where a store's clock was set back.
  const bounds = [
    ['leaseMs', OPTIONS.leaseMs.max],
    ['retry', RETRY.maxMs.max],
  ] as const;
  it('says up to what a wait may be', () => {
    expect(said.get('leaseMs')).toContain(`at most ${spaced(OPTIONS.leaseMs.max ?? 0)}`);
    expect(docs('RetryOptions').get('maxMs')).toContain(`at most ${spaced(RETRY.maxMs.max ?? 0)}`);
  });

  describe('docs/options.md', () => {
    const page = readFileSync(join(src, '../docs/options.md'), 'utf8');
    const rows = new Map(
      page.split('\n').flatMap((line) => {
        const name = /^\| `(\w+)` /.exec(line)?.[1];
        return name === undefined ? [] : [[name, line] as const];
      }),
    );

    it('has a row for each option, and no other', () => {
      expect([...rows.keys(), 'advanced'].toSorted()).toEqual([...said.keys()].toSorted());
    });

    it.each(constants)('%s: has its default', (name, value) => {
      expect(rows.get(name)).toContain(spaced(value));
    });

    it.each(bounds)('%s: says up to what it may be', (name, most) => {
      expect(rows.get(name)).toContain(`at most ${spaced(most ?? 0)}`);
    });

    it.each(choices)('%s: has its default', (name, value) => {
      expect(rows.get(name)).toContain(`\`${value}\``);
    });

    it.each([
      ['worker', 'concurrency', WORKER.concurrency.standard],
      ['worker', 'pollMs', WORKER.pollMs.standard],
      ['retry', 'attempts', RETRY.attempts.standard],
      ['retry', 'crashes', RETRY.crashes.standard],
    ])('%s: has the default of its member %s', (name, member, value) => {
      expect(rows.get(name)).toMatch(new RegExp(`\`${member}\` ${spaced(value)}\\b`));
    });
  });

  it('defaults that depend on others', () => {
    expect(standard('inbox').renewMs).toBe(7_500);
    const large = numbersIn({ maxBodyBytes: 100_000_000 });
    expect(large.maxBufferedBytes).toBe(800_000_000);
  });
});
