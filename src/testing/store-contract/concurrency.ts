// Cases of the store contract: many concurrent calls, and `ctx.transaction` (admission.md §2.16, §3).
// Called by `describeStoreContract`.
import assert from 'node:assert/strict';
import { ConfigError, Fault } from '../../shared/errors.ts';
import type { AcceptResult, Store } from '../../stores/store.ts';
import { type StoreEffects, type Cases, DAY_MS, type Draft, KEY, type Kit, LEASE_MS, SENDER } from './kit.ts';
import { BUY, daysOf, follow, hadDays } from './report-windows.ts';
import { stateOf } from './states.ts';

/** The number of concurrent calls. It is larger than any pool, so some calls have to wait for a connection. */
const AT_ONCE = 64;

/** Makes 64 concurrent calls of `accept`, half of them on each of the two handles of the store. */
function storm(kit: Kit, draft: (n: number) => Draft): Promise<AcceptResult[]> {
  return Promise.all(
    Array.from({ length: AT_ONCE }, (_, n) => kit.accept(draft(n), n % 2 === 0 ? kit.a : kit.b)),
  );
}

function count(results: readonly AcceptResult[], kind: AcceptResult['kind']): number {
  return results.filter((result) => result.kind === kind).length;
}

/** Cases of 64 concurrent calls on two handles of one store. Each operation must be atomic. */
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
  'of 64 concurrent new events under a cap of 10, all 10 are won, and no later one': async (kit) => {
    const limits = { maxRecordsPerSender: 10 };
    const results = await storm(kit, (n) => ({ key: `event-${n}-of-the-seller`, limits }));
    assert.ok(count(results, 'won') >= 10, 'what is under way may exceed a cap, and never misses it');
    assert.equal(count(results, 'won') + count(results, 'over-cap'), AT_ONCE);
    const later = await storm(kit, (n) => ({ key: `later-${n}-of-the-seller`, limits }));
    assert.equal(count(later, 'over-cap'), AT_ONCE);
  },
  'of 64 concurrent nonces under a cap of 10, all 10 are burned, and no later one': async (kit) => {
    const limits = { maxNoncesPerKey: 10 };
    const results = await storm(kit, () => ({ event: false, limits }));
    assert.ok(count(results, 'burned') >= 10);
    assert.equal(count(results, 'burned') + count(results, 'rate-abuse'), AT_ONCE);
    assert.equal(count(await storm(kit, () => ({ event: false, limits })), 'rate-abuse'), AT_ONCE);
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
  'of concurrent complete and fail of one owner one decides, and the other is lost': async (kit) => {
    const { lease } = await kit.win();
    const ends = await Promise.all([kit.complete(lease.owner), kit.fail(lease.owner, {}, kit.b)]);
    assert.equal(ends.filter((end) => end === 'lost').length, 1);
  },
};

type Body<T> = (tx: unknown, effects: StoreEffects) => T | Promise<T>;

/** Runs `body` in `Store.transaction` for the event `KEY`. */
async function transact<T>(kit: Kit, owner: string, body: Body<T>, store: Store = kit.a): Promise<T> {
  const { effects } = kit;
  assert.ok(effects, 'a store with transactions brings effects');
  const request = { sender: SENDER, key: KEY, owner, retentionMs: DAY_MS };
  const running = store.transaction?.(request, (tx) => body(tx, effects));
  assert.ok(running, 'the store has transactions');
  return running;
}

const write: Body<unknown> = (tx, effects) => effects.write(tx);

const leaseLost = (error: unknown): boolean => error instanceof Fault && error.code === 'lease_lost';

/**
 * Cases of `Store.transaction`: the writes of the function commit together with the completion of the event, or not at
 * all. A second transaction of the same delivery writes nothing.
 */
