import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AcceptRequest, Store } from '../../../src/stores/contract.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import { expectCountsRight, ownSchema } from '../postgres-schemas.ts';
import type { Call } from '../calls.ts';
import { answerOf, call, stepBefore } from '../calls.ts';

const INSTANTS: readonly string[] = ['insertedAt', 'notBefore', 'leaseUntil', 'nextDueMs'];

/** Instants differ by what passes between two calls; everything else is the same. */
function timeless(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(timeless);
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value;
  const members = Object.entries(value).filter(([name]) => !INSTANTS.includes(name));
  return Object.fromEntries(members.map(([name, member]) => [name, timeless(member)]));
}

/** Lists are compared by the contract suite: whether they show what has expired is not the same before it is deleted. */
const compared = call.filter(({ does }) => does !== 'list');

describe('memory and Postgres', () => {
  const at = ownSchema();

  /** @param limits those of each accept, in the place of `calls.ts`'s. */
  const runCalls = async (
    calls: readonly Call[],
    limits: Partial<AcceptRequest['limits']>,
  ): Promise<void> => {
    await at.clear();
    let offsetMs = 0;
    const clockOffsetMs = (): number => offsetMs;
    const limited = (store: Store): Store => ({
      ...store,
      accept: (request) => store.accept({ ...request, limits: { ...request.limits, ...limits } }),
    });
    const stores = at.pools.map((pool) => at.store(pool, { clockOffsetMs }));
    for (const store of stores) await store.open();
    const memory = limited(memoryStore({ clockOffsetMs }));
    for (const [index, made] of calls.entries()) {
      offsetMs += stepBefore(made);
      const expected = await answerOf(memory, made);
      const store = limited(stores[index % stores.length] ?? expect.fail());
      expect(timeless(await answerOf(store, made))).toEqual(timeless(expected));
    }
    await expectCountsRight(at);
    for (const store of stores) await store.close();
  };

  const sameAnswers = async (limits: Partial<AcceptRequest['limits']>): Promise<void> => {
    let last = Promise.resolve();
    await fc.assert(
      fc.asyncProperty(
        fc.array(compared, { minLength: 1, maxLength: 60, size: 'max' }),
        (calls) => (last = runCalls(calls, limits)),
      ),
      // As many sequences as half a minute allows: a loaded machine is no failure.
      { numRuns: 80, interruptAfterTimeLimit: 30_000 },
    );
    // The one that was interrupted still uses the tables.
    await last;
  };

  it('give the same answer to every call of every sequence, and count what they keep', () => sameAnswers({}));

  it('so they do where no cap is near, and a fresh event is admitted by other statements', () => {
    const most = Number.MAX_SAFE_INTEGER;
    return sameAnswers({
      maxRecordsPerSender: most,
      maxPendingBytesPerSender: most,
      maxNoncesPerKey: most,
      maxNonces: most,
    });
  });
});
