import { DatabaseSync } from 'node:sqlite';
import * as fc from 'fast-check';
import Libsql from 'libsql';
import { describe, expect, it } from 'vitest';
import { createMemoryState, memoryStore } from '../../../src/stores/memory.ts';
import { storeOf } from '../../../src/stores/driver/store-of.ts';
import type { StoreFactory } from '../../../src/testing/store-contract.ts';
import { sqliteHarness } from '../../stores/sqlite-files.ts';
import type { Planted, PlantedName } from '../../support/planted.ts';
import { PLANTED } from '../../support/planted.ts';
import { keptRows, rowBackend } from '../../support/row-backend.ts';
import type { Invariant } from './account.ts';
import { BROKEN } from './broken.ts';
import type { Open } from './explore.ts';
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

/** The driver, each of whose loads and commits others can come before; they are answered in any order too. */
function onDriver(planted: Planted = (backend) => backend): Open {
  return async (gate) => {
    const kept = keptRows();
    let offsetMs = 0;
    const gated = async <T>(what: string, call: () => Promise<T>): Promise<T> => {
      await gate(`${what} leaves`);
      const result = await call();
      await gate(`${what} is answered`);
      return result;
    };
    const open = (name: string) => {
      const backend = planted(
        rowBackend(kept, () => Date.now() + offsetMs),
        kept,
      );
      return storeOf(
        {
          ...backend,
          load: (request) => gated(`${name}: load`, () => backend.load(request)),
          commit: (request) => gated(`${name}: commit`, () => backend.commit(request)),
          due: (request) => gated(`${name}: due`, () => backend.due(request)),
        },
        { clockOffsetMs: () => offsetMs, random: () => 0 },
      );
    };
    return {
      a: open('a'),
      b: open('b'),
      setClockOffsetMs: (ms) => {
        offsetMs = ms;
      },
      cleanup: async () => {},
    };
  };
}

const STORES: Readonly<Record<string, readonly [Open, number]>> = {
  memory: [onMemory, 4000],
  'the driver': [onDriver(), 300],
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

describe('a broken store is caught', () => {
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

/** What any order of calls shows of a backend that leaves a condition out; the others are shown by their own races. */
const SHOWN: Readonly<Partial<Record<PlantedName, readonly Invariant[]>>> = {
  'versions are not compared': [
    'every event comes to its end',
    'the first copy is handled',
    'no two live leases of one event or task',
  ],
  'rows that are only read are not compared': [
    'every event comes to its end',
    'an acknowledged event is never lost',
    'no two live leases of one event or task',
    'an older status is never applied after a newer one',
  ],
  'rows that have to be absent are not compared': [
    'every event comes to its end',
    'the first copy is handled',
  ],
  'a known task is written without its version': [
    'an older status is never applied after a newer one',
    'no two live leases of one event or task',
  ],
};

describe('a backend without one of its conditions is caught', () => {
  it.each(Object.keys(SHOWN) as PlantedName[])(
    '%s',
    async (name) => {
      const property = anyOrder(onDriver(PLANTED[name]), new Map());
      const result = await fc.check(property, { seed: FIXED_SEED, numRuns: 1000, endOnFailure: true });
      expect(result.failed).toBe(true);
      const said = String(result.errorInstance);
      expect(
        SHOWN[name]?.some((invariant) => said.includes(invariant)),
        said,
      ).toBe(true);
    },
    120_000,
  );
});
