import { describe, expect, it } from 'vitest';
import { nonceCounts } from '../../../src/stores/redis/nonce-counts.ts';

const at = (
  nonces: number,
  now = 1000,
  lifeMs = 360_000,
): Parameters<ReturnType<typeof nonceCounts>['note']>[1] => ({
  nonces,
  now,
  lifeMs,
});

describe('live nonces of all senders (verification.md §2.9a)', () => {
  it('are those of the others: one’s own are counted by its script', () => {
    const counts = nonceCounts();
    counts.note('a', at(3));
    counts.note('b', at(4));
    expect(counts.others('a')).toBe(4);
    expect(counts.others('b')).toBe(3);
    expect(counts.others('c')).toBe(7);
  });

  it('are what was seen last, and nothing once they are forgotten', () => {
    const counts = nonceCounts();
    counts.note('a', at(3));
    counts.note('a', at(5));
    expect(counts.others('b')).toBe(5);
    counts.note('b', at(1, 361_000));
    expect(counts.others('c')).toBe(1);
  });

  it('are told once, and heard of senders that this process has not seen since', () => {
    const counts = nonceCounts();
    counts.note('a', at(3));
    expect(counts.take()).toEqual([{ sender: 'a', nonces: 3, untilMs: 361_000 }]);
    expect(counts.take()).toEqual([]);
    counts.note('b', at(2));
    counts.hear([
      { sender: 'a', nonces: 30, untilMs: 361_000 },
      { sender: 'b', nonces: 20, untilMs: 361_000 },
      { sender: 'c', nonces: 10, untilMs: 361_000 },
    ]);
    expect(counts.others('')).toBe(42);
  });
});
