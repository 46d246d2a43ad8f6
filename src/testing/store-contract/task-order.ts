// Cases of the store contract: handlers of one task never overlap, and statuses are applied in the order of their
// timestamps (admission.md §5.1 to §5.6).
// Called by `describeStoreContract`.
import assert from 'node:assert/strict';
import { type Cases, DAY_MS, decision, type Draft, KEY, LEASE_MS } from './kit.ts';

const FIRST_EVENT = { key: 'event-0001-of-the-seller', task: 'task-1' };
const SECOND = { key: 'event-0002-of-the-seller', task: 'task-1' };
const THIRD = { key: 'event-0003-of-the-seller', task: 'task-1' };
const BUSY = { kind: 'task-busy', changed: false };

/** Cases of handlers of one task, which must never overlap (admission.md §5.5). */
export const taskCases: Cases = {
  'an event of a task that is held is recorded, but not leased': async ({ accept, win, peek, b }) => {
    await win(FIRST_EVENT);
    assert.deepEqual(decision(await accept(SECOND, b)), BUSY);
    assert.deepEqual(decision(await accept(SECOND)), BUSY);
    assert.equal(await peek(SECOND), 'busy');
  },
  'complete frees the task': async ({ accept, win, complete, peek }) => {
    const { lease } = await win(FIRST_EVENT);
    await accept(SECOND);
    assert.equal(await complete(lease.owner, FIRST_EVENT), 'done');
    assert.equal(await peek(SECOND), 'free');
    assert.equal((await win(SECOND)).lease.chargedAttempts, 1);
  },
  'fail frees the task': async ({ accept, win, fail, peek }) => {
    const { lease } = await win(FIRST_EVENT);
    await accept(SECOND);
    assert.equal(await fail(lease.owner, FIRST_EVENT), 'queued');
    assert.equal(await peek(SECOND), 'free');
    assert.equal((await accept(SECOND)).kind, 'won');
    assert.equal((await accept(FIRST_EVENT)).kind, 'task-busy');
  },
  'an expired lease frees the task, and its owner has lost it once the task was leased again': async (
    kit,
  ) => {
    const late = await kit.win(FIRST_EVENT);
    await kit.accept(SECOND);
    kit.advance(LEASE_MS + 1);
    assert.equal(await kit.peek(SECOND), 'free');
    const second = await kit.win(SECOND);
    assert.equal(await kit.renew(late.lease.owner, FIRST_EVENT), 'lost');
    assert.equal(await kit.complete(late.lease.owner, FIRST_EVENT), 'lost');
    assert.deepEqual(decision(await kit.accept(FIRST_EVENT)), BUSY);
    assert.equal(await kit.complete(second.lease.owner, SECOND), 'done');
    assert.equal((await kit.accept(FIRST_EVENT)).kind, 'won');
  },
  'a crash is counted once, even if the task is held meanwhile': async (kit) => {
    const retry = { crashes: 1 };
    const late = await kit.win({ ...FIRST_EVENT, retry });
    kit.advance(LEASE_MS + 1);
    const second = await kit.win(SECOND);
    assert.deepEqual(decision(await kit.accept({ ...FIRST_EVENT, retry })), BUSY);
    assert.deepEqual(decision(await kit.accept({ ...FIRST_EVENT, retry })), BUSY);
    assert.equal(await kit.fail(late.lease.owner, FIRST_EVENT), 'lost');
    await kit.complete(second.lease.owner, SECOND);
    const { lease } = await kit.win({ ...FIRST_EVENT, retry });
    assert.deepEqual([lease.chargedAttempts, lease.suspect], [1, true]);
  },
  'an event does not wait behind one of its task that is in back-off': async ({ accept, win, fail }) => {
    const { lease } = await win(FIRST_EVENT);
    await accept(SECOND);
    await fail(lease.owner, FIRST_EVENT);
    assert.equal((await accept(THIRD)).kind, 'won');
  },
  'a DEAD event does not hold its task': async ({ accept, win, fail }) => {
    const { lease } = await win(FIRST_EVENT);
    await fail(lease.owner, { ...FIRST_EVENT, permanent: true });
    assert.equal((await accept(SECOND)).kind, 'won');
  },
  'a duplicate of the event that holds the task is in-flight, not task-busy': async ({ accept, win }) => {
    await win(FIRST_EVENT);
    assert.equal((await accept(FIRST_EVENT)).kind, 'in-flight');
  },
  'an expired key that comes again for another task does not hold the first one': async (kit) => {
    await kit.apply(FIRST_EVENT);
    kit.advance(2 * DAY_MS);
    await kit.win({ ...FIRST_EVENT, task: 'task-2' });
    assert.equal((await kit.accept(SECOND)).kind, 'won');
  },
  'events of other tasks, of other senders and without a task (reports) do not wait': async ({ win }) => {
    await win(FIRST_EVENT);
    await win({ ...SECOND, task: 'task-2' });
    await win({ ...SECOND, sender: 'https://other.example/mcp' });
    await win({ key: THIRD.key });
    await win({ key: 'event-0004-of-the-seller' });
  },
};

