// Cases of the store contract: known records, replays and repeated calls, which are rule 2 of `accept` (admission.md
// §3.2, §3.7, §4.5).
// Called by `describeStoreContract`.
import assert from 'node:assert/strict';
import { bytes, type Cases, decision, expectWon, type Kit, LEASE_MS, text } from './kit.ts';

const FIRST_BODY = '{"a":1,"b":2}';
const OTHER_BODY = '{"a":1,"b":3}';
const REORDERED = '{ "b": 2, "a": 1 }';

/**
 * Cases of rule 2 of `accept`, about the record of an event (admission.md §3.2; contract.md §9.4, §9.5; verification.md
 * §2.21).
 */
export const recordCases: Cases = {
  'a new event is won, with run 1 and attempt 1': async ({ win, peek, b }) => {
    const { lease } = await win({ id: 'accept-1' });
    assert.deepEqual(lease, { owner: 'accept-1', run: 1, chargedAttempts: 1 });
    assert.equal(await peek({}, b), 'busy');
  },
  'an event that was never sent is absent': async ({ peek }) => {
    assert.equal(await peek(), 'absent');
  },
  'a duplicate of a finished event is done, on every handle': async ({ accept, apply, peek, b }) => {
    await apply();
    const done = { kind: 'done', changed: false, state: 'applied', died: false };
    assert.deepEqual(decision(await accept()), done);
    assert.deepEqual(decision(await accept({}, b)), done);
    assert.equal(await peek({}, b), 'applied');
  },
  'a duplicate of a running event is in-flight': async ({ accept, win, b }) => {
    await win();
    assert.deepEqual(decision(await accept({}, b)), { kind: 'in-flight', changed: false });
  },
  'a duplicate of a DEAD event is done, and the death is not reported again': async ({
    accept,
    win,
    fail,
    peek,
  }) => {
    const { lease } = await win();
    assert.equal(await fail(lease.owner, { permanent: true }), 'dead');
    assert.deepEqual(decision(await accept()), { kind: 'done', changed: false, state: 'dead', died: false });
    assert.equal(await peek(), 'dead');
  },
  'a changed payload of a finished event is done and marked as changed': async ({ accept, apply }) => {
    await apply({ body: FIRST_BODY });
    const result = decision(await accept({ body: OTHER_BODY }));
    assert.deepEqual(result, { kind: 'done', changed: true, state: 'applied', died: false });
  },
  'a changed payload of a running event is in-flight and marked as changed': async ({ accept, win }) => {
    await win({ body: FIRST_BODY });
    assert.deepEqual(decision(await accept({ body: OTHER_BODY })), { kind: 'in-flight', changed: true });
  },
  'a changed payload that takes over gets the stored first copy': async ({ accept, win, fail, b }) => {
    const { lease } = await win({ body: FIRST_BODY });
    await fail(lease.owner);
    const won = expectWon(await accept({ body: OTHER_BODY }, b));
    assert.equal(won.changed, true);
    assert.equal(text(won.body), FIRST_BODY);
    await fail(won.lease.owner);
    const again = expectWon(await accept({ body: FIRST_BODY }));
    assert.equal(again.changed, false);
    assert.equal(again.body, undefined);
  },
  'the first copy is a copy of the exact bytes': async ({ a, request, win, advance }) => {
    const all = bytes('xx"\u0000\uD83D\uDE00"xx');
    const draft = request({ body: 'first' });
    assert.ok(draft.event);
    // The body is a part of a larger buffer, as body parsers give it. A parser overwrites the buffer later, so the
    // store must have copied the body.
    await a.accept({ ...draft, event: { ...draft.event, body: all.subarray(2, all.length - 2) } });
    all.fill(0);
    advance(LEASE_MS + 1);
    assert.equal(text((await win({ body: OTHER_BODY })).body), '"\u0000\uD83D\uDE00"');
  },
  'an empty body is kept as an empty body': async ({ win, fail }) => {
    const { lease } = await win({ body: '' });
    await fail(lease.owner);
    assert.equal(text((await win({ body: OTHER_BODY })).body), '');
  },
  'onChanged conflict: a changed payload is a conflict in each state of the first copy': async (kit) => {
    const changed = { body: OTHER_BODY, onChanged: 'conflict' } as const;
    const { lease } = await kit.win({ body: FIRST_BODY });
    assert.deepEqual(decision(await kit.accept(changed)), { kind: 'conflict' });
    await kit.fail(lease.owner);
    assert.deepEqual(decision(await kit.accept(changed)), { kind: 'conflict' });
    assert.equal(await kit.peek(), 'free');
    await kit.apply({ body: FIRST_BODY });
    assert.deepEqual(decision(await kit.accept(changed)), { kind: 'conflict' });
  },
  'onChanged conflict: an unchanged payload is not a conflict': async ({ accept, apply }) => {
    await apply({ body: FIRST_BODY, onChanged: 'conflict' });
    assert.equal((await accept({ body: FIRST_BODY, onChanged: 'conflict' })).kind, 'done');
  },
  'a conflict burns its nonce for the event': async ({ accept, apply }) => {
    await apply({ body: FIRST_BODY });
    const changed = { body: OTHER_BODY, onChanged: 'conflict', nonce: 'nonce-of-16-bytes-or-more' } as const;
    assert.equal((await accept(changed)).kind, 'conflict');
    assert.equal((await accept(changed)).kind, 'replayed');
  },
  'other bytes with the same canonical JSON are unchanged if both copies have it': async (kit) => {
    const strict = { onChanged: 'conflict', canonical: FIRST_BODY } as const;
    await kit.apply({ ...strict, body: FIRST_BODY });
    const reordered = decision(await kit.accept({ ...strict, body: REORDERED }));
    assert.deepEqual(reordered, { kind: 'done', changed: false, state: 'applied', died: false });
    const other = await kit.accept({ body: OTHER_BODY, onChanged: 'conflict', canonical: OTHER_BODY });
    assert.equal(other.kind, 'conflict');
  },
  'if one copy has no canonical JSON, the bytes decide': async ({ accept, apply }) => {
    await apply({ body: FIRST_BODY });
    assert.equal(
      (await accept({ body: FIRST_BODY, canonical: FIRST_BODY, onChanged: 'conflict' })).kind,
      'done',
    );
    assert.equal(
      (await accept({ body: REORDERED, canonical: FIRST_BODY, onChanged: 'conflict' })).kind,
      'conflict',
    );
    assert.equal((await accept({ body: REORDERED })).kind, 'done');
  },
};

