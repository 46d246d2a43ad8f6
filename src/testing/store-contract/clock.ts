// Cases of the store contract: the store's clock, and a clock that is set back (admission.md §4.11, §7.4).
// Called by `describeStoreContract`.
import assert from 'node:assert/strict';
import { FAR_WAIT_MS, LONGEST_LEASE_MS, LONGEST_WAIT_MS } from '../../stores/constants.ts';
import { INBOX, key, lease, leasedKeys, leaseNone, leaseOne, seen } from './inbox-kit.ts';
import { type Cases, CONFIG_ERROR, DAY_MS, HOUR_MS, KEY, type Kit, LEASE_MS } from './kit.ts';

/** Cases of `Store.clock`. It is optional: a store on the receiver's own machine uses the receiver's clock. */
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

/** The amounts by which the store's clock is set back, ms. */
const STEPS: Readonly<Record<string, number>> = {
  'an hour': HOUR_MS,
  'a day': DAY_MS,
  'ten years': 3650 * DAY_MS,
};

/** Leases and completes events, as workers do, until no more are due. @returns the keys of these events. */
async function worked(kit: Kit): Promise<readonly string[]> {
  const keys: string[] = [];
  for (let look = 0, idle = 0; look < 100 && idle < 2; look += 1) {
    const owner = kit.unique();
    const first = await lease(kit, { owner });
    const { events } = first.suspectDue ? await lease(kit, { owner: `${owner}-alone`, alone: true }) : first;
    const all = new Map([...first.events, ...events].map((event) => [event.key, event]));
    for (const { key: of, lease: is } of all.values()) {
      assert.equal(await kit.complete(is.owner, { key: of }), 'done');
    }
    keys.push(...all.keys());
    idle = all.size === 0 ? idle + 1 : 0;
  }
  return keys.toSorted();
}

/**
 * Leases and completes events, as workers do, for the longest time that an event may have to wait. @returns the keys of
 * these events. Even if the clock was set back, no event may be missing.
 */
async function workedInTime(kit: Kit): Promise<readonly string[]> {
  const keys = [...(await worked(kit))];
  for (let half = 0; half < 2; half += 1) {
    kit.advance(FAR_WAIT_MS / 2 + 1);
    keys.push(...(await worked(kit)));
  }
  return keys.toSorted();
}

/**
 * True if the clock is set back so far that each stored time is further ahead than the longest allowed wait. The store
 * must then ignore the stored time, and not wait.
 */
const isFar = (backMs: number): boolean => backMs > FAR_WAIT_MS;

