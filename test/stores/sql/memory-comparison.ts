import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Store } from '../../../src/stores/contract.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import type { Call, Form } from '../calls.ts';
import { answerOf, call, capped, expectSameAnswer, history, stepBefore } from '../calls.ts';
import { expectSameRegistrations, registrationCalls } from '../registration-calls.ts';

/** Lists are compared by the contract suite: whether they show what has expired is not the same before it is deleted. */
const compared = call.filter(({ does }) => does !== 'list');

/** The clock offset at the first call. Ms. */
const START_MS = 1_767_225_600_000;

/** One SQL database whose own clock stands still, so that the offset alone is what moves. */
export interface ComparedDatabase<Pool> {
  readonly at: {
    readonly pools: readonly Pool[];
    readonly store: (pool: Pool, more: { readonly clockOffsetMs: () => number }) => Store;
    readonly clear: () => Promise<void>;
  };
  /** What its own clock says. Unix ms. */
  readonly clockMs: number;
  readonly expectCountsRight: () => Promise<void>;
}

interface Compared {
  readonly memory: Store;
  /** On one database, as two processes have them. */
  readonly stores: readonly Store[];
  readonly advance: (ms: number) => void;
}

/** Runs `work` on an empty database and an empty memory store with the same clock, then checks the counts. */
async function withBoth<Pool>(
  { at, clockMs, expectCountsRight }: ComparedDatabase<Pool>,
  work: (both: Compared) => Promise<void>,
): Promise<void> {
  await at.clear();
  let offsetMs = START_MS;
  const stores = at.pools.map((pool) => at.store(pool, { clockOffsetMs: () => offsetMs }));
  for (const store of stores) await store.open();
  const memory = memoryStore({ clockOffsetMs: () => offsetMs + clockMs });
  await work({ memory, stores, advance: (ms) => (offsetMs += ms) });
  await expectCountsRight();
  for (const store of stores) await store.close();
}

/** As many sequences as the time allows, so that a slow machine is no failure; waits for the one that was interrupted. */
async function assertSequences<T>(
  sequences: fc.Arbitrary<T>,
  bounds: { readonly numRuns: number; readonly interruptAfterTimeLimit: number },
  run: (calls: T) => Promise<void>,
): Promise<void> {
  let last = Promise.resolve();
  await fc.assert(
    fc.asyncProperty(sequences, (calls) => (last = run(calls))),
    bounds,
  );
  await last;
}

function useStandingClock(): void {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 0 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
}

/** Random calls on two handles of the database, and on memory. */
export function describeSameAnswers<Pool>(name: string, database: ComparedDatabase<Pool>): void {
  describe(`random calls on ${name} and on memory`, () => {
    useStandingClock();

    const expectSame = (form: Form): Promise<void> =>
      assertSequences(
        history(compared),
        { numRuns: 80, interruptAfterTimeLimit: 30_000 },
        (calls: readonly Call[]) =>
          withBoth(database, async ({ memory, stores, advance }) => {
            const expecting = form(memory);
            for (const [index, made] of calls.entries()) {
              advance(stepBefore(made));
              const expected = await answerOf(expecting, made);
              const store = form(stores[index % stores.length] ?? expect.fail());
              if (!expectSameAnswer(await answerOf(store, made), expected)) break;
            }
          }),
      );

    it('get the same answers near the caps, and the kept counts match the rows', () =>
      expectSame((store) => store));

    it('get the same answers far from the caps, where no count is compared', () =>
      expectSame(capped(Number.MAX_SAFE_INTEGER)));
  });
}

/** Random calls for registrations on two handles of the database, and on memory. */
export function describeSameRegistrations<Pool>(name: string, database: ComparedDatabase<Pool>): void {
  describe(`random calls for registrations on ${name} and on memory`, () => {
    useStandingClock();

    it('get the same answers, and the kept counts match the rows', () =>
      assertSequences(registrationCalls, { numRuns: 40, interruptAfterTimeLimit: 20_000 }, (calls) =>
        withBoth(database, ({ memory, stores, advance }) =>
          expectSameRegistrations(calls, stores, memory, advance),
        ),
      ));
  });
}
