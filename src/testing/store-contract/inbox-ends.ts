// Cases of the store contract: `accept` in mode `inbox`, overdue events, events of one task (admission.md §2.7, §4.13,
// §5.5).
// Called by `describeStoreContract` for stores with an inbox.
import assert from 'node:assert/strict';
import {
  INBOX,
  inboxOf,
  key,
  lease,
  leasedKeys,
  type LeaseDraft,
  leaseNone,
  leaseOne,
  seen,
} from './inbox-kit.ts';
import { type Cases, DAY_MS, decision, type Kit, LEASE_MS, SENDER, text } from './kit.ts';

const NONCE = { nonce: 'nonce-of-16-bytes-or-more' };
const OTHER_EVENT = { key: 'event-0002-of-the-seller' };

/**
 * Cases of mode `inbox`: an event is safe once it is stored, and a worker runs its handler. A store has the same rows
 * in mode `inbox` as in mode `inline`.
 */
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
  'identical bytes are replayed at once, since the event is safe': async ({ accept }) => {
    await accept({ ...INBOX, ...NONCE });
    assert.equal((await accept({ ...INBOX, ...NONCE })).kind, 'replayed');
  },
  'a queued event neither holds its task nor waits for it': async ({ accept }) => {
    assert.equal((await accept({ ...INBOX, task: 't' })).kind, 'queued');
    assert.equal((await accept({ ...INBOX, ...OTHER_EVENT, task: 't' })).kind, 'queued');
  },
  'an event ahead of the store’s clock is marked': async ({ accept }) => {
    const result = await accept({ ...INBOX, task: 't', at: 330_000 });
    assert.ok(result.kind === 'queued' && result.ahead);
  },
  'an older status is stale': async ({ accept, apply }) => {
    await apply({ ...OTHER_EVENT, task: 't', at: '2026-01-02T00:00:00Z' });
    assert.equal((await accept({ ...INBOX, task: 't', at: '2026-01-01T00:00:00Z' })).kind, 'stale');
  },
  'caps apply to queued events, their bytes until they are DONE': async ({ accept }) => {
    const limits = { maxPendingBytesPerSender: 30 };
    assert.equal((await accept({ ...INBOX, body: 'x'.repeat(20), limits })).kind, 'queued');
    assert.equal((await accept({ ...INBOX, ...OTHER_EVENT, body: 'x'.repeat(20), limits })).kind, 'over-cap');
  },
  'a changed payload is marked, and the first copy is kept': async ({ accept, win }) => {
    await accept({ ...INBOX, body: 'first' });
    assert.deepEqual(decision(await accept({ ...INBOX, body: 'second' })), {
      kind: 'in-flight',
      changed: true,
    });
    assert.equal(text((await win({ body: 'third' })).body), 'first');
  },
  'an inline accept leases a queued event': async ({ accept, win, complete }) => {
    await accept(INBOX);
    const { lease } = await win({ id: 'inline' });
    assert.deepEqual(lease, { owner: 'inline', run: 1, chargedAttempts: 1 });
    assert.equal(await complete(lease.owner), 'done');
    assert.equal((await accept(INBOX)).kind, 'done');
  },
  'an acknowledged event stays safe after a failure': async ({ accept, win, fail, peek, advance }) => {
    await accept(INBOX);
    const { lease } = await win(NONCE);
    assert.equal(await fail(lease.owner), 'queued');
    assert.equal((await accept(NONCE)).kind, 'replayed');
    advance(400 * DAY_MS);
    assert.equal(await peek(), 'free');
  },
  'an acknowledged event outlives a crash of its handler': async ({ accept, win, peek, advance }) => {
    await accept(INBOX);
    await win();
    advance(400 * DAY_MS);
    assert.equal(await peek(), 'free');
  },
  'a delivery in inbox mode acknowledges a record of inline mode: it is safe and never expires': async (
    kit,
  ) => {
    const { lease } = await kit.win(NONCE);
    assert.equal(await kit.fail(lease.owner), 'queued');
    assert.equal((await kit.accept(INBOX)).kind, 'in-flight');
    assert.equal((await kit.accept(NONCE)).kind, 'replayed');
    kit.advance(400 * DAY_MS);
    assert.equal(await kit.peek(), 'free');
  },
  'a delivery in inbox mode acknowledges a record that runs inline too': async ({
    win,
    accept,
    peek,
    advance,
  }) => {
    await win();
    assert.equal((await accept(INBOX)).kind, 'in-flight');
    advance(400 * DAY_MS);
    assert.equal(await peek(), 'free');
  },
  'an expired lease is left to the workers': async ({ win, accept, advance }) => {
    await win();
    advance(LEASE_MS + 1);
    assert.equal((await accept(INBOX)).kind, 'in-flight');
    assert.equal((await win()).lease.run, 2);
  },
};

