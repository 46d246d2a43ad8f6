import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ExpiryQueue } from '../../../src/stores/memory/expiry-queue.ts';
import { pushExpiry, takeExpired } from '../../../src/stores/memory/expiry-queue.ts';

const drop = (): void => {};

function takeAll(queue: ExpiryQueue, now: number): number[] {
  const taken: number[] = [];
  for (let next = takeExpired(queue, now); next; next = takeExpired(queue, now)) taken.push(next.at);
  return taken;
}

describe('expiry queue', () => {
  it('gives nothing before its time', () => {
    const queue: ExpiryQueue = [];
    expect(takeExpired(queue, 10)).toBeUndefined();
    pushExpiry(queue, { at: 11, drop });
    expect(takeExpired(queue, 10)).toBeUndefined();
    expect(takeExpired(queue, 11)?.at).toBe(11);
    expect(queue).toEqual([]);
  });

  it('gives all whose time has come, earliest first, and keeps the others', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(100)), fc.array(fc.nat(100)), fc.nat(100), (first, second, now) => {
        const queue: ExpiryQueue = [];
        for (const at of first) pushExpiry(queue, { at, drop });
        const early = takeAll(queue, now);
        for (const at of second) pushExpiry(queue, { at, drop });
        const late = takeAll(queue, 100);
        const sorted = (all: number[]): number[] => all.toSorted((a, b) => a - b);
        expect(early).toEqual(sorted(first.filter((at) => at <= now)));
        expect(late).toEqual(sorted([...first.filter((at) => at > now), ...second]));
      }),
    );
  });
});
