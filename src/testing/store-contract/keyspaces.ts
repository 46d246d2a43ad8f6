// Cases of the store contract: opening, identity, restarts, separate keys of each sender, notification ids
// (admission.md §7.5).
// Called by `describeStoreContract`.
import assert from 'node:assert/strict';
import { Fault } from '../../shared/errors.ts';
import { type Cases, DAY_MS, LEASE_MS } from './kit.ts';

/** Cases of `Store.identity`, if the store has it (admission.md §7.5). */
export const identityCases: Cases = {
  'both handles always give the same identity, and at most one of them gives it as new': async ({ a, b }) => {
    if (!a.identity || !b.identity) return;
    const identities = [await a.identity(), await b.identity(), await a.identity(), await b.identity()];
    assert.equal(new Set(identities.map(({ id }) => id)).size, 1);
    assert.ok((identities[0]?.id ?? '').length >= 16);
    assert.ok(identities.filter(({ isNew }) => isNew).length <= 1);
    assert.ok(!identities[2]?.isNew && !identities[3]?.isNew, 'it is said once');
  },
};

/** Cases of `Store.identity` of a store whose data outlive a restart. */
export const lastingIdentityCases: Cases = {
  'the identity is the same after a restart, and not new': async ({ a, reopen }) => {
    const before = await a.identity?.();
    await a.close();
    const again = await reopen();
    const after = await again.identity?.();
    assert.deepEqual(after, before && { ...before, isNew: false });
  },
};

const LEVELS = ['process', 'disk', 'failover'];

const unavailable = (error: unknown): boolean => error instanceof Fault && error.code === 'store_unavailable';

/** Cases of `Store.open`, `durability` and `close`. */
export const lifecycleCases: Cases = {
  'the store has a name and a durability': async ({ a, b }) => {
    assert.notEqual(a.name, '');
    assert.ok(LEVELS.includes(await a.durability()));
    assert.equal(await b.durability(), await a.durability());
  },
  'open may be called again, also concurrently, and changes nothing': async ({ a, apply, peek }) => {
    await apply();
    await Promise.all([a.open(), a.open()]);
    assert.equal(await peek(), 'applied');
  },
  'close waits for running calls': async ({ a, b, request, peek }) => {
    const running = a.accept(request());
    await a.close();
    assert.equal((await running).kind, 'won');
    assert.equal(await peek({}, b), 'busy');
  },
  'after close it opens again, any number of times, with the rows that were there': async (kit) => {
    const { a, apply, accept, peek } = kit;
    const before = await a.identity?.();
    await apply();
    for (const round of ['1', '2', '3']) {
      await a.close();
      await Promise.all([a.open(), a.open()]);
      assert.equal(await peek(), 'applied');
      assert.equal((await a.identity?.())?.id, before?.id);
      const next = { key: `after-close-${round}-0000000000`, task: `task-${round}` };
      assert.equal((await accept(next)).kind, 'won');
    }
  },
  'its Symbol.asyncDispose, if it has one, is its close, and it opens again': async ({ a, accept, peek }) => {
    const { [Symbol.asyncDispose]: dispose } = a;
    if (!dispose) return;
    await dispose.call(a);
    await assert.rejects(accept(), unavailable);
    await a.open();
    assert.equal(await peek(), 'absent');
  },
  'close and open at the same time: the last call decides': async ({ a, accept, peek }) => {
    await Promise.allSettled([a.close(), a.open()]);
    assert.equal((await accept()).kind, 'won');
    await Promise.allSettled([a.close(), a.open(), a.close()]);
    await assert.rejects(accept(), unavailable);
    await Promise.allSettled([a.open(), a.close()]);
    await assert.rejects(accept(), unavailable);
    await a.open();
    assert.equal(await peek(), 'busy');
  },
  'after close every call is store_unavailable, and close may be called again': async (kit) => {
    const { lease } = await kit.win();
    await kit.a.close();
    await kit.a.close();
    await assert.rejects(kit.accept(), unavailable);
    await assert.rejects(kit.complete(lease.owner), unavailable);
    await assert.rejects(kit.fail(lease.owner), unavailable);
    await assert.rejects(kit.renew(lease.owner), unavailable);
    await assert.rejects(kit.peek(), unavailable);
    assert.equal(await kit.complete(lease.owner, {}, kit.b), 'done');
  },
};

