// Cases of the store contract: registration rows that are due (`StoreRegistrations.due`).
// Called by `describeStoreContract` for stores with registrations.
import assert from 'node:assert/strict';
import { inboxOf, lease } from './inbox-kit.ts';
import { DAY_MS, HOUR_MS, SENDER } from './kit.ts';
import type { Cases } from './kit.ts';
import { dueIds, get, KINDS, registrationsOf, save } from './registration-rows.ts';

const SENDERS = ['https://a.example/mcp', 'https://b.example/mcp', 'https://c.example/mcp'] as const;

/** Saves `count` rows of each sender. All of them are due already. */
async function saveOfEach(store: Parameters<typeof save>[0], count: number): Promise<void> {
  for (const sender of SENDERS) {
    for (let at = 0; at < count; at += 1)
      await save(store, { kind: 'watch', sender, id: `${sender} ${at}`, dueIn: -1000 });
  }
}

/** Cases of `StoreRegistrations.due`, which returns rows whose time has come. */
export const registrationDueCases: Cases = {
  'a row is due from its dueAt on, and not before': async (kit) => {
    await save(kit.a, { kind: 'watch', id: 'later', dueIn: HOUR_MS });
    await save(kit.a, { kind: 'watch', id: 'now', dueIn: -1000 });
    await save(kit.a, { kind: 'watch', id: 'never' });
    assert.deepEqual(await dueIds(kit.b), ['now']);
    kit.advance(HOUR_MS + 1000);
    assert.deepEqual((await dueIds(kit.b)).toSorted(), ['later', 'now'], 'the one was held for an hour');
  },
  'the row that is returned has the time until which it is held': async ({ a, b }) => {
    const saved = await save(a, { kind: 'watch', value: 'v', list: 'l', dueIn: -1000 });
    const { rows } = await registrationsOf(b).due({ kind: 'watch', max: 1, holdMs: HOUR_MS, senders: [] });
    const [row] = rows;
    assert.ok(row && row.dueAt !== null && saved.dueAt !== null);
    assert.ok(row.dueAt >= saved.dueAt + HOUR_MS);
    assert.deepEqual({ ...row, dueAt: saved.dueAt }, saved);
    assert.deepEqual(await get(a, { kind: 'watch' }), row);
  },
  'the earliest rows of a sender come first': async (kit) => {
    for (const [id, dueIn] of [
      ['third', 3000],
      ['first', 1000],
      ['second', 2000],
    ] as const) {
      await save(kit.a, { kind: 'watch', id, dueIn });
    }
    kit.advance(HOUR_MS);
    assert.deepEqual(await dueIds(kit.b), ['first', 'second', 'third']);
  },
  'only rows of the requested kind are returned': async (kit) => {
    // Rows of all kinds are saved, in both orders of the kinds, because rows of one kind must not hide rows of another.
    for (const kind of [...KINDS, ...KINDS.toReversed()]) {
      for (const n of [1, 2]) await save(kit.a, { kind, id: `${kind} ${n}`, dueIn: 0 });
      kit.advance(10);
    }
    for (const kind of KINDS) {
      const ids = [await dueIds(kit.b, { kind, max: 1 }), await dueIds(kit.b, { kind, max: 1 })].flat();
      assert.deepEqual(ids.toSorted(), [`${kind} 1`, `${kind} 2`], kind);
      assert.deepEqual(await dueIds(kit.b, { kind }), []);
    }
  },
  'a row that is written while it is held is due at its new dueAt': async ({ a, b }) => {
    await save(a, { kind: 'watch', dueIn: -1000 });
    assert.deepEqual(await dueIds(a), ['id']);
    await save(b, { kind: 'watch', dueIn: -1000 });
    assert.deepEqual(await dueIds(a), ['id']);
    await save(b, { kind: 'watch' });
    await save(b, { kind: 'watch', expiresAt: 1 });
    assert.deepEqual(await dueIds(a), []);
  },
  'each row is returned to one of several concurrent callers': async ({ a, b }) => {
    await saveOfEach(a, 5);
    const looks = await Promise.all(
      Array.from({ length: 6 }, (_, at) => dueIds(at % 2 === 0 ? a : b, { max: 15 })),
    );
    const given = looks.flat();
    assert.equal(new Set(given).size, given.length, 'none twice');
    const rest = await dueIds(a);
    assert.equal(given.length + rest.length, 15, 'and all of them');
  },
  'senders take turns within a call, and from call to call': async ({ a }) => {
    await saveOfEach(a, 2);
    const senderOf = (id: string): string => id.split(' ')[0] ?? '';
    const one = [
      ...(await dueIds(a, { max: 1 })),
      ...(await dueIds(a, { max: 1 })),
      ...(await dueIds(a, { max: 1 })),
    ];
    assert.deepEqual(one.map(senderOf).toSorted(), [...SENDERS]);
    assert.deepEqual((await dueIds(a, { max: 3 })).map(senderOf).toSorted(), [...SENDERS]);
  },
  'no more rows than max are returned': async ({ a }) => {
    await saveOfEach(a, 3);
    assert.equal((await dueIds(a, { max: 4 })).length, 4);
    assert.equal((await dueIds(a, { max: 100 })).length, 5);
  },
  'nextDueMs is the time until the next row is due': async ({ a }) => {
    const look = async (max: number): Promise<number | undefined> =>
      (await registrationsOf(a).due({ kind: 'watch', max, holdMs: 10 * HOUR_MS, senders: [SENDER] }))
        .nextDueMs;
    assert.equal(await look(1), undefined);
    await save(a, { kind: 'watch', id: 'later', dueIn: 2 * HOUR_MS });
    const later = (await look(1)) ?? 0;
    assert.ok(later > HOUR_MS && later <= 2 * HOUR_MS, `${later} ms until the only one`);
    await save(a, { kind: 'watch', id: '1', dueIn: -1000 });
    await save(a, { kind: 'watch', id: '2', dueIn: -1000 });
    assert.equal(await look(1), 0, 'another one is due already');
    const then = (await look(1)) ?? 0;
    assert.ok(then > HOUR_MS && then <= 2 * HOUR_MS, `${then} ms until the one that is not held`);
  },
  'a task that is polled is due although the clock was set back, by ten years at once and by a day when it is time':
    async (kit) => {
      await save(kit.a, { kind: 'watch', id: 'polled', dueIn: 60_000 });
      await save(kit.a, { kind: 'operation', id: 'called', dueIn: 60_000 });
      kit.advance(-DAY_MS);
      assert.deepEqual(await dueIds(kit.b), []);
      kit.advance(DAY_MS + 60_001);
      assert.deepEqual(await dueIds(kit.b), ['polled']);
      assert.deepEqual(await dueIds(kit.b), [], 'it is held');
      kit.advance(-10 * 365 * DAY_MS);
      assert.deepEqual(await dueIds(kit.b), ['polled']);
      assert.deepEqual(await dueIds(kit.b), [], 'it is held from the clock as it is');
      assert.deepEqual(await dueIds(kit.b, { kind: 'operation' }), [], 'somebody may be making its call');
    },
  'workers get events and never rows, and due gives rows and never events': async (kit) => {
    await save(kit.a, { kind: 'operation', dueIn: -1000 });
    await save(kit.a, { kind: 'watch', dueIn: -1000 });
    if (!kit.a.inbox) return;
    await kit.accept({ mode: 'inbox' });
    const { events } = await lease(kit, { owner: 'worker' });
    assert.equal(events.length, 1);
    assert.equal((await inboxOf(kit.b).list({ state: 'leased', limit: 10 })).records.length, 1);
    assert.equal((await dueIds(kit.b, { kind: 'operation' })).length, 1);
    assert.equal((await dueIds(kit.b, { kind: 'watch' })).length, 1);
  },
};
