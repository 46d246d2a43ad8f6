import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  common,
  count,
  has,
  packRuns,
  type Runs,
  union,
  unpackRuns,
  without,
} from '../../src/windows/for-tests.ts';

const numbersIn = (runs: Runs): number[] =>
  runs.flatMap(([first, end]) => Array.from({ length: end - first }, (_, at) => first + at));
const runsOf = (numbers: Iterable<number>): Runs =>
  union(
    [],
    [...numbers].map((number) => [number, number + 1] as const),
  );
const sets = fc.uniqueArray(fc.integer({ min: -50, max: 150 }), { maxLength: 60 });
const ascending = (numbers: Iterable<number>): number[] => [...numbers].toSorted((a, b) => a - b);

describe('runs of window numbers', () => {
  it('say what sets of numbers say', () => {
    fc.assert(
      fc.property(sets, sets, (a, b) => {
        const [one, other] = [runsOf(a), runsOf(b)];
        expect(numbersIn(one)).toEqual(ascending(a));
        expect(numbersIn(union(one, other))).toEqual(ascending(new Set([...a, ...b])));
        expect(numbersIn(without(one, other))).toEqual(ascending(a.filter((number) => !b.includes(number))));
        expect(numbersIn(common(one, other))).toEqual(ascending(a.filter((number) => b.includes(number))));
        expect(count(one)).toBe(a.length);
        for (const number of [...a, ...b]) expect(has(one, number)).toBe(a.includes(number));
        const packed = packRuns(one);
        expect(unpackRuns(JSON.parse(JSON.stringify(packed)) as typeof packed)).toEqual(one);
      }),
    );
  });

  it('of a year of hours have under 4 KB, whichever hours there are', () => {
    const year = Array.from({ length: 8760 }, (_, at) => 490_000 + at);
    for (const some of [year, year.filter((hour) => hour % 2 === 0), year.filter((hour) => hour % 7 !== 3)]) {
      const packed = packRuns(runsOf(some));
      expect.assert(packed);
      expect(JSON.stringify(packed).length).toBeLessThan(4096);
      expect(numbersIn(unpackRuns(packed))).toEqual(some);
    }
  });

  it('are stored however far apart the numbers lie', () => {
    const runs: Runs = [
      [0, 1],
      [100_000, 100_001],
    ];
    expect(unpackRuns(packRuns(runs))).toEqual(runs);
  });
});
