import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { memoryStore } from '../../../src/stores/memory.ts';
import { expectCountsRight, ownDatabase } from '../mysql-databases.ts';
import type { Call, Form } from '../calls.ts';
import { answerOf, call, capped, expectSameAnswer, history, stepBefore } from '../calls.ts';

/** Lists are compared by the contract suite: whether they show what has expired is not the same before it is deleted. */
const compared = call.filter(({ does }) => does !== 'list');

/** The clock of both at the first call. Unix ms. */
const START_MS = 1_767_225_600_000;

describe('memory and MySQL', () => {
  // From here on the offset alone is the clock: how slow the machine is changes no answer.
  const at = ownDatabase(5, 'SET timestamp = 1');
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 0 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const runCalls = async (calls: readonly Call[], form: Form): Promise<void> => {
    await at.clear();
    let offsetMs = START_MS;
    const clockOffsetMs = (): number => offsetMs;
    const stores = at.pools.map((pool) => at.store(pool, { clockOffsetMs }));
    for (const store of stores) await store.open();
    // The server’s own is 1 s.
    const memory = form(memoryStore({ clockOffsetMs: () => offsetMs + 1000 }));
    for (const [index, made] of calls.entries()) {
      offsetMs += stepBefore(made);
      const expected = await answerOf(memory, made);
      const store = form(stores[index % stores.length] ?? expect.fail());
      if (!expectSameAnswer(await answerOf(store, made), expected)) break;
    }
    await expectCountsRight(at);
    for (const store of stores) await store.close();
  };

  const sameAnswers = async (form: Form): Promise<void> => {
    let last = Promise.resolve();
    await fc.assert(
      fc.asyncProperty(history(compared), (calls) => (last = runCalls(calls, form))),
      // As many sequences as half a minute allows: a loaded machine is no failure.
      { numRuns: 80, interruptAfterTimeLimit: 30_000 },
    );
    // The one that was interrupted still uses the tables.
    await last;
  };

  it('give the same answer to every call of every sequence, and count what they keep', () =>
    sameAnswers((store) => store));

  it('so they do where no cap is near, and no count is compared', () =>
    sameAnswers(capped(Number.MAX_SAFE_INTEGER)));
});
