import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Store } from '../../../src/index.ts';
import { BROKEN } from './any-order/broken.ts';
import { expectSomeOrder } from './at-once.ts';
import { EVENT_CALLS, type Form } from './calls.ts';
import { expectHistories, FIXED_SEED, floorOf, TIMES, type Verdict } from './histories.ts';
import { MEMORY } from './in-process.ts';
import { expectSameAnswers } from './one-by-one.ts';
import type { Subject } from './subject.ts';

describe('random histories', () => {
  /** Histories of which so many are given up, and all of these as often as this form makes them. */
  const givingUp = (givenUp: number, count: number): Promise<number> => {
    let made = 0;
    const judge = async (): Promise<Verdict> => ((made += 1) <= TIMES * givenUp ? 'given up' : 'judged');
    return expectHistories({ name: 'a test', histories: fc.nat(), judge, count, seed: FIXED_SEED });
  };

  it('fail if none was judged', async () => {
    await expect(givingUp(20, 20)).rejects.toThrow(`a test: 0 histories judged, ${20 * TIMES} given up`);
  });

  it('fail if none was made', async () => {
    await expect(givingUp(0, 0)).rejects.toThrow('a test: 0 histories judged, 0 given up');
  });

  it('fail if more than a tenth was given up, and pass with a tenth', async () => {
    await expect(givingUp(3, 20)).rejects.toThrow(
      `a test: ${17 * TIMES} histories judged, ${3 * TIMES} given up`,
    );
    expect(await givingUp(2, 20)).toBe(20 * TIMES);
    expect([0, 1, 9, 10, 11, 20].map(floorOf)).toEqual([1, 1, 9, 9, 10, 18]);
  });

  it('fail if one is wrong', async () => {
    const judge = async (history: number): Promise<Verdict> => {
      expect(history).toBeLessThan(100);
      return 'judged';
    };
    await expect(expectHistories({ name: 'a test', histories: fc.nat(), judge, count: 20 })).rejects.toThrow(
      'Property failed',
    );
  });
});

/** The store in memory, with something wrong. */
const wrong = (form: Form): Subject => ({
  ...MEMORY,
  open: async (gate) => {
    const { a, b, ...opened } = await MEMORY.open(gate);
    return { ...opened, a: form(a), b: form(b) };
  },
});

describe('the judge of calls', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 0 });
    fc.configureGlobal({ endOnFailure: true });
  });
  afterEach(() => {
    fc.resetConfigureGlobal();
    vi.useRealTimers();
  });

  it('one after the other catches an answer that memory does not give', async () => {
    const renewing = wrong((store) => ({ ...store, renew: async () => 'renewed' }));
    await expect(
      expectSameAnswers(renewing, EVENT_CALLS, { name: 'a test', count: 100 }),
    ).rejects.toMatchObject({ cause: { message: expect.stringContaining('"does":"renew"') } });
  });

  it('at once catches a store that looks first and writes later', async () => {
    const [lookingFirst] = BROKEN['accept is get, then set'] ?? expect.fail('there is one');
    const looking = wrong((store) => lookingFirst()(store, () => new Promise(setImmediate)));
    const of = { name: 'a test', form: (store: Store) => store, processes: 2 };
    await expect(expectSomeOrder(looking, { ...of, count: 400 })).rejects.toMatchObject({
      cause: { message: expect.stringContaining('to deeply equal []') },
    });
    await expectSomeOrder(MEMORY, { ...of, count: 20 });
  });
});
