import assert from 'node:assert/strict';
import type { Cases } from './kit.ts';
import { DAY_MS, LEASE_MS } from './kit.ts';

const FIRST = { key: 'event-0001-of-the-seller', notification: 'impairment-7' };
const SECOND = { key: 'event-0002-of-the-seller', notification: 'impairment-7' };

/** contract.md §10.2: one `notification_id` under two keys is a re-emission, not a retry. */
export const notificationCases: Cases = {
  'the first event of a notification id is none': async ({ apply }) => {
    assert.equal((await apply(FIRST)).reemission, false);
  },
  'the id under another key is a re-emission, and delivered': async ({ apply, win, b }) => {
    await apply(FIRST);
    assert.equal((await win(SECOND, b)).reemission, true);
  },
  'a re-emission stays one on each of its retries': async ({ apply, win, fail, advance }) => {
    await apply(FIRST);
    const first = await win(SECOND);
    await fail(first.lease.owner, SECOND);
    assert.equal((await win(SECOND)).reemission, true);
    advance(LEASE_MS + 1);
    assert.equal((await win(SECOND)).reemission, true);
  },
  'a retry of the first event is none, also after a re-emission': async ({ apply, win, fail }) => {
    const first = await win(FIRST);
    await fail(first.lease.owner, FIRST);
    await apply(SECOND);
    assert.equal((await win(FIRST)).reemission, false);
  },
  'the first event, forgotten and sent again, is none': async ({ apply, win, advance }) => {
    await apply(FIRST);
    await apply(SECOND);
    advance(DAY_MS + 1);
    assert.equal((await win(FIRST)).reemission, false);
  },
  'another sender’s id is another id': async ({ apply, win }) => {
    await apply(FIRST);
    assert.equal((await win({ ...SECOND, sender: 'https://other.example/mcp' })).reemission, false);
  },
  'in the inbox too': async ({ accept }) => {
    await accept({ ...FIRST, mode: 'inbox' });
    const result = await accept({ ...SECOND, mode: 'inbox' });
    assert.ok(result.kind === 'queued' && result.reemission);
  },
  'the id outlives its record: 30 days after its last use': async ({ apply, win, advance }) => {
    await apply(FIRST);
    advance(29 * DAY_MS);
    assert.equal((await apply(SECOND)).reemission, true);
    advance(29 * DAY_MS);
    assert.equal((await apply({ ...SECOND, key: 'event-0003-of-the-seller' })).reemission, true);
    advance(31 * DAY_MS);
    assert.equal((await win({ ...SECOND, key: 'event-0004-of-the-seller' })).reemission, false);
  },
};
