import assert from 'node:assert/strict';
import type { AcceptResult } from '../../stores/contract.ts';
import type { Cases, Draft, Kit } from './kit.ts';
import { LEASE_MS } from './kit.ts';

const AT_ONCE = 64;

/** 64 calls at once, half of them on each handle. */
function storm(kit: Kit, draft: (n: number) => Draft): Promise<AcceptResult[]> {
  return Promise.all(
    Array.from({ length: AT_ONCE }, (_, n) => kit.accept(draft(n), n % 2 === 0 ? kit.a : kit.b)),
  );
}

function count(results: readonly AcceptResult[], kind: AcceptResult['kind']): number {
  return results.filter((result) => result.kind === kind).length;
}

/** Two handles on one store, 64 calls at once: each operation is atomic. */
export const concurrencyCases: Cases = {
  'of 64 deliveries of one event exactly one is won': async (kit) => {
    const results = await storm(kit, () => ({}));
    assert.equal(count(results, 'won'), 1);
    assert.equal(count(results, 'in-flight'), AT_ONCE - 1);
  },
  'of 64 identical deliveries (one nonce) exactly one is won': async (kit) => {
    const results = await storm(kit, () => ({ nonce: 'nonce-of-16-bytes-or-more' }));
    assert.equal(count(results, 'won'), 1);
    assert.equal(count(results, 'in-flight'), AT_ONCE - 1);
  },
  'of 64 bodies without an event under one nonce exactly one is burned': async (kit) => {
    const results = await storm(kit, () => ({ nonce: 'nonce-of-16-bytes-or-more', event: false }));
    assert.equal(count(results, 'burned'), 1);
    assert.equal(count(results, 'replayed'), AT_ONCE - 1);
  },
  'of 64 events of one task exactly one is won': async (kit) => {
    const results = await storm(kit, (n) => ({ key: `event-${n}-of-the-seller`, task: 'task-1' }));
    assert.equal(count(results, 'won'), 1);
    assert.equal(count(results, 'task-busy'), AT_ONCE - 1);
  },
  'of 64 takeovers of one lease exactly one is won': async (kit) => {
    await kit.win();
    kit.advance(LEASE_MS + 1);
    const results = await storm(kit, () => ({}));
    assert.equal(count(results, 'won'), 1);
    assert.equal(count(results, 'in-flight'), AT_ONCE - 1);
  },
  'of 64 new events under a cap of 10 exactly 10 are won': async (kit) => {
    const limits = { maxRecordsPerSender: 10 };
    const results = await storm(kit, (n) => ({ key: `event-${n}-of-the-seller`, limits }));
    assert.equal(count(results, 'won'), 10);
    assert.equal(count(results, 'over-cap'), AT_ONCE - 10);
  },
  'of 64 nonces under a cap of 10 exactly 10 are burned': async (kit) => {
    const limits = { maxNoncesPerKey: 10 };
    const results = await storm(kit, () => ({ event: false, limits }));
    assert.equal(count(results, 'burned'), 10);
    assert.equal(count(results, 'rate-abuse'), AT_ONCE - 10);
  },
  '64 resends of one accept are all won, and are one attempt': async (kit) => {
    const results = await storm(kit, () => ({ id: 'accept-1', nonce: 'nonce-of-16-bytes-or-more' }));
    assert.equal(count(results, 'won'), AT_ONCE);
    for (const result of results) assert.deepEqual(result, results[0]);
  },
  '64 different events are all won, and all completed': async (kit) => {
    const results = await storm(kit, (n) => ({ key: `event-${n}-of-the-seller`, id: `accept-${n}` }));
    assert.equal(count(results, 'won'), AT_ONCE);
    const ends = await Promise.all(
      results.map((_, n) =>
        kit.complete(`accept-${n}`, { key: `event-${n}-of-the-seller` }, n % 2 === 0 ? kit.b : kit.a),
      ),
    );
    assert.ok(ends.every((end) => end === 'done'));
  },
  'of complete and fail of one owner at once one decides, and the other is lost': async (kit) => {
    const { lease } = await kit.win();
    const ends = await Promise.all([kit.complete(lease.owner), kit.fail(lease.owner, {}, kit.b)]);
    assert.equal(ends.filter((end) => end === 'lost').length, 1);
  },
};
