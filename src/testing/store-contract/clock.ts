import assert from 'node:assert/strict';
import { INBOX, key, lease, leasedKeys, leaseNone, leaseOne, seen } from './inbox-kit.ts';
import { type Cases, HOUR_MS, KEY, type Kit, LEASE_MS } from './kit.ts';

/** `clock` is optional: a store on the receiver's own machine has no other. */
export const clockCases: Cases = {
  'the clock, if there is one, is in Unix ms, the same on both handles, and moves with the offset': async ({
    a,
    b,
    advance,
  }) => {
    assert.equal(typeof a.clock, typeof b.clock);
    if (!a.clock || !b.clock) return;
    const before = await a.clock();
    assert.ok(Number.isSafeInteger(before), `${before} is a whole number`);
    assert.ok(Math.abs(before - Date.now()) < 24 * HOUR_MS, `${before} is now, in ms`);
    advance(48 * HOUR_MS);
    const passed = (await b.clock()) - before;
    assert.ok(passed >= 47 * HOUR_MS && passed < 49 * HOUR_MS, `${passed} ms later`);
  },
};

/** Looks as a worker does whose process has seen the clock step, until nothing more is found. */
async function keysBy(kit: Kit, looks = 4): Promise<readonly string[]> {
  const keys: string[] = [];
  for (let look = 0; look < looks; look += 1) keys.push(...(await leasedKeys(kit)));
  return keys.toSorted();
}

/** The store’s clock is set back by an hour (admission.md §4.11): what waits until an instant goes on all the same. */
export const clockBackCases: Cases = {
  'queued events are leased': async (kit) => {
    for (const n of [1, 2, 3]) await kit.accept({ ...INBOX, key: key(n) });
    kit.advance(-HOUR_MS);
    assert.deepEqual(await keysBy(kit), [key(1), key(2), key(3)]);
  },
  'a back-off ends': async (kit) => {
    await kit.accept(INBOX);
    const { lease: held } = await leaseOne(kit);
    assert.equal(await kit.fail(held.owner), 'queued');
    await leaseNone(kit);
    kit.advance(-HOUR_MS);
    assert.deepEqual(await keysBy(kit), [KEY]);
  },
  'an event that waits for its task is leased when the task is free': async (kit) => {
    await kit.accept({ ...INBOX, key: key(1), task: 't' });
    const { lease: held } = await leaseOne(kit);
    await kit.accept({ ...INBOX, key: key(2), task: 't' });
    await leaseNone(kit);
    kit.advance(-HOUR_MS);
    assert.deepEqual(await keysBy(kit), []);
    assert.equal(await kit.complete(held.owner, { key: key(1) }), 'done');
    assert.deepEqual(await keysBy(kit), [key(2)]);
  },
  'the lease of a dead process ends one lease later, and its task is free then': async (kit) => {
    await kit.accept({ ...INBOX, task: 't' });
    await leaseOne(kit);
    await kit.accept({ ...INBOX, key: key(2), task: 't' });
    kit.advance(-HOUR_MS);
    assert.deepEqual(await keysBy(kit), []);
    kit.advance(LEASE_MS + 1);
    const next = await leaseOne(kit, { max: 1 });
    assert.ok([KEY, key(2)].includes(next.key));
    assert.equal(next.lease.chargedAttempts >= 1, true);
  },
  'a live owner keeps its lease: owner and count of runs are the same': async (kit) => {
    await kit.accept(INBOX);
    const { lease: held } = await leaseOne(kit);
    kit.advance(-HOUR_MS);
    assert.deepEqual(await keysBy(kit), []);
    assert.equal((await seen(kit, KEY)).state, 'leased');
    kit.advance(LEASE_MS - 1000);
    assert.equal(await kit.renew(held.owner), 'renewed');
    kit.advance(LEASE_MS - 1000);
    await leaseNone(kit);
    assert.equal(await kit.complete(held.owner), 'done');
  },
  'inline: an accept finds the lease of a dead process, and one lease later the next accept takes over':
    async (kit) => {
      await kit.win();
      kit.advance(-HOUR_MS);
      const found = await kit.accept();
      assert.equal(found.kind, 'in-flight');
      assert.ok((found.clockSteppedMs ?? 0) > HOUR_MS / 2, 'it says so, for the alarm');
      kit.advance(LEASE_MS + 1);
      assert.equal((await kit.accept()).kind, 'won');
    },
  'inline: a task held by a dead process is free one lease later': async (kit) => {
    await kit.win({ key: key(1), task: 't' });
    kit.advance(-HOUR_MS);
    assert.equal((await kit.accept({ key: key(2), task: 't' })).kind, 'task-busy');
    kit.advance(LEASE_MS + 1);
    assert.equal((await kit.accept({ key: key(2), task: 't' })).kind, 'won');
  },
  'inline: identical bytes are retried, although the back-off step began at a later clock': async (kit) => {
    const nonce = 'nonce-of-16-bytes-or-more';
    const { lease: held } = await kit.win({ nonce });
    assert.equal(await kit.fail(held.owner), 'queued');
    kit.advance(-HOUR_MS);
    assert.equal((await kit.accept({ nonce })).kind, 'won');
  },
  'lease reports the clock step, for the alarm': async (kit) => {
    await kit.accept(INBOX);
    kit.advance(-HOUR_MS);
    const told: (number | undefined)[] = [];
    for (let look = 0; look < 4; look += 1) told.push((await lease(kit)).clockSteppedMs);
    assert.ok(
      told.some((ms) => (ms ?? 0) > HOUR_MS / 2),
      String(told),
    );
  },
  'no clock step is reported when the clock was not set back': async (kit) => {
    await kit.accept(INBOX);
    kit.advance(HOUR_MS);
    assert.equal((await lease(kit)).clockSteppedMs, undefined);
    assert.equal((await kit.accept({ key: key(2) })).clockSteppedMs, undefined);
  },
  'a failure after the step starts a back-off of the usual length': async (kit) => {
    for (const n of [1, 2, 3]) await kit.accept({ ...INBOX, key: key(n) });
    const [first] = (await lease(kit, { owner: 'renews', max: 1 })).events;
    const renewed = first?.key ?? '';
    kit.advance(-HOUR_MS);
    assert.equal(await kit.renew('renews', { key: renewed }), 'renewed');
    assert.equal(await kit.fail('renews', { key: renewed }), 'queued');
    const others: string[] = [];
    for (let look = 0; look < 4; look += 1) {
      const { events } = await lease(kit, { owner: `look-${look}` });
      for (const event of events) {
        others.push(event.key);
        assert.equal(await kit.fail(event.lease.owner, { key: event.key }), 'queued');
      }
    }
    kit.advance(HOUR_MS / 2);
    assert.deepEqual((await leasedKeys(kit)).toSorted(), [...others, renewed].toSorted());
  },
  'events beyond the size of one look are leased too': async (kit) => {
    const keys = Array.from({ length: 150 }, (_, n) => key(n));
    await Promise.all(keys.map((each) => kit.accept({ ...INBOX, key: each })));
    kit.advance(-HOUR_MS);
    assert.deepEqual(await keysBy(kit, 20), keys);
  },
};
