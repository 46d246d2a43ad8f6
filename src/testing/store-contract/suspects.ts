// Cases of the store contract: crashes, and suspects, i.e. events whose process died while it ran them (admission.md
// §4.4, §4.6, §4.7).
// Called by `describeStoreContract` for stores with an inbox.
import assert from 'node:assert/strict';
import type { AliveRequest } from '../../stores/store.ts';
import { INBOX, inboxOf, key, lease, leasedKeys, leaseNone, leaseOne, seen } from './inbox-kit.ts';
import type { Cases, Kit } from './kit.ts';
import { HOUR_MS, KEY, LEASE_MS, SENDER } from './kit.ts';

const ALONE = { alone: true } as const;

const MINUTE_MS = 60_000;

/**
 * Reports to the store that a process is alive. Returns false if the store has no `alive`: such a store counts every
 * expired lease as a crash.
 */
async function beat(
  kit: Kit,
  process: string,
  forMs: AliveRequest['forMs'] = 2 * LEASE_MS,
): Promise<boolean> {
  await kit.b.alive?.({ process, forMs });
  return kit.b.alive !== undefined;
}

/**
 * Leases events in one call, and lets the leases expire. The next call marks the events as suspects (their process died
 * while it ran them).
 */
async function crashTogether(kit: Kit, keys: readonly string[]): Promise<void> {
  for (const of of keys) await kit.accept({ ...INBOX, key: of });
  assert.deepEqual(await leasedKeys(kit, { process: 'dies' }), keys);
  kit.advance(LEASE_MS + 1);
  assert.equal((await leaseNone(kit)).suspectDue, true);
}

