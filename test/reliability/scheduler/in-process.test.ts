import { DatabaseSync } from 'node:sqlite';
import * as fc from 'fast-check';
import Libsql from 'libsql';
import { describe, expect, it } from 'vitest';
import { createMemoryState, memoryStore } from '../../../src/stores/memory.ts';
import type { StoreFactory } from '../../../src/testing/store-contract.ts';
import { sqliteHarness } from '../../stores/sqlite-files.ts';
import { BROKEN } from './broken.ts';
import { anyOrder, expectInvariants, FIXED_SEED, SEED } from './explore.ts';

const onMemory: StoreFactory = async () => {
  const state = createMemoryState();
  let offsetMs = 0;
  const open = (): ReturnType<typeof memoryStore> => memoryStore({ state, clockOffsetMs: () => offsetMs });
  return {
    a: open(),
    b: open(),
    setClockOffsetMs: (ms) => {
      offsetMs = ms;
    },
    cleanup: async () => {},
  };
};

const STORES: Readonly<Record<string, readonly [StoreFactory, number]>> = {
  memory: [onMemory, 4000],
  'SQLite on node:sqlite': [() => sqliteHarness((file) => new DatabaseSync(file)), 100],
  'SQLite on libsql': [() => sqliteHarness((file) => new Libsql(file)), 100],
};

describe('calls of several processes in any order', () => {
  it.each(Object.keys(STORES))(
    `%s keeps the invariants (seed ${SEED})`,
    async (name) => {
      const [open, runs] = STORES[name] ?? expect.fail(name);
      await expectInvariants(open, runs);
    },
    3_600_000,
  );
});

describe('a store that is broken is caught', () => {
  it.each(Object.keys(BROKEN))('%s', async (name) => {
    const [spoil, invariants] = BROKEN[name] ?? expect.fail(name);
    const property = anyOrder(onMemory, new Map(), spoil());
    const result = await fc.check(property, { seed: FIXED_SEED, numRuns: 5000, endOnFailure: true });
    expect(result.failed).toBe(true);
    const said = String(result.errorInstance);
    expect(
      invariants.some((invariant) => said.includes(invariant)),
      said,
    ).toBe(true);
  });
});
