import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PlantedName } from '../../support/planted.ts';
import { PLANTED } from '../../support/planted.ts';
import type { Invariant } from './any-order/account.ts';
import { BROKEN } from './any-order/broken.ts';
import { expectRight, RUNS } from './any-order/explore.ts';
import { MEMORY, onDriver } from './in-process.ts';

/** One whose runs show each of these mistakes. */
const SEED = 20_260_731;

describe('a broken store is caught', () => {
  it.each(Object.keys(BROKEN))('%s', async (name) => {
    const [spoil, invariants] = BROKEN[name] ?? expect.fail(name);
    const spoilt = spoil();
    const property = fc.asyncProperty(RUNS, (run) => expectRight(MEMORY, run, new Map(), spoilt));
    const result = await fc.check(property, { seed: SEED, numRuns: 5000, endOnFailure: true });
    expect(result.failed).toBe(true);
    const said = String(result.errorInstance);
    expect(
      invariants.some((invariant) => said.includes(invariant)),
      said,
    ).toBe(true);
  });
});

/** One whose runs show each of the mistakes below within 1,000. */
const PLANTED_SEED = 3;

/** What any order of calls shows of a backend that leaves a condition out; the others are shown by their own races. */
const SHOWN: Readonly<Partial<Record<PlantedName, readonly Invariant[]>>> = {
  'versions are not compared': [
    'every event comes to its end',
    'the first copy is handled',
    'no two live leases of one event or task',
  ],
  'rows that are only read are not compared': [
    'every event comes to its end',
    'an acknowledged event is never lost',
    'no two live leases of one event or task',
    'an older status is never applied after a newer one',
  ],
  'rows that have to be absent are not compared': [
    'every event comes to its end',
    'the first copy is handled',
  ],
  'a known task is written without its version': [
    'an older status is never applied after a newer one',
    'no two live leases of one event or task',
  ],
};

describe('a backend without one of its conditions is caught', () => {
  it.each(Object.keys(SHOWN) as PlantedName[])(
    '%s',
    async (name) => {
      const property = fc.asyncProperty(RUNS, (run) => expectRight(onDriver(PLANTED[name]), run));
      const result = await fc.check(property, { seed: PLANTED_SEED, numRuns: 1000, endOnFailure: true });
      expect(result.failed).toBe(true);
      const said = String(result.errorInstance);
      expect(
        SHOWN[name]?.some((invariant) => said.includes(invariant)),
        said,
      ).toBe(true);
    },
    120_000,
  );
});