const EARLIER = '2026-01-01T00:00:00Z';
const MARK = '2026-01-02T00:00:00Z';
const LATER = '2026-01-03T00:00:00Z';
const STALE = { kind: 'stale', changed: false };

/** Makes an event of `task-1`. Events with different names have different keys. */
function event(name: string, at?: Draft['at'], terminal = false): Draft {
  return { key: `event-${name}-of-the-seller`, task: 'task-1', terminal, ...(at !== undefined && { at }) };
}

/**
 * Cases of the statuses of a task, which must be applied in the order of their timestamps (contract.md §9.7;
 * admission.md §5.1 to §5.6).
 */
export const orderCases: Cases = {
  'older than the applied status: stale, recorded, not run': async ({ accept, apply, peek, b }) => {
    await apply(event('mark', MARK));
    assert.deepEqual(decision(await accept(event('old', EARLIER), b)), STALE);
    assert.equal(await peek(event('old')), 'stale');
    const again = decision(await accept(event('old', EARLIER)));
    assert.deepEqual(again, { kind: 'done', changed: false, state: 'stale', died: false });
  },
  'terminal or not, older is stale': async ({ accept, apply }) => {
    await apply(event('mark', MARK));
    assert.equal((await accept(event('old', EARLIER, true))).kind, 'stale');
  },
  'newer: applied, and the mark moves': async ({ accept, apply }) => {
    await apply(event('mark', MARK));
    await apply(event('new', LATER));
    assert.equal((await accept(event('between', '2026-01-02T12:00:00Z'))).kind, 'stale');
  },
  'the mark moves with complete, not before': async ({ win, fail, accept }) => {
    const { lease } = await win(event('new', LATER));
    await fail(lease.owner, event('new'));
    assert.equal((await accept(event('old', EARLIER))).kind, 'won');
  },
  'equal: applied': async ({ apply }) => {
    await apply(event('mark', MARK));
    await apply(event('equal', MARK));
  },
  'equal, both terminal: applied, and marked': async ({ apply }) => {
    await apply(event('mark', MARK, true));
    assert.equal((await apply(event('equal', MARK, true))).afterTerminal, true);
  },
  'equal, the applied one terminal and this one not: stale': async ({ accept, apply }) => {
    await apply(event('mark', MARK, true));
    assert.equal((await accept(event('equal', MARK))).kind, 'stale');
  },
  'equal, this one terminal and the applied one not: applied, and the task is terminal': async (kit) => {
    await kit.apply(event('mark', MARK));
    await kit.apply(event('terminal', MARK, true));
    assert.equal((await kit.accept(event('equal', MARK))).kind, 'stale');
  },
  'the same instant with another offset is equal': async ({ accept, apply }) => {
    await apply(event('mark', '2026-01-02T00:00:00Z', true));
    await apply(event('equal', '2026-01-02T02:00:00+02:00', true));
    assert.equal((await accept(event('not', '2026-01-01T19:00:00-05:00'))).kind, 'stale');
  },
  'every digit of the fraction counts': async ({ accept, apply }) => {
    await apply(event('mark', '2026-01-02T00:00:00.0000000005Z'));
    assert.equal((await accept(event('old', '2026-01-02T00:00:00.0000000004999Z'))).kind, 'stale');
    await apply(event('equal', '2026-01-02T00:00:00.000000000500Z'));
    await apply(event('new', '2026-01-02T00:00:00.00000000051Z'));
  },
  'newer than a terminal one: applied, and marked': async ({ apply }) => {
    await apply(event('mark', MARK, true));
    assert.equal((await apply(event('new', LATER))).afterTerminal, true);
  },
  'a second terminal status, newer: applied, and marked': async ({ apply }) => {
    await apply(event('mark', MARK, true));
    assert.equal((await apply(event('new', LATER, true))).afterTerminal, true);
  },
  'a retry of an event after a terminal status was applied is marked': async ({ win, fail, apply }) => {
    const first = await win(event('new', LATER));
    assert.equal(first.afterTerminal, false);
    await fail(first.lease.owner, event('new'));
    await apply(event('mark', MARK, true));
    assert.equal((await win(event('new', LATER))).afterTerminal, true);
  },
  'a status after one that is not terminal is not marked': async ({ apply }) => {
    await apply(event('mark', MARK));
    assert.equal((await apply(event('new', LATER, true))).afterTerminal, false);
  },
  'more than 5 min ahead of the store’s clock: applied, does not raise the mark': async (kit) => {
    assert.equal((await kit.apply(event('ahead', 330_000))).ahead, true);
    assert.equal((await kit.apply(event('now', 0))).ahead, false);
    assert.equal((await kit.accept(event('old', -60_000))).kind, 'stale');
  },
  'less than 5 min ahead: raises the mark': async ({ accept, apply }) => {
    assert.equal((await apply(event('ahead', 270_000))).ahead, false);
    assert.equal((await accept(event('now', 0))).kind, 'stale');
  },
  'whether a time is ahead is decided at each lease': async ({
    win,
    fail,
    fromNow,
    advance,
    accept,
    complete,
  }) => {
    const ahead = event('ahead', fromNow(330_000));
    const first = await win(ahead);
    assert.equal(first.ahead, true);
    await fail(first.lease.owner, ahead);
    advance(60_000);
    const second = await win(ahead);
    assert.equal(second.ahead, false);
    assert.equal(await complete(second.lease.owner, ahead), 'done');
    assert.equal((await accept(event('old', 0))).kind, 'stale');
  },
  'an owner that lost its task does not move the mark, even if the store’s clock was set back': async (
    kit,
  ) => {
    const late = await kit.win(event('old', EARLIER));
    kit.advance(LEASE_MS + 1);
    await kit.apply(event('new', LATER));
    kit.advance(-LEASE_MS);
    assert.equal(await kit.complete(late.lease.owner, event('old')), 'lost');
    assert.equal((await kit.accept(event('between', MARK))).kind, 'stale');
  },
  'without a timestamp: applied, and does not move the mark': async ({ accept, apply }) => {
    await apply(event('mark', MARK, true));
    assert.equal((await apply(event('none'))).afterTerminal, false);
    assert.equal((await accept(event('old', EARLIER))).kind, 'stale');
  },
  'reports and other families have no task and are never stale': async ({ apply }) => {
    await apply(event('mark', MARK, true));
    await apply({ key: 'report-0001-of-the-seller' });
    await apply({ key: 'report-0002-of-the-seller' });
  },
  'tasks, and senders, are ordered separately': async ({ apply }) => {
    await apply(event('mark', MARK));
    await apply({ ...event('old', EARLIER), task: 'task-2' });
    await apply({ ...event('old', EARLIER), sender: 'https://other.example/mcp' });
  },
  'a retry that became older than the mark is stale, and not run': async ({ accept, win, apply, fail }) => {
    const first = await win(event('old', EARLIER));
    await fail(first.lease.owner, event('old'));
    await apply(event('new', LATER));
    assert.deepEqual(decision(await accept(event('old', EARLIER))), STALE);
    const again = decision(await accept(event('old', EARLIER)));
    assert.deepEqual(again, { kind: 'done', changed: false, state: 'stale', died: false });
    assert.equal(await fail(first.lease.owner, event('old')), 'lost');
  },
  'an event that waited for its task and became older is stale': async ({ accept, win, complete }) => {
    const { lease } = await win(event('new', LATER));
    assert.equal((await accept(event('old', EARLIER))).kind, 'task-busy');
    await complete(lease.owner, event('new'));
    assert.deepEqual(decision(await accept(event('old', EARLIER))), STALE);
  },
  'a takeover is ordered by the time of the first copy, not of a changed one': async (kit) => {
    await kit.win({ ...event('old', EARLIER), body: 'first' });
    kit.advance(LEASE_MS + 1);
    await kit.apply(event('mark', MARK));
    const changed = { ...event('old', LATER), body: 'changed' };
    assert.deepEqual(decision(await kit.accept(changed)), { kind: 'stale', changed: true });
  },
  'over the cap a stale event is answered stale, and not recorded': async ({ accept, apply, peek }) => {
    await apply(event('mark', MARK));
    const limits = { maxRecordsPerSender: 1 };
    assert.deepEqual(decision(await accept({ ...event('old', EARLIER), limits })), STALE);
    assert.equal(await peek(event('old')), 'absent');
    assert.deepEqual(decision(await accept({ ...event('old', EARLIER), limits })), STALE);
  },
  'the mark is kept for 30 days, longer than its record': async ({ accept, apply, peek, advance }) => {
    await apply({ ...event('mark', MARK), key: KEY });
    advance(29 * DAY_MS);
    assert.equal(await peek(), 'absent');
    assert.equal((await accept(event('old', EARLIER))).kind, 'stale');
    advance(31 * DAY_MS);
    assert.equal((await accept(event('old', EARLIER))).kind, 'won');
  },
};
