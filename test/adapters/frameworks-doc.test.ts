import { describe, expect, test } from 'vitest';
import { faultsOf, imported, samplesOf } from '../support/samples.ts';

const samples = samplesOf('docs/frameworks.md');

describe('docs/frameworks.md', () => {
  test('has a block for every adapter', () => {
    const doors = new Set(samples.flatMap(({ code }) => imported(code).map(({ from }) => from)));
    const wanted = ['node', 'express', 'fastify', 'hono', 'fetch', 'lambda'];
    // The receiver that they import is the first block.
    const receiver = ['proto-webhooks', 'proto-webhooks/sqlite'];
    const expected = [...receiver, ...wanted.map((name) => `proto-webhooks/${name}`)];
    expect([...doors].sort()).toEqual(expected.sort());
  });

  test.each(samples)('$place is a program, and what it imports from here is there', async ({ code }) => {
    expect(faultsOf(code)).toEqual([]);
    for (const { from, name } of imported(code)) {
      const module = (await import(from)) as Record<string, unknown>;
      expect(module[name], `${name} of ${from}`).toBeTypeOf('function');
    }
  });
});
