import assert from 'node:assert/strict';
import type { Cases } from './kit.ts';
import { DAY_MS, LEASE_MS, decision, text } from './kit.ts';

const INBOX = { mode: 'inbox' } as const;
const NONCE = { nonce: 'nonce-of-16-bytes-or-more' };
const OTHER = { key: 'event-0002-of-the-seller' };

/** Inbox mode: an event is safe from its insertion, and a worker does the rest. The rows are those of inline mode. */
export const inboxCases: Cases = {
  'a new event is queued, and a duplicate in-flight': async ({ accept, peek, b }) => {
    assert.deepEqual(decision(await accept(INBOX)), {
      kind: 'queued',
      changed: false,
      reemission: false,
      ahead: false,
    });
    assert.deepEqual(decision(await accept(INBOX, b)), { kind: 'in-flight', changed: false });
    assert.equal(await peek(), 'free');
  },
  'identical bytes are replayed at once, for it is safe': async ({ accept }) => {
    await accept({ ...INBOX, ...NONCE });
    assert.equal((await accept({ ...INBOX, ...NONCE })).kind, 'replayed');
  },
  'it does not hold its task, and is not held up by it': async ({ accept }) => {
    assert.equal((await accept({ ...INBOX, task: 't' })).kind, 'queued');
    assert.equal((await accept({ ...INBOX, ...OTHER, task: 't' })).kind, 'queued');
  },
  'an event ahead of the store’s clock is said to be': async ({ accept }) => {
    const result = await accept({ ...INBOX, task: 't', at: 330_000 });
    assert.ok(result.kind === 'queued' && result.ahead);
  },
  'an older status is stale': async ({ accept, apply }) => {
    await apply({ ...OTHER, task: 't', at: '2026-01-02T00:00:00Z' });
    assert.equal((await accept({ ...INBOX, task: 't', at: '2026-01-01T00:00:00Z' })).kind, 'stale');
  },
  'caps bind it, bytes until DONE': async ({ accept }) => {
    const limits = { maxPendingBytesPerSender: 30 };
    assert.equal((await accept({ ...INBOX, body: 'x'.repeat(20), limits })).kind, 'queued');
    assert.equal((await accept({ ...INBOX, ...OTHER, body: 'x'.repeat(20), limits })).kind, 'over-cap');
  },
  'a changed payload is said to be, and the first copy kept': async ({ accept, win }) => {
    await accept({ ...INBOX, body: 'first' });
    assert.deepEqual(decision(await accept({ ...INBOX, body: 'second' })), {
      kind: 'in-flight',
      changed: true,
    });
    assert.equal(text((await win({ body: 'third' })).body), 'first');
  },
  'an inline accept leases what the inbox queued': async ({ accept, win, complete }) => {
    await accept(INBOX);
    const { lease } = await win({ id: 'inline' });
    assert.deepEqual(lease, { owner: 'inline', fence: 1, attempt: 1 });
    assert.equal(await complete(lease.owner), 'done');
    assert.equal((await accept(INBOX)).kind, 'done');
  },
  'what the inbox acknowledged stays safe through a failure': async ({
    accept,
    win,
    fail,
    peek,
    advance,
  }) => {
    await accept(INBOX);
    const { lease } = await win(NONCE);
    assert.equal(await fail(lease.owner), 'queued');
    assert.equal((await accept(NONCE)).kind, 'replayed');
    advance(400 * DAY_MS);
    assert.equal(await peek(), 'free');
  },
  'what the inbox acknowledged outlives a crash of its handler': async ({ accept, win, peek, advance }) => {
    await accept(INBOX);
    await win();
    advance(400 * DAY_MS);
    assert.equal(await peek(), 'free');
  },
  'a record of inline mode is acknowledged: from then on it is safe and never expires': async (kit) => {
    const { lease } = await kit.win(NONCE);
    assert.equal(await kit.fail(lease.owner), 'queued');
    assert.equal((await kit.accept(INBOX)).kind, 'in-flight');
    assert.equal((await kit.accept(NONCE)).kind, 'replayed');
    kit.advance(400 * DAY_MS);
    assert.equal(await kit.peek(), 'free');
  },
  'a record that runs inline is acknowledged too': async ({ win, accept, peek, advance }) => {
    await win();
    assert.equal((await accept(INBOX)).kind, 'in-flight');
    advance(400 * DAY_MS);
    assert.equal(await peek(), 'free');
  },
  'a lease that ran out is left to the workers': async ({ win, accept, advance }) => {
    await win();
    advance(LEASE_MS + 1);
    assert.equal((await accept(INBOX)).kind, 'in-flight');
    assert.equal((await win()).lease.fence, 2);
  },
};
