import { describe, expect, it } from 'vitest';
import { storeOf } from '../../src/stores/index.ts';
import { keptRows, rowBackend } from '../support/row-backend.ts';

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
