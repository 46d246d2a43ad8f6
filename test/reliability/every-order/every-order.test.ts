import { expect, it } from 'vitest';
import type { Pass } from './every-order.ts';
import { everyOrder } from './every-order.ts';

/** Each of them reads a row, then writes it by what it has read. @param by whether reads are told to be such. */
async function outcomes(adds: readonly string[], by: boolean): Promise<{ orders: number; rows: string[] }> {
  const rows: string[] = [];
  const add = async (row: { is: string }, own: string, at: number, pass: Pass): Promise<void> => {
    await pass(`${own} reads`, by ? at : undefined);
    const read = row.is;
    await pass(`${own} writes`);
    row.is = read + own;
  };
  const orders = await everyOrder({
    prepare: async () => ({ is: '' }),
    play: async (row, pass) => {
      await Promise.all(adds.map((own, at) => add(row, own, at, pass)));
    },
    judge: async ({ is }, order) => {
      expect(order).toHaveLength(2 * adds.length);
      rows.push(is);
    },
  });
  return { orders, rows: [...new Set(rows)].toSorted() };
}

it('every order is played once', async () => {
  expect(await outcomes(['a', 'b'], false)).toEqual({ orders: 6, rows: ['a', 'ab', 'b', 'ba'] });
  expect((await outcomes(['a', 'b', 'c'], false)).orders).toBe(90);
});

it('of steps that come to the same in both orders one is played: nothing that can come of them is left out', async () => {
  expect(await outcomes(['a', 'b'], true)).toEqual({ orders: 4, rows: ['a', 'ab', 'b', 'ba'] });
  const [all, some] = [await outcomes(['a', 'b', 'c'], false), await outcomes(['a', 'b', 'c'], true)];
  expect(some.rows).toEqual(all.rows);
  expect(some.orders).toBeLessThan(all.orders);
});

it('what waits for something else is an error, not an order', async () => {
  const stuck = everyOrder({
    prepare: async () => undefined,
    play: async (_world, pass) => {
      await pass('first');
      await new Promise(() => {});
    },
    judge: async () => {},
  });
  await expect(stuck).rejects.toThrow('Nothing goes on after: first');
});

it('what is thrown in a play is thrown on', async () => {
  const failing = everyOrder({
    prepare: async () => undefined,
    play: async (_world, pass) => {
      await pass('first');
      throw new RangeError('in between');
    },
    judge: async () => {},
  });
  await expect(failing).rejects.toThrow('in between');
});