/** Cases of stores whose data outlive their handles. */
export const persistenceCases: Cases = {
  'everything that was answered is there after both handles are closed': async (kit) => {
    await kit.apply({ key: 'event-done-of-the-seller' });
    const { lease } = await kit.win();
    await kit.accept({ event: false, nonce: 'nonce-of-16-bytes-or-more' });
    await kit.a.close();
    await kit.b.close();
    const store = await kit.reopen();
    assert.equal((await kit.accept({ key: 'event-done-of-the-seller' }, store)).kind, 'done');
    const burned = { event: false, nonce: 'nonce-of-16-bytes-or-more' } as const;
    assert.equal((await kit.accept(burned, store)).kind, 'replayed');
    assert.equal((await kit.accept({}, store)).kind, 'in-flight');
    assert.equal(await kit.complete(lease.owner, {}, store), 'done');
  },
};

/** Texts with a special meaning in some database: hash tags, globs, separators, quotes, LIKE, encodings. */
const HOSTILE: readonly string[] = [
  '{}',
  '{a}b',
  'a}b{',
  '*',
  'k*y?[a-z]',
  ':',
  'a:b',
  'a::b',
  '%',
  '_',
  "'; DROP TABLE webhook_row; --",
  '"quoted"',
  '\\',
  '\\u0061',
  ' leading and trailing ',
  'line\nbreak\r\ttab',
  'e\u0301',
  '\u00e9',
  '\u{1F600}',
  '\ud800',
  '\udfff',
  '\ufffd',
  '\u0001"\\ud800"',
  '__proto__',
  'constructor',
  'A',
  'a',
  'a ',
  '0',
  '00',
  '1e0',
];

/** Cases of two senders that use equal keys: the rows of each must be independent (contract.md §9.1). */
export const keyspaceCases: Cases = {
  'events, nonces and tasks of two senders are separate': async ({ apply, win }) => {
    const same = { key: 'one-key-for-both-of-them', nonce: 'nonce-of-16-bytes-or-more', task: 'task-1' };
    await apply({ ...same, at: '2026-01-02T00:00:00Z' });
    await win({ ...same, at: '2026-01-01T00:00:00Z', sender: 'https://other.example/mcp' });
  },
  'sender and key are not concatenated': async ({ apply, win }) => {
    for (const separator of [':', '/', '\n', '|', '{', ' ']) {
      await apply({ sender: `s${separator}a`, key: 'b' });
      await win({ sender: 's', key: `a${separator}b` });
    }
  },
  'any text is a key of its own': async ({ win, complete, peek }) => {
    for (const key of HOSTILE) await win({ key, id: `accept of ${HOSTILE.indexOf(key)}` });
    for (const key of HOSTILE) {
      assert.equal(await complete(`accept of ${HOSTILE.indexOf(key)}`, { key }), 'done', JSON.stringify(key));
    }
    for (const key of HOSTILE) assert.equal(await peek({ key }), 'applied', JSON.stringify(key));
  },
  'any text is a sender of its own': async ({ win }) => {
    for (const sender of HOSTILE) await win({ sender, nonce: 'nonce-of-16-bytes-or-more' });
  },
  'any text is a task of its own': async ({ accept, win, advance, peek }) => {
    for (const task of HOSTILE) {
      await win({ task, key: `${HOSTILE.indexOf(task)}-holds-the-task` });
      const waiting = { task, key: `${HOSTILE.indexOf(task)}-waits-for-the-task` };
      assert.equal((await accept(waiting)).kind, 'task-busy', JSON.stringify(task));
      assert.equal(await peek(waiting), 'busy');
    }
    advance(LEASE_MS + 1);
    for (const task of HOSTILE) await win({ task, key: `${HOSTILE.indexOf(task)}-waits-for-the-task` });
  },
  'any text is a nonce, a key id and a notification id of its own': async ({ accept, win }) => {
    for (const odd of HOSTILE) {
      const draft = { nonce: odd, notification: odd, key: `${HOSTILE.indexOf(odd)}-has-an-odd-nonce` };
      assert.equal((await win(draft)).reemission, false, JSON.stringify(odd));
      assert.equal((await accept({ event: false, nonce: odd })).kind, 'replayed', JSON.stringify(odd));
      assert.equal(
        (await accept({ event: false, nonce: 'n', keyid: odd })).kind,
        'burned',
        JSON.stringify(odd),
      );
    }
  },
  'an event with any text as its key holds its task': async ({ accept, win }) => {
    for (const key of HOSTILE) {
      const task = `task of ${HOSTILE.indexOf(key)}`;
      await win({ key, task });
      assert.equal((await accept({ key: `${task} waits`, task })).kind, 'task-busy', JSON.stringify(key));
    }
  },
};