const NONCE = { nonce: 'nonce-of-16-bytes-or-more' };
/** The wait after a failure (back-off step), ms. It ends long before the nonce expires. */
const STEP_MS = 60_000;

/** Accepts the event and lets its run fail. @returns the number of attempts that were charged to the event by then. */
async function failOnce({ win, fail }: Kit, draft = {}): Promise<number> {
  const { lease } = await win(draft);
  assert.equal(await fail(lease.owner, { backoffMs: STEP_MS }), 'queued');
  return lease.chargedAttempts;
}

/**
 * Cases of an event that keeps failing, and is sent again: in the same bytes, or with a fresh nonce (admission.md
 * §4.5).
 */
export const replayCases: Cases = {
  'identical bytes within the back-off step change nothing, and get the time that is left of it': async (
    kit,
  ) => {
    await failOnce(kit, NONCE);
    kit.advance(20_000);
    for (const store of [kit.a, kit.b, kit.a]) {
      const { leftMs, ...rest } = Object(decision(await kit.accept(NONCE, store)));
      assert.deepEqual(rest, { kind: 'backing-off', changed: false });
      assert.ok(leftMs > 30_000 && leftMs <= 40_000, String(leftMs));
    }
    assert.equal(await kit.peek(), 'free');
  },
  'the same accept sent again gets the same answer': async (kit) => {
    await failOnce(kit, NONCE);
    const again = { ...NONCE, id: 'again' };
    assert.equal((await kit.accept(again)).kind, 'backing-off');
    assert.equal((await kit.accept(again, kit.b)).kind, 'backing-off');
  },
  'identical bytes run the event once a back-off step, and never raise its attempts': async (kit) => {
    const retry = { attempts: 3 };
    assert.equal(await failOnce(kit, NONCE), 1);
    for (let step = 0; step < 5; step += 1) {
      kit.advance(STEP_MS + 1);
      const { lease } = await kit.win({ ...NONCE, retry });
      assert.equal(lease.chargedAttempts, 1);
      assert.equal((await kit.accept({ ...NONCE, retry })).kind, 'in-flight');
      assert.equal(await kit.fail(lease.owner, { backoffMs: STEP_MS, retry }), 'queued');
      assert.equal((await kit.accept({ ...NONCE, retry })).kind, 'backing-off');
    }
    assert.equal((await kit.win({ retry })).lease.chargedAttempts, 1);
  },
  'a delivery that waited for another one is reported as identical bytes, and counts as them when it asks again':
    async (kit) => {
      const { lease } = await kit.win(NONCE);
      const again = { ...NONCE, id: 'again' };
      const waiting = decision(await kit.accept(again));
      assert.deepEqual(waiting, { kind: 'in-flight', changed: false, replay: true });
      assert.deepEqual(decision(await kit.accept(again)), waiting);
      assert.deepEqual(decision(await kit.accept()), { kind: 'in-flight', changed: false });
      await kit.fail(lease.owner, { backoffMs: STEP_MS });
      const { nonce: _bound, ...asks } = kit.request();
      assert.equal((await kit.a.accept({ ...asks, replay: true })).kind, 'backing-off');
      assert.equal((await kit.a.accept(asks)).kind, 'won');
    },
  'a fresh nonce runs the event at once, and raises the attempts once a back-off step': async (kit) => {
    assert.equal(await failOnce(kit), 1);
    assert.equal(await failOnce(kit), 1);
    kit.advance(STEP_MS - 1000);
    assert.equal(await failOnce(kit), 1);
    // The last run came 1 s before the end of the back-off step. It must not have moved that end.
    kit.advance(1001);
    assert.equal(await failOnce(kit), 2);
    assert.equal(await failOnce(kit), 2);
  },
  'the first failure after a fault of the store begins a step of its own': async (kit) => {
    const { lease } = await kit.win();
    const fault = { unstarted: true, backoffMs: STEP_MS };
    assert.equal(await kit.fail(lease.owner, fault), 'queued');
    kit.advance(STEP_MS / 2);
    assert.equal(await failOnce(kit, NONCE), 1);
    kit.advance(STEP_MS / 2 + 1000);
    assert.equal((await kit.accept(NONCE)).kind, 'backing-off');
    assert.equal(await failOnce(kit), 1);
    kit.advance(STEP_MS / 2);
    assert.equal(await failOnce(kit), 2);
  },
  'twelve concurrent copies of a failing event do not use up its retries': async (kit) => {
    const retry = { attempts: 2 };
    const all = await Promise.all(
      Array.from({ length: 12 }, (_, n) => kit.accept({ ...NONCE, retry }, n % 2 ? kit.b : kit.a)),
    );
    assert.equal(all.filter(({ kind }) => kind === 'won').length, 1);
    const [won] = all.flatMap((one) => (one.kind === 'won' ? [one] : []));
    assert.equal(await kit.fail(won?.lease.owner ?? '', { backoffMs: STEP_MS, retry }), 'queued');
    for (let copy = 0; copy < 12; copy += 1) {
      assert.equal((await kit.accept({ ...NONCE, retry })).kind, 'backing-off');
    }
    const { lease } = await kit.win({ retry });
    assert.equal(lease.chargedAttempts, 1);
    assert.equal(await kit.complete(lease.owner), 'done');
  },
  'returning a run that was not an attempt does not lower the attempts': async (kit) => {
    await failOnce(kit);
    const { lease } = await kit.win();
    assert.equal(await kit.fail(lease.owner, { unstarted: true, backoffMs: 0 }), 'queued');
    assert.equal((await kit.win()).lease.chargedAttempts, 1);
  },
  'the same accept after a run that was not an attempt does not lower the attempts': async (kit) => {
    await failOnce(kit);
    const own = { ...NONCE, id: 'own' };
    assert.equal((await kit.win(own)).lease.chargedAttempts, 1);
    kit.advance(LEASE_MS + 1);
    assert.deepEqual((await kit.win(own)).lease, { owner: 'own', run: 3, chargedAttempts: 1 });
  },
  'the first run is attempt 1, also by identical bytes': async (kit) => {
    const other = { key: 'event-0002-of-the-seller', task: 't' };
    const holder = await kit.win(other);
    const queued = { ...NONCE, task: 't' };
    assert.equal((await kit.accept(queued)).kind, 'task-busy');
    assert.equal(await kit.complete(holder.lease.owner, other), 'done');
    assert.equal((await kit.win(queued)).lease.chargedAttempts, 1);
  },
};

