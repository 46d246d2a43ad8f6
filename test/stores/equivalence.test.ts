import { DatabaseSync } from 'node:sqlite';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { memoryStore } from '../../src/stores/memory.ts';
import type { SqliteStore } from '../../src/stores/sqlite.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { answerOf, call, createTally, history, untilReached } from './calls.ts';
import { countsOf } from './sqlite-files.ts';

/** The counts, against the rows themselves. */
function expectCountsRight(db: DatabaseSync): void {
  const { noted, counted } = countsOf(db);
  expect(noted).toEqual(counted);
}

describe('random calls on SQLite and on memory', () => {
  beforeEach(() => {
    // One instant for both: the answers have instants in them.
    vi.useFakeTimers({ toFake: ['Date'] });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  it('get the same answers, and the kept counts match the rows', async () => {
    const tally = createTally();
    await untilReached(tally, () =>
      fc.assert(
        fc.asyncProperty(history(call), async (calls) => {
          let offsetMs = 0;
          const clockOffsetMs = (): number => offsetMs;
          const db = new DatabaseSync(':memory:');
          const sqlite: SqliteStore = sqliteStore(db, { clockOffsetMs });
          const memory = memoryStore({ clockOffsetMs });
          await sqlite.open();
          for (const made of calls) {
            // 5 s steps meet neither the lease (8 s), nor the nonces (33 s), nor the retention (61 s) to the ms.
            if (made.does === 'wait') offsetMs += 5000 * (1 + made.key * made.key);
            const answer = await answerOf(sqlite, made);
            expect(answer).toEqual(await answerOf(memory, made));
            tally.note(made, answer);
            expectCountsRight(db);
          }
          db.close();
        }),
        { numRuns: 250 },
      ),
    );
  });
});
