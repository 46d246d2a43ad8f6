import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { sampledLines, sources } from './sample.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const files = sources(root);

it('the sample is the same for the same seed, and of other lines for another', () => {
  expect(files.length).toBeGreaterThan(50);
  const sample = sampledLines(root, files, 100, 'one');
  expect(sample).toHaveLength(100);
  expect(sampledLines(root, files, 100, 'one')).toEqual(sample);
  expect(sampledLines(root, files, 100, 'two')).not.toEqual(sample);
  for (const range of sample) expect(range).toMatch(/^src\/[\w/-]+\.ts:(\d+):0-\1:\d+$/);
});

it('a file more moves none of the lines of the others', () => {
  const order = (given: readonly string[]): string[] =>
    sampledLines(root, given, Infinity, 'one').filter((range) => !range.startsWith('src/keys/pins.ts:'));
  expect(order(files.filter((file) => file !== 'src/keys/pins.ts'))).toEqual(order(files));
});
