/*
 * Random calls on a store give what they give in memory. One harness for every store: `Subject` says how a store is made,
 * `Histories` how many histories of which kind it is given.
 */
import { afterEach, beforeEach, describe, it, vi } from 'vitest';
import { expectInvariants } from './any-order/explore.ts';
import { AT_ONCE, expectSomeOrder } from './at-once.ts';
import { capped, EVENT_CALLS, type Form } from './calls.ts';
import { SEED } from './histories.ts';
import { expectSameAnswers } from './one-by-one.ts';
import { REGISTRATION_CALLS } from './registration-calls.ts';
import type { Subject } from './subject.ts';

/** Histories of each kind, in the short form and in `rows`. Without a number there are none. */
export interface Histories {
  /** Calls for events, one after the other: so many near the caps, and as many far from them. */
  readonly events?: number;
  /** Calls for registrations and for events of their tasks, one after the other. */
  readonly registrations?: number;
  /** Calls for events, some of them at once: so many near the limits and far from them, on one handle and on two. */
  readonly atOnce?: number;
  /** Calls of up to four processes in the order of a scheduler: deliveries, handlers, workers, lost replies, transactions. */
  readonly anyOrder?: number;
}

const CAPS: readonly (readonly [where: string, form: Form, unreached: readonly string[]])[] = [
  ['near the caps', (store) => store, []],
  ['far from the caps', capped(1_000_000_000), ['accept over-cap', 'accept rate-abuse']],
];

/** The tests of a long form take hours. Ms. */
const TIMEOUT_MS = 3_600_000;

/** The tests of one store. */
export function describeRandomCalls(subject: Subject, histories: Histories): void {
  const { events, registrations, atOnce, anyOrder } = histories;
  describe(`random calls on ${subject.name} (seed ${SEED})`, () => {
    if (subject.clock !== 'goes on') {
      beforeEach(() => {
        vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 0 });
      });
      afterEach(() => {
        vi.useRealTimers();
      });
    }
    const test = (what: string, count: number | undefined, run: (of: Counted) => Promise<void>): void => {
      if (count !== undefined) it(what, () => run({ name: `${subject.name}, ${what}`, count }), TIMEOUT_MS);
    };

    for (const [where, form, unreached] of CAPS) {
      test(`get the answers of memory, ${where}`, events, (of) =>
        expectSameAnswers(subject, EVENT_CALLS, { ...of, form, unreached }),
      );
    }
    test('for registrations get the answers of memory', registrations, (of) =>
      expectSameAnswers(subject, REGISTRATION_CALLS, of),
    );
    for (const [where, form, processes] of AT_ONCE) {
      test(`made at once are answered as in some order, ${where}`, atOnce, (of) =>
        expectSomeOrder(subject, { ...of, form, processes }),
      );
    }
    test('of several processes in any order keep the invariants', anyOrder, (of) =>
      expectInvariants(subject, of),
    );
  });
}

interface Counted {
  readonly name: string;
  readonly count: number;
}
