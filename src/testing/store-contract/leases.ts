// Cases of the store contract: complete, fail, renew, and reports after the final one (admission.md §4.1 to §4.4,
// §5.7).
// Called by `describeStoreContract`.
import assert from 'node:assert/strict';
import { LONGEST_LEASE_MS } from '../../stores/constants.ts';
import { leaseOne } from './inbox-kit.ts';
import { type Cases, CONFIG_ERROR, DAY_MS, decision, LEASE_MS, NO_LENGTHS } from './kit.ts';

/**
 * Cases of leases: the calls that only the owner can make, and the count of attempts and crashes (admission.md §4.1,
 * §4.3, §4.4).
 */
export const leaseCases: Cases = {
  'complete makes the event DONE, and returns the same if its owner repeats it': async ({
    win,
    complete,
    peek,
    b,
  }) => {
    const { lease } = await win();
    assert.equal(await complete(lease.owner), 'done');
    assert.equal(await complete(lease.owner, {}, b), 'done');
    assert.equal(await peek(), 'applied');
  },
  'fail makes the event QUEUED, and returns the same if its owner repeats it': async ({
    win,
    fail,
    peek,
    b,
  }) => {
    const { lease } = await win();
    assert.equal(await fail(lease.owner), 'queued');
    assert.equal(await fail(lease.owner, {}, b), 'queued');
    assert.equal(await peek(), 'free');
  },
  'a permanent failure makes the event DEAD, and returns the same if its owner repeats it': async ({
    win,
    fail,
    peek,
  }) => {
    const { lease } = await win();
    assert.equal(await fail(lease.owner, { permanent: true }), 'dead');
    assert.equal(await fail(lease.owner, { permanent: true }), 'dead');
    assert.equal(await peek(), 'dead');
  },
  'a call that is not the owner’s neither completes, fails nor renews': async ({
    win,
    complete,
    fail,
    renew,
    peek,
  }) => {
    const { lease } = await win();
    assert.equal(await complete('a-stranger'), 'lost');
    assert.equal(await fail('a-stranger', { permanent: true }), 'lost');
    assert.equal(await renew('a-stranger'), 'lost');
    assert.equal(await peek(), 'busy');
    assert.equal(await complete(lease.owner), 'done');
    assert.equal(await complete('a-stranger'), 'lost');
  },
  'a lease of no length is a config_error, and changes nothing': async (kit) => {
    const { lease } = await kit.win();
    for (const leaseMs of NO_LENGTHS) {
      const other = { key: 'event-0002-of-the-seller', leaseMs };
      await assert.rejects(kit.accept(other), CONFIG_ERROR);
      await assert.rejects(kit.accept({ ...other, mode: 'inbox' }), CONFIG_ERROR);
      await assert.rejects(kit.renew(lease.owner, { leaseMs }), CONFIG_ERROR);
      assert.equal(await kit.peek(other, kit.b), 'absent');
      if (!kit.a.alive) continue;
      await assert.rejects(kit.a.alive({ process: 'of-no-length', forMs: leaseMs }), CONFIG_ERROR);
    }
    assert.equal(await kit.peek({}, kit.b), 'busy');
    kit.advance(LEASE_MS + 1);
    assert.equal(await kit.peek({}, kit.b), 'free');
    assert.equal(await kit.renew(lease.owner), 'renewed');
    assert.equal(await kit.complete(lease.owner), 'done');
  },
  'a lease of an event that was never sent is lost': async ({ complete, fail, renew }) => {
    assert.equal(await complete('a-stranger'), 'lost');
    assert.equal(await fail('a-stranger'), 'lost');
    assert.equal(await renew('a-stranger'), 'lost');
  },
  'the owner of an expired lease may renew and complete it until another takes it over': async (kit) => {
    const { lease } = await kit.win();
    kit.advance(LEASE_MS + 1);
    assert.equal(await kit.peek(), 'free');
    assert.equal(await kit.renew(lease.owner), 'renewed');
    assert.equal(await kit.peek(), 'busy');
    kit.advance(LEASE_MS + 1);
    assert.equal(await kit.complete(lease.owner, {}, kit.b), 'done');
    assert.equal(await kit.peek(), 'applied');
  },
  'the owner of an expired lease may fail it, and the failure is not a crash': async (kit) => {
    const { lease } = await kit.win();
    kit.advance(LEASE_MS + 1);
    assert.equal(await kit.fail(lease.owner, { backoffMs: 0 }, kit.b), 'queued');
    assert.deepEqual((await kit.win({ id: 'next' })).lease, { owner: 'next', run: 2, chargedAttempts: 2 });
  },
  'the owner of an expired lease has lost it once another event of its task was leased, also after that has ended':
    async (kit) => {
      const of = { task: 't' };
      const other = { key: 'event-0002-of-the-seller', task: 't' };
      const { lease } = await kit.win(of);
      kit.advance(LEASE_MS + 1);
      const { lease: next } = await kit.win(other, kit.b);
      for (const end of [undefined, 'failed']) {
        if (end) assert.equal(await kit.fail(next.owner, other), 'queued');
        assert.equal(await kit.renew(lease.owner), 'lost');
        assert.equal(await kit.complete(lease.owner), 'lost');
        assert.equal(await kit.fail(lease.owner), 'lost');
      }
      assert.equal(await kit.peek(), 'free');
    },
  'an owner whose lease was taken over changes nothing': async (kit) => {
    const late = await kit.win();
    kit.advance(LEASE_MS + 1);
    const { lease } = await kit.win({}, kit.b);
    assert.equal(await kit.complete(late.lease.owner), 'lost');
    assert.equal(await kit.fail(late.lease.owner, { permanent: true }), 'lost');
    assert.equal(await kit.renew(late.lease.owner), 'lost');
    assert.equal(await kit.peek(), 'busy');
    assert.equal(await kit.complete(lease.owner, {}, kit.b), 'done');
    assert.equal(await kit.complete(late.lease.owner), 'lost');
  },
  'a late owner does not undo a failure of the next one': async (kit) => {
    const late = await kit.win();
    kit.advance(LEASE_MS + 1);
    const { lease } = await kit.win();
    assert.equal(await kit.fail(lease.owner), 'queued');
    assert.equal(await kit.complete(late.lease.owner), 'lost');
    assert.equal(await kit.fail(late.lease.owner), 'lost');
  },
  'a lease is live until it expires, and a renewal counts from the store’s clock': async (kit) => {
    const { lease } = await kit.win();
    kit.advance(LEASE_MS - 1000);
    assert.equal((await kit.accept({}, kit.b)).kind, 'in-flight');
    assert.equal(await kit.renew(lease.owner), 'renewed');
    kit.advance(LEASE_MS - 1000);
    assert.equal((await kit.accept({}, kit.b)).kind, 'in-flight');
    assert.equal(await kit.complete(lease.owner), 'done');
  },
  'a takeover has a new owner, one run more and the same attempt': async (kit) => {
    await kit.win();
    kit.advance(LEASE_MS + 1);
    const second = (await kit.win({ id: 'second' }, kit.b)).lease;
    assert.deepEqual(second, { owner: 'second', run: 2, chargedAttempts: 1, suspect: true });
    kit.advance(LEASE_MS + 1);
    assert.equal((await kit.accept({ id: 'charged' })).kind, 'backing-off');
    kit.advance(60_000);
    const third = (await kit.win({ id: 'third' })).lease;
    assert.deepEqual(third, { owner: 'third', run: 3, chargedAttempts: 1, suspect: true });
  },
  'a retry after a failure does not wait for the back-off, which is for workers': async (kit) => {
    const { lease } = await kit.win();
    assert.equal(await kit.fail(lease.owner), 'queued');
    assert.deepEqual((await kit.win({ id: 'retry' })).lease, {
      owner: 'retry',
      run: 2,
      chargedAttempts: 1,
    });
  },
  'a failure of the last attempt makes the event DEAD': async ({ accept, win, fail }) => {
    const retry = { attempts: 2 };
    const first = await win({ retry });
    assert.equal(await fail(first.lease.owner, { retry, backoffMs: 0 }), 'queued');
    const second = await win({ retry });
    assert.equal(await fail(second.lease.owner, { retry }), 'dead');
    assert.equal(await fail(second.lease.owner, { retry }), 'dead');
    const next = decision(await accept({ retry }));
    assert.deepEqual(next, { kind: 'done', changed: false, state: 'dead', died: false });
  },
  'an event that used up its crashes is DEAD; its first crash is not counted': async (kit) => {
    const { accept, win, advance, peek } = kit;
    const retry = { attempts: 1, crashes: 2 };
    for (const run of [1, 2, 3]) {
      assert.equal((await win({ retry })).lease.run, run);
      advance(LEASE_MS + 1);
      if (run !== 2) continue;
      assert.equal((await accept({ retry })).kind, 'backing-off');
      advance(60_000);
    }
    const next = decision(await accept({ retry }));
    assert.deepEqual(next, { kind: 'done', changed: false, state: 'dead', died: true });
    assert.equal(await peek(), 'dead');
  },
  'an overrun is counted as a crash at once, and ends the lease': async (kit) => {
    const retry = { crashes: 2 };
    const overrun = { overrun: true, retry, backoffMs: 0 };
    const { lease } = await kit.win({ retry });
    assert.equal(await kit.fail(lease.owner, overrun), 'queued');
    const { lease: next } = await kit.win({ retry });
    assert.deepEqual([next.chargedAttempts, next.suspect], [2, undefined]);
    assert.equal(await kit.fail(next.owner, overrun), 'dead');
    assert.equal(await kit.fail(next.owner, overrun, kit.b), 'dead');
  },
  'a failure is not a crash': async ({ win, fail, peek }) => {
    const retry = { crashes: 1 };
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const { lease } = await win({ retry });
      assert.equal(lease.chargedAttempts, attempt);
      assert.equal(await fail(lease.owner, { retry, backoffMs: 0 }), 'queued');
    }
    assert.equal(await peek(), 'free');
  },
  'a lease longer than the retention is kept to its end': async ({ win, complete, renew, advance }) => {
    const long = { leaseMs: 10_000, retentionMs: 1000 };
    const { lease } = await win(long);
    advance(5000);
    assert.equal(await renew(lease.owner, { leaseMs: LONGEST_LEASE_MS }), 'renewed');
    advance(LONGEST_LEASE_MS - 10_000);
    assert.equal(await complete(lease.owner), 'done');
  },
};