/** Makes the cases for a clock that is set back by `backMs`. */
function setBack(backMs: number): Cases {
  const back = (kit: Kit): void => kit.advance(-backMs);
  return {
    'queued events are leased': async (kit) => {
      const keys = [1, 2, 3].map(key);
      for (const of of keys) await kit.accept({ ...INBOX, key: of });
      back(kit);
      assert.deepEqual(isFar(backMs) ? await worked(kit) : await workedInTime(kit), keys);
    },
    'a back-off ends': async (kit) => {
      await kit.accept(INBOX);
      const { lease: held } = await leaseOne(kit);
      assert.equal(await kit.fail(held.owner, { backoffMs: 300_000 }), 'queued');
      await leaseNone(kit);
      back(kit);
      assert.deepEqual(await worked(kit), [KEY]);
    },
    'an event that waits for its task is leased when the task is free': async (kit) => {
      await kit.accept({ ...INBOX, key: key(1), task: 't' });
      const { lease: held } = await leaseOne(kit);
      await kit.accept({ ...INBOX, key: key(2), task: 't' });
      await leaseNone(kit);
      back(kit);
      assert.deepEqual(await worked(kit), []);
      assert.equal(await kit.complete(held.owner, { key: key(1) }), 'done');
      const found = isFar(backMs) ? await worked(kit) : await workedInTime(kit);
      assert.deepEqual(found, [key(2)]);
    },
    'an event whose task is held is found once, and waits then': async (kit) => {
      for (const n of [1, 2]) await kit.accept({ ...INBOX, key: key(n), task: 't' });
      const { lease: held } = await leaseOne(kit, { max: 1 });
      back(kit);
      for (let look = 0; look < 3; look += 1) await leaseNone(kit);
      const { nextDueMs } = await leaseNone(kit);
      assert.ok(nextDueMs === undefined || nextDueMs > 60_000, String(nextDueMs));
      assert.equal(await kit.complete(held.owner, { key: key(1) }), 'done');
      assert.deepEqual(isFar(backMs) ? await worked(kit) : await workedInTime(kit), [key(2)]);
    },
    'an event that waits for the task of an inline delivery that nobody repeats is leased': async (kit) => {
      await kit.win({ key: key(1), task: 't' });
      await kit.accept({ ...INBOX, key: key(2), task: 't' });
      await leaseNone(kit);
      back(kit);
      assert.deepEqual(await workedInTime(kit), [key(2)]);
    },
    'the lease of a dead process ends, and its task is free then': async (kit) => {
      await kit.accept({ ...INBOX, task: 't' });
      await leaseOne(kit);
      await kit.accept({ ...INBOX, key: key(2), task: 't' });
      back(kit);
      assert.deepEqual(await worked(kit), []);
      if (isFar(backMs)) {
        kit.advance(LONGEST_LEASE_MS / 2);
        assert.deepEqual(await worked(kit), [], 'its process may live');
        kit.advance(LONGEST_LEASE_MS / 2 + 1);
        assert.deepEqual(await worked(kit), [key(2), KEY].toSorted());
      } else assert.deepEqual(await workedInTime(kit), [key(2), KEY].toSorted());
    },
    'a live owner keeps its lease: owner and count of runs are the same': async (kit) => {
      await kit.accept(INBOX);
      const { lease: held } = await leaseOne(kit);
      back(kit);
      assert.deepEqual(await worked(kit), []);
      const { state, leaseUntil, runs } = await seen(kit, KEY);
      assert.deepEqual([state, runs], ['leased', 1]);
      kit.advance(LEASE_MS - 1000);
      assert.equal(await kit.renew(held.owner), 'renewed');
      assert.ok((await seen(kit, KEY)).leaseUntil < leaseUntil, 'renewed from the clock as it is');
      kit.advance(LEASE_MS - 1000);
      await leaseNone(kit);
      assert.equal(await kit.complete(held.owner), 'done');
    },
    'inline: the lease of a dead process ends, and the next accept takes over': async (kit) => {
      await kit.win();
      back(kit);
      assert.equal((await kit.accept()).kind, 'in-flight');
      kit.advance(LONGEST_LEASE_MS / 2);
      assert.equal((await kit.accept()).kind, 'in-flight', 'its process may live');
      kit.advance(LONGEST_LEASE_MS / 2 + 1);
      assert.equal((await kit.accept()).kind, 'won');
    },
    'inline: a task held by a dead process is free': async (kit) => {
      await kit.win({ key: key(1), task: 't' });
      back(kit);
      assert.equal((await kit.accept({ key: key(2), task: 't' })).kind, 'task-busy');
      kit.advance(LONGEST_LEASE_MS + 1);
      assert.equal((await kit.accept({ key: key(2), task: 't' })).kind, 'won');
    },
    'inline: identical bytes are retried once the back-off step is over, or further ahead than one can be':
      async (kit) => {
        const nonce = 'nonce-of-16-bytes-or-more';
        const { lease: held } = await kit.win({ nonce });
        assert.equal(await kit.fail(held.owner, { backoffMs: 300_000 }), 'queued');
        back(kit);
        assert.equal((await kit.accept({ nonce })).kind, 'won');
      },
    'a suspect is leased': async (kit) => {
      await kit.accept(INBOX);
      for (let crash = 0; crash < 2; crash += 1) {
        const { events } = await lease(kit, { process: 'dies', ...(crash > 0 && { alone: true }) });
        assert.equal(events.length, 1);
        kit.advance(LEASE_MS + 1);
        await leaseNone(kit, { alone: crash > 0 });
      }
      const { crashes, suspect } = await seen(kit, KEY);
      assert.deepEqual([crashes, suspect], [1, true]);
      await leaseNone(kit, { alone: true });
      back(kit);
      assert.equal((await leaseOne(kit, { alone: true })).key, KEY);
    },
    'a failure after the step starts a back-off of the usual length': async (kit) => {
      for (const n of [1, 2]) await kit.accept({ ...INBOX, key: key(n) });
      const { events } = await lease(kit, { owner: 'renews', max: 2 });
      assert.equal(events.length, 2);
      back(kit);
      assert.equal(await kit.renew('renews', { key: key(1) }), 'renewed');
      for (const n of [1, 2]) {
        assert.equal(await kit.fail('renews', { key: key(n), backoffMs: 60_000 }), 'queued');
      }
      await leaseNone(kit);
      kit.advance(60_001);
      assert.deepEqual(await worked(kit), [key(1), key(2)]);
    },
    'a step that lies between the longest wait and now is waited for': async (kit) => {
      back(kit);
      await kit.accept(INBOX);
      const { lease: held } = await leaseOne(kit);
      assert.equal(await kit.fail(held.owner, { backoffMs: LONGEST_WAIT_MS }), 'queued');
      const { nextDueMs } = await leaseNone(kit);
      assert.ok(nextDueMs === undefined || nextDueMs <= LONGEST_WAIT_MS, String(nextDueMs));
      kit.advance(LONGEST_WAIT_MS + 1);
      assert.deepEqual(await worked(kit), [KEY]);
    },
    'accept or lease says so, for the alarm': async (kit) => {
      await kit.accept(INBOX);
      back(kit);
      const told = [(await lease(kit)).clockSteppedMs, (await kit.accept()).clockSteppedMs];
      assert.ok(
        told.some((ms) => (ms ?? 0) > backMs / 2),
        String(told),
      );
    },
  };
}

