import { expect, test } from 'vitest';
import { nearMisses } from '../../src/keys/near-misses.ts';

test.each([
  ['a trailing slash', 'https://seller.example/mcp/'],
  ['the scheme', 'http://seller.example/mcp'],
  ['case', 'https://Seller.example/MCP'],
  ['a default port', 'https://seller.example:443/mcp'],
])('%s', (_what, listed) => {
  expect(nearMisses('https://seller.example/mcp', ['https://other.example/mcp', listed])).toEqual([listed]);
});

test('another agent is no near miss', () => {
  const others = [
    'https://seller.example/a2a',
    'https://seller.example:8443/mcp',
    'https://x.example/mcp',
    '',
    'mcp',
  ];
  expect(nearMisses('https://seller.example/mcp', others)).toEqual([]);
});

test('at most four are shown', () => {
  const listed = Array.from(
    { length: 50 },
    (_, slashes) => `https://seller.example/mcp${'/'.repeat(slashes + 1)}`,
  );
  expect(nearMisses('https://seller.example/mcp', listed)).toHaveLength(4);
});

test('what a log cannot take is cut', () => {
  const [shown = ''] = nearMisses('https://seller.example/mcp', ['https://seller.example\n/mcp\u202e/']);
  expect(shown).not.toMatch(/[\n\u202e]/);
  const [long = ''] = nearMisses('https://seller.example/mcp', [
    `https://seller.example/mcp${'/'.repeat(5000)}`,
  ]);
  expect(long.length).toBeLessThan(100);
});

test('a brand.json full of slashes does not hold up the process', () => {
  const before = performance.now();
  expect(nearMisses('https://seller.example/mcp', [`https://seller.example${'/'.repeat(200_000)}x`])).toEqual(
    [],
  );
  expect(performance.now() - before).toBeLessThan(1_000);
});
