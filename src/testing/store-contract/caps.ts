// Cases of the store contract: limits of a sender (rule 4 of `accept`), warnings before a limit is reached, and expiry
// (admission.md §3.4, §6).
// Called by `describeStoreContract`.
import assert from 'node:assert/strict';
import { type Cases, DAY_MS, decision, type Draft, HOUR_MS, text } from './kit.ts';

const OTHER = { key: 'event-0002-of-the-seller' };
const THIRD = { key: 'event-0003-of-the-seller' };
const KILOBYTE = 'x'.repeat(1000);
const RECORDS = { kind: 'over-cap', limit: 'records' };
const BYTES = { kind: 'over-cap', limit: 'pending-bytes' };

/**
 * Cases of rule 4 of `accept`: at a limit a sender gets no new record, and no old one is deleted (admission.md §3.4;
 * contract.md §9.6).
 */
export const capCases: Cases = {
  'over maxRecordsPerSender a new event is over-cap, and nothing is written': async (kit) => {
    const limits = { maxRecordsPerSender: 1 };
    const nonce = 'nonce-of-16-bytes-or-more';
    await kit.apply({ limits });
    assert.deepEqual(decision(await kit.accept({ ...OTHER, nonce, limits }, kit.b)), RECORDS);
    assert.equal(await kit.peek(OTHER), 'absent');
    assert.equal(await kit.peek(), 'applied');
    // The nonce must not be saved either, or the retry after the 429 would be refused as a replay.
    assert.equal((await kit.accept({ ...OTHER, nonce })).kind, 'won');
  },
  'over the cap duplicates are still answered, and retries still run': async (kit) => {
    const limits = { maxRecordsPerSender: 2, maxPendingBytesPerSender: 1 };
    await kit.apply();
    const { lease } = await kit.win(OTHER);
    assert.equal((await kit.accept({ ...THIRD, limits })).kind, 'over-cap');
    assert.equal((await kit.accept({ limits })).kind, 'done');
    assert.equal((await kit.accept({ ...OTHER, limits })).kind, 'in-flight');
    await kit.fail(lease.owner, OTHER);
    assert.equal((await kit.accept({ ...OTHER, limits })).kind, 'won');
  },
  'over the cap a nonce without an event is still burned': async ({ accept, apply }) => {
    await apply();
    assert.equal((await accept({ event: false, limits: { maxRecordsPerSender: 1 } })).kind, 'burned');
  },
  'task marks and notification ids count as records': async ({ accept, apply }) => {
    await apply({ task: 'task-1', notification: 'notification-1' });
    assert.deepEqual(decision(await accept({ ...OTHER, limits: { maxRecordsPerSender: 3 } })), RECORDS);
    assert.equal((await accept({ ...OTHER, limits: { maxRecordsPerSender: 4 } })).kind, 'won');
  },
  'events of one task count one task mark, re-emissions count one notification id': async ({
    accept,
    apply,
  }) => {
    await apply({ task: 'task-1', notification: 'notification-1' });
    await apply({ ...OTHER, task: 'task-1', notification: 'notification-1' });
    assert.equal((await accept({ ...THIRD, limits: { maxRecordsPerSender: 4 } })).kind, 'over-cap');
    assert.equal((await accept({ ...THIRD, limits: { maxRecordsPerSender: 5 } })).kind, 'won');
  },
  'another sender’s records do not count': async ({ accept, apply }) => {
    await apply();
    const limits = { maxRecordsPerSender: 1 };
    assert.equal((await accept({ sender: 'https://other.example/mcp', limits })).kind, 'won');
  },
  'records that have expired make room at once': async ({ accept, apply, advance }) => {
    const limits = { maxRecordsPerSender: 20 };
    for (let n = 0; n < 20; n += 1) await apply({ key: `event-${n}-of-the-seller`, limits });
    assert.equal((await accept({ ...OTHER, limits })).kind, 'over-cap');
    advance(DAY_MS + 1);
    assert.equal((await accept({ ...OTHER, limits })).kind, 'won');
  },
  'records and bytes that have expired make room, however many others expired before them': async (kit) => {
    const limits = { maxRecordsPerSender: 20, maxPendingBytesPerSender: 20_000 };
    const draft = (n: number): Draft => ({ key: `event-${n}-of-the-seller`, body: KILOBYTE, limits });
    for (let n = 0; n < 100; n += 1) await kit.win({ ...draft(n), sender: `https://${n % 5}.example/mcp` });
    kit.advance(1000);
    for (let n = 0; n < 20; n += 1) await kit.win(draft(n));
    assert.equal((await kit.accept(draft(20))).kind, 'over-cap');
    kit.advance(DAY_MS + 1);
    assert.equal((await kit.accept(draft(20))).kind, 'won');
  },
  'expired bytes alone make room too': async (kit) => {
    const limits = { maxPendingBytesPerSender: 20_000 };
    const draft = (n: number): Draft => ({ key: `event-${n}-of-the-seller`, body: KILOBYTE, limits });
    for (let n = 0; n < 100; n += 1) await kit.win({ ...draft(n), sender: `https://${n % 5}.example/mcp` });
    kit.advance(1000);
    for (let n = 0; n < 20; n += 1) await kit.win(draft(n));
    assert.equal((await kit.accept(draft(20))).kind, 'over-cap');
    kit.advance(DAY_MS + 1);
    assert.equal((await kit.accept(draft(20))).kind, 'won');
  },
  'a stale event counts no bytes': async ({ accept, apply }) => {
    const limits = { maxPendingBytesPerSender: 1000 };
    await apply({ ...OTHER, body: 'small', task: 't', at: '2026-01-02T00:00:00Z' });
    assert.equal(
      (await accept({ body: KILOBYTE, task: 't', at: '2026-01-01T00:00:00Z', limits })).kind,
      'stale',
    );
    assert.equal((await accept({ ...THIRD, body: KILOBYTE, limits })).kind, 'won');
  },
  'a key whose record has expired is counted once when it comes again': async ({
    accept,
    apply,
    advance,
  }) => {
    await apply({ body: KILOBYTE });
    advance(DAY_MS + 1);
    const { pressure } = await accept({ body: KILOBYTE, limits: { maxRecordsPerSender: 2 } });
    assert.deepEqual(pressure, []);
  },
  'over maxPendingBytesPerSender a new event is over-cap': async ({ accept, win, peek }) => {
    const limits = { maxPendingBytesPerSender: 2500 };
    await win({ body: KILOBYTE, limits });
    await win({ ...OTHER, body: KILOBYTE, limits });
    assert.deepEqual(decision(await accept({ ...THIRD, body: KILOBYTE, limits })), BYTES);
    assert.equal(await peek(THIRD), 'absent');
    assert.equal((await accept({ ...THIRD, body: 'small', limits })).kind, 'won');
  },
  'a body larger than the cap is over-cap': async ({ accept }) => {
    const limits = { maxPendingBytesPerSender: 999 };
    assert.deepEqual(decision(await accept({ body: KILOBYTE, limits })), BYTES);
  },
  'completion drops the body and frees its bytes': async ({ accept, apply }) => {
    const limits = { maxPendingBytesPerSender: 1000 };
    await apply({ body: KILOBYTE, limits });
    assert.equal((await accept({ ...OTHER, body: KILOBYTE, limits })).kind, 'won');
  },
  'a failure keeps the body and its bytes': async ({ accept, win, fail }) => {
    const limits = { maxPendingBytesPerSender: 1000 };
    const { lease } = await win({ body: KILOBYTE, limits });
    await fail(lease.owner);
    assert.deepEqual(decision(await accept({ ...OTHER, body: KILOBYTE, limits })), BYTES);
  },
  'DEAD keeps the body and its bytes': async ({ accept, win, fail }) => {
    const limits = { maxPendingBytesPerSender: 1000 };
    const { lease } = await win({ body: KILOBYTE, limits });
    await fail(lease.owner, { permanent: true });
    assert.deepEqual(decision(await accept({ ...OTHER, body: KILOBYTE, limits })), BYTES);
  },
  'a retry that became stale frees its bytes': async ({ accept, win, apply, fail }) => {
    const limits = { maxPendingBytesPerSender: 1000 };
    const old = { body: KILOBYTE, task: 't', at: '2026-01-01T00:00:00Z', limits };
    const { lease } = await win(old);
    await fail(lease.owner);
    await apply({ ...OTHER, body: 'small', task: 't', at: '2026-01-02T00:00:00Z' });
    assert.equal((await accept(old)).kind, 'stale');
    assert.equal((await accept({ ...THIRD, body: KILOBYTE, limits })).kind, 'won');
  },
  'bytes of unacknowledged records are free as soon as these expire': async (kit) => {
    const limits = { maxPendingBytesPerSender: 1000 };
    const { lease } = await kit.win({ body: KILOBYTE, limits });
    await kit.fail(lease.owner);
    kit.advance(DAY_MS + 1);
    assert.equal((await kit.accept({ ...OTHER, body: KILOBYTE, limits })).kind, 'won');
  },
  'pressure is reported at 80 % of a key id’s nonces, or of all, and not below': async ({ accept }) => {
    const limits = { maxNoncesPerKey: 5, maxNonces: 10 };
    const burn = async (keyid: string): Promise<readonly string[]> =>
      (await accept({ event: false, keyid, limits })).pressure;
    const seen: (readonly string[])[] = [];
    for (const keyid of ['a', 'a', 'a', 'a', 'b', 'b', 'b', 'b']) seen.push(await burn(keyid));
    assert.deepEqual(seen, [[], [], [], ['nonces'], [], [], [], ['nonces', 'all-nonces']]);
  },
  'pressure is reported at exactly 80 % of the sender’s bytes, and not at one byte less': async ({
    accept,
  }) => {
    const limits = { maxPendingBytesPerSender: 1000 };
    const short = await accept({ body: 'x'.repeat(799), limits });
    assert.deepEqual(short.pressure, []);
    const full = await accept({ ...OTHER, body: 'x', limits });
    assert.deepEqual(full.pressure, ['pending-bytes']);
  },
  'expired records and nonces cause no pressure': async ({ accept, apply, advance }) => {
    // One call deletes fewer expired rows than this case makes. So expired records and nonces are still stored at the
    // last call.
    const limits = { maxRecordsPerSender: 100, maxNoncesPerKey: 100 };
    for (let n = 1; n < 100; n += 1) await apply({ key: `event-${n}-of-the-seller`, limits });
    advance(DAY_MS + 1);
    const { pressure } = await accept({ key: 'event-100-of-the-seller', limits });
    assert.deepEqual(pressure, []);
  },
  'pressure is reported at 80 % of the sender’s records or bytes': async ({ accept }) => {
    const limits = { maxRecordsPerSender: 5, maxPendingBytesPerSender: 10_000 };
    const seen: (readonly string[])[] = [];
    for (let n = 1; n <= 6; n += 1) {
      seen.push((await accept({ key: `event-${n}-of-the-seller`, body: KILOBYTE, limits })).pressure);
    }
    assert.deepEqual(seen, [[], [], [], ['records'], ['records'], ['records']]);
    const large = { body: KILOBYTE.repeat(5), limits: { maxPendingBytesPerSender: 10_000 } };
    assert.deepEqual((await accept({ ...large, key: 'event-large-of-the-seller' })).pressure, [
      'pending-bytes',
    ]);
  },
};

