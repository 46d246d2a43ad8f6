import { describe, expect, it } from 'vitest';
import { LONG } from '../form.ts';
import { run } from './run.ts';
import { tell } from '../../support/tell.ts';

const FORM = LONG
  ? { tasks: 10_000, sellers: 50, seed: Date.now() % 2 ** 31, forMs: 3_600_000 }
  : { tasks: 150, sellers: 10, seed: 20_261_125, forMs: 1_800_000 };
const LIMIT_MS = LONG ? 3_600_000 : 240_000;

const KEPT = {
  polledTwiceAtOnce: [],
  overPerSeller: [],
  polledAfterTheEnd: [],
  tooOften: [],
  tooSeldom: [],
  notHandledOnce: [],
};

describe('an hour of polling by three processes, judged by the seller’s own log', () => {
  it(
    'polls each task once at a time and at its rate, each seller within its number, and none after its end',
    async () => {
      const { verdict, figures } = await run({ ...FORM, leaseMs: 40_000 });
      if (LONG) tell({ ...FORM, ...figures });
      expect(verdict, JSON.stringify(figures)).toEqual(KEPT);
      expect(figures['polls']).toBeGreaterThan(10 * FORM.tasks);
    },
    LIMIT_MS,
  );

  it(
    'catches pollers whose lease is over before their question is',
    async () => {
      const { verdict } = await run({ tasks: 24, sellers: 6, seed: 1, leaseMs: 1, forMs: 300_000 });
      expect(verdict.polledTwiceAtOnce).not.toEqual([]);
    },
    LIMIT_MS,
  );
});
