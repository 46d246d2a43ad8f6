import assert from 'node:assert/strict';
import { inboxOf, kill, lease, leaseNone, leaseOne, leasedKeys, pagesOf, seen } from './inbox-kit.ts';
import type { Cases } from './kit.ts';
import { DAY_MS, KEY, LEASE_MS, SENDER, decision, text } from './kit.ts';

const INBOX = { mode: 'inbox' } as const;

const key = (n: number): string => `event-${String(n).padStart(4, '0')}-of-the-seller`;

/** `redrive` and `discard`: the two ways out of DEAD. */
export const inboxDeadCases: Cases = {
  'redrive: a DEAD event is due at once, as if it were new': async (kit) => {
    await kill(kit);
    assert.equal(await inboxOf(kit.b).redrive(SENDER, KEY), 'queued');
    const { attempts, crashes, acked } = await seen(kit, KEY);
    assert.deepEqual([attempts, crashes, acked], [0, 0, true]);
    const event = await leaseOne(kit, { owner: 'next' });
    assert.deepEqual(event.lease, { owner: 'next', fence: 2, attempt: 1 });
    assert.equal(text(event.body), 'the first copy');
    assert.equal(await kit.complete('next'), 'done');
  },
  'redrive: one that died of crashes has them all again': async (kit) => {
    const retry = { crashes: 1 };
    await kit.accept(INBOX);
    await leaseOne(kit, { retry });
    kit.advance(LEASE_MS + 1);
    await leaseNone(kit, { retry });
    await leaseOne(kit, { retry, alone: true });
    kit.advance(LEASE_MS + 1);
    assert.equal((await lease(kit, { retry, alone: true })).died.length, 1);
    assert.equal(await inboxOf(kit.a).redrive(SENDER, KEY), 'queued');
    assert.equal((await seen(kit, KEY)).suspect, undefined);
    assert.deepEqual((await leaseOne(kit, { owner: 'next', retry })).lease, {
      owner: 'next',
      fence: 3,
      attempt: 1,
    });
  },
  'redrive: an inline accept wins it too, and it stays safe': async (kit) => {
    const { lease: held } = await kit.win({ nonce: 'nonce-of-16-bytes-or-more' });
    await kit.fail(held.owner, { permanent: true });
    assert.equal(await inboxOf(kit.a).redrive(SENDER, KEY), 'queued');
    assert.equal((await kit.accept({ nonce: 'nonce-of-16-bytes-or-more' })).kind, 'replayed');
    assert.equal((await kit.win({ nonce: null })).lease.attempt, 1);
    kit.advance(400 * DAY_MS);
    assert.equal(await kit.peek(), 'free');
  },
  'redrive: only what is DEAD': async (kit) => {
    const inbox = inboxOf(kit.a);
    assert.equal(await inbox.redrive(SENDER, KEY), 'absent');
    await kit.accept(INBOX);
    assert.equal(await inbox.redrive(SENDER, KEY), 'other');
    await leaseOne(kit, { owner: 'worker' });
    assert.equal(await inbox.redrive(SENDER, KEY), 'other');
    await kit.complete('worker');
    assert.equal(await inbox.redrive(SENDER, KEY), 'other');
  },
  'redrive: the owner that failed it has no say any more': async (kit) => {
    await kill(kit);
    await inboxOf(kit.a).redrive(SENDER, KEY);
    assert.equal(await kit.complete('worker'), 'lost');
    assert.equal(await kit.renew('worker'), 'lost');
  },
  'discard: a DEAD event is DONE, its duplicates answered for the retention': async (kit) => {
    await kill(kit);
    assert.equal(await inboxOf(kit.b).discard(SENDER, KEY, DAY_MS), 'discarded');
    const again = decision(await kit.accept({ ...INBOX, body: 'the first copy' }));
    assert.deepEqual(again, { kind: 'done', changed: false, state: 'stale', died: false });
    assert.equal((await seen(kit, KEY)).body, undefined);
    kit.advance(DAY_MS - 60_000);
    assert.equal(await kit.peek(), 'stale');
    kit.advance(60_001);
    assert.equal(await kit.peek(), 'absent');
  },
  'discard: a queued event is never handled': async (kit) => {
    await kit.accept(INBOX);
    assert.equal(await inboxOf(kit.a).discard(SENDER, KEY, DAY_MS), 'discarded');
    await leaseNone(kit);
    assert.equal(decision(await kit.accept()).kind, 'done');
    assert.deepEqual((await pagesOf(kit, 'queued', 10))[0], { records: [] });
  },
  'discard: its body no longer counts': async (kit) => {
    const limits = { maxPendingBytesPerSender: 30 };
    await kit.accept({ ...INBOX, body: 'x'.repeat(20), limits });
    await inboxOf(kit.a).discard(SENDER, KEY, DAY_MS);
    assert.equal((await kit.accept({ ...INBOX, key: key(2), body: 'x'.repeat(20), limits })).kind, 'queued');
  },
  'discard: what waits for the same task has its turn': async (kit) => {
    for (const n of [1, 2, 3]) {
      await kit.accept({ ...INBOX, key: key(n), task: 't' });
      kit.advance(1000);
    }
    await leaseOne(kit, { owner: 'worker' });
    await leaseNone(kit);
    await kit.complete('worker', { key: key(1) });
    assert.equal(await inboxOf(kit.a).discard(SENDER, key(2), DAY_MS), 'discarded');
    assert.deepEqual(await leasedKeys(kit), [key(3)]);
  },
  'discard: what waited for its task does not keep the next one from it': async (kit) => {
    for (const n of [1, 2, 3]) {
      await kit.accept({ ...INBOX, key: key(n), task: 't' });
      kit.advance(1000);
    }
    await leaseOne(kit, { owner: 'worker' });
    await leaseNone(kit);
    assert.equal(await inboxOf(kit.a).discard(SENDER, key(2), DAY_MS), 'discarded');
    await kit.complete('worker', { key: key(1) });
    assert.deepEqual(await leasedKeys(kit), [key(3)]);
  },
  'discard: neither what runs nor what is done': async (kit) => {
    const inbox = inboxOf(kit.a);
    assert.equal(await inbox.discard(SENDER, KEY, DAY_MS), 'absent');
    await kit.accept(INBOX);
    await leaseOne(kit, { owner: 'worker' });
    assert.equal(await inbox.discard(SENDER, KEY, DAY_MS), 'other');
    await kit.complete('worker');
    assert.equal(await inbox.discard(SENDER, KEY, DAY_MS), 'other');
    assert.equal(await kit.peek(), 'applied');
  },
};
