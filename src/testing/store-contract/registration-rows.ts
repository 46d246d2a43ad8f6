// Cases of the store contract: the rows of registrations, atomic changes of them, and pages (`StoreRegistrations`).
// Called by `describeStoreContract` for stores with registrations.
import assert from 'node:assert/strict';
import { ConfigError, isOfKind } from '../../shared/errors.ts';
import type {
  RegistrationKind,
  RegistrationQuery,
  RegistrationRow,
  Store,
  StoreRegistrations,
} from '../../stores/store.ts';
import { lease, leaseOne } from './inbox-kit.ts';
import { type Cases, DAY_MS, HOUR_MS, SENDER } from './kit.ts';
import { tells } from './two-channels.ts';

export function registrationsOf({ registrations }: Store): StoreRegistrations {
  assert.ok(registrations, 'the store has registrations');
  return registrations;
}

/** A row as a case describes it: only the members that matter. */
interface RowDraft extends Partial<RegistrationRow> {
  /** Sets `dueAt` to this many ms after the store's current time. `expiresIn` does the same for `expiresAt`. */
  readonly dueIn?: number;
  readonly expiresIn?: number;
}

const ROW: RegistrationRow = {
  kind: 'operation',
  sender: SENDER,
  id: 'id',
  value: '{}',
  dueAt: null,
  list: null,
  expiresAt: null,
};

/** Saves a row, and returns it as it is stored. */
export async function save(store: Store, { dueIn, expiresIn, ...draft }: RowDraft): Promise<RegistrationRow> {
  const row = { ...ROW, ...draft };
  return registrationsOf(store).run(row.sender, (rows, now) => {
    const saved = {
      ...row,
      dueAt: dueIn === undefined ? row.dueAt : Math.ceil(now + dueIn),
      expiresAt: expiresIn === undefined ? row.expiresAt : now + expiresIn,
    };
    rows.save(saved);
    return saved;
  });
}

export async function get(store: Store, of: RowDraft = {}): Promise<RegistrationRow | undefined> {
  const { kind, sender, id } = { ...ROW, ...of };
  return registrationsOf(store).run(sender, (rows) => rows.get(kind, id));
}

/** Returns the ids of rows that are due. The call reserves these rows for an hour. */
export async function dueIds(
  store: Store,
  { kind = 'watch', max = 100, senders = [] }: DueDraft = {},
): Promise<readonly string[]> {
  const { rows } = await registrationsOf(store).due({ kind, max, holdMs: HOUR_MS, senders });
  return rows.map(({ id }) => id);
}

interface DueDraft {
  readonly kind?: RegistrationKind;
  readonly max?: number;
  readonly senders?: readonly string[];
}

/** Reads all pages of a list of rows. Returns `sender id` of each row. */
export async function listedIds(
  store: Store,
  query: Partial<RegistrationQuery> = {},
): Promise<readonly string[]> {
  const found: string[] = [];
  const asked = { kind: 'operation', limit: 1000, ...query } as const;
  let page = await registrationsOf(store).page(asked);
  for (;;) {
    assert.ok(page.rows.length <= asked.limit, 'a page is no longer than requested');
    found.push(...page.rows.map(({ sender, id }) => `${sender} ${id}`));
    if (page.next === undefined) return found;
    page = await registrationsOf(store).page({ ...asked, after: page.next });
  }
}

const OTHER = 'https://other.example/mcp';
export const KINDS: readonly RegistrationKind[] = [
  'operation',
  'route',
  'watch',
  'stream',
  'subscription',
  'snapshot',
  'move',
];

/** Texts that a database, a driver or JSON might change. */
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