/** Cases of crashes, and of the events that a crash is counted against (admission.md §4.4, §4.6, §4.7). */
export const suspectCases: Cases = {
  'events that crashed together are suspects: no crash and no attempt is counted for any': async (kit) => {
    await crashTogether(kit, [key(1), key(2)]);
    for (const one of [key(1), key(2)]) {
      const { state, attempts, crashes, suspect } = await seen(kit, one);
      assert.deepEqual([state, attempts, crashes, suspect], ['queued', 0, 0, true]);
    }
    const { records } = await inboxOf(kit.b).list({ state: 'queued', limit: 10 });
    assert.deepEqual(
      records.map(({ suspect }) => suspect),
      [true, true],
    );
  },
  'a suspect is leased alone, only by a call that asks for one, and is marked': async (kit) => {
    await crashTogether(kit, [key(1), key(2)]);
    await kit.accept({ ...INBOX, key: key(3) });
    const other = await lease(kit);
    assert.deepEqual([other.events.map((event) => event.key), other.suspectDue], [[key(3)], true]);
    const alone = await lease(kit, { ...ALONE, owner: 'worker', max: 10 }, kit.b);
    assert.deepEqual(
      alone.events.map((event) => [event.key, event.lease]),
      [[key(1), { owner: 'worker', run: 2, chargedAttempts: 1, suspect: true }]],
    );
    assert.equal(alone.suspectDue, true, 'the other one');
    assert.equal(await kit.complete('worker', { key: key(1) }), 'done');
    assert.equal((await leaseOne(kit, ALONE)).key, key(2));
    const { events, suspectDue } = await lease(kit, ALONE);
    assert.deepEqual([events, suspectDue], [[], undefined]);
  },
  'a call that asks for a suspect gets no other event': async (kit) => {
    await kit.accept(INBOX);
    await leaseNone(kit, ALONE);
    await leaseOne(kit);
  },
  'a crash while running alone is counted, and the next oldest suspect has its turn': async (kit) => {
    await crashTogether(kit, [key(1), key(2), key(3)]);
    assert.equal((await leaseOne(kit, ALONE)).key, key(1));
    kit.advance(LEASE_MS + 1);
    for (const next of [key(2), key(3)]) {
      const { key: of, lease: held } = await leaseOne(kit, ALONE);
      assert.equal(of, next);
      assert.equal(await kit.complete(held.owner, { key: of }), 'done');
    }
    const { state, crashes, suspect } = await seen(kit, key(1));
    assert.deepEqual([state, crashes, suspect], ['queued', 1, true]);
  },
  'a suspect with fewer counted crashes goes first': async (kit) => {
    await crashTogether(kit, [key(1), key(2)]);
    assert.equal((await leaseOne(kit, ALONE)).key, key(1));
    kit.advance(LEASE_MS + 1);
    assert.equal((await leaseOne(kit, { ...ALONE, owner: 'stops' })).key, key(2));
    assert.equal(await kit.fail('stops', { key: key(2), unstarted: true, backoffMs: 0 }), 'queued');
    kit.advance(MINUTE_MS);
    // Both suspects are due, and the first is older. The second goes first, because fewer crashes count against it.
    assert.equal((await leaseOne(kit, ALONE)).key, key(2));
    assert.equal((await leaseOne(kit, ALONE)).key, key(1));
  },
  'charges of a suspect lie at least 1, 4, 16 and 60 minutes apart, and the fifth makes it DEAD': async (
    kit,
  ) => {
    await crashTogether(kit, [key(1)]);
    for (const [charges, minutes] of [1, 4, 16, 60].entries()) {
      await leaseOne(kit, ALONE);
      kit.advance(LEASE_MS + 1);
      await leaseNone(kit, ALONE);
      assert.equal((await seen(kit, key(1))).crashes, charges + 1);
      // The clock goes back for a moment, as if a server whose clock is behind made the next call.
      kit.advance(-2000);
      assert.equal((await leaseNone(kit, ALONE)).suspectDue, undefined);
      kit.advance((minutes - 0.5) * MINUTE_MS + 2000);
      assert.equal((await leaseNone(kit, ALONE)).suspectDue, undefined);
      kit.advance(0.5 * MINUTE_MS);
    }
    await leaseOne(kit, ALONE);
    kit.advance(LEASE_MS + 1);
    const { events, died } = await lease(kit, ALONE);
    assert.deepEqual([events, died], [[], [{ sender: SENDER, key: key(1) }]]);
  },
  'while a charged suspect waits, its task and the other suspects do not': async (kit) => {
    await kit.accept({ ...INBOX, key: key(1), task: 't' });
    await kit.accept({ ...INBOX, key: key(2) });
    assert.deepEqual(await leasedKeys(kit, { process: 'dies' }), [key(1), key(2)]);
    kit.advance(LEASE_MS + 1);
    await leaseNone(kit);
    assert.equal((await leaseOne(kit, ALONE)).key, key(1));
    kit.advance(LEASE_MS + 1);
    assert.equal((await leaseOne(kit, ALONE)).key, key(2));
    await kit.accept({ ...INBOX, key: key(3), task: 't' });
    assert.deepEqual(await leasedKeys(kit), [key(3)]);
  },
  'inline: a charged suspect is backing-off until its wait is over, for fresh deliveries too, and then runs':
    async (kit) => {
      await kit.win();
      kit.advance(LEASE_MS + 1);
      assert.equal((await kit.win({ id: 'alone' })).lease.suspect, true);
      kit.advance(LEASE_MS + 1);
      for (const alone of [false, true]) {
        const told = await kit.accept({ alone });
        assert.ok(told.kind === 'backing-off' && told.leftMs > 0.5 * MINUTE_MS && told.leftMs <= MINUTE_MS);
      }
      assert.equal(await kit.complete('alone'), 'lost');
      kit.advance(MINUTE_MS);
      assert.equal((await kit.win()).lease.run, 3);
    },
  'a completion or a failure of the handler clears the mark; returning the event or an overrun does not':
    async (kit) => {
      await crashTogether(kit, [key(1), key(2), key(3)]);
      await leaseOne(kit, { ...ALONE, owner: 'one' });
      assert.equal(await kit.fail('one', { key: key(1), unstarted: true, backoffMs: 0 }), 'queued');
      assert.equal((await seen(kit, key(1))).suspect, true);
      await leaseOne(kit, { ...ALONE, owner: 'two' });
      assert.equal(await kit.fail('two', { key: key(1), overrun: true, backoffMs: 0 }), 'queued');
      const { suspect, crashes } = await seen(kit, key(1));
      assert.deepEqual([suspect, crashes], [true, 1]);
      assert.equal((await leaseOne(kit, { ...ALONE, owner: 'three' })).key, key(2));
      assert.equal(await kit.fail('three', { key: key(2), backoffMs: 0 }), 'queued');
      assert.equal((await seen(kit, key(2))).suspect, undefined);
      assert.equal((await leaseOne(kit, { owner: 'four' })).lease.suspect, undefined);
      assert.equal((await leaseOne(kit, { ...ALONE, owner: 'five' })).key, key(3));
      assert.equal(await kit.complete('five', { key: key(3) }), 'done');
      assert.equal((await seen(kit, key(3))).suspect, undefined);
      // The suspect ran alone for longer than allowed, so it has to wait before it is due again.
      await leaseNone(kit, ALONE);
      kit.advance(MINUTE_MS);
      assert.equal((await leaseOne(kit, ALONE)).key, key(1));
    },
  'a suspect that was charged nothing keeps its task until it has had its turn': async (kit) => {
    await kit.accept({ ...INBOX, key: key(1), task: 't' });
    await leaseOne(kit, { process: 'dies' });
    await kit.accept({ ...INBOX, key: key(2), task: 't' });
    kit.advance(LEASE_MS + 1);
    await leaseNone(kit);
    assert.equal((await leaseOne(kit, { ...ALONE, owner: 'worker' })).key, key(1));
    await leaseNone(kit);
    assert.equal(await kit.complete('worker', { key: key(1) }), 'done');
    assert.deepEqual(await leasedKeys(kit), [key(2)]);
  },
  'an expired lease of a live process is not a crash: the attempt counts, and nothing is marked': async (
    kit,
  ) => {
    const retry = { crashes: 1 };
    await kit.accept(INBOX);
    await leaseOne(kit, { process: 'lives', retry });
    if (!(await beat(kit, 'lives'))) return;
    kit.advance(LEASE_MS + 1);
    const { lease: second } = await leaseOne(kit, { owner: 'second', process: 'lives', retry });
    assert.deepEqual(second, { owner: 'second', run: 2, chargedAttempts: 2 });
    await beat(kit, 'lives');
    kit.advance(LEASE_MS + 1);
    const third = await kit.win({ id: 'third', process: 'other', retry });
    assert.deepEqual(third.lease, { owner: 'third', run: 3, chargedAttempts: 3 });
  },
  'an expired lease is a crash if the process’s sign of life has expired or never came': async (kit) => {
    await beat(kit, 'died', LEASE_MS - 1000);
    await kit.win({ process: 'died' });
    await kit.win({ key: key(2), process: 'never heard of' });
    kit.advance(LEASE_MS + 1);
    assert.equal((await kit.win({ process: 'other' })).lease.suspect, true);
    assert.equal((await kit.win({ key: key(2), process: 'other' })).lease.suspect, true);
  },
  'a process that leases the same event again is alive': async (kit) => {
    await kit.win({ process: 'same' });
    kit.advance(LEASE_MS + 1);
    const { lease: second } = await kit.win({ id: 'second', process: 'same' });
    assert.deepEqual(second, { owner: 'second', run: 2, chargedAttempts: 2 });
  },
  'a counted crash is taken back, once, when its process proves to be alive': async (kit) => {
    const retry = { crashes: 2 };
    if (!kit.a.inbox || !kit.a.alive) return;
    const charged = async (process: string, crashes: number): Promise<void> => {
      assert.equal((await kit.win({ process, retry })).lease.suspect, true);
      kit.advance(LEASE_MS + 1);
      assert.equal((await kit.accept({ retry })).kind, 'backing-off');
      assert.equal((await seen(kit, KEY)).crashes, crashes);
    };
    await kit.win({ process: 'dies', retry });
    kit.advance(LEASE_MS + 1);
    await charged('hangs', 1);
    assert.equal(await beat(kit, 'hangs', HOUR_MS), true);
    kit.advance(MINUTE_MS);
    await charged('dies too', 1);
    kit.advance(MINUTE_MS);
    await kit.win({ process: 'dies as well', retry });
    kit.advance(LEASE_MS + 1);
    assert.equal((await kit.accept({ retry })).kind, 'done', 'what was charged for others stays');
  },
  'inline: a suspect is leased by an accept that can run it alone; for others it is in-flight, and not leased':
    async (kit) => {
      const keys = [key(1), key(2)];
      for (const of of keys) await kit.win({ key: of, process: 'dies', retry: { crashes: 1 } });
      kit.advance(LEASE_MS + 1);
      const told = [];
      for (const of of keys) told.push(await kit.accept({ key: of, process: 'next', alone: false }));
      assert.deepEqual(
        told.map((one) => [one.kind, 'suspect' in one && one.suspect]),
        [
          ['in-flight', true],
          ['in-flight', true],
        ],
      );
      assert.equal((await kit.win({ key: key(1), process: 'next' }, kit.b)).lease.suspect, true);
      // The process that leased the first event dies. The crash counts against that event alone, because the second did
      // not run.
      kit.advance(LEASE_MS + 1);
      assert.equal(
        (await kit.win({ key: key(2), process: 'third', retry: { crashes: 1 } })).lease.suspect,
        true,
      );
      assert.equal((await kit.accept({ key: key(1), process: 'third', retry: { crashes: 1 } })).kind, 'done');
    },
  'an event that its process still runs is in-flight there, and may be taken over elsewhere': async (kit) => {
    await kit.win();
    kit.advance(LEASE_MS + 1);
    assert.equal((await kit.accept({ isRunning: true })).kind, 'in-flight');
    assert.equal((await kit.accept({}, kit.b)).kind, 'won');
    assert.equal(await kit.complete('none'), 'lost');
  },
  'an event that is done is done, although its process still runs it': async (kit) => {
    await kit.apply();
    assert.equal((await kit.accept({ isRunning: true })).kind, 'done');
  },
  'an event that its process still runs holds its task there, also past its lease, until it is done or another process leases the task':
    async (kit) => {
      await kit.win({ key: key(1), task: 't', id: 'first' });
      kit.advance(LEASE_MS + 1);
      const other = { key: key(2), task: 't', runningKey: key(1) };
      assert.equal((await kit.accept(other)).kind, 'task-busy', 'where it is new');
      assert.equal((await kit.accept({ ...other, nonce: null })).kind, 'task-busy', 'where it is known');
      assert.equal(await kit.renew('first', { key: key(1) }), 'renewed');
      assert.equal(await kit.complete('first', { key: key(1) }), 'done');
      assert.equal((await kit.accept({ ...other, nonce: null })).kind, 'won', 'it is done');
      kit.advance(LEASE_MS + 1);
      assert.equal(
        (await kit.accept({ key: key(3), task: 't' }, kit.b)).kind,
        'won',
        'another process takes it',
      );
    },
  'a worker does not get an event that its process still runs, and that event does not change': async (
    kit,
  ) => {
    await kit.accept({ ...INBOX, key: key(1) });
    await kit.accept({ ...INBOX, key: key(2) });
    await leaseOne(kit, { owner: 'runs', max: 1, process: 'lives' });
    kit.advance(LEASE_MS + 1);
    const { events } = await lease(kit, { process: 'lives', except: [key(1)] });
    assert.deepEqual(
      events.map((event) => event.key),
      [key(2)],
    );
    await leaseNone(kit, { process: 'lives', except: [key(1)] });
    assert.equal((await seen(kit, key(1))).state, 'leased');
    assert.equal(await kit.renew('runs', { key: key(1) }), 'renewed');
    assert.equal(await kit.complete('runs', { key: key(1) }), 'done');
  },
  'an event that a worker’s process still runs holds its task there, also past its lease': async (kit) => {
    await kit.accept({ ...INBOX, key: key(1), task: 't' });
    await leaseOne(kit, { owner: 'runs', max: 1, process: 'lives' });
    kit.advance(LEASE_MS + 1);
    await kit.accept({ ...INBOX, key: key(2), task: 't' });
    await leaseNone(kit, { process: 'lives', except: [key(1)] });
    assert.equal(await kit.complete('runs', { key: key(1) }), 'done');
    assert.equal((await leaseOne(kit, { process: 'lives' })).key, key(2), 'due as soon as that is done');
  },
  'a process is alive for the time of its last sign of life': async (kit) => {
    if (!(await beat(kit, 'lives', 60_000))) return;
    await beat(kit, 'lives', LEASE_MS - 1000);
    await beat(kit, 'another', 60_000);
    await kit.win({ process: 'lives' });
    await kit.win({ key: key(2), process: 'another' });
    kit.advance(LEASE_MS + 1);
    assert.equal((await kit.win({ process: 'other' })).lease.suspect, true);
    assert.equal((await kit.win({ key: key(2), process: 'other' })).lease.suspect, undefined);
  },
};
