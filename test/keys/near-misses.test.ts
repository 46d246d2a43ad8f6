import { expect, test } from 'vitest';
import { nearMisses, nearMissText } from '../../src/keys/for-tests.ts';

const AGENT = 'https://seller.example/mcp';

test.each([
  ['https://seller.example/mcp/', ['trailing slash']],
  ['http://seller.example/mcp', ['scheme']],
  ['https://Seller.example/mcp', ['case']],
  ['https://seller.example/MCP', ['case']],
  ['HTTPS://seller.example/mcp', ['case']],
  ['https://seller.example:443/mcp', ['port']],
  ['https://seller.example:8443/mcp', ['port']],
  ['https://seller.example/mcp?v=1', ['query']],
  ['https://seller.example/mcp?', ['query']],
  ['https://seller.example/mcp#agent', ['fragment']],
  ['http://seller.example:80/MCP/', ['scheme', 'port', 'case']],
  ['https://seller.example/%6Dcp/../mcp', ['spelling']],
  [' https://seller.example/mcp', ['spelling']],
  ['https://seller.example./mcp', ['spelling']],
])('%s differs in %j', (listed, differsIn) => {
  const misses = nearMisses(AGENT, ['https://other.example/mcp', listed]);
  expect(misses.map((miss) => miss.differsIn)).toEqual([differsIn]);
});

test('a trailing slash that the configured URL has, and a query that it has', () => {
  expect(nearMisses(`${AGENT}/`, [AGENT])).toEqual([{ url: AGENT, differsIn: ['trailing slash'] }]);
  expect(nearMisses(`${AGENT}?a=1`, [`${AGENT}?a=2`])).toMatchObject([{ differsIn: ['query'] }]);
});

test('another agent is not a near miss', () => {
  const others = ['https://seller.example/a2a', 'https://x.example/mcp', 'https://seller.example', '', 'mcp'];
  expect(nearMisses(AGENT, others)).toEqual([]);
});

test('at most four are shown', () => {
  const listed = Array.from({ length: 50 }, (_, slashes) => AGENT + '/'.repeat(slashes + 1));
  expect(nearMisses(AGENT, listed)).toHaveLength(4);
});

test('values that are too long for a log are cut', () => {
  const [miss] = nearMisses(AGENT, ['https://seller.example\n/mcp\u202e/']);
  expect(miss?.url ?? '').not.toMatch(/[\n\u202e]/);
  const [long] = nearMisses(AGENT, [AGENT + '/'.repeat(5000)]);
  expect(long?.url.length).toBeLessThan(100);
});

test('a text of slashes as long as a document is read in linear time', () => {
  // By a pattern like /\/+$/ this took minutes.
  expect(nearMisses(AGENT, [`${AGENT}${'/'.repeat(250_000)}x`])).toEqual([]);
});

test('the message says how each differs', () => {
  expect(nearMissText(nearMisses(AGENT, [`${AGENT}/`, `${AGENT}?a`]))).toBe(
    'https://seller.example/mcp/ (differs in trailing slash), https://seller.example/mcp?a (differs in query)',
  );
});

test('a brand.json full of slashes does not block the process', () => {
  const before = process.threadCpuUsage();
  expect(nearMisses('https://seller.example/mcp', [`https://seller.example${'/'.repeat(200_000)}x`])).toEqual(
    [],
  );
  expect(process.threadCpuUsage(before).user).toBeLessThan(10_000_000);
});
