import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { storeOf } from '../../../src/stores/driver/store-of.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import { keptRows, rowBackend } from '../../support/row-backend.ts';
import type { Call, Form } from '../calls.ts';
import { answerOf, call, capped, expectSameAnswer, stepBefore } from '../calls.ts';

/** `calls` on memory, and on two handles over rows, alternately; every answer has to be the same, instants included. */
async function expectSame(calls: readonly Call[], form: Form): Promise<void> {
  let offsetMs = 0;
  const clockOffsetMs = (): number => offsetMs;
  const kept = keptRows();
  const now = (): number => Date.now() + offsetMs;
  const handle = () => storeOf(rowBackend(kept, now), { clockOffsetMs, random: () => 0 });
  const handles = [handle(), handle()];
  const memory = form(memoryStore({ clockOffsetMs }));
  for (const store of [...handles, memory]) await store.open();
  for (const [at, made] of calls.entries()) {
    offsetMs += stepBefore(made);
    const store = form(handles[(at + made.second) % 2] ?? expect.fail('no handle'));
    const [driven, expected] = [await answerOf(store, made), await answerOf(memory, made)];
    if (!expectSameAnswer(driven, expected, `call ${at}: ${JSON.stringify(made)}`)) break;
  }
  for (const store of handles) await store.close();
}

describe('random calls on storeOf and on memory', () => {
  beforeEach(() => {
    // One instant for both: the answers have instants in them.
    vi.useFakeTimers({ toFake: ['Date', 'performance'] });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([
    ['near the caps', (store) => store],
    ['far from them', capped(1_000_000_000)],
  ] as const satisfies readonly (readonly [string, Form])[])(
    'get the same answers, %s',
    async (_where, form) => {
      const sequences = fc.array(call, { minLength: 1, maxLength: 60, size: 'max' });
      await fc.assert(
        fc.asyncProperty(sequences, (calls) => expectSame(calls, form)),
        { numRuns: 60 },
      );
    },
    120_000,
  );
});
