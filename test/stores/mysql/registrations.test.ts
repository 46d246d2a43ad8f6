import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, it, vi } from 'vitest';
import { memoryStore } from '../../../src/stores/memory.ts';
import { expectCountsRight, ownDatabase } from '../mysql-databases.ts';
import { expectSameRegistrations, registrationCalls } from '../registration-calls.ts';

const START_MS = 1_767_225_600_000;

describe('rows of registrations on MySQL', () => {
  // From here on the offset alone is the clock, and the server’s own is 1 s.
  const at = ownDatabase(5, 'SET timestamp = 1');
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 0 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('are the same as in memory, by several handles, and counted', async () => {
    let last = Promise.resolve();
    await fc.assert(
      fc.asyncProperty(registrationCalls, (calls) => {
        const run = async (): Promise<void> => {
          await at.clear();
          let offsetMs = START_MS;
          const stores = at.pools.map((pool) => at.store(pool, { clockOffsetMs: () => offsetMs }));
          for (const store of stores) await store.open();
          const memory = memoryStore({ clockOffsetMs: () => offsetMs + 1000 });
          await expectSameRegistrations(calls, stores, memory, (ms) => (offsetMs += ms));
          await expectCountsRight(at);
          for (const store of stores) await store.close();
        };
        return (last = run());
      }),
      { numRuns: 40, interruptAfterTimeLimit: 20_000 },
    );
    await last;
  });
});
