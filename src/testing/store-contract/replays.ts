import assert from 'node:assert/strict';
import type { Cases, Kit } from './kit.ts';
import { LEASE_MS, decision } from './kit.ts';

const NONCE = { nonce: 'nonce-of-16-bytes-or-more' };
/** A step that is over long before the nonce is. */
const STEP_MS = 60_000;

/** Runs it and fails. @returns the attempt. */
async function failOnce({ win, fail }: Kit, draft = {}): Promise<number> {
  const { lease } = await win(draft);
  assert.equal(await fail(lease.owner, { backoffMs: STEP_MS }), 'queued');
  return lease.attempt;
}

/** Bytes and retries that come while an event fails (admission.md §4.5). */
export const replayCases: Cases = {
  'identical bytes within the back-off step change nothing, and say how long it lasts': async (kit) => {
    await failOnce(kit, NONCE);
    kit.advance(20_000);
    for (const store of [kit.a, kit.b, kit.a]) {
      const { leftMs, ...rest } = Object(decision(await kit.accept(NONCE, store)));
      assert.deepEqual(rest, { kind: 'backing-off', changed: false });
      assert.ok(leftMs > 30_000 && leftMs <= 40_000, String(leftMs));
    }
    assert.equal(await kit.peek(), 'free');
  },
  'the same accept again is told the same': async (kit) => {
    await failOnce(kit, NONCE);
    const again = { ...NONCE, id: 'again' };
    assert.equal((await kit.accept(again)).kind, 'backing-off');
    assert.equal((await kit.accept(again, kit.b)).kind, 'backing-off');
  },
  'identical bytes continue it once a step, and never raise its attempts': async (kit) => {
    const retry = { attempts: 3 };
    assert.equal(await failOnce(kit, NONCE), 1);
    for (let step = 0; step < 5; step += 1) {
      kit.advance(STEP_MS + 1);
      const { lease } = await kit.win({ ...NONCE, retry });
      assert.equal(lease.attempt, 1);
      assert.equal((await kit.accept({ ...NONCE, retry })).kind, 'in-flight');
      assert.equal(await kit.fail(lease.owner, { backoffMs: STEP_MS, retry }), 'queued');
      assert.equal((await kit.accept({ ...NONCE, retry })).kind, 'backing-off');
    }
    assert.equal((await kit.win({ retry })).lease.attempt, 1);
  },
  'a delivery that waited for another one is told that it is a replay, and asks as one': async (kit) => {
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
  'a fresh nonce runs at once, and raises the attempts once a step': async (kit) => {
    assert.equal(await failOnce(kit), 1);
    assert.equal(await failOnce(kit), 1);
    kit.advance(STEP_MS - 1000);
    assert.equal(await failOnce(kit), 1);
    // No run within the step has put its end off.
    kit.advance(1001);
    assert.equal(await failOnce(kit), 2);
    assert.equal(await failOnce(kit), 2);
  },
  'twelve copies at once while the handler fails leave the seller its retries': async (kit) => {
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
    assert.equal(lease.attempt, 1);
    assert.equal(await kit.complete(lease.owner), 'done');
  },
  'a run that was no attempt takes none back when it is given back': async (kit) => {
    await failOnce(kit);
    const { lease } = await kit.win();
    assert.equal(await kit.fail(lease.owner, { unstarted: true, backoffMs: 0 }), 'queued');
    assert.equal((await kit.win()).lease.attempt, 1);
  },
  'a run that was no attempt takes none back when its own accept asks again': async (kit) => {
    await failOnce(kit);
    const own = { ...NONCE, id: 'own' };
    assert.equal((await kit.win(own)).lease.attempt, 1);
    kit.advance(LEASE_MS + 1);
    assert.deepEqual((await kit.win(own)).lease, { owner: 'own', fence: 3, attempt: 1 });
  },
  'the first run is attempt 1, also by identical bytes': async (kit) => {
    const other = { key: 'event-0002-of-the-seller', task: 't' };
    const holder = await kit.win(other);
    const queued = { ...NONCE, task: 't' };
    assert.equal((await kit.accept(queued)).kind, 'task-busy');
    assert.equal(await kit.complete(holder.lease.owner, other), 'done');
    assert.equal((await kit.win(queued)).lease.attempt, 1);
  },
};
