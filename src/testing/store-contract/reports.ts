import assert from 'node:assert/strict';
import { leaseOne } from './inbox-kit.ts';
import type { Cases } from './kit.ts';
import { DAY_MS } from './kit.ts';

const REPORT = { key: 'report-0001-of-the-seller', report: 'mb_1,mb_2' };
const FINAL = { key: 'report-0002-of-the-seller', report: 'mb_2', final: true };
const LATE = { key: 'report-0003-of-the-seller', report: 'mb_1,mb_2' };

/** An event of another family. */
const CHANGE = { key: 'event-0004-of-the-seller', mediaBuy: 'mb_2' };
const NOON = '2026-01-02T12:00:00Z';
const LATER = '2026-01-03T12:00:00Z';

/** admission.md §5.7 and §5.8; verification.md §7.33: a report after `final` is delivered, with a warning. */
export const reportCases: Cases = {
  'before the final one of its media buys: nothing is odd': async ({ apply }) => {
    assert.equal((await apply(REPORT)).afterFinal, false);
    assert.equal((await apply(FINAL)).afterFinal, false);
  },
  'after it, under another key: delivered and marked': async ({ apply, win, b }) => {
    await apply(FINAL);
    assert.equal((await win(LATE, b)).afterFinal, true);
  },
  'on each of its retries': async ({ apply, win, fail }) => {
    await apply(FINAL);
    const first = await win(LATE);
    await fail(first.lease.owner, LATE);
    assert.equal((await win(LATE)).afterFinal, true);
  },
  'an event of another family, of a later time: delivered and marked, on each of its retries': async (
    kit,
  ) => {
    await kit.apply({ ...FINAL, at: NOON });
    const first = await kit.win({ ...CHANGE, at: '2026-01-02T12:00:00.000000001Z' }, kit.b);
    assert.equal(first.afterFinal, true);
    await kit.fail(first.lease.owner, CHANGE);
    assert.equal((await kit.win(CHANGE)).afterFinal, true);
  },
  'of the same time, an earlier one, or none, or of another media buy: nothing is odd': async ({ apply }) => {
    await apply({ ...FINAL, at: NOON });
    const others = [{ at: NOON }, { at: '2026-01-02T11:59:59Z' }, {}, { at: LATER, mediaBuy: 'mb_1' }];
    for (const [n, other] of others.entries()) {
      const event = { ...CHANGE, ...other, key: `event-000${n}-of-the-seller` };
      assert.equal((await apply(event)).afterFinal, false, JSON.stringify(other));
    }
  },
  'of a final report without a time nothing is known to be later': async ({ apply }) => {
    await apply(FINAL);
    assert.equal((await apply({ ...CHANGE, at: LATER })).afterFinal, false);
  },
  'the first final report’s time is kept': async ({ apply }) => {
    await apply({ ...FINAL, at: NOON });
    assert.equal((await apply({ ...FINAL, key: LATE.key, at: LATER })).afterFinal, true);
    assert.equal((await apply({ ...CHANGE, at: '2026-01-02T18:00:00Z' })).afterFinal, true);
  },
  'in the inbox its worker is told': async (kit) => {
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
  'of another media buy, or of another sender: not after it': async ({ apply, win }) => {
    await apply(FINAL);
    assert.equal((await win({ ...LATE, report: 'mb_1' })).afterFinal, false);
    assert.equal((await win({ ...LATE, sender: 'https://other.example/mcp' })).afterFinal, false);
  },
  'a notification id of the same text is something else': async ({ apply, win }) => {
    await apply(FINAL);
    const event = { key: 'event-0004-of-the-seller', notification: 'mb_2' };
    assert.equal((await win(event)).reemission, false);
  },
  'it is remembered for 30 days': async ({ apply, win, advance }) => {
    await apply(FINAL);
    advance(29 * DAY_MS);
    assert.equal((await win(LATE)).afterFinal, true);
    advance(2 * DAY_MS);
    assert.equal((await win({ ...LATE, key: 'report-0005-of-the-seller' })).afterFinal, false);
  },
};
