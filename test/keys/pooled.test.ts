import { expect, test } from 'vitest';
import { mapConcurrently } from '../../src/keys/publisher-pins.ts';
import { latch } from './key-server.ts';

test('answers come in the order of the items, whichever comes first', async () => {
  const later = latch();
  const results = await mapConcurrently([1, 2, 3], 3, async (item) => {
    if (item === 3) later.open();
    else await later.opened;
    return item * 2;
  });
  expect(results).toEqual([2, 4, 6]);
});

test('at most `width` are asked at a time', async () => {
  let running = 0;
  let most = 0;
  await mapConcurrently(
    Array.from({ length: 20 }, (_, index) => index),
    4,
    async () => {
      running += 1;
      most = Math.max(most, running);
      await Promise.resolve();
      running -= 1;
    },
  );
  expect(most).toBe(4);
});

test('none: nothing', async () => {
  expect(await mapConcurrently([], 8, () => Promise.reject(new Error('asked')))).toEqual([]);
});
