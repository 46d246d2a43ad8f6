import assert from 'node:assert/strict';
import { ConfigError, Fault } from '../../errors.ts';
import type { Store } from '../../stores/contract.ts';
import type { StoreEffects } from './harness.ts';
import type { Cases, Kit } from './kit.ts';
import { DAY_MS, KEY, LEASE_MS, SENDER } from './kit.ts';

type Body<T> = (tx: unknown, effects: StoreEffects) => T | Promise<T>;

/** `Store.transaction` for the one event. */
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

/** The owner's writes and the completion commit together or not at all, once a delivery. */
export const transactionCases: Cases = {
  'its writes and the completion commit together': async (kit) => {
    const { lease } = await kit.win();
    await transact(kit, lease.owner, write);
    assert.equal(await kit.effects?.count(), 1);
    assert.equal(await kit.peek({}, kit.b), 'applied');
    assert.equal(await kit.complete(lease.owner), 'done');
  },
  'it gives what the function gave': async (kit) => {
    const { lease } = await kit.win();
    assert.equal(await transact(kit, lease.owner, () => 42), 42);
  },
  'it moves the task’s mark, as complete does': async (kit) => {
    const { lease } = await kit.win({ task: 't', at: '2026-01-02T00:00:00Z' });
    await transact(kit, lease.owner, write);
    const old = { key: 'event-0002-of-the-seller', task: 't', at: '2026-01-01T00:00:00Z' };
    assert.equal((await kit.accept(old)).kind, 'stale');
  },
  'what the function throws is thrown, and nothing is written': async (kit) => {
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
  'after a rollback the same owner may try again': async (kit) => {
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
  'a lease that runs out under the function, and that nobody takes over, is kept': async (kit) => {
    const { lease } = await kit.win();
    await transact(kit, lease.owner, (tx, effects) => {
      const written = effects.write(tx);
      kit.advance(LEASE_MS + 1);
      return written;
    });
    assert.equal(await kit.effects?.count(), 1);
    assert.equal((await kit.accept()).kind, 'done');
  },
  'a lease that is taken over under the function takes its writes with it': async (kit) => {
    // On a synchronous store nothing comes in between.
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
  'once a delivery: a second one is lease_lost, and writes nothing': async (kit) => {
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
  'other operations run beside it and are not undone with it': async (kit) => {
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