const ID = { id: 'accept-1', nonce: 'nonce-of-16-bytes-or-more' };
const OTHER = { key: 'event-0002-of-the-seller' };

/**
 * Cases of a call of `accept` that is repeated with the same `acceptId`, because a client library got no reply. It must
 * get the same answer.
 */
export const resendCases: Cases = {
  'while LEASED: won, with the same lease': async ({ accept, b }) => {
    const first = decision(await accept(ID));
    assert.deepEqual(decision(await accept(ID, b)), first);
    assert.deepEqual(first, {
      kind: 'won',
      changed: false,
      lease: { owner: 'accept-1', run: 1, chargedAttempts: 1 },
      reemission: false,
      afterTerminal: false,
      afterFinal: false,
      ahead: false,
    });
  },
  'after a takeover: won, with the lease of the takeover': async ({ accept, win, advance }) => {
    await win({ body: 'first' });
    advance(LEASE_MS + 1);
    const first = decision(await accept({ ...ID, body: 'changed' }));
    assert.equal(first.kind, 'won');
    assert.deepEqual(decision(await accept({ ...ID, body: 'changed' })), first);
  },
  'after its own completion: the same answer, never replayed': async ({ accept, complete }) => {
    const first = decision(await accept(ID));
    assert.equal(await complete(ID.id), 'done');
    assert.deepEqual(decision(await accept(ID)), first);
  },
  'after its own permanent failure: the same answer': async ({ accept, fail }) => {
    const first = decision(await accept(ID));
    assert.equal(await fail(ID.id, { permanent: true }), 'dead');
    assert.deepEqual(decision(await accept(ID)), first);
  },
  'after its own failure: decided again, since the failure gave the lease back': async ({
    accept,
    win,
    fail,
  }) => {
    await accept(ID);
    assert.equal(await fail(ID.id, { backoffMs: 0 }), 'queued');
    assert.deepEqual((await win(ID)).lease, { owner: ID.id, run: 2, chargedAttempts: 2 });
  },
  'after its lease expired: decided again, and no attempt is counted for the expired lease': async ({
    win,
    advance,
  }) => {
    await win(ID);
    advance(LEASE_MS + 1);
    assert.deepEqual((await win(ID)).lease, { owner: ID.id, run: 2, chargedAttempts: 1 });
  },
  'after another owner took the lease over: not won': async ({ accept, win, advance, complete }) => {
    await win(ID);
    advance(LEASE_MS + 1);
    const { lease } = await win({}, undefined);
    assert.equal((await accept(ID)).kind, 'in-flight');
    assert.equal(await complete(lease.owner), 'done');
  },
  'queued in inbox mode: queued again': async (kit) => {
    const inbox = { ...ID, mode: 'inbox' } as const;
    const first = decision(await kit.accept(inbox));
    assert.deepEqual(first, { kind: 'queued', changed: false, reemission: false, ahead: false });
    assert.deepEqual(decision(await kit.accept(inbox, kit.b)), first);
  },
  'DEAD by this accept: reported again, so that a lost reply does not lose the alarm': async (kit) => {
    const retry = { crashes: 1 };
    await kit.win({ retry });
    kit.advance(LEASE_MS + 1);
    await kit.win({ retry });
    kit.advance(LEASE_MS + 1);
    const first = decision(await kit.accept({ ...ID, retry }));
    assert.deepEqual(first, { kind: 'done', changed: false, state: 'dead', died: true });
    assert.deepEqual(decision(await kit.accept({ ...ID, retry }, kit.b)), first);
    assert.deepEqual(decision(await kit.accept({ retry })), { ...first, died: false });
  },
  'recorded as stale: stale again, not done': async ({ accept, apply }) => {
    await apply({ ...OTHER, task: 't', at: '2026-01-02T00:00:00Z' });
    const stale = { ...ID, task: 't', at: '2026-01-01T00:00:00Z' };
    assert.equal((await accept(stale)).kind, 'stale');
    assert.equal((await accept(stale)).kind, 'stale');
  },
  'stale, and not recorded for lack of room: stale again': async ({ accept, apply }) => {
    await apply({ ...OTHER, task: 't', at: '2026-01-02T00:00:00Z' });
    const limits = { maxRecordsPerSender: 1 };
    const stale = { ...ID, task: 't', at: '2026-01-01T00:00:00Z', limits };
    assert.equal((await accept(stale)).kind, 'stale');
    assert.equal((await accept(stale)).kind, 'stale');
  },
  'burned: burned again': async ({ accept }) => {
    assert.equal((await accept({ ...ID, event: false })).kind, 'burned');
    assert.equal((await accept({ ...ID, event: false })).kind, 'burned');
  },
  'a duplicate of a finished event: done again': async ({ accept, apply }) => {
    await apply();
    const first = decision(await accept(ID));
    assert.equal(first.kind, 'done');
    assert.deepEqual(decision(await accept(ID)), first);
  },
  'over a cap, then with room: decided again, since nothing was written': async ({ accept }) => {
    assert.equal((await accept({ ...ID, limits: { maxRecordsPerSender: 0 } })).kind, 'over-cap');
    assert.equal((await accept(ID)).kind, 'won');
  },
  'in-flight is decided again: the same accept takes over when the lease expires': async (kit) => {
    await kit.win();
    assert.equal((await kit.accept(ID)).kind, 'in-flight');
    kit.advance(LEASE_MS + 1);
    assert.equal((await kit.win(ID)).lease.owner, ID.id);
  },
  'in-flight is decided again: done, not replayed, when the first copy is done': async (kit) => {
    const { lease } = await kit.win();
    assert.equal((await kit.accept(ID)).kind, 'in-flight');
    assert.equal(await kit.complete(lease.owner), 'done');
    assert.equal((await kit.accept(ID)).kind, 'done');
  },
  'identical bytes of a running event: in-flight, and replayed when the first copy is done': async (kit) => {
    const first = await kit.win({ nonce: ID.nonce });
    assert.equal((await kit.accept(ID)).kind, 'in-flight');
    assert.equal((await kit.accept(ID)).kind, 'in-flight');
    assert.equal(await kit.complete(first.lease.owner), 'done');
    assert.equal((await kit.accept(ID)).kind, 'replayed');
  },
  'identical bytes that won: won, with the same lease': async (kit) => {
    const first = await kit.win({ nonce: ID.nonce });
    assert.equal(await kit.fail(first.lease.owner, { backoffMs: 0 }), 'queued');
    const again = decision(await kit.accept(ID));
    assert.equal(again.kind, 'won');
    assert.deepEqual(decision(await kit.accept(ID)), again);
  },
  'task-busy is decided again: the same accept wins when the task is free': async (kit) => {
    const holder = await kit.win({ ...OTHER, task: 't' });
    assert.equal((await kit.accept({ ...ID, task: 't' })).kind, 'task-busy');
    assert.equal(await kit.complete(holder.lease.owner, OTHER), 'done');
    assert.equal((await kit.accept({ ...ID, task: 't' })).kind, 'won');
  },
  'without a nonce: the same answer, from the record': async ({ accept, complete }) => {
    const legacy = { id: ID.id, nonce: null };
    const first = decision(await accept(legacy));
    assert.deepEqual(decision(await accept(legacy)), first);
    assert.equal(await complete(ID.id), 'done');
    assert.deepEqual(decision(await accept(legacy)), first);
  },
};
