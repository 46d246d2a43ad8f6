import assert from 'node:assert/strict';
import { isOfKind, ConfigError } from '../../errors.ts';
import { HOUR_MS } from './kit.ts';
import type { Cases } from './kit.ts';
import { listedIds, registrationsOf, save } from './registrations-kit.ts';

const A = 'https://a.example/mcp';
const B = 'https://b.example/mcp';

/** `StoreRegistrations.page`. */
export const registrationPageCases: Cases = {
  'rows of a kind, of all senders or of one': async ({ a, b }) => {
    await save(a, { sender: A, id: '1' });
    await save(a, { sender: B, id: '1' });
    await save(a, { sender: A, id: '2', kind: 'watch' });
    await save(a, { sender: '', id: '3' });
    assert.deepEqual((await listedIds(b)).toSorted(), [`${A} 1`, `${B} 1`]);
    assert.deepEqual(await listedIds(b, { sender: B }), [`${B} 1`]);
    assert.deepEqual(await listedIds(b, { sender: '' }), [' 3']);
    assert.deepEqual(await listedIds(b, { kind: 'watch' }), [`${A} 2`]);
    assert.deepEqual(await listedIds(b, { kind: 'route' }), []);
    assert.deepEqual(await listedIds(b, { sender: 'https://nobody.example' }), []);
  },
  'those that are listed as what is asked for': async ({ a, b }) => {
    await save(a, { sender: A, id: '1', list: 'open' });
    await save(a, { sender: A, id: '2', list: 'orphaned' });
    await save(a, { sender: A, id: '3' });
    assert.deepEqual(await listedIds(b, { list: 'open' }), [`${A} 1`]);
    await save(b, { sender: A, id: '1', list: 'orphaned' });
    assert.deepEqual(await listedIds(a, { list: 'open' }), []);
    assert.deepEqual(await listedIds(a, { list: 'orphaned', sender: A }), [`${A} 1`, `${A} 2`]);
    assert.equal((await listedIds(a)).length, 3);
  },
  'page by page each once, of each sender by their ids': async ({ a }) => {
    const ids = Array.from({ length: 7 }, (_, at) => `id-${at}`);
    for (const sender of [A, B, ''])
      for (const id of ids.toReversed()) await save(a, { sender, id, list: 'l' });
    const all = [A, B].flatMap((sender) => ids.map((id) => `${sender} ${id}`));
    for (const limit of [1, 3, 7, 14, 1000]) {
      const found = await listedIds(a, { limit });
      assert.deepEqual(found.toSorted(), all);
      for (const sender of [A, B]) {
        const own = found.filter((name) => name.startsWith(`${sender} `));
        assert.deepEqual(own, own.toSorted());
        assert.deepEqual(await listedIds(a, { limit, sender, list: 'l' }), own);
      }
      assert.deepEqual(
        await listedIds(a, { limit, sender: '' }),
        ids.map((id) => ` ${id}`),
      );
    }
  },
  'a page with its rows as they are': async ({ a, b }) => {
    const row = await save(a, { value: '{"v":1}', list: 'l', dueIn: HOUR_MS });
    const page = await registrationsOf(b).page({ kind: 'operation', limit: 1 });
    assert.deepEqual(page, { rows: [row] });
  },
  'none that has expired': async (kit) => {
    await save(kit.a, { id: '1', sender: A, expiresIn: HOUR_MS });
    await save(kit.a, { id: '2', sender: A });
    assert.equal((await listedIds(kit.b)).length, 2);
    kit.advance(HOUR_MS + 1000);
    assert.deepEqual(await listedIds(kit.b, { limit: 1 }), [`${A} 2`]);
  },
  'an `after` that no page gave is a ConfigError': async ({ a }) => {
    for (const after of ['x', '1', '1 ', '1 a', '9 a', '-1 ab', ' ab']) {
      await assert.rejects(
        registrationsOf(a).page({ kind: 'operation', limit: 1, after }),
        (error: unknown) => isOfKind(error, ConfigError),
      );
    }
  },
};
