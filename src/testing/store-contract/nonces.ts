// Cases of the store contract: nonces, which are rule 1 of `accept` (admission.md §3.1).
// Called by `describeStoreContract`.
import assert from 'node:assert/strict';
import type { Cases, Draft } from './kit.ts';
import { HOUR_MS, LEASE_MS, SENDER } from './kit.ts';

const OTHER = { key: 'event-0002-of-the-seller' };
/** The agent URL of another sender. */
const ELSE = 'https://else.example/mcp';
const NONCE = { nonce: 'nonce-of-16-bytes-or-more' };
/** The wait that `Kit.fail` sets before the next run, ms. */
const STEP_MS = 60_000;

/** Cases of rule 1 of `accept`, about nonces (admission.md §3.1; verification.md §2.9a, §2.12, §2.13, §2.29). */
export const nonceCases: Cases = {
  'a nonce seen again with the same event is decided by the event until that is safe': async ({
    accept,
    win,
  }) => {
    await win(NONCE);
    assert.equal((await accept(NONCE)).kind, 'in-flight');
  },
  'a nonce seen again with the same event is replayed once that is safe': async ({ accept, apply, b }) => {
    await apply(NONCE);
    assert.equal((await accept(NONCE)).kind, 'replayed');
    assert.equal((await accept(NONCE, b)).kind, 'replayed');
  },
  'identical bytes after a failed run are a retry, not a replay, once the back-off step is over': async (
    kit,
  ) => {
    const first = await kit.win(NONCE);
    assert.equal(await kit.fail(first.lease.owner), 'queued');
    kit.advance(STEP_MS + 1);
    assert.equal((await kit.accept(NONCE)).kind, 'won');
  },
  'identical bytes after a crash are a retry, not a replay, and no attempt': async ({ win, advance }) => {
    await win(NONCE);
    advance(LEASE_MS + 1);
    assert.equal((await win(NONCE)).lease.run, 2);
  },
  'identical bytes of a DEAD event are replayed': async ({ accept, win, fail }) => {
    const { lease } = await win(NONCE);
    assert.equal(await fail(lease.owner, { permanent: true }), 'dead');
    assert.equal((await accept(NONCE)).kind, 'replayed');
  },
  'identical bytes of an event that is DEAD by crashes are replayed': async ({ accept, win, advance }) => {
    const retry = { crashes: 1 };
    await win({ ...NONCE, retry });
    advance(LEASE_MS + 1);
    await win({ retry });
    advance(LEASE_MS + 1);
    assert.equal((await accept({ retry })).kind, 'done');
    assert.equal((await accept({ ...NONCE, retry })).kind, 'replayed');
  },
  'identical bytes of a stale event are replayed': async ({ accept, apply }) => {
    await apply({ ...OTHER, task: 't', at: '2026-01-02T00:00:00Z' });
    const stale = { ...NONCE, task: 't', at: '2026-01-01T00:00:00Z' };
    assert.equal((await accept(stale)).kind, 'stale');
    assert.equal((await accept(stale)).kind, 'replayed');
  },
  'a nonce bound to another event is replayed, and that other event is not written': async (kit) => {
    await kit.win(NONCE);
    assert.equal((await kit.accept({ ...NONCE, ...OTHER })).kind, 'replayed');
    assert.equal(await kit.peek(OTHER), 'absent');
  },
  'a nonce bound to another event is replayed, also while the event of the delivery runs': async (kit) => {
    await kit.win(NONCE);
    await kit.win(OTHER);
    assert.equal((await kit.accept({ ...NONCE, ...OTHER })).kind, 'replayed');
  },
  'a nonce without an event is burned once, then replayed': async ({ accept, b }) => {
    assert.equal((await accept({ ...NONCE, event: false })).kind, 'burned');
    assert.equal((await accept({ ...NONCE, event: false }, b)).kind, 'replayed');
    assert.equal((await accept(NONCE)).kind, 'replayed');
  },
  'a nonce bound to an event is replayed when it comes without an event': async ({ accept, win }) => {
    await win(NONCE);
    assert.equal((await accept({ ...NONCE, event: false })).kind, 'replayed');
  },
  'a duplicate binds its own fresh nonce to the record': async ({ accept, apply }) => {
    await apply();
    assert.equal((await accept(NONCE)).kind, 'done');
    assert.equal((await accept(NONCE)).kind, 'replayed');
    assert.equal((await accept({ ...NONCE, ...OTHER })).kind, 'replayed');
  },
  'a delivery that waits binds its own fresh nonce to the record': async ({ accept, win, complete }) => {
    const { lease } = await win();
    assert.equal((await accept(NONCE)).kind, 'in-flight');
    assert.equal((await accept({ ...NONCE, ...OTHER })).kind, 'replayed');
    assert.equal(await complete(lease.owner), 'done');
    assert.equal((await accept(NONCE)).kind, 'replayed');
  },
  'the same nonce under another key id is another nonce': async ({ accept, apply }) => {
    await apply(NONCE);
    assert.equal((await accept({ ...NONCE, keyid: 'seller-2027' })).kind, 'done');
  },
  'a nonce is kept for its lifetime by the receiver’s clock, then forgotten': async (kit) => {
    const short = { ...NONCE, nonceMs: 60_000 };
    await kit.apply(short);
    kit.advance(50_000);
    assert.equal((await kit.accept(short)).kind, 'replayed');
    kit.advance(10_001);
    assert.equal((await kit.accept(short)).kind, 'done');
  },
  'a nonce whose event has expired before it is replayed': async ({ accept, apply, advance }) => {
    await apply({ ...NONCE, nonceMs: HOUR_MS, retentionMs: 1000 });
    advance(1001);
    assert.equal((await accept({ ...NONCE, nonceMs: HOUR_MS, retentionMs: 1000 })).kind, 'replayed');
  },
  'without a nonce (legacy authentication) the event alone decides': async ({ accept, win, complete }) => {
    const { lease } = await win({ nonce: null });
    assert.equal((await accept({ nonce: null })).kind, 'in-flight');
    assert.equal(await complete(lease.owner), 'done');
    assert.equal((await accept({ nonce: null })).kind, 'done');
    assert.equal((await accept({ nonce: null, event: false })).kind, 'burned');
  },
  'over maxNoncesPerKey a new nonce is rate-abuse, and nothing is written': async (kit) => {
    const limits = { maxNoncesPerKey: 2 };
    await kit.apply({ limits });
    assert.equal((await kit.accept({ limits })).kind, 'done');
    const refused = { ...OTHER, ...NONCE, limits };
    assert.equal((await kit.accept(refused, kit.b)).kind, 'rate-abuse');
    assert.equal((await kit.accept({ ...NONCE, event: false, limits })).kind, 'rate-abuse');
    assert.equal(await kit.peek(OTHER), 'absent');
    assert.equal((await kit.accept({ ...OTHER, ...NONCE })).kind, 'won');
  },
  'over maxNoncesPerKey a known nonce is still accepted': async ({ accept, win }) => {
    const limits = { maxNoncesPerKey: 1 };
    await win({ ...NONCE, limits });
    assert.equal((await accept({ ...NONCE, limits })).kind, 'in-flight');
  },
  'a nonce that is used again is counted once': async ({ accept, win }) => {
    const limits = { maxNoncesPerKey: 2, maxNonces: 2 };
    await win({ ...NONCE, limits });
    assert.equal((await accept({ ...NONCE, limits })).kind, 'in-flight');
    assert.equal((await accept({ event: false, limits })).kind, 'burned');
    assert.equal((await accept({ event: false, limits })).kind, 'rate-abuse');
  },
  'nonces of one key id do not count against another': async ({ accept, win }) => {
    const limits = { maxNoncesPerKey: 1 };
    await win({ limits });
    assert.equal((await accept({ ...OTHER, limits })).kind, 'rate-abuse');
    assert.equal((await accept({ ...OTHER, limits, keyid: 'seller-2027' })).kind, 'won');
  },
  'nonces that have expired make room at once': async ({ accept, win, advance }) => {
    const limits = { maxNoncesPerKey: 1, maxNonces: 1 };
    await win({ limits, nonceMs: 60_000 });
    advance(60_001);
    assert.equal((await accept({ ...OTHER, limits })).kind, 'won');
  },
  'nonces that have expired make room at once, however many others expired before them': async (kit) => {
    const limits = { maxNoncesPerKey: 20 };
    const burn = { event: false, nonceMs: 60_000, limits } as const;
    for (let n = 0; n < 100; n += 1) await kit.accept({ ...burn, keyid: `seller-${n % 5}` });
    kit.advance(1000);
    for (let n = 0; n < 20; n += 1) assert.equal((await kit.accept(burn)).kind, 'burned');
    assert.equal((await kit.accept(burn)).kind, 'rate-abuse');
    kit.advance(60_001);
    assert.equal((await kit.accept(burn)).kind, 'burned');
  },
  'over maxNoncesPerSender, over all its key ids, a new nonce is rate-abuse': async ({ accept, win }) => {
    const limits = { maxNoncesPerSender: 3 };
    for (const n of [1, 2, 3]) await win({ key: `event-${n}-of-the-seller`, keyid: `kid-${n}`, limits });
    const over = { key: 'event-4-of-the-seller', limits };
    assert.equal((await accept({ ...over, keyid: 'kid-4' })).kind, 'rate-abuse');
    assert.equal((await accept({ ...over, keyid: 'kid-1' })).kind, 'rate-abuse');
    assert.equal(
      (await accept({ ...over, nonce: null })).kind,
      'won',
      'a delivery without a nonce adds none to the caps',
    );
    await win({ ...over, sender: ELSE });
  },
  'nonces of other key ids of the sender that have expired do not count': async ({
    win,
    accept,
    advance,
  }) => {
    const limits = { maxNoncesPerSender: 2 };
    await win({ key: 'event-1-of-the-seller', keyid: 'kid-1', nonceMs: 60_000, limits });
    await win({ key: 'event-2-of-the-seller', keyid: 'kid-2', limits });
    const third = { key: 'event-3-of-the-seller', keyid: 'kid-3', limits };
    assert.equal((await accept(third)).kind, 'rate-abuse');
    advance(60_001);
    await win(third);
  },
  'without maxNoncesPerSender there is no limit for a sender': async (kit) => {
    const { maxNoncesPerSender: _none, ...limits } = kit.request().limits;
    for (const n of [1, 2]) {
      const request = kit.request({ key: `event-${n}-of-the-seller` });
      assert.equal((await kit.a.accept({ ...request, limits })).kind, 'won');
    }
  },
  'pressure is reported at 80 % of maxNoncesPerSender': async ({ accept }) => {
    const limits = { maxNoncesPerSender: 5 };
    const seen: unknown[] = [];
    for (const n of [1, 2, 3, 4]) {
      seen.push((await accept({ key: `event-${n}-of-the-seller`, keyid: `kid-${n}`, limits })).pressure);
    }
    assert.deepEqual(seen, [[], [], [], ['sender-nonces']]);
  },
  'a sender that makes up nonces and key ids takes maxNoncesPerSender of maxNonces, and leaves the rest to others':
    async (kit) => {
      const limits = { maxNoncesPerSender: 3, maxNonces: 6 };
      let taken = 0;
      const next = (sender: string): Draft => {
        taken += 1;
        return { sender, key: `event-${taken}-of-the-seller`, keyid: `kid-${taken}`, limits };
      };
      const kinds: string[] = [];
      for (let n = 0; n < 9; n += 1) kinds.push((await kit.accept(next(SENDER))).kind);
      assert.deepEqual(kinds, [...Array<string>(3).fill('won'), ...Array<string>(6).fill('rate-abuse')]);
      for (let n = 0; n < 3; n += 1) await kit.win(next(ELSE));
      assert.equal((await kit.accept(next('https://third.example/mcp'))).kind, 'rate-abuse');
    },
  'over maxNonces, of all senders together, a new nonce is rate-abuse': async ({ accept, win }) => {
    const limits = { maxNonces: 1 };
    await win({ limits });
    const other = { ...OTHER, sender: 'https://other.example/mcp', limits };
    assert.equal((await accept(other)).kind, 'rate-abuse');
  },
  'pressure is reported at 80 % of a key id’s nonces': async ({ accept }) => {
    const limits = { maxNoncesPerKey: 5, maxNonces: 5 };
    const seen: string[][] = [];
    for (let n = 1; n <= 5; n += 1) seen.push([...(await accept({ event: false, limits })).pressure]);
    assert.deepEqual(seen.slice(0, 3), [[], [], []]);
    assert.deepEqual(seen.slice(3), [
      ['nonces', 'all-nonces'],
      ['nonces', 'all-nonces'],
    ]);
  },
};