const SOON = { nonceMs: 60_000 };

/** Cases of expiry: the time at which each kind of row is forgotten (contract.md §9.3; admission.md §6.1 to §6.5). */
export const expiryCases: Cases = {
  'a DONE record is kept for the retention from its completion': async ({
    win,
    complete,
    accept,
    advance,
  }) => {
    const { lease } = await win();
    advance(HOUR_MS);
    await complete(lease.owner);
    advance(DAY_MS - 60_000);
    assert.equal((await accept()).kind, 'done');
    advance(60_001);
    assert.equal((await accept()).kind, 'won');
  },
  'an expired key is new: attempts and runs begin again': async ({ win, apply, fail, peek, advance }) => {
    const { lease } = await win();
    await fail(lease.owner, { backoffMs: 0 });
    assert.equal((await apply()).lease.chargedAttempts, 2);
    advance(DAY_MS + 1);
    assert.equal(await peek(), 'absent');
    assert.deepEqual((await win({ id: 'new' })).lease, { owner: 'new', run: 1, chargedAttempts: 1 });
  },
  'an expired key is new on the other handle too': async ({ apply, win, fail, advance, b }) => {
    await apply({ body: 'first' });
    advance(DAY_MS + 1);
    const second = await win({ id: 'new', body: 'second' }, b);
    assert.deepEqual(second.lease, { owner: 'new', run: 1, chargedAttempts: 1 });
    assert.equal(await fail(second.lease.owner, {}, b), 'queued');
    assert.equal(text((await win({ body: 'third' }, b)).body), 'second');
  },
  'an expired key may come with another payload': async ({ win, apply, advance, fail }) => {
    await apply({ body: 'first' });
    advance(DAY_MS + 1);
    const second = await win({ body: 'second' });
    assert.equal(second.changed, false);
    await fail(second.lease.owner);
    assert.equal(text((await win({ body: 'third' })).body), 'second');
  },
  'an unacknowledged record is kept for the retention from its last attempt': async (kit) => {
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
  'the retention of a failed record starts at its failure': async ({ win, fail, peek, advance }) => {
    const { lease } = await win();
    advance(HOUR_MS);
    await fail(lease.owner);
    advance(DAY_MS - HOUR_MS / 2);
    assert.equal(await peek(), 'free');
    advance(HOUR_MS);
    assert.equal(await peek(), 'absent');
  },
  'a takeover starts the retention again': async ({ win, peek, advance }) => {
    await win();
    advance(DAY_MS - HOUR_MS);
    await win();
    advance(DAY_MS - HOUR_MS);
    assert.equal(await peek(), 'free');
    advance(2 * HOUR_MS);
    assert.equal(await peek(), 'absent');
  },
  'a record whose process died is kept for the retention too': async ({ win, peek, advance }) => {
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
  'a stale record is kept for the retention': async ({ accept, apply, peek, advance }) => {
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
  'accepts delete expired rows: a store in use does not grow': async (kit) => {
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
