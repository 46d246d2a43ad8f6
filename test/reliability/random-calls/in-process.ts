import { DatabaseSync } from 'node:sqlite';
import { expect } from 'vitest';
import { storeOf } from '../../../src/stores/index.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import { createMemoryState } from '../../../src/stores/for-tests.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { twoHandles } from '../../stores/fixtures/two-handles.ts';
import { countsOf, sqliteHarness } from '../../stores/sqlite-files.ts';
import type { Planted } from '../../support/planted.ts';
import { keptRows, rowBackend } from '../../support/row-backend.ts';
import type { Subject } from './subject.ts';

export const MEMORY: Subject = {
  name: 'memory',
  clock: 0,
  open: async () => {
    const state = createMemoryState();
    return twoHandles((clockOffsetMs) => memoryStore({ state, clockOffsetMs }));
  },
};

/** The driver, each of whose loads and commits others can come before; they are answered in any order too. */
export function onDriver(planted: Planted = (backend) => backend): Subject {
  return {
    name: 'the driver',
    clock: 0,
    open: async (gate) => {
      const kept = keptRows();
      const gated = async <T>(what: string, call: () => Promise<T>): Promise<T> => {
        await gate(`${what} leaves`);
        const result = await call();
        await gate(`${what} is answered`);
        return result;
      };
      let handles = 0;
      const opened = twoHandles((clockOffsetMs) => {
        const name = `handle ${(handles += 1)}`;
        const backend = planted(
          rowBackend(kept, () => Date.now() + clockOffsetMs()),
          kept,
        );
        return storeOf(
          {
            ...backend,
            load: (request) => gated(`${name}: load`, () => backend.load(request)),
            commit: (request) => gated(`${name}: commit`, () => backend.commit(request)),
            due: (request) => gated(`${name}: due`, () => backend.due(request)),
          },
          { clockOffsetMs, random: () => 0 },
        );
      });
      // There is nothing to remove, and of a run that has failed calls are left that nobody lets go.
      return { ...opened, cleanup: async () => {} };
    },
  };
}

/** SQLite without a file, whose counts cost little to look at. */
export const SQLITE_WITHOUT_FILE: Subject = {
  name: 'SQLite without a file',
  clock: 0,
  findsOneByOne: true,
  open: async () => {
    const db = new DatabaseSync(':memory:');
    const handles = twoHandles((clockOffsetMs) => sqliteStore(db, { clockOffsetMs }));
    return {
      ...handles,
      expectKeptRight: async () => {
        const { noted, counted } = countsOf(db);
        expect(noted).toEqual(counted);
      },
      cleanup: async () => {
        await handles.cleanup();
        db.close();
      },
    };
  },
};

/** SQLite on files, a connection each handle. */
export const SQLITE_ON_FILES: Subject = {
  name: 'SQLite on files',
  clock: 0,
  open: () => sqliteHarness((file) => new DatabaseSync(file)),
};
