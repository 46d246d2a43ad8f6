import assert from 'node:assert/strict';
import type { RegistrationKind } from '../../stores/contract.ts';
import { HOUR_MS, SENDER } from './kit.ts';
import type { Cases } from './kit.ts';
import { get, registrationsOf, save } from './registrations-kit.ts';

const OTHER = 'https://other.example/mcp';
const KINDS: readonly RegistrationKind[] = ['operation', 'route', 'watch'];

/** What a database, a driver or JSON could change. */
const TEXTS: readonly string[] = [
  'id',
  'ID',
  'id ',
  'e\u0301',
  '\u00e9',
  'a\0b',
  '\u0001#x',
  '\ud800',
  '\u2028"\\\n',
  '🌱',
  'x'.repeat(600),
];

const counter = (value: string | undefined): string => String(Number(value ?? '0') + 1);

/** `StoreRegistrations.run`. */
export const registrationCases: Cases = {
  'what one handle saved the other gets': async ({ a, b }) => {
    assert.equal(await get(a), undefined);
    const row = await save(a, { value: '{"a":1}', list: 'open', dueIn: HOUR_MS });
    assert.deepEqual(await get(b), row);
    const later = await save(b, { value: '{"a":2}', expiresIn: HOUR_MS });
    assert.deepEqual(await get(a), later);
  },
  'a row is of one sender, one kind and one id': async ({ a, b }) => {
    const names = KINDS.flatMap((kind) =>
      [SENDER, OTHER, ''].flatMap((sender) => ['id', 'id2'].map((id) => ({ kind, sender, id }))),
    );
    for (const [at, name] of names.entries()) await save(a, { ...name, value: String(at) });
    for (const [at, name] of names.entries()) assert.equal((await get(b, name))?.value, String(at));
  },
  'any text keeps its identity, as an id and as a value': async ({ a, b }) => {
    for (const text of TEXTS) await save(a, { id: text, value: text });
    for (const text of TEXTS) {
      const row = await get(b, { id: text });
      assert.deepEqual([row?.id, row?.value], [text, text]);
    }
    const long = 'é'.repeat(262_144);
    await save(a, { value: long });
    assert.equal((await get(b))?.value, long);
  },
  'a plan that throws writes nothing': async ({ a, b }) => {
    const failing = registrationsOf(a).run(SENDER, (rows) => {
      rows.save({
        kind: 'operation',
        sender: SENDER,
        id: 'id',
        value: '',
        dueAt: null,
        list: null,
        expiresAt: null,
      });
      throw new RangeError('not so');
    });
    await assert.rejects(failing, RangeError);
    assert.equal(await get(b), undefined);
  },
  'a plan sees what it has saved': async ({ a }) => {
    const seen = await registrationsOf(a).run(SENDER, (rows) => {
      rows.save({
        kind: 'watch',
        sender: SENDER,
        id: 'id',
        value: 'own',
        dueAt: null,
        list: null,
        expiresAt: null,
      });
      return rows.get('watch', 'id')?.value;
    });
    assert.equal(seen, 'own');
  },
  'a row of another sender, without an id, or due and yet to expire, is a TypeError': async ({ a, b }) => {
    const row = {
      kind: 'operation',
      sender: SENDER,
      id: 'id',
      value: '',
      dueAt: null,
      list: null,
      expiresAt: null,
    } as const;
    for (const wrong of [
      { ...row, sender: OTHER },
      { ...row, id: '' },
      { ...row, expiresAt: 0 },
      { ...row, expiresAt: Number.NaN },
      { ...row, dueAt: 1, expiresAt: 1 },
      { ...row, dueAt: 0.5 },
      { ...row, dueAt: -1 },
      { ...row, dueAt: Number.NaN },
    ]) {
      await assert.rejects(
        registrationsOf(a).run(SENDER, (rows) => rows.save(wrong)),
        TypeError,
      );
    }
    const unowned = { ...row, sender: '', dueAt: 1 };
    await assert.rejects(
      registrationsOf(a).run('', (rows) => rows.save(unowned)),
      TypeError,
    );
    assert.equal(await get(b), undefined);
  },
  'of plans that run at once none is lost: each sees what the others have written': async ({ a, b }) => {
    const add = (store: typeof a): Promise<void> =>
      registrationsOf(store).run(SENDER, (rows) => {
        const value = counter(rows.get('operation', 'id')?.value);
        rows.save({
          kind: 'operation',
          sender: SENDER,
          id: 'id',
          value,
          dueAt: null,
          list: null,
          expiresAt: null,
        });
      });
    await Promise.all(Array.from({ length: 20 }, (_, at) => add(at % 2 === 0 ? a : b)));
    assert.equal((await get(a))?.value, '20');
  },
  'of several that make one row one makes it, and all get it': async ({ a, b }) => {
    const make = (value: string, store: typeof a): Promise<string> =>
      registrationsOf(store).run('', (rows) => {
        const found = rows.get('route', 'id');
        if (found) return found.value;
        rows.save({ kind: 'route', sender: '', id: 'id', value, dueAt: null, list: null, expiresAt: null });
        return value;
      });
    const made = await Promise.all(
      Array.from({ length: 12 }, (_, at) => make(`by ${at}`, at % 2 === 0 ? a : b)),
    );
    assert.equal(new Set(made).size, 1);
    assert.equal((await get(a, { kind: 'route', sender: '' }))?.value, made[0]);
  },
  'several rows are written together or not at all': async ({ a, b }) => {
    const move = (store: typeof a): Promise<void> =>
      registrationsOf(store).run(SENDER, (rows) => {
        for (const [kind, step] of [
          ['operation', 1],
          ['watch', -1],
        ] as const) {
          const value = String(Number(rows.get(kind, 'id')?.value ?? '0') + step);
          rows.save({ kind, sender: SENDER, id: 'id', value, dueAt: null, list: null, expiresAt: null });
        }
      });
    await Promise.all(Array.from({ length: 10 }, (_, at) => move(at % 2 === 0 ? a : b)));
    assert.equal((await get(a, { kind: 'operation' }))?.value, '10');
    assert.equal((await get(b, { kind: 'watch' }))?.value, '-10');
  },
  'a row that has expired is absent, and another can come in its place': async (kit) => {
    const { a, b } = kit;
    await save(a, { value: 'old', expiresIn: HOUR_MS });
    assert.equal((await get(b))?.value, 'old');
    kit.advance(HOUR_MS + 1000);
    assert.equal(await get(b), undefined);
    await save(b, { value: 'new' });
    assert.equal((await get(a))?.value, 'new');
    await save(a, { expiresAt: 1 });
    assert.equal(await get(b), undefined, 'deleted');
  },
  'rows count as records of their sender': async (kit) => {
    const limit = { maxRecordsPerSender: 3 };
    for (const id of ['1', '2', '3']) await save(kit.a, { id });
    assert.equal((await kit.accept({ limits: limit })).kind, 'over-cap');
    assert.equal((await kit.accept({ sender: OTHER, limits: limit })).kind, 'won');
    for (const id of ['1', '2', '3']) await save(kit.b, { id, expiresAt: 1 });
    kit.advance(1000);
    assert.equal((await kit.accept({ limits: limit, key: 'another-event-of-the-seller' })).kind, 'won');
  },
};

/** For stores that outlive their handles. */
export const lastingRegistrationCases: Cases = {
  'rows of registrations are there after all handles were closed': async (kit) => {
    const row = await save(kit.a, { value: 'kept', list: 'open', dueIn: HOUR_MS });
    await kit.a.close();
    await kit.b.close();
    const again = await kit.reopen();
    await again.open();
    assert.deepEqual(await get(again), row);
    await again.close();
  },
};
