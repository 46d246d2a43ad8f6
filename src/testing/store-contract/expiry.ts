import assert from 'node:assert/strict';
import type { Cases } from './kit.ts';
import { DAY_MS, HOUR_MS, text } from './kit.ts';

const SOON = { nonceMs: 60_000 };

/** contract.md §9.3; admission.md §6.1 to §6.5: what is forgotten, and when. */
export const expiryCases: Cases = {
  'DONE is remembered for the retention from its completion': async ({ win, complete, accept, advance }) => {
    const { lease } = await win({ leaseMs: 2 * HOUR_MS });
    advance(HOUR_MS);
    await complete(lease.owner);
    advance(DAY_MS - 60_000);
    assert.equal((await accept()).kind, 'done');
    advance(60_001);
    assert.equal((await accept()).kind, 'won');
  },
  'a forgotten key is new: attempts and fence begin again': async ({ win, apply, fail, peek, advance }) => {
    const { lease } = await win();
    await fail(lease.owner, { backoffMs: 0 });
    assert.equal((await apply()).lease.attempt, 2);
    advance(DAY_MS + 1);
    assert.equal(await peek(), 'absent');
    assert.deepEqual((await win({ id: 'new' })).lease, { owner: 'new', fence: 1, attempt: 1 });
  },
  'a forgotten key is new on the other handle too': async ({ apply, win, fail, advance, b }) => {
    await apply({ body: 'first' });
    advance(DAY_MS + 1);
    const second = await win({ id: 'new', body: 'second' }, b);
    assert.deepEqual(second.lease, { owner: 'new', fence: 1, attempt: 1 });
    assert.equal(await fail(second.lease.owner, {}, b), 'queued');
    assert.equal(text((await win({ body: 'third' }, b)).body), 'second');
  },
  'a forgotten key may come with another payload': async ({ win, apply, advance, fail }) => {
    await apply({ body: 'first' });
    advance(DAY_MS + 1);
    const second = await win({ body: 'second' });
    assert.equal(second.changed, false);
    await fail(second.lease.owner);
    assert.equal(text((await win({ body: 'third' })).body), 'second');
  },
  'a record never acknowledged lives for the retention from its last attempt': async (kit) => {
    const first = await kit.win();
    await kit.fail(first.lease.owner);
    kit.advance(DAY_MS - HOUR_MS);
    const second = await kit.win();
    await kit.fail(second.lease.owner);
    kit.advance(DAY_MS - HOUR_MS);
    assert.equal(await kit.peek(), 'free');
    kit.advance(HOUR_MS + 1);
    assert.equal(await kit.peek(), 'absent');
  },
  'the last attempt ends with its failure': async ({ win, fail, peek, advance }) => {
    const { lease } = await win({ leaseMs: 2 * HOUR_MS });
    advance(HOUR_MS);
    await fail(lease.owner);
    advance(DAY_MS - HOUR_MS / 2);
    assert.equal(await peek(), 'free');
    advance(HOUR_MS);
    assert.equal(await peek(), 'absent');
  },
  'a takeover is an attempt too': async ({ win, peek, advance }) => {
    await win();
    advance(DAY_MS - HOUR_MS);
    await win();
    advance(DAY_MS - HOUR_MS);
    assert.equal(await peek(), 'free');
    advance(2 * HOUR_MS);
    assert.equal(await peek(), 'absent');
  },
  'a record whose process died is kept as long': async ({ win, peek, advance }) => {
    await win();
    advance(DAY_MS - HOUR_MS);
    assert.equal(await peek(), 'free');
    advance(HOUR_MS + 1);
    assert.equal(await peek(), 'absent');
  },
  'an acknowledged unfinished record never expires': async ({ accept, peek, advance }) => {
    await accept({ mode: 'inbox' });
    advance(400 * DAY_MS);
    assert.equal(await peek(), 'free');
    assert.equal((await accept({ mode: 'inbox' })).kind, 'in-flight');
  },
  'DEAD never expires': async ({ accept, win, fail, advance }) => {
    const { lease } = await win();
    await fail(lease.owner, { permanent: true });
    advance(400 * DAY_MS);
    assert.equal((await accept()).kind, 'done');
  },
  'DEAD by crashes never expires': async ({ accept, win, advance, peek }) => {
    await win({ retry: { crashes: 1 } });
    advance(HOUR_MS);
    await win({ retry: { crashes: 1 } });
    advance(HOUR_MS);
    assert.equal((await accept({ retry: { crashes: 1 } })).kind, 'done');
    advance(400 * DAY_MS);
    assert.equal(await peek(), 'dead');
  },
  'a stale record is remembered for the retention': async ({ accept, apply, peek, advance }) => {
    await apply({ key: 'event-0002-of-the-seller', task: 't', at: '2026-01-02T00:00:00Z' });
    await accept({ task: 't', at: '2026-01-01T00:00:00Z' });
    advance(DAY_MS - HOUR_MS);
    assert.equal(await peek(), 'stale');
    advance(HOUR_MS + 1);
    assert.equal(await peek(), 'absent');
  },
  'the retention is that of each call': async ({ apply, peek, advance }) => {
    await apply({ retentionMs: 2 * DAY_MS });
    advance(DAY_MS + 1);
    assert.equal(await peek(), 'applied');
    advance(DAY_MS);
    assert.equal(await peek(), 'absent');
  },
  'accepts clear away what has expired: a store that is used does not grow': async (kit) => {
    const few = { maxRecordsPerSender: 100, maxNoncesPerKey: 100, maxNonces: 100 };
    for (let n = 0; n < 60; n += 1) {
      await kit.apply({ ...SOON, key: `old-${n}-of-the-seller`, task: `t${n}`, notification: `n${n}` });
    }
    kit.advance(31 * DAY_MS);
    for (let n = 0; n < 60; n += 1) await kit.apply({ ...SOON, key: `new-${n}-of-the-seller` });
    const last = { key: 'last-of-the-seller', limits: few };
    const { kind, pressure } = await kit.accept(last);
    assert.equal(kind, 'won');
    assert.deepEqual(pressure, []);
  },
};
