import assert from 'node:assert/strict';
import type { Cases } from './kit.ts';

/** `Store.identity`, where the store has it (admission.md §7.5). */
export const identityCases: Cases = {
  'both handles say the same, each time, and at most one of them that it is new': async ({ a, b }) => {
    if (!a.identity || !b.identity) return;
    const said = [await a.identity(), await b.identity(), await a.identity(), await b.identity()];
    assert.equal(new Set(said.map(({ id }) => id)).size, 1);
    assert.ok((said[0]?.id ?? '').length >= 16);
    assert.ok(said.filter(({ isNew }) => isNew).length <= 1);
    assert.ok(!said[2]?.isNew && !said[3]?.isNew, 'it is said once');
  },
};

/** For a persistent store. */
export const lastingIdentityCases: Cases = {
  'the identity is the same after a restart, and not new': async ({ a, reopen }) => {
    const before = await a.identity?.();
    await a.close();
    const again = await reopen();
    const after = await again.identity?.();
    assert.deepEqual(after, before && { ...before, isNew: false });
  },
};