export const transactionCases: Cases = {
  'the function’s writes and the completion commit together': async (kit) => {
    const { lease } = await kit.win();
    await transact(kit, lease.owner, write);
    assert.equal(await kit.effects?.count(), 1);
    assert.equal(await kit.peek({}, kit.b), 'applied');
    assert.equal(await kit.complete(lease.owner), 'done');
  },
  'the function’s result is returned': async (kit) => {
    const { lease } = await kit.win();
    assert.equal(await transact(kit, lease.owner, () => 42), 42);
  },
  'the task’s mark moves, as with complete': async (kit) => {
    const { lease } = await kit.win({ task: 't', at: '2026-01-02T00:00:00Z' });
    await transact(kit, lease.owner, write);
    const old = { key: 'event-0002-of-the-seller', task: 't', at: '2026-01-01T00:00:00Z' };
    assert.equal((await kit.accept(old)).kind, 'stale');
  },
  'an error of the function is thrown on, and nothing is written': async (kit) => {
    const { lease } = await kit.win();
    const mistake = new Error('the handler’s own');
    const failing = transact(kit, lease.owner, (tx, effects) => {
      const written = effects.write(tx);
      if (effects.synchronous) throw mistake;
      return Promise.resolve(written).then(() => Promise.reject(mistake));
    });
    await assert.rejects(failing, (error) => error === mistake);
    assert.equal(await kit.effects?.count(), 0);
    assert.equal(await kit.peek(), 'busy');
    assert.equal(await kit.fail(lease.owner), 'queued');
  },
  'the same owner may try again after a rollback': async (kit) => {
    const { lease } = await kit.win();
    await assert.rejects(
      transact(kit, lease.owner, () => {
        throw new Error('first');
      }),
    );
    await transact(kit, lease.owner, write);
    assert.equal(await kit.effects?.count(), 1);
    assert.equal(await kit.peek(), 'applied');
  },
  'an owner that does not hold the lease does not run the function': async (kit) => {
    const late = await kit.win();
    let ran = false;
    const run: Body<void> = () => {
      ran = true;
    };
    await assert.rejects(transact(kit, 'a-stranger', run), leaseLost);
    kit.advance(LEASE_MS + 1);
    await kit.win();
    await assert.rejects(transact(kit, late.lease.owner, run), leaseLost);
    assert.equal(ran, false);
    assert.equal(await kit.effects?.count(), 0);
  },
  'a lease that expires while the function runs is kept if no other owner takes it over': async (kit) => {
    const { lease } = await kit.win();
    await transact(kit, lease.owner, (tx, effects) => {
      const written = effects.write(tx);
      kit.advance(LEASE_MS + 1);
      return written;
    });
    assert.equal(await kit.effects?.count(), 1);
    assert.equal((await kit.accept()).kind, 'done');
  },
  'a takeover while the function runs rolls its writes back': async (kit) => {
    // A synchronous store cannot make another call while the function runs, so this case does not apply to it.
    if (kit.effects?.synchronous) return;
    const { lease } = await kit.win();
    const slow = transact(kit, lease.owner, async (tx, effects) => {
      await effects.write(tx);
      kit.advance(LEASE_MS + 1);
      await kit.win({}, kit.b);
    });
    await assert.rejects(slow, leaseLost);
    assert.equal(await kit.effects?.count(), 0);
    assert.equal((await kit.accept()).kind, 'in-flight');
  },
  'a second transaction of a delivery is lease_lost, and writes nothing': async (kit) => {
    const { lease } = await kit.win();
    await transact(kit, lease.owner, write);
    await assert.rejects(transact(kit, lease.owner, write), leaseLost);
    assert.equal(await kit.effects?.count(), 1);
  },
  'an async function is awaited, or on a synchronous store a ConfigError, rolled back': async (kit) => {
    const { lease } = await kit.win();
    const given = transact(kit, lease.owner, async (tx, effects) => effects.write(tx));
    if (kit.effects?.synchronous) {
      await assert.rejects(given, ConfigError);
      assert.equal(await kit.effects.count(), 0);
      assert.equal(await kit.peek(), 'busy');
      await transact(kit, lease.owner, write);
    }
    await given.catch(() => undefined);
    assert.equal(await kit.effects?.count(), 1);
  },
  'concurrent operations are not rolled back with it': async (kit) => {
    const { lease } = await kit.win();
    const failing = transact(kit, lease.owner, () => {
      throw new Error('mine alone');
    });
    const other = kit.accept({ key: 'event-0002-of-the-seller' });
    await assert.rejects(failing, /mine alone/);
    assert.equal((await other).kind, 'won');
    assert.equal(await kit.peek({ key: 'event-0002-of-the-seller' }), 'busy');
  },
};

/** Cases of transactions that complete delivery reports, for stores that also keep registrations (owed.md §3.4). */
export const transactionReportCases: Cases = {
  'the windows of a report are had, as with complete, and not where it is rolled back': async (kit) => {
    await follow(kit);
    const [day] = await daysOf(kit);
    const { lease } = await kit.win({ report: BUY, days: [day] });
    const rolledBack = transact(kit, lease.owner, () => {
      throw new Error('rolled back');
    });
    await assert.rejects(rolledBack, /rolled back/u);
    assert.equal(await hadDays(kit.b), 0);
    await transact(kit, lease.owner, write);
    assert.equal(await hadDays(kit.b), 1);
    const pull = { key: 'event-0002-of-the-seller', mode: 'inbox', nonce: null } as const;
    assert.equal((await kit.accept({ ...pull, report: BUY, days: [day], isPulled: true })).kind, 'done');
  },
  'a state waits for its event as with complete, also where it is rolled back': async (kit) => {
    await follow(kit);
    const { lease } = await kit.win({ state: { id: 'i1', holder: { kind: 'stream', id: BUY } } });
    const rolledBack = transact(kit, lease.owner, () => {
      throw new Error('rolled back');
    });
    await assert.rejects(rolledBack, /rolled back/u);
    assert.notEqual((await stateOf(kit.b))?.key, undefined);
    await transact(kit, lease.owner, write);
    assert.equal((await stateOf(kit.b))?.key, undefined);
  },
};
