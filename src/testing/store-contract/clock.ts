import assert from 'node:assert/strict';
import type { Cases } from './kit.ts';
import { HOUR_MS } from './kit.ts';

/** `clock` is optional: a store on the receiver's own machine has no other. */
export const clockCases: Cases = {
  'where there is one, it is the store’s, in Unix ms, on every handle, and moves with its offset': async ({
    a,
    b,
    advance,
  }) => {
    assert.equal(typeof a.clock, typeof b.clock);
    if (!a.clock || !b.clock) return;
    const before = await a.clock();
    assert.ok(Number.isSafeInteger(before), `${before} is a whole number`);
    assert.ok(Math.abs(before - Date.now()) < 24 * HOUR_MS, `${before} is now, in ms`);
    advance(48 * HOUR_MS);
    const passed = (await b.clock()) - before;
    assert.ok(passed >= 47 * HOUR_MS && passed < 49 * HOUR_MS, `${passed} ms later`);
  },
};