/** Asserts that a time is the expected one or a little later, because the store's own clock goes on during the case. */
function near(ms: number | undefined, expected: number, what: string): void {
  assert.ok(ms !== undefined && ms >= expected && ms < expected + 30_000, `${what}: ${ms} ms`);
}

/** Cases of `StoreInbox.overdueMs`: how long the earliest due event has been due. Stores may lack it. */
export const inboxDueCases: Cases = {
  'overdueMs is the time since the earliest due event was due, whether queued or with an expired lease':
    async (kit) => {
      const overdueMs = async (): Promise<number | undefined> => inboxOf(kit.b).overdueMs?.();
      if (!inboxOf(kit.b).overdueMs) return;
      assert.equal(await overdueMs(), undefined, 'of an empty store');
      await kit.win({ key: key(1) });
      await kit.accept({ ...INBOX, key: key(2) });
      kit.advance(LEASE_MS + 60_000);
      await kit.accept({ ...INBOX, key: key(3) });
      near(await overdueMs(), LEASE_MS + 60_000, 'the first of two; a lease of inline mode is its sender’s');
      const { events } = await lease(kit, { owner: 'worker' });
      assert.equal(events.length, 2);
      assert.equal(await overdueMs(), undefined, 'while both are leased');
      assert.equal(await kit.fail('worker', { key: key(3), backoffMs: 600_000 }), 'queued');
      kit.advance(LEASE_MS + 60_000);
      near(await overdueMs(), 60_000, 'since a lease ran out; the other one is in its back-off');
      kit.advance(600_000);
      assert.deepEqual(await leasedKeys(kit, { max: 1 }), [key(3)]);
      near(await overdueMs(), 660_000, 'since a lease ran out: a suspect waits for its turn');
      assert.deepEqual(await leasedKeys(kit, { alone: true }), [key(2)]);
      assert.equal(await overdueMs(), undefined, 'while both are leased again');
    },
};

const OLD = '2026-01-01T00:00:00Z';
const NEW = '2026-01-02T00:00:00Z';

const first = { ...INBOX, key: key(1), task: 't' };
const second = { ...INBOX, key: key(2), task: 't' };

/** Leases the first event of a task to a worker, while the second event has to wait for it. */
async function heldUp(kit: Kit, worker: LeaseDraft): Promise<void> {
  await kit.accept(first);
  kit.advance(1000);
  await kit.accept(second);
  await leaseOne(kit, worker);
  await leaseNone(kit);
}

/**
 * Cases of several events of one task. Their handlers never overlap, and run in the order of timestamps, if there are
 * any. A leased event comes with facts of the store, e.g. that its task has ended.
 */