/** Cases of `StoreRegistrations.run`, which changes rows atomically. */
export const registrationCases: Cases = {
  'rows saved by one handle are visible to the other': async ({ a, b }) => {
    assert.equal(await get(a), undefined);
    const row = await save(a, { value: '{"a":1}', list: 'open', dueIn: HOUR_MS });
    assert.deepEqual(await get(b), row);
    const later = await save(b, { value: '{"a":2}', expiresIn: HOUR_MS });
    assert.deepEqual(await get(a), later);
  },
  'a row is identified by sender, kind and id': async ({ a, b }) => {
    const names = KINDS.flatMap((kind) =>
      [SENDER, OTHER, ''].flatMap((sender) => ['id', 'id2'].map((id) => ({ kind, sender, id }))),
    );
    for (const [at, name] of names.entries()) await save(a, { ...name, value: String(at) });
    for (const [at, name] of names.entries()) assert.equal((await get(b, name))?.value, String(at));
  },
  'any text is kept exactly, as an id and as a value': async ({ a, b }) => {
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
  'a plan sees the rows that it has saved': async ({ a }) => {
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
  'no concurrent plan is lost: each sees what the others have written': async ({ a, b }) => {
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
  'if concurrent plans make one row, one of them makes it and all get it': async ({ a, b }) => {
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
  'an expired row is absent, and can be saved anew': async (kit) => {
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
  'a plan sees whether a task has ended: an inline webhook that has failed is not its safe end': async (
    kit,
  ) => {
    const end = (): Promise<unknown> => taskEnd(kit.b);
    await kit.apply(tells('webhook', 'working', { at: '2026-01-01T12:00:00Z' }));
    assert.equal(await end(), undefined);
    const webhook = tells('webhook', 'completed', { at: '2026-01-01T12:00:01Z' });
    const { lease: won } = await kit.win(webhook);
    assert.equal(await end(), 'unsafe');
    assert.equal(await kit.fail(won.owner, webhook), 'queued');
    assert.equal(await end(), 'unsafe');
    await kit.accept(tells('poll', 'completed'));
    assert.equal(await end(), 'safe', 'another channel has made it so');
  },
  'an end is safe from an observation on, and done from its completion on': async (kit) => {
    const poll = tells('poll', 'completed');
    await kit.accept(poll);
    assert.equal(await taskEnd(kit.b), 'safe');
    const { lease: run } = await leaseOne(kit);
    assert.equal(await lastTold(kit.b), undefined);
    await kit.complete(run.owner, poll);
    assert.equal(await lastTold(kit.b), 'completed');
    assert.equal(await taskEnd(kit.b), 'done');
    await kit.apply({ ...tells('webhook', 'failed', { at: '2026-01-01T12:00:00Z' }), task: 'task-2' });
    assert.equal(await taskEnd(kit.b, 'task-2'), 'done');
  },
  'an acknowledged end that a newer status makes stale does not count as the task’s end': async (kit) => {
    const end = { ...tells('webhook', 'completed', { at: '2026-01-01T12:00:00Z' }), mode: 'inbox' } as const;
    await kit.accept(end);
    await leaseOne(kit, { owner: 'worker' });
    await kit.fail('worker', { ...end, backoffMs: 0 });
    await kit.apply(tells('webhook', 'working', { at: '2026-01-01T12:00:01Z' }));
    assert.deepEqual((await lease(kit)).events, []);
    assert.deepEqual([await kit.peek(end), await taskEnd(kit.b)], ['stale', undefined]);
  },
  'an end that expired before it was applied does not count as the task’s end': async (kit) => {
    const webhook = tells('webhook', 'completed', { at: '2026-01-01T12:00:00Z' });
    const { lease: won } = await kit.win(webhook);
    await kit.fail(won.owner, webhook);
    kit.advance(2 * DAY_MS);
    assert.equal(await taskEnd(kit.b), undefined);
  },
};

const lastTold = (store: Store): Promise<string | undefined> =>
  registrationsOf(store).run(SENDER, (rows) => rows.lastTold('task-1')?.status);

const taskEnd = (store: Store, id = 'task-1'): Promise<unknown> =>
  registrationsOf(store).run(SENDER, (rows) => rows.taskEnd(id));

/** Cases of registrations in stores whose data outlive their handles. */
export const lastingRegistrationCases: Cases = {
  'rows are there after all handles were closed': async (kit) => {
    const row = await save(kit.a, { value: 'kept', list: 'open', dueIn: HOUR_MS });
    await kit.a.close();
    await kit.b.close();
    const again = await kit.reopen();
    await again.open();
    assert.deepEqual(await get(again), row);
    await again.close();
  },
};

const A = 'https://a.example/mcp';
const B = 'https://b.example/mcp';

/** Cases of `StoreRegistrations.page`, which lists rows. */
export const registrationPageCases: Cases = {
  'rows of a kind are listed, of all senders or of one': async ({ a, b }) => {
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
  'only rows listed under the requested state are listed': async ({ a, b }) => {
    await save(a, { sender: A, id: '1', list: 'open' });
    await save(a, { sender: A, id: '2', list: 'orphaned' });
    await save(a, { sender: A, id: '3' });
    assert.deepEqual(await listedIds(b, { list: 'open' }), [`${A} 1`]);
    await save(b, { sender: A, id: '1', list: 'orphaned' });
    assert.deepEqual(await listedIds(a, { list: 'open' }), []);
    assert.deepEqual(await listedIds(a, { list: 'orphaned', sender: A }), [`${A} 1`, `${A} 2`]);
    assert.equal((await listedIds(a)).length, 3);
  },
  'rows are listed page by page, each once, of each sender by their ids': async ({ a }) => {
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
  'a page has its rows as they were saved': async ({ a, b }) => {
    const row = await save(a, { value: '{"v":1}', list: 'l', dueIn: HOUR_MS });
    const page = await registrationsOf(b).page({ kind: 'operation', limit: 1 });
    assert.deepEqual(page, { rows: [row] });
  },
  'no expired row is listed': async (kit) => {
    await save(kit.a, { id: '1', sender: A, expiresIn: HOUR_MS });
    await save(kit.a, { id: '2', sender: A });
    assert.equal((await listedIds(kit.b)).length, 2);
    kit.advance(HOUR_MS + 1000);
    assert.deepEqual(await listedIds(kit.b, { limit: 1 }), [`${A} 2`]);
  },
  'an `after` that is not a cursor of a page is a ConfigError': async ({ a }) => {
    for (const after of ['x', '1', '1 ', '1 a', '9 a', '-1 ab', ' ab']) {
      await assert.rejects(
        registrationsOf(a).page({ kind: 'operation', limit: 1, after }),
        (error: unknown) => isOfKind(error, ConfigError),
      );
    }
  },
};
