import assert from 'node:assert/strict';
import type { Cases } from './kit.ts';
import { DAY_MS } from './kit.ts';

const REPORT = { key: 'report-0001-of-the-seller', report: 'mb_1,mb_2' };
const FINAL = { key: 'report-0002-of-the-seller', report: 'mb_2', final: true };
const LATE = { key: 'report-0003-of-the-seller', report: 'mb_1,mb_2' };

/** verification.md §7.33: a report after `final` is delivered, with a warning. */
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