/** Cases of a store clock that is set back (admission.md §4.11). Each wait until a stored time must still end. */
export const clockBackCases: Cases = {
  ...Object.fromEntries(
    Object.entries(STEPS).flatMap(([by, backMs]) =>
      Object.entries(setBack(backMs)).map(([rule, run]) => [`by ${by}: ${rule}`, run]),
    ),
  ),
  'no clock step is reported when the clock was not set back': async (kit) => {
    await kit.accept(INBOX);
    kit.advance(HOUR_MS);
    assert.equal((await lease(kit)).clockSteppedMs, undefined);
    assert.equal((await kit.accept({ key: key(2) })).clockSteppedMs, undefined);
  },
  'events beyond the size of one look are leased too, behind those whose time has come': async (kit) => {
    const keys = Array.from({ length: 150 }, (_, n) => key(n));
    await Promise.all(keys.map((each) => kit.accept({ ...INBOX, key: each })));
    kit.advance(-DAY_MS);
    await kit.accept({ ...INBOX, key: 'event-of-now-of-the-seller' });
    assert.deepEqual(await leasedKeys(kit, { max: 1 }), ['event-of-now-of-the-seller']);
    const found: string[] = [];
    for (let look = 0; look < 20; look += 1) found.push(...(await leasedKeys(kit)));
    assert.deepEqual(found.toSorted(), keys);
  },
  'clocks that differ by seconds end no wait, not the longest either': async (kit) => {
    await kit.accept(INBOX);
    const { lease: held } = await leaseOne(kit);
    assert.equal(await kit.fail(held.owner, { backoffMs: LONGEST_WAIT_MS }), 'queued');
    kit.advance(-2000);
    await leaseNone(kit);
    const { nextDueMs } = await leaseNone(kit);
    assert.ok(nextDueMs === undefined || nextDueMs > 0, String(nextDueMs));
    kit.advance(LONGEST_WAIT_MS + 2001);
    await leaseOne(kit);
  },
  'no lease and no back-off is longer than the longest': async (kit) => {
    const leaseMs = LONGEST_LEASE_MS + 1;
    await assert.rejects(kit.accept({ leaseMs }), CONFIG_ERROR);
    const { lease: held } = await kit.win({ leaseMs: LONGEST_LEASE_MS });
    await assert.rejects(kit.renew(held.owner, { leaseMs }), CONFIG_ERROR);
    await assert.rejects(lease(kit, { leaseMs }), CONFIG_ERROR);
    await assert.rejects(kit.fail(held.owner, { backoffMs: LONGEST_WAIT_MS + 1 }), CONFIG_ERROR);
    assert.equal(await kit.fail(held.owner, { backoffMs: LONGEST_WAIT_MS }), 'queued');
  },
};
