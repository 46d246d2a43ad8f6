import { existsSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { faultsOf, imported, samplesOf, textOf } from '../support/samples.ts';

const root = new URL('../../', import.meta.url);
const files = ['README.md', ...readdirSync(new URL('docs/', root)).map((name) => `docs/${name}`)].filter(
  (file) => file.endsWith('.md'),
);

const samples = files.flatMap(samplesOf);

const imports = /^import [^]*? from '[^']+';$\n/gm;

/** A program; or options to copy: members of an object, or objects of a list. */
function forms(code: string): string[] {
  const found = code.match(imports) ?? [];
  const rest = code.replace(imports, '').trim();
  const objects = rest.replaceAll(/^(\{.*\})(\s*\/\/.*)?$/gm, '$1,$2');
  return [code, `${found.join('')}({\n${rest}\n});`, `[\n${objects}\n];`];
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
    const text = files.map(textOf).join('\n');
    const named = [...text.matchAll(/\bexamples\/[\w./-]*\w/g)].map(([path]) => path);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((path) => !existsSync(new URL(path, root)))).toEqual([]);
  });
});

describe('the protocol’s name is no setting (verification.md §1.1)', () => {
  const examples = (readdirSync(new URL('examples/', root), { recursive: true }) as string[])
    .filter((name) => /\.(?:md|[mc]?[jt]sx?)$/.test(name) && !name.includes('node_modules'))
    .map((name) => `examples/${name}`);

  it.each([...files, ...examples])('%s sets none', (file) => {
    // The version of HTTP, in an event of Lambda.
    const text = textOf(file).replaceAll(/protocol: 'HTTP\/[\d.]+'/g, '');
    expect(text).not.toMatch(/\bprotocol:/);
  });

  it('looks at examples too', () => expect(examples).toContain('examples/media-buy/buyer.ts'));
});
