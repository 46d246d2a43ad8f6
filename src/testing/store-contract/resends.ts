import assert from 'node:assert/strict';
import type { Cases } from './kit.ts';
import { LEASE_MS, decision } from './kit.ts';

const ID = { id: 'accept-1', nonce: 'nonce-of-16-bytes-or-more' };
const OTHER = { key: 'event-0002-of-the-seller' };

/** `acceptId` sent again, by a client library that saw no reply: the same accept, and the answer it got then. */
export const resendCases: Cases = {
  'while it is LEASED: won, the same lease': async ({ accept, b }) => {
    const first = decision(await accept(ID));
    assert.deepEqual(decision(await accept(ID, b)), first);
    assert.deepEqual(first, {
      kind: 'won',
      changed: false,
      lease: { owner: 'accept-1', fence: 1, attempt: 1 },
      reemission: false,
      afterTerminal: false,
      afterFinal: false,
      ahead: false,
    });
  },
  'after a takeover: won, the lease of the takeover': async ({ accept, win, advance }) => {
    await win({ body: 'first' });
    advance(LEASE_MS + 1);
    const first = decision(await accept({ ...ID, body: 'changed' }));
    assert.equal(first.kind, 'won');
    assert.deepEqual(decision(await accept({ ...ID, body: 'changed' })), first);
  },
  'after its own completion: the answer it got then, never replayed': async ({ accept, complete }) => {
    const first = decision(await accept(ID));
    assert.equal(await complete(ID.id), 'done');
    assert.deepEqual(decision(await accept(ID)), first);
  },
  'after its own failure for good: the answer it got then': async ({ accept, fail }) => {
    const first = decision(await accept(ID));
    assert.equal(await fail(ID.id, { permanent: true }), 'dead');
    assert.deepEqual(decision(await accept(ID)), first);
  },
  'after its own failure: decided anew, for that lease was given back': async ({ accept, win, fail }) => {
    await accept(ID);
    assert.equal(await fail(ID.id, { backoffMs: 0 }), 'queued');
    assert.deepEqual((await win(ID)).lease, { owner: ID.id, fence: 2, attempt: 2 });
  },
  'after its lease ran out: decided anew, for that lease is nobody’s, and was no attempt': async ({
    win,
    advance,
  }) => {
    await win(ID);
    advance(LEASE_MS + 1);
    assert.deepEqual((await win(ID)).lease, { owner: ID.id, fence: 2, attempt: 1 });
  },
  'after its lease went to somebody else: not won': async ({ accept, win, advance, complete }) => {
    await win(ID);
    advance(LEASE_MS + 1);
    const { lease } = await win({}, undefined);
    assert.equal((await accept(ID)).kind, 'in-flight');
    assert.equal(await complete(lease.owner), 'done');
  },
  'queued in the inbox: queued, also when a handler has it or is through': async (kit) => {
    const inbox = { ...ID, mode: 'inbox' } as const;
    const first = decision(await kit.accept(inbox));
    assert.deepEqual(first, { kind: 'queued', changed: false, reemission: false, ahead: false });
    assert.deepEqual(decision(await kit.accept(inbox, kit.b)), first);
  },
  'DEAD by this accept: died again, so that the alarm is not lost with the reply': async (kit) => {
    const retry = { crashes: 1 };
    await kit.win({ retry });
    kit.advance(LEASE_MS + 1);
    await kit.win({ retry });
    kit.advance(LEASE_MS + 1);
    const first = decision(await kit.accept({ ...ID, retry }));
    assert.deepEqual(first, { kind: 'done', changed: false, state: 'dead', died: true });
    assert.deepEqual(decision(await kit.accept({ ...ID, retry }, kit.b)), first);
    assert.deepEqual(decision(await kit.accept({ retry })), { ...first, died: false });
  },
  'recorded stale: stale again, not done': async ({ accept, apply }) => {
    await apply({ ...OTHER, task: 't', at: '2026-01-02T00:00:00Z' });
    const stale = { ...ID, task: 't', at: '2026-01-01T00:00:00Z' };
    assert.equal((await accept(stale)).kind, 'stale');
    assert.equal((await accept(stale)).kind, 'stale');
  },
  'stale and unrecorded for want of room: stale again': async ({ accept, apply }) => {
    await apply({ ...OTHER, task: 't', at: '2026-01-02T00:00:00Z' });
    const limits = { maxRecordsPerSender: 1 };
    const stale = { ...ID, task: 't', at: '2026-01-01T00:00:00Z', limits };
    assert.equal((await accept(stale)).kind, 'stale');
    assert.equal((await accept(stale)).kind, 'stale');
  },
  'burned: burned again': async ({ accept }) => {
    assert.equal((await accept({ ...ID, event: false })).kind, 'burned');
    assert.equal((await accept({ ...ID, event: false })).kind, 'burned');
  },
  'a duplicate of a finished event: done again': async ({ accept, apply }) => {
    await apply();
    const first = decision(await accept(ID));
    assert.equal(first.kind, 'done');
    assert.deepEqual(decision(await accept(ID)), first);
  },
  'over a cap and then with room: decided anew, for nothing was written': async ({ accept }) => {
    assert.equal((await accept({ ...ID, limits: { maxRecordsPerSender: 0 } })).kind, 'over-cap');
    assert.equal((await accept(ID)).kind, 'won');
  },
  'in-flight is no last word: the same accept takes over when the lease runs out': async (kit) => {
    await kit.win();
    assert.equal((await kit.accept(ID)).kind, 'in-flight');
    kit.advance(LEASE_MS + 1);
    assert.equal((await kit.win(ID)).lease.owner, ID.id);
  },
  'in-flight is no last word: done, not replayed, when the first copy is through': async (kit) => {
    const { lease } = await kit.win();
    assert.equal((await kit.accept(ID)).kind, 'in-flight');
    assert.equal(await kit.complete(lease.owner), 'done');
    assert.equal((await kit.accept(ID)).kind, 'done');
  },
  'identical bytes, whose nonce came with the first copy: in-flight, and replayed when that is through':
    async (kit) => {
      const first = await kit.win({ nonce: ID.nonce });
      assert.equal((await kit.accept(ID)).kind, 'in-flight');
      assert.equal((await kit.accept(ID)).kind, 'in-flight');
      assert.equal(await kit.complete(first.lease.owner), 'done');
      assert.equal((await kit.accept(ID)).kind, 'replayed');
    },
  'identical bytes that won: won, the same lease': async (kit) => {
    const first = await kit.win({ nonce: ID.nonce });
    assert.equal(await kit.fail(first.lease.owner, { backoffMs: 0 }), 'queued');
    const again = decision(await kit.accept(ID));
    assert.equal(again.kind, 'won');
    assert.deepEqual(decision(await kit.accept(ID)), again);
  },
  'task-busy is no last word: the same accept wins when the task is free': async (kit) => {
    const holder = await kit.win({ ...OTHER, task: 't' });
    assert.equal((await kit.accept({ ...ID, task: 't' })).kind, 'task-busy');
    assert.equal(await kit.complete(holder.lease.owner, OTHER), 'done');
    assert.equal((await kit.accept({ ...ID, task: 't' })).kind, 'won');
  },
  'without a nonce the record remembers it': async ({ accept, complete }) => {
    const legacy = { id: ID.id, nonce: null };
    const first = decision(await accept(legacy));
    assert.deepEqual(decision(await accept(legacy)), first);
    assert.equal(await complete(ID.id), 'done');
    assert.deepEqual(decision(await accept(legacy)), first);
  },
};
