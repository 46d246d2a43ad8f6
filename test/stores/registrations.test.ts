import { DatabaseSync } from 'node:sqlite';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Store } from '../../src/stores/contract.ts';
import { storeOf } from '../../src/stores/driver/store-of.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { keptRows, rowBackend } from '../support/row-backend.ts';
import { untilReached } from './calls.ts';
import { expectSameRegistrations, registrationCalls } from './registration-calls.ts';
import { countsOf } from './sqlite-files.ts';

describe('registrations get the same answers in memory and', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 1_767_225_600_000 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('in SQLite, whose counts match the rows', async () => {
    const reached = new Set<unknown>();
    const told = [undefined, 'unsafe', 'safe', 'done', 'working', 'completed'];
    const sequences = fc.asyncProperty(registrationCalls, async (calls) => {
      let offsetMs = 0;
      const clockOffsetMs = (): number => offsetMs;
      const db = new DatabaseSync(':memory:');
      const store = sqliteStore(db, { clockOffsetMs });
      await store.open();
      const memory = memoryStore({ clockOffsetMs });
      await expectSameRegistrations(calls, [store], memory, (ms) => (offsetMs += ms), reached);
      const { noted, counted } = countsOf(db);
      expect(noted).toEqual(counted);
      db.close();
    });
    await untilReached({ missed: () => told.filter((one) => !reached.has(one)).map(String) }, () =>
      fc.assert(sequences, { numRuns: 200 }),
    );
  });

  it('on a driven backend, by two handles', async () => {
    await fc.assert(
      fc.asyncProperty(registrationCalls, async (calls) => {
        let offsetMs = 0;
        const clockOffsetMs = (): number => offsetMs;
        const kept = keptRows();
        const handle = (): Store =>
          storeOf(
            rowBackend(kept, () => Date.now() + offsetMs),
            { clockOffsetMs, random: () => 0 },
          );
        const stores = [handle(), handle()];
        for (const store of stores) await store.open();
        await expectSameRegistrations(
          calls,
          stores,
          memoryStore({ clockOffsetMs }),
          (ms) => (offsetMs += ms),
        );
        for (const store of stores) await store.close();
      }),
      { numRuns: 200 },
    );
  });
});

describe('registrations of a driven store', () => {
  it('are planned at most twice without other writers: once to load the rows, once to write them', async () => {
    const kept = keptRows();
    const store = storeOf(
      rowBackend(kept, () => Date.now()),
      { clockOffsetMs: () => 0, random: () => 0.99 },
    );
    await store.open();
    const { registrations } = store;
    if (!registrations) return expect.fail('it has them');
    const row = {
      kind: 'watch',
      sender: 's',
      id: '1',
      value: 'v',
      dueAt: 0,
      list: null,
      expiresAt: null,
    } as const;
    await registrations.run('s', (rows) =>
      rows.save({ ...row, value: rows.get('watch', '1')?.value ?? 'v' }),
    );
    expect(kept.calls).toMatchObject({ load: 1, commit: 1 });
    // What is due is put off in one commit, over the rows that were found.
    await registrations.due({ kind: 'watch', max: 9, holdMs: 1000, senders: [] });
    expect(kept.calls).toMatchObject({ load: 1, commit: 2 });
    await registrations.due({ kind: 'watch', max: 9, holdMs: 1000, senders: [] });
    await registrations.page({ kind: 'watch', limit: 9 });
    expect(kept.calls).toEqual({ load: 1, commit: 2, due: 0, sweep: 0 });
    await store.close();
  });

  it('are absent when the backend has none', () => {
    const { registrations: _none, ...backend } = rowBackend(keptRows(), () => Date.now());
    expect(storeOf(backend, { clockOffsetMs: () => 0, random: () => 0 }).registrations).toBeUndefined();
  });

  it('return rows that were put off although another row failed', async () => {
    const kept = keptRows();
    const backend = rowBackend(kept, () => Date.now());
    let failing = '';
    const store = storeOf(
      {
        ...backend,
        isAboutOne: () => true,
        commit: async (request) => {
          if (request.units.some(({ writes }) => writes.some(({ id }) => id === failing))) {
            throw new Error('this row');
          }
          return backend.commit(request);
        },
      },
      { clockOffsetMs: () => 0, random: () => 0.99 },
    );
    await store.open();
    const { registrations } = store;
    if (!registrations) return expect.fail('it has them');
    for (const id of ['1', '2']) {
      await registrations.run('s', (rows) =>
        rows.save({ kind: 'watch', sender: 's', id, value: '', dueAt: 0, list: null, expiresAt: null }),
      );
    }
    failing = '1';
    const ask = { kind: 'watch', max: 9, holdMs: 3_600_000, senders: [] } as const;
    expect((await registrations.due(ask)).rows.map(({ id }) => id)).toEqual(['2']);
    await expect(registrations.due(ask)).rejects.toThrow('this row');
    failing = '';
    expect((await registrations.due(ask)).rows.map(({ id }) => id)).toEqual(['1']);
    await store.close();
  });
});