const FIRST = { key: 'event-0001-of-the-seller', notification: 'impairment-7' };
const SECOND = { key: 'event-0002-of-the-seller', notification: 'impairment-7' };

/**
 * Cases of one `notification_id` under two idempotency keys: the seller sends the notification as a new event, and not
 * as a retry (contract.md §10.2).
 */
export const notificationCases: Cases = {
  'the first event of a notification id is not a re-emission': async ({ apply }) => {
    assert.equal((await apply(FIRST)).reemission, false);
  },
  'the same notification id under another key is a re-emission, and delivered': async ({ apply, win, b }) => {
    await apply(FIRST);
    assert.equal((await win(SECOND, b)).reemission, true);
  },
  'each retry of a re-emission is a re-emission': async ({ apply, win, fail, advance }) => {
    await apply(FIRST);
    const first = await win(SECOND);
    await fail(first.lease.owner, SECOND);
    assert.equal((await win(SECOND)).reemission, true);
    advance(LEASE_MS + 1);
    assert.equal((await win(SECOND)).reemission, true);
  },
  'a retry of the first event is not a re-emission, also after one': async ({ apply, win, fail }) => {
    const first = await win(FIRST);
    await fail(first.lease.owner, FIRST);
    await apply(SECOND);
    assert.equal((await win(FIRST)).reemission, false);
  },
  'the first event, expired and sent again, is not a re-emission': async ({ apply, win, advance }) => {
    await apply(FIRST);
    await apply(SECOND);
    advance(DAY_MS + 1);
    assert.equal((await win(FIRST)).reemission, false);
  },
  'notification ids of two senders are separate': async ({ apply, win }) => {
    await apply(FIRST);
    assert.equal((await win({ ...SECOND, sender: 'https://other.example/mcp' })).reemission, false);
  },
  'a re-emission is marked in inbox mode too': async ({ accept }) => {
    await accept({ ...FIRST, mode: 'inbox' });
    const result = await accept({ ...SECOND, mode: 'inbox' });
    assert.ok(result.kind === 'queued' && result.reemission);
  },
  'the notification id is kept for 30 days after its last use, longer than its record': async ({
    apply,
    win,
    advance,
  }) => {
    await apply(FIRST);
    advance(29 * DAY_MS);
    assert.equal((await apply(SECOND)).reemission, true);
    advance(29 * DAY_MS);
    assert.equal((await apply({ ...SECOND, key: 'event-0003-of-the-seller' })).reemission, true);
    advance(31 * DAY_MS);
    assert.equal((await win({ ...SECOND, key: 'event-0004-of-the-seller' })).reemission, false);
  },
};
