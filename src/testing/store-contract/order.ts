import assert from 'node:assert/strict';
import type { Cases, Draft } from './kit.ts';
import { DAY_MS, KEY, LEASE_MS, decision } from './kit.ts';

const EARLIER = '2026-01-01T00:00:00Z';
const MARK = '2026-01-02T00:00:00Z';
const LATER = '2026-01-03T00:00:00Z';
const STALE = { kind: 'stale', changed: false };

/** An event of the one task, under a key of its own for each name. */
function event(name: string, at?: Draft['at'], terminal = false): Draft {
  return { key: `event-${name}-of-the-seller`, task: 'task-1', terminal, ...(at !== undefined && { at }) };
}

/** contract.md §9.7; admission.md §5.1 to §5.6. */
export const orderCases: Cases = {
  'older than the status applied: stale, recorded, not run': async ({ accept, apply, peek, b }) => {
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
  'equal, the stored one terminal and this one too: applied': async ({ apply }) => {
    await apply(event('mark', MARK, true));
    assert.equal((await apply(event('equal', MARK, true))).afterTerminal, false);
  },
  'equal, the stored one terminal and this one not: stale': async ({ accept, apply }) => {
    await apply(event('mark', MARK, true));
    assert.equal((await accept(event('equal', MARK))).kind, 'stale');
  },
  'equal and terminal after one that is not: applied, and terminal from then on': async (kit) => {
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
  'a status after a terminal one: applied, and said to be': async ({ apply }) => {
    await apply(event('mark', MARK, true));
    assert.equal((await apply(event('new', LATER))).afterTerminal, true);
  },
  'a second terminal status, newer: applied, and said to be': async ({ apply }) => {
    await apply(event('mark', MARK, true));
    assert.equal((await apply(event('new', LATER, true))).afterTerminal, true);
  },
  'a retry that has become the one after a terminal status is said to be': async ({ win, fail, apply }) => {
    const first = await win(event('new', LATER));
    assert.equal(first.afterTerminal, false);
    await fail(first.lease.owner, event('new'));
    await apply(event('mark', MARK, true));
    assert.equal((await win(event('new', LATER))).afterTerminal, true);
  },
  'a status after one that is not terminal is nothing to speak of': async ({ apply }) => {
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
  'ahead is judged anew at each lease': async ({ win, fail, fromNow, advance, accept, complete }) => {
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
  'who lost its task is too late for the mark, also where the store’s clock was set back': async (kit) => {
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
  'reports and other families have no task: never stale, whatever their time': async ({ apply }) => {
    await apply(event('mark', MARK, true));
    await apply({ key: 'report-0001-of-the-seller' });
    await apply({ key: 'report-0002-of-the-seller' });
  },
  'tasks are ordered apart, and so are senders': async ({ apply }) => {
    await apply(event('mark', MARK));
    await apply({ ...event('old', EARLIER), task: 'task-2' });
    await apply({ ...event('old', EARLIER), sender: 'https://other.example/mcp' });
  },
  'a retry that has become older than the mark is stale, and not run': async ({
    accept,
    win,
    apply,
    fail,
  }) => {
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
  'a takeover is ordered by the first copy’s time, not by that of a changed one': async (kit) => {
    await kit.win({ ...event('old', EARLIER), body: 'first' });
    kit.advance(LEASE_MS + 1);
    await kit.apply(event('mark', MARK));
    const changed = { ...event('old', LATER), body: 'changed' };
    assert.deepEqual(decision(await kit.accept(changed)), { kind: 'stale', changed: true });
  },
  'a stale event without room is answered stale, and not recorded': async ({ accept, apply, peek }) => {
    await apply(event('mark', MARK));
    const limits = { maxRecordsPerSender: 1 };
    assert.deepEqual(decision(await accept({ ...event('old', EARLIER), limits })), STALE);
    assert.equal(await peek(event('old')), 'absent');
    assert.deepEqual(decision(await accept({ ...event('old', EARLIER), limits })), STALE);
  },
  'the mark outlives its record: 30 days': async ({ accept, apply, peek, advance }) => {
    await apply({ ...event('mark', MARK), key: KEY });
    advance(29 * DAY_MS);
    assert.equal(await peek(), 'absent');
    assert.equal((await accept(event('old', EARLIER))).kind, 'stale');
    advance(31 * DAY_MS);
    assert.equal((await accept(event('old', EARLIER))).kind, 'won');
  },
};
