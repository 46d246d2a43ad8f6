// Cases of the store contract: `StoreInbox.lease`, the order in which senders are served, and repeated calls
// (admission.md §4.12, §8.15).
// Called by `describeStoreContract` for stores with an inbox.
import assert from 'node:assert/strict';
import { INBOX, key, lease, leasedKeys, leaseNone, leaseOne, seen } from './inbox-kit.ts';
import type { LeasedEvent } from '../../stores/store.ts';
import type { Cases, Kit } from './kit.ts';
import { CONFIG_ERROR, DAY_MS, KEY, LEASE_MS, NO_LENGTHS, SENDER, decision, text } from './kit.ts';

const OTHER = 'https://other.example/mcp';

async function takesTurns(kit: Kit, busy: string, other: string): Promise<void> {
  // The busy sender has more events than all calls below can lease.
  for (let n = 1; n <= 30; n += 1) await kit.accept({ ...INBOX, sender: busy, key: key(n) });
  for (const max of [1, 10]) {
    await kit.accept({ ...INBOX, sender: other, key: key(max) });
    const two = [await lease(kit, { max }), await lease(kit, { max })].flatMap(({ events }) => events);
    assert.ok(
      two.some(({ sender }) => sender === other),
      `of two calls for ${max}`,
    );
  }
}