export const inboxTaskCases: Cases = {
  'one event of a task is leased at a time': async (kit) => {
    await kit.accept(first);
    kit.advance(1000);
    await kit.accept(second);
    assert.equal((await leaseOne(kit, { owner: 'worker' })).key, key(1));
    await leaseNone(kit, {}, kit.b);
    assert.equal(await kit.complete('worker', { key: key(1) }), 'done');
    assert.equal((await leaseOne(kit)).key, key(2));
  },
  'a failure frees the task: a newer event does not wait behind an older one in back-off': async (kit) => {
    await heldUp(kit, { owner: 'worker' });
    assert.equal(await kit.fail('worker', { key: key(1) }), 'queued');
    assert.equal((await leaseOne(kit)).key, key(2));
  },
  'an expired lease keeps the task for its event, which is the next one of it': async (kit) => {
    await heldUp(kit, { retry: { crashes: 1 } });
    kit.advance(LEASE_MS + 1);
    const { events, died } = await lease(kit, { retry: { crashes: 1 } });
    assert.deepEqual([events, died], [[], []]);
    assert.equal((await leaseOne(kit, { owner: 'worker', alone: true })).key, key(1));
    await leaseNone(kit);
    assert.equal(await kit.complete('worker', { key: key(1) }), 'done');
    assert.equal((await leaseOne(kit)).key, key(2));
  },
  'an event that was given back keeps its task, also from what comes later': async (kit) => {
    await heldUp(kit, { owner: 'worker' });
    const giveBack = { key: key(1), unstarted: true, backoffMs: 1000 };
    assert.equal(await kit.fail('worker', giveBack), 'queued');
    await kit.accept({ ...INBOX, key: key(3), task: 't' });
    await leaseNone(kit);
    assert.equal(await kit.peek({ key: key(2) }), 'busy');
    assert.equal(await kit.peek({ key: key(1) }), 'free');
    kit.advance(1001);
    assert.equal((await leaseOne(kit, { owner: 'again' })).key, key(1));
    await leaseNone(kit);
    assert.equal(await kit.complete('again', { key: key(1) }), 'done');
    assert.equal((await leaseOne(kit)).key, key(2));
  },
  'an event that was given back and that nobody takes keeps its task for ten minutes after it was due':
    async (kit) => {
      await heldUp(kit, { owner: 'worker' });
      await kit.fail('worker', { key: key(1), unstarted: true, backoffMs: 1000 });
      kit.advance(600_000);
      assert.equal(await kit.peek({ key: key(2) }), 'busy');
      kit.advance(1000);
      assert.equal(await kit.peek({ key: key(2) }), 'free');
      const inline = await kit.accept({ key: key(3), task: 't', at: NEW, id: 'inline' });
      assert.equal(inline.kind, 'won');
    },
  'an event whose lease has run out keeps its task before any worker has looked at it, for ten minutes':
    async (kit) => {
      await heldUp(kit, { owner: 'worker' });
      kit.advance(LEASE_MS + 1);
      assert.equal(await kit.peek({ key: key(2) }), 'busy');
      const inline = await kit.accept({ key: key(3), task: 't', at: NEW, id: 'inline' });
      assert.equal(inline.kind, 'task-busy');
      kit.advance(600_000);
      assert.equal(await kit.peek({ key: key(2) }), 'free');
    },
  'the first event of a task is the next one from its acceptance on, and those behind it follow in order':
    async (kit) => {
      const third = { ...INBOX, key: key(3), task: 't', at: NEW };
      await kit.accept({ ...first, at: OLD });
      await kit.accept({ ...second, at: OLD });
      assert.equal(await kit.peek({ key: key(2) }), 'busy');
      // A process that still runs the first event gets no other event of the same task. The call reserves the events
      // that it found, so others cannot lease them for a moment.
      await leaseNone(kit, { except: [key(1)] });
      kit.advance(60_000);
      assert.equal((await leaseOne(kit, { owner: 'one' })).key, key(1));
      assert.equal(await kit.complete('one', { key: key(1) }), 'done');
      await kit.accept(third);
      assert.equal(await kit.peek({ key: key(3) }), 'busy', 'behind the one that waited');
      assert.equal((await leaseOne(kit, { owner: 'two' }, kit.b)).key, key(2));
      assert.equal(await kit.complete('two', { key: key(2) }), 'done');
      assert.equal((await leaseOne(kit)).key, key(3));
    },
  'an event that nobody takes holds its task for ten minutes': async (kit) => {
    await kit.accept(first);
    await kit.accept(second);
    kit.advance(600_001);
    assert.equal(await kit.peek({ key: key(2) }), 'free');
    const inline = await kit.accept({ key: key(3), task: 't', at: NEW, id: 'inline' });
    assert.equal(inline.kind, 'won');
  },
  'an older event does not go behind a newer one that was handed out, and is stale once that is done': async (
    kit,
  ) => {
    await kit.accept({ ...second, at: NEW });
    await leaseOne(kit);
    await kit.accept({ ...first, at: OLD });
    kit.advance(LEASE_MS + 1);
    await leaseNone(kit);
    assert.equal((await leaseOne(kit, { owner: 'worker', alone: true })).key, key(2));
    assert.equal(await kit.complete('worker', { key: key(2) }), 'done');
    await leaseNone(kit);
    assert.equal((await seen(kit, key(1))).state, 'stale');
  },
  'an event that keeps its task gives it up where it is discarded': async (kit) => {
    await heldUp(kit, { owner: 'worker' });
    await kit.fail('worker', { key: key(1), unstarted: true, backoffMs: 0 });
    assert.equal(await inboxOf(kit.a).discard(SENDER, key(1), DAY_MS), 'discarded');
    assert.equal((await leaseOne(kit)).key, key(2));
  },
  'an event that waited for its task is leased before younger events': async (kit) => {
    await heldUp(kit, { owner: 'worker' });
    await kit.accept({ ...INBOX, key: key(3) });
    assert.equal(await kit.complete('worker', { key: key(1) }), 'done');
    assert.deepEqual(await leasedKeys(kit, { max: 1 }), [key(2)]);
    assert.deepEqual(await leasedKeys(kit, { max: 1 }), [key(3)]);
  },
  'a renewed lease holds its task': async (kit) => {
    await kit.accept(first);
    await leaseOne(kit, { owner: 'worker' });
    await kit.accept(second);
    for (let n = 0; n < 3; n += 1) {
      kit.advance(LEASE_MS - 1000);
      assert.equal(await kit.renew('worker', { key: key(1) }), 'renewed');
      await leaseNone(kit);
    }
    assert.equal(await kit.complete('worker', { key: key(1) }), 'done');
    assert.equal((await leaseOne(kit)).key, key(2));
  },
  'a handler of inline mode holds its task too': async (kit) => {
    const { lease: held } = await kit.win({ key: key(1), task: 't' });
    await kit.accept(second);
    await leaseNone(kit);
    assert.equal(await kit.complete(held.owner, { key: key(1) }), 'done');
    assert.equal((await leaseOne(kit)).key, key(2));
  },
  'the task of an inline process that died is free after the lease': async (kit) => {
    await kit.win({ key: key(1), task: 't' });
    await kit.accept(second);
    await leaseNone(kit);
    kit.advance(LEASE_MS + 1);
    assert.equal((await leaseOne(kit)).key, key(2));
  },
  'a worker holds the task against inline mode': async (kit) => {
    await kit.accept(first);
    await leaseOne(kit, { owner: 'worker' });
    assert.equal((await kit.accept({ key: key(2), task: 't' })).kind, 'task-busy');
    await kit.complete('worker', { key: key(1) });
    assert.equal((await kit.accept({ key: key(2), task: 't' })).kind, 'won');
  },
  'tasks do not wait for each other': async (kit) => {
    await kit.accept(first);
    kit.advance(1000);
    await kit.accept({ ...INBOX, key: key(2), task: 'u' });
    kit.advance(1000);
    await kit.accept({ ...INBOX, key: key(3) });
    assert.deepEqual(await leasedKeys(kit), [key(1), key(2), key(3)]);
  },
  'the same task id of two senders is two tasks': async (kit) => {
    await kit.accept(first);
    await kit.accept({ ...second, sender: 'https://other.example/mcp' });
    assert.equal((await leasedKeys(kit, { senders: [] })).length, 2);
  },
  '300 events that wait for one task do not block other tasks, and are leased in order': async (kit) => {
    for (let n = 1; n <= 300; n += 1) await kit.accept({ ...first, key: key(n) });
    kit.advance(1000);
    await kit.accept({ ...INBOX, key: key(301), task: 'u' });
    const given: string[] = [];
    for (let calls = 0; calls < 6; calls += 1) given.push(...(await leasedKeys(kit, { owner: 'worker' })));
    assert.deepEqual(given, [key(1), key(301)]);
    for (let n = 1; n < 40; n += 1) {
      assert.equal(await kit.complete('worker', { key: key(n) }), 'done');
      const next = await leasedKeys(kit, { owner: 'worker' });
      assert.equal(next.length, 1);
      given.push(...next);
      if (next[0] !== key(n + 1)) assert.fail(`${next[0]} before ${key(n + 1)}`);
    }
  },
  'a status that became older while it waited is stale, and the next event is leased': async (kit) => {
    await kit.accept({ ...first, at: NEW });
    kit.advance(1000);
    await kit.accept({ ...second, at: OLD });
    kit.advance(1000);
    await kit.accept({ ...INBOX, key: key(3), task: 't', at: NEW });
    await leaseOne(kit, { owner: 'worker' });
    await leaseNone(kit);
    await kit.complete('worker', { key: key(1) });
    assert.deepEqual(await leasedKeys(kit), [key(3)]);
    assert.equal(await kit.peek({ key: key(2) }), 'stale');
    assert.equal((await kit.accept({ ...second, at: OLD })).kind, 'done');
    assert.equal((await seen(kit, key(2))).body, undefined);
  },
  'an event that a worker found stale is not won by the accept that leased it before': async (kit) => {
    const older = { key: key(1), task: 't', at: OLD, id: 'first' };
    const { lease: held } = await kit.win(older);
    await kit.accept({ ...first, at: OLD });
    await kit.fail(held.owner, { key: key(1), backoffMs: 0 });
    await kit.apply({ key: key(2), task: 't', at: NEW });
    await leaseNone(kit);
    assert.equal(await kit.peek({ key: key(1) }), 'stale');
    assert.equal((await kit.accept(older)).kind, 'done');
  },
  'a task goes on after a worker’s handler and then an inline one died': async (kit) => {
    await kit.accept(first);
    await kit.accept(second);
    await leaseOne(kit, { owner: 'dies' });
    await leaseNone(kit);
    // The first event holds the task for at most ten minutes after its lease expired, if no worker leases it. A worker
    // that asked within them would have got it.
    kit.advance(LEASE_MS + 600_001);
    await kit.win({ key: key(2), task: 't' });
    await leaseNone(kit);
    kit.advance(LEASE_MS + 1);
    // Both events are suspects by now (their process died while it ran them), and nothing blocks the task.
    await leaseNone(kit);
    const { key: next } = await leaseOne(kit, { owner: 'worker', alone: true });
    await leaseNone(kit, { alone: true });
    await kit.complete('worker', { key: next });
    await leaseOne(kit, { alone: true });
  },
  'lease marks a second terminal status': async (kit) => {
    await kit.apply({ key: key(1), task: 't', at: OLD, terminal: true });
    await kit.accept({ ...second, at: NEW, terminal: true });
    assert.equal((await leaseOne(kit)).afterTerminal, true);
  },
  'lease marks a timestamp ahead of the clock': async (kit) => {
    await kit.accept({ ...first, at: 330_000 });
    assert.equal((await leaseOne(kit)).ahead, true);
  },
  'lease marks a re-emission': async (kit) => {
    await kit.apply({ key: key(1), notification: 'n' });
    await kit.accept({ ...INBOX, key: key(2), notification: 'n' });
    assert.equal((await leaseOne(kit)).reemission, true);
  },
  'lease marks a report after the final one': async (kit) => {
    await kit.apply({ key: key(1), report: 'mb', final: true });
    await kit.accept({ ...INBOX, key: key(2), report: 'mb' });
    assert.equal((await leaseOne(kit)).afterFinal, true);
  },
};
