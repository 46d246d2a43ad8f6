import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { push, takeDue, type Timed } from '../../../src/stores/for-tests.ts';

function takeAll(queue: Timed[], now: number): number[] {
  const taken: number[] = [];
  for (let next = takeDue(queue, now); next; next = takeDue(queue, now)) taken.push(next.at);
  return taken;
}

describe('expiry queue', () => {
  it('gives no entry before its time', () => {
    const queue: Timed[] = [];
    expect(takeDue(queue, 10)).toBeUndefined();
    push(queue, { at: 11 });
    expect(takeDue(queue, 10)).toBeUndefined();
    expect(takeDue(queue, 11)?.at).toBe(11);
    expect(queue).toEqual([]);
  });

  it('gives all due entries, earliest first, and keeps the others', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(100)), fc.array(fc.nat(100)), fc.nat(100), (first, second, now) => {
        const queue: Timed[] = [];
        for (const at of first) push(queue, { at });
        const early = takeAll(queue, now);
        for (const at of second) push(queue, { at });
        const late = takeAll(queue, 100);
        const sorted = (all: number[]): number[] => all.toSorted((a, b) => a - b);
        expect(early).toEqual(sorted(first.filter((at) => at <= now)));
        expect(late).toEqual(sorted([...first.filter((at) => at > now), ...second]));
      }),
    );
  });

  it('gives entries of the same time in the order of their serials', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(3), fc.nat(100))), (given) => {
        const queue: Timed[] = [];
        for (const [at, serial] of given) push(queue, { at, serial });
        const taken: (number | undefined)[][] = [];
        for (let next = takeDue(queue, 3); next; next = takeDue(queue, 3)) taken.push([next.at, next.serial]);
        expect(taken).toEqual(given.toSorted(([a, m], [b, n]) => a - b || m - n));
      }),
    );
  });
});