/** Cases of `StoreInbox.lease`: the events that are due, the worker that gets them, and leases that end. */
export const inboxLeaseCases: Cases = {
  'nothing is due in an empty store': async (kit) => {
    assert.equal((await leaseNone(kit)).nextDueMs, undefined);
  },
  'a lease of no length is a config_error, and due events stay due': async (kit) => {
    await kit.accept(INBOX);
    for (const leaseMs of NO_LENGTHS) {
      await assert.rejects(lease(kit, { leaseMs }), CONFIG_ERROR);
      await assert.rejects(lease(kit, { leaseMs, alone: true }), CONFIG_ERROR);
    }
    assert.deepEqual((await leaseOne(kit, { owner: 'worker' }, kit.b)).lease, {
      owner: 'worker',
      run: 1,
      chargedAttempts: 1,
    });
  },
  'a queued event is leased with its body, and its owner completes it': async (kit) => {
    await kit.accept({ ...INBOX, body: 'the first copy' });
    const { body, waitedMs = 0, ...event } = await leaseOne(kit, { owner: 'worker' }, kit.b);
    assert.equal(text(body), 'the first copy');
    assert.ok(waitedMs >= 0, `waitedMs is ${waitedMs}`);
    assert.deepEqual(event, {
      sender: SENDER,
      key: KEY,
      lease: { owner: 'worker', run: 1, chargedAttempts: 1 },
      reemission: false,
      afterTerminal: false,
      afterFinal: false,
      ahead: false,
    });
    assert.equal(await kit.peek(), 'busy');
    assert.equal(await kit.complete('worker'), 'done');
    assert.equal(await kit.complete('worker', {}, kit.b), 'done');
    assert.equal(await kit.peek(), 'applied');
    await leaseNone(kit);
  },
  'the trace context is kept through a failed run and identical bytes': async (kit) => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await kit.accept({ ...INBOX, traceparent });
    await kit.accept({ ...INBOX, traceparent: traceparent.replace('-01', '-00') });
    const first = await leaseOne(kit, {}, kit.b);
    assert.equal(first.traceparent, traceparent);
    assert.equal(await kit.fail(first.lease.owner, { backoffMs: 0 }), 'queued');
    assert.equal((await leaseOne(kit)).traceparent, traceparent);
  },
  'its URL is kept through a failed run and identical bytes, and dropped with the body': async (kit) => {
    const url = 'https://buyer.example/webhooks/a?from=1';
    await kit.accept({ ...INBOX, url });
    await kit.accept({ ...INBOX, url: 'https://buyer.example/webhooks/b' });
    const first = await leaseOne(kit, {}, kit.b);
    assert.equal(first.url, url);
    assert.equal(await kit.fail(first.lease.owner, { backoffMs: 0 }), 'queued');
    const second = await leaseOne(kit);
    assert.equal(second.url, url);
    const seen = async (): Promise<unknown> => (await kit.a.inbox?.inspect(second.sender, second.key))?.url;
    assert.equal(await seen(), url);
    assert.equal(await kit.complete(second.lease.owner), 'done');
    assert.equal(await seen(), undefined);
  },
  'a leased event is leased to no other worker while the lease is live': async (kit) => {
    await kit.accept(INBOX);
    const { lease: held } = await leaseOne(kit);
    await leaseNone(kit, {}, kit.b);
    kit.advance(LEASE_MS - 1000);
    assert.equal(await kit.renew(held.owner), 'renewed');
    kit.advance(LEASE_MS - 1000);
    await leaseNone(kit, {}, kit.b);
    assert.equal((await kit.accept()).kind, 'in-flight');
    assert.equal((await kit.accept(INBOX)).kind, 'in-flight');
  },
  'no more than max events are leased, oldest first, all to one owner': async (kit) => {
    for (const n of [1, 2, 3]) {
      await kit.accept({ ...INBOX, key: key(n) });
      kit.advance(1000);
    }
    const { events } = await lease(kit, { owner: 'worker', max: 2 });
    assert.deepEqual(
      events.map((event) => [event.key, event.lease.owner]),
      [
        [key(1), 'worker'],
        [key(2), 'worker'],
      ],
    );
    assert.deepEqual(await leasedKeys(kit), [key(3)]);
  },
  'an unacknowledged event of inline mode is not leased: its sender has to retry': async (kit) => {
    const { lease: held } = await kit.win();
    kit.advance(LEASE_MS + 1);
    await leaseNone(kit);
    await kit.win({ key: key(2) });
    assert.equal(await kit.fail(held.owner), 'queued');
    kit.advance(DAY_MS / 2);
    await leaseNone(kit);
  },
  'an event of inline mode is leased once a delivery in inbox mode has acknowledged it': async (kit) => {
    const { lease: held } = await kit.win();
    assert.equal((await kit.accept(INBOX)).kind, 'in-flight');
    await leaseNone(kit);
    assert.equal(await kit.fail(held.owner, { backoffMs: 0 }), 'queued');
    assert.deepEqual((await leaseOne(kit, { owner: 'worker' })).lease, {
      owner: 'worker',
      run: 2,
      chargedAttempts: 2,
    });
  },
  'a failed event waits for its back-off': async (kit) => {
    await kit.accept(INBOX);
    const { lease: held } = await leaseOne(kit);
    assert.equal(await kit.fail(held.owner), 'queued');
    const { nextDueMs } = await leaseNone(kit, {}, kit.b);
    assert.ok(nextDueMs === undefined || (nextDueMs > 0 && nextDueMs <= 60_000), String(nextDueMs));
    kit.advance(59_000);
    await leaseNone(kit);
    kit.advance(1001);
    assert.equal((await leaseOne(kit)).lease.chargedAttempts, 2);
  },
  'an expired lease is a crash: the event is leased again as one run more, and the former owner is too late':
    async (kit) => {
      await kit.accept(INBOX);
      await leaseOne(kit, { owner: 'late' });
      kit.advance(LEASE_MS + 1);
      await leaseNone(kit, {}, kit.b);
      assert.deepEqual((await leaseOne(kit, { owner: 'next', alone: true }, kit.b)).lease, {
        owner: 'next',
        run: 2,
        chargedAttempts: 1,
        suspect: true,
      });
      assert.equal(await kit.complete('late'), 'lost');
      assert.equal(await kit.fail('late'), 'lost');
      assert.equal(await kit.renew('late'), 'lost');
      assert.equal(await kit.complete('next'), 'done');
    },
  'an expired lease of the calling owner is neither a crash nor an attempt: its reply was lost': async (
    kit,
  ) => {
    const retry = { attempts: 1, crashes: 1 };
    await kit.accept(INBOX);
    for (const run of [1, 2, 3]) {
      const { lease: held } = await leaseOne(kit, { owner: 'unanswered', retry }, run % 2 ? kit.a : kit.b);
      assert.deepEqual(held, { owner: 'unanswered', run, chargedAttempts: 1 });
      const { attempts, crashes } = await seen(kit, KEY);
      assert.deepEqual([attempts, crashes], [1, 0]);
      kit.advance(LEASE_MS + 1);
    }
    await leaseNone(kit, { owner: 'next', retry });
    const { attempts, crashes, suspect } = await seen(kit, KEY);
    assert.deepEqual([attempts, crashes, suspect], [0, 0, true]);
  },
  'an event that used up its crashes is DEAD, reported once, and kept': async (kit) => {
    const retry = { crashes: 2 };
    await kit.accept(INBOX);
    await leaseOne(kit, { retry });
    kit.advance(LEASE_MS + 1);
    await leaseNone(kit, { retry });
    for (const crashes of [0, 1]) {
      await leaseOne(kit, { retry, alone: true });
      assert.equal((await seen(kit, KEY)).crashes, crashes);
      kit.advance(LEASE_MS + 1);
      if (crashes > 0) continue;
      await leaseNone(kit, { retry, alone: true });
      kit.advance(60_000);
    }
    const { events, died } = await lease(kit, { retry, alone: true });
    assert.deepEqual([events, died], [[], [{ sender: SENDER, key: KEY }]]);
    await leaseNone(kit, { retry, alone: true });
    await leaseNone(kit, { retry });
    assert.equal(await kit.peek(), 'dead');
    assert.equal(decision(await kit.accept(INBOX)).kind, 'done');
  },
  'the last attempt’s failure makes it DEAD, and so does a permanent one': async (kit) => {
    const retry = { attempts: 1 };
    await kit.accept({ ...INBOX, key: key(1) });
    await kit.accept({ ...INBOX, key: key(2) });
    const { events } = await lease(kit, { owner: 'worker', retry });
    assert.equal(events.length, 2);
    assert.equal(await kit.fail('worker', { key: key(1), retry }), 'dead');
    assert.equal(await kit.fail('worker', { key: key(2), permanent: true }), 'dead');
    kit.advance(DAY_MS);
    await leaseNone(kit, { retry });
  },
  'an event whose handler was never called is returned without an attempt': async (kit) => {
    const retry = { attempts: 1 };
    await kit.accept(INBOX);
    const { lease: held } = await leaseOne(kit, { retry });
    const back = { unstarted: true, backoffMs: 0, retry };
    assert.equal(await kit.fail(held.owner, back), 'queued');
    assert.equal(await kit.fail(held.owner, back, kit.b), 'queued');
    assert.deepEqual((await leaseOne(kit, { owner: 'next', retry }, kit.b)).lease, {
      owner: 'next',
      run: 2,
      chargedAttempts: 1,
    });
    assert.equal(await kit.fail(held.owner, back), 'lost');
    assert.equal(await kit.fail('next', { retry }), 'dead');
  },
  'the accept that queued an event, sent again, gets the same answer, whatever workers did': async (kit) => {
    await kit.accept({ ...INBOX, id: 'first' });
    await leaseOne(kit, { owner: 'worker' });
    assert.equal((await kit.accept({ ...INBOX, id: 'first' })).kind, 'queued');
    await kit.complete('worker');
    assert.equal((await kit.accept({ ...INBOX, id: 'first' })).kind, 'queued');
  },
  'an accept that won and then lost its lease to a worker does not win again': async (kit) => {
    await kit.win({ id: 'first' });
    await kit.accept(INBOX);
    kit.advance(LEASE_MS + 1);
    await leaseNone(kit);
    await leaseOne(kit, { owner: 'worker', alone: true });
    assert.equal((await kit.accept({ id: 'first' })).kind, 'in-flight');
    assert.equal(await kit.complete('worker'), 'done');
    assert.equal((await kit.accept({ id: 'first' })).kind, 'done');
  },
  'senders take turns: a sender with many waiting events delays another by one call at most': async (kit) => {
    await takesTurns(kit, SENDER, OTHER);
  },
  // The same case with the two senders exchanged. A store that orders by name or by arrival fails one of the two.
  'and so it is the other way round': async (kit) => {
    await takesTurns(kit, OTHER, SENDER);
  },
  'a sender’s oldest event is leased first, even if other senders come in between': async (kit) => {
    for (const sender of [SENDER, OTHER]) {
      for (const n of [1, 2, 3]) await kit.accept({ ...INBOX, sender, key: key(n) });
    }
    const given: LeasedEvent[] = [];
    for (let call = 0; call < 3; call += 1) given.push(...(await lease(kit, { max: 2 })).events);
    for (const one of [SENDER, OTHER]) {
      const keys = given.filter(({ sender }) => sender === one).map((event) => event.key);
      assert.deepEqual(keys, [key(1), key(2), key(3)], one);
    }
  },
  'events of every sender are leased, configured or not': async (kit) => {
    await kit.accept(INBOX);
    await kit.accept({ ...INBOX, sender: OTHER });
    const { events } = await lease(kit, { senders: [] });
    assert.deepEqual(events.map(({ sender }) => sender).toSorted(), [OTHER, SENDER].toSorted());
  },
  'two concurrent workers never get the same event': async (kit) => {
    const keys = Array.from({ length: 60 }, (_, n) => key(n));
    for (const each of keys) await kit.accept({ ...INBOX, key: each });
    const calls = Array.from({ length: 24 }, (_, n) => lease(kit, { max: 5 }, n % 2 ? kit.a : kit.b));
    const given = (await Promise.all(calls)).flatMap(({ events }) => events.map((event) => event.key));
    assert.equal(new Set(given).size, given.length);
    for (let batch = await leasedKeys(kit); batch.length > 0; batch = await leasedKeys(kit))
      given.push(...batch);
    assert.deepEqual(given.toSorted(), keys);
  },
};
