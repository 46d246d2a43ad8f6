// Cases of the store contract: list, counts, inspect, redrive and discard (admission.md §4.10).
// Called by `describeStoreContract` for stores with an inbox.
import assert from 'node:assert/strict';
import { Fault } from '../../shared/errors.ts';
import {
  INBOX,
  inboxOf,
  key,
  kill,
  lease,
  leasedKeys,
  leaseNone,
  leaseOne,
  pagesOf,
  seen,
} from './inbox-kit.ts';
import { type Cases, DAY_MS, decision, HOUR_MS, KEY, LEASE_MS, SENDER, text } from './kit.ts';

/** Cases of `redrive` and `discard`, the two ways to take an event out of the state DEAD. */
export const inboxDeadCases: Cases = {
  'redrive: a DEAD event is due at once, as if it were new': async (kit) => {
    await kill(kit);
    assert.equal(await inboxOf(kit.b).redrive(SENDER, KEY), 'queued');
    const { attempts, crashes, acked } = await seen(kit, KEY);
    assert.deepEqual([attempts, crashes, acked], [0, 0, true]);
    const event = await leaseOne(kit, { owner: 'next' });
    assert.deepEqual(event.lease, { owner: 'next', run: 2, chargedAttempts: 1 });
    assert.equal(text(event.body), 'the first copy');
    assert.equal(await kit.complete('next'), 'done');
  },
  'redrive: an event that is DEAD by crashes has its full number of crashes again': async (kit) => {
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
      run: 3,
      chargedAttempts: 1,
    });
  },
  'redrive: an inline accept wins the event too, and it stays acknowledged': async (kit) => {
    const { lease: held } = await kit.win({ nonce: 'nonce-of-16-bytes-or-more' });
    await kit.fail(held.owner, { permanent: true });
    assert.equal(await inboxOf(kit.a).redrive(SENDER, KEY), 'queued');
    assert.equal((await kit.accept({ nonce: 'nonce-of-16-bytes-or-more' })).kind, 'replayed');
    assert.equal((await kit.win({ nonce: null })).lease.chargedAttempts, 1);
    kit.advance(400 * DAY_MS);
    assert.equal(await kit.peek(), 'free');
  },
  'redrive: an event that is not DEAD is not changed': async (kit) => {
    const inbox = inboxOf(kit.a);
    assert.equal(await inbox.redrive(SENDER, KEY), 'absent');
    await kit.accept(INBOX);
    assert.equal(await inbox.redrive(SENDER, KEY), 'other');
    await leaseOne(kit, { owner: 'worker' });
    assert.equal(await inbox.redrive(SENDER, KEY), 'other');
    await kit.complete('worker');
    assert.equal(await inbox.redrive(SENDER, KEY), 'other');
  },
  'redrive: the owner that failed the event has lost its lease': async (kit) => {
    await kill(kit);
    await inboxOf(kit.a).redrive(SENDER, KEY);
    assert.equal(await kit.complete('worker'), 'lost');
    assert.equal(await kit.renew('worker'), 'lost');
  },
  'discard: a DEAD event becomes DONE, and its duplicates are answered for the retention': async (kit) => {
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
  'discard: the body’s bytes no longer count': async (kit) => {
    const limits = { maxPendingBytesPerSender: 30 };
    await kit.accept({ ...INBOX, body: 'x'.repeat(20), limits });
    await inboxOf(kit.a).discard(SENDER, KEY, DAY_MS);
    assert.equal((await kit.accept({ ...INBOX, key: key(2), body: 'x'.repeat(20), limits })).kind, 'queued');
  },
  'discard: the next event of the task is leased': async (kit) => {
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
  'discard: a discarded event that waited for its task does not block the next one': async (kit) => {
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
  'discard: neither a running nor a finished event is changed': async (kit) => {
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

const OTHER = 'https://other.example/mcp';

/** Cases of the operator's calls `list`, `counts` and `inspect`. */
export const inboxOperatorCases: Cases = {
  'discard: only in the requested state: an event that was redriven meanwhile stays': async (kit) => {
    const { lease } = await kit.win();
    assert.equal(await kit.fail(lease.owner, { permanent: true }), 'dead');
    assert.equal(await kit.a.inbox?.discard(SENDER, KEY, DAY_MS, 'queued'), 'other');
    assert.equal(await kit.a.inbox?.redrive(SENDER, KEY), 'queued');
    assert.equal(await kit.b.inbox?.discard(SENDER, KEY, DAY_MS, 'dead'), 'other');
    assert.equal(await kit.b.inbox?.discard(SENDER, KEY, DAY_MS, 'queued'), 'discarded');
  },
  'list gives the records of a state, without bodies': async (kit) => {
    const from = Date.parse(kit.fromNow(-5000));
    await kit.accept({ ...INBOX, key: key(1), task: 't' });
    const [page] = await pagesOf(kit, 'queued', 10);
    const [record, ...others] = page?.records ?? [];
    assert.ok(record && others.length === 0);
    const { insertedAt, notBefore, leaseUntil: _, ...rest } = record;
    assert.deepEqual(rest, {
      sender: SENDER,
      key: key(1),
      state: 'queued',
      acked: true,
      runs: 0,
      attempts: 0,
      crashes: 0,
      taskId: 't',
      bodyBytes: 22,
    });
    assert.ok(insertedAt > from && insertedAt < from + 65_000 && notBefore <= insertedAt, String(insertedAt));
    await leaseOne(kit);
    assert.deepEqual((await pagesOf(kit, 'queued', 10))[0], { records: [] });
    const leased = (await pagesOf(kit, 'leased', 10))[0]?.records[0];
    assert.equal(leased?.attempts, 1);
    assert.ok((leased?.leaseUntil ?? 0) > from + 5000);
    assert.deepEqual((await pagesOf(kit, 'dead', 10))[0], { records: [] });
  },
  'list gives records oldest first, page by page, each once': async (kit) => {
    const keys = Array.from({ length: 7 }, (_, n) => key(n));
    for (const each of keys) {
      await kit.accept({ ...INBOX, key: each });
      kit.advance(1000);
    }
    const pages = await pagesOf(kit, 'queued', 3);
    assert.deepEqual(
      pages.flatMap(({ records }) => records.map((record) => record.key)),
      keys,
    );
    assert.deepEqual(
      pages.map(({ records }) => records.length),
      [3, 3, 1],
    );
    assert.equal(pages.at(-1)?.next, undefined);
  },
  'list gives each record that stays in its state once, although others are added and removed between pages':
    async (kit) => {
      const inbox = inboxOf(kit.a);
      const queue = async (from: number, to: number): Promise<void> => {
        for (let n = from; n < to; n += 1) await kit.accept({ ...INBOX, key: key(n) });
      };
      await queue(10, 20);
      const listed: string[] = [];
      let next: string | undefined;
      // The newest and some of the oldest events are removed. If the store reuses their positions for new events, the
      // list must be right nevertheless.
      for (const [gone, from] of [
        [[19, 10, 14], 20],
        [[21, 11, 20], 0],
        [[], 22],
      ] as const) {
        const page = await inbox.list({
          state: 'queued',
          limit: 3,
          ...(next !== undefined && { after: next }),
        });
        listed.push(...page.records.map((record) => record.key));
        next = page.next;
        for (const n of gone) assert.equal(await inbox.discard(SENDER, key(n), DAY_MS), 'discarded');
        await queue(from, from + 2);
      }
      for (; next !== undefined;) {
        const page = await inbox.list({ state: 'queued', limit: 3, after: next });
        listed.push(...page.records.map((record) => record.key));
        next = page.next;
      }
      assert.equal(new Set(listed).size, listed.length, 'none is listed twice');
      const stayed = [12, 13, 15, 16, 17, 18].map(key);
      assert.deepEqual(
        listed.filter((each) => stayed.includes(each)),
        stayed,
      );
    },
  'list gives the records of every sender, or of one': async (kit) => {
    await kit.accept({ ...INBOX, sender: OTHER });
    kit.advance(1000);
    await kit.accept(INBOX);
    const senders = async (sender?: string): Promise<readonly string[]> =>
      (await pagesOf(kit, 'queued', 1, sender)).flatMap(({ records }) => records.map((one) => one.sender));
    assert.deepEqual(await senders(), [OTHER, SENDER]);
    assert.deepEqual(await senders(OTHER), [OTHER]);
    assert.deepEqual(await senders('https://nobody.example/mcp'), []);
  },
  'counts gives the number of records in each state by sender, and the time of the oldest': async (kit) => {
    const inbox = inboxOf(kit.b);
    // A store may lack `counts`.
    if (!inbox.counts) return;
    assert.deepEqual(await inbox.counts(), []);
    await kill(kit, key(0));
    await kit.accept({ ...INBOX, key: key(1) });
    await leaseOne(kit);
    await kit.accept({ ...INBOX, sender: 'https://other.example/mcp' });
    for (const n of [2, 3, 4]) {
      kit.advance(1000);
      await kit.accept({ ...INBOX, key: key(n) });
    }
    await inbox.discard(SENDER, key(4), DAY_MS);
    // This event is never acknowledged, so it expires.
    await kit.accept({ key: key(5) });
    kit.advance(400 * DAY_MS);
    const found = await inbox.counts();
    assert.deepEqual(found.map(({ state, count }) => `${state} ${count}`).toSorted(), [
      'dead 1',
      'leased 1',
      'queued 1',
      'queued 2',
    ]);
    for (const { sender, state, oldestInsertedAt } of found) {
      const [first] = (await inbox.list({ state, sender, limit: 1 })).records;
      assert.equal(oldestInsertedAt, first?.insertedAt);
    }
  },
  'list gives records of inline mode too': async (kit) => {
    const { lease: held } = await kit.win();
    assert.equal((await pagesOf(kit, 'leased', 10))[0]?.records[0]?.acked, false);
    await kit.fail(held.owner, { permanent: true });
    assert.equal((await pagesOf(kit, 'dead', 10))[0]?.records[0]?.acked, true);
  },
  'list and inspect leave out expired records': async (kit) => {
    await kit.accept({ ...INBOX, key: key(1) });
    await kit.fail((await kit.win({ key: key(2) })).lease.owner, { key: key(2) });
    await kit.win({ key: key(3) });
    const keysOf = async (state: 'queued' | 'leased'): Promise<readonly string[]> =>
      (await pagesOf(kit, state, 1)).flatMap(({ records }) => records.map((one) => one.key));
    assert.deepEqual([await keysOf('queued'), await keysOf('leased')], [[key(1), key(2)], [key(3)]]);
    kit.advance(DAY_MS + HOUR_MS);
    assert.deepEqual([await keysOf('queued'), await keysOf('leased')], [[key(1)], []]);
    assert.equal(await inboxOf(kit.b).inspect(SENDER, key(2)), undefined);
  },
  'inspect gives a record with its body and its last error, until it is DONE': async (kit) => {
    assert.equal(await inboxOf(kit.a).inspect(SENDER, KEY), undefined);
    await kit.accept({ ...INBOX, body: 'the first copy' });
    await leaseOne(kit, { owner: 'worker' });
    await kit.fail('worker', { error: 'the database is unreachable', backoffMs: 0 });
    const failed = await seen(kit, KEY);
    assert.equal(failed.lastError, 'the database is unreachable');
    assert.equal(text(failed.body), 'the first copy');
    assert.deepEqual([failed.state, failed.attempts, failed.bodyBytes], ['queued', 1, 14]);
    await leaseOne(kit, { owner: 'worker' });
    await kit.complete('worker');
    const done = await seen(kit, KEY);
    assert.deepEqual([done.state, done.body, done.bodyBytes], ['applied', undefined, 0]);
  },
  'an error message may be any text': async (kit) => {
    const error = `${'\u00e9\u{1f600}"\\\n'.repeat(160)}${'x'.repeat(200)}`.slice(0, 1000);
    await kit.accept(INBOX);
    await leaseOne(kit, { owner: 'worker' });
    await kit.fail('worker', { error });
    assert.equal((await seen(kit, KEY)).lastError, error);
  },
  'inspect gives the body of a DEAD event': async (kit) => {
    await kill(kit);
    kit.advance(400 * DAY_MS);
    const dead = await seen(kit, KEY);
    assert.deepEqual(
      [dead.state, dead.lastError, text(dead.body)],
      ['dead', 'no such media buy', 'the first copy'],
    );
  },
  'after close every call is store_unavailable': async (kit) => {
    const inbox = inboxOf(kit.a);
    await kit.a.close();
    const unavailable = (error: unknown): boolean =>
      error instanceof Fault && error.code === 'store_unavailable';
    await assert.rejects(lease(kit), unavailable);
    await assert.rejects(inbox.list({ state: 'dead', limit: 1 }), unavailable);
    await assert.rejects(inbox.inspect(SENDER, KEY), unavailable);
    await assert.rejects(inbox.redrive(SENDER, KEY), unavailable);
    await assert.rejects(inbox.discard(SENDER, KEY, DAY_MS), unavailable);
  },
};