const REPORT = { key: 'report-0001-of-the-seller', report: 'mb_1,mb_2' };
const FINAL = { key: 'report-0002-of-the-seller', report: 'mb_2', final: true };
const LATE = { key: 'report-0003-of-the-seller', report: 'mb_1,mb_2' };

/** An event that is no report, but names a media buy of the final report. */
const CHANGE = { key: 'event-0004-of-the-seller', mediaBuy: 'mb_2' };
const NOON = '2026-01-02T12:00:00Z';
const LATER = '2026-01-03T12:00:00Z';

/**
 * Cases of a report after the `final` one: it is delivered with a warning (admission.md §5.7 and §5.8; verification.md
 * §7.33).
 */
export const reportCases: Cases = {
  'a report before the final one is not marked': async ({ apply }) => {
    assert.equal((await apply(REPORT)).afterFinal, false);
    assert.equal((await apply(FINAL)).afterFinal, false);
  },
  'a report after the final one, under another key, is delivered and marked': async ({ apply, win, b }) => {
    await apply(FINAL);
    assert.equal((await win(LATE, b)).afterFinal, true);
  },
  'each retry of a report after the final one is marked': async ({ apply, win, fail }) => {
    await apply(FINAL);
    const first = await win(LATE);
    await fail(first.lease.owner, LATE);
    assert.equal((await win(LATE)).afterFinal, true);
  },
  'an event of another family with a later time is delivered and marked, on each of its retries': async (
    kit,
  ) => {
    await kit.apply({ ...FINAL, at: NOON });
    const first = await kit.win({ ...CHANGE, at: '2026-01-02T12:00:00.000000001Z' }, kit.b);
    assert.equal(first.afterFinal, true);
    await kit.fail(first.lease.owner, CHANGE);
    assert.equal((await kit.win(CHANGE)).afterFinal, true);
  },
  'an event with the same, an earlier or no time, or of another media buy, is not marked': async ({
    apply,
  }) => {
    await apply({ ...FINAL, at: NOON });
    const others = [{ at: NOON }, { at: '2026-01-02T11:59:59Z' }, {}, { at: LATER, mediaBuy: 'mb_1' }];
    for (const [n, other] of others.entries()) {
      const event = { ...CHANGE, ...other, key: `event-000${n}-of-the-seller` };
      assert.equal((await apply(event)).afterFinal, false, JSON.stringify(other));
    }
  },
  'after a final report without a time no event of another family is marked': async ({ apply }) => {
    await apply(FINAL);
    assert.equal((await apply({ ...CHANGE, at: LATER })).afterFinal, false);
  },
  'the first final report’s time is kept': async ({ apply }) => {
    await apply({ ...FINAL, at: NOON });
    assert.equal((await apply({ ...FINAL, key: LATE.key, at: LATER })).afterFinal, true);
    assert.equal((await apply({ ...CHANGE, at: '2026-01-02T18:00:00Z' })).afterFinal, true);
  },
  'in inbox mode the lease of an event after the final report is marked': async (kit) => {
    if (!kit.a.inbox) return;
    await kit.apply({ ...FINAL, at: NOON });
    await kit.accept({ ...CHANGE, at: LATER, mode: 'inbox' });
    assert.equal((await leaseOne(kit)).afterFinal, true);
  },
  'a retry of the final report itself is not after it': async ({ win, fail }) => {
    const first = await win(FINAL);
    await fail(first.lease.owner, FINAL);
    assert.equal((await win(FINAL)).afterFinal, false);
  },
  'a report of another media buy, or of another sender, is not marked': async ({ apply, win }) => {
    await apply(FINAL);
    assert.equal((await win({ ...LATE, report: 'mb_1' })).afterFinal, false);
    assert.equal((await win({ ...LATE, sender: 'https://other.example/mcp' })).afterFinal, false);
  },
  'a notification id with the text of a media buy is separate': async ({ apply, win }) => {
    await apply(FINAL);
    const event = { key: 'event-0004-of-the-seller', notification: 'mb_2' };
    assert.equal((await win(event)).reemission, false);
  },
  'the final report is remembered for 30 days': async ({ apply, win, advance }) => {
    await apply(FINAL);
    advance(29 * DAY_MS);
    assert.equal((await win(LATE)).afterFinal, true);
    advance(2 * DAY_MS);
    assert.equal((await win({ ...LATE, key: 'report-0005-of-the-seller' })).afterFinal, false);
  },
};
