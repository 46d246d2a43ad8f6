import { describe, expect, test } from 'vitest';
import { createSellerQueue } from '../../../src/keys/net/resolve.ts';
import { latch } from '../key-server.ts';

const NEVER: AbortSignal = new AbortController().signal;

/** Work that ends when the test says so, and in which order it began. */
function works(limits: { readonly perSeller: number; readonly inAll: number }) {
  const inTurn = createSellerQueue(limits);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (name: string, signal = NEVER): Promise<string> => {
    const [seller = ''] = name;
    return inTurn(seller, signal, async () => {
      begun.push(name);
      const { opened, open } = latch();
      ends.set(name, open);
      await opened;
      return name;
    });
  };
  return { begun, run, end: (name: string) => ends.get(name)?.() };
}

describe('sellers take turns', () => {
  test('each has few at a time', async () => {
    const { begun, run, end } = works({ perSeller: 2, inAll: 10 });
    const first = run('a1');
    void run('a2');
    const third = run('a3');
    void run('b1');
    await expect.poll(() => begun).toEqual(['a1', 'a2', 'b1']);
    end('a1');
    expect(await first).toBe('a1');
    await expect.poll(() => begun).toEqual(['a1', 'a2', 'b1', 'a3']);
    end('a3');
    await third;
  });

  test('where all are busy the next is whoever has not had a turn for longest, however many one of them asked for', async () => {
    const { begun, run, end } = works({ perSeller: 2, inAll: 2 });
    const [one, two] = [run('a1'), run('a2')];
    for (const name of ['a3', 'a4', 'b1', 'b2', 'c1']) void run(name);
    await expect.poll(() => begun).toEqual(['a1', 'a2']);
    end('a1');
    await one;
    end('a2');
    await two;
    // a's turn came first among those who wait, then b's; a is behind c again.
    await expect.poll(() => begun).toEqual(['a1', 'a2', 'a3', 'b1']);
    end('b1');
    await expect.poll(() => begun.at(-1)).toBe('c1');
    end('a3');
    await expect.poll(() => begun.at(-1)).toBe('a4');
    end('c1');
    await expect.poll(() => begun.at(-1)).toBe('b2');
  });

  test('who gives up loses the place, and rejects with the reason', async () => {
    const { begun, run, end } = works({ perSeller: 1, inAll: 1 });
    const controller = new AbortController();
    const first = run('a1');
    const second = run('a2', controller.signal);
    const third = run('a3');
    controller.abort(new Error('stopped'));
    await expect(second).rejects.toThrow('stopped');
    await expect(run('b1', controller.signal)).rejects.toThrow('stopped');
    await expect.poll(() => begun).toEqual(['a1']);
    end('a1');
    await first;
    await expect.poll(() => begun).toEqual(['a1', 'a3']);
    end('a3');
    await third;
  });

  test('what has begun keeps its place until it has ended, though nobody waits for it', async () => {
    const { begun, run, end } = works({ perSeller: 1, inAll: 1 });
    const controller = new AbortController();
    const first = run('a1', controller.signal);
    const second = run('b1');
    await expect.poll(() => begun).toEqual(['a1']);
    controller.abort(new Error('stopped'));
    await expect(first).rejects.toThrow('stopped');
    expect(begun).toEqual(['a1']);
    end('a1');
    await expect.poll(() => begun).toEqual(['a1', 'b1']);
    end('b1');
    await second;
  });

  test('work that fails gives its place back', async () => {
    const inTurn = createSellerQueue({ perSeller: 1, inAll: 1 });
    await expect(inTurn('a', NEVER, () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
    expect(await inTurn('a', NEVER, () => Promise.resolve(1))).toBe(1);
  });
});
