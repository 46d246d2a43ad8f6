import assert from 'node:assert/strict';
import type { LeaseDraft } from './inbox-kit.ts';
import { lease, leaseNone, leaseOne, leasedKeys, seen } from './inbox-kit.ts';
import type { Cases, Kit } from './kit.ts';
import { LEASE_MS } from './kit.ts';

const INBOX = { mode: 'inbox' } as const;
const OLD = '2026-01-01T00:00:00Z';
const NEW = '2026-01-02T00:00:00Z';

const key = (n: number): string => `event-${String(n).padStart(4, '0')}-of-the-seller`;
const first = { ...INBOX, key: key(1), task: 't' };
const second = { ...INBOX, key: key(2), task: 't' };

/** A worker has the first event of the task in hand, and the second one waits for it. */
async function heldUp(kit: Kit, worker: LeaseDraft): Promise<void> {
  await kit.accept(first);
  kit.advance(1000);
  await kit.accept(second);
  await leaseOne(kit, worker);
  await leaseNone(kit);
}

/** Handlers of one task never overlap, in order where there is one, and what the store knows is told. */
export const inboxTaskCases: Cases = {
  'one event a task: the next one when the task is free': async (kit) => {
    await kit.accept(first);
    kit.advance(1000);
    await kit.accept(second);
    assert.equal((await leaseOne(kit, { owner: 'worker' })).key, key(1));
    await leaseNone(kit, {}, kit.b);
    assert.equal(await kit.complete('worker', { key: key(1) }), 'done');
    assert.equal((await leaseOne(kit)).key, key(2));
  },
  'a failure frees the task: a newer event does not wait behind an older one in back-off': async (kit) => {
    await heldUp(kit, { owner: 'worker' });
    assert.equal(await kit.fail('worker', { key: key(1) }), 'queued');
    assert.equal((await leaseOne(kit)).key, key(2));
  },
  'a lease that runs out frees the task': async (kit) => {
    await heldUp(kit, { retry: { crashes: 1 } });
    kit.advance(LEASE_MS + 1);
    const { events, died } = await lease(kit, { retry: { crashes: 1 } });
    assert.deepEqual([events.map((event) => event.key), died.length], [[key(2)], 0]);
  },
  'what waited for a task comes before younger events in the call that frees it': async (kit) => {
    await heldUp(kit, { retry: { crashes: 1 } });
    kit.advance(LEASE_MS + 1);
    await kit.accept({ ...INBOX, key: key(3) });
    const one = { max: 1, retry: { crashes: 1 } };
    assert.deepEqual(await leasedKeys(kit, one), [key(2)]);
    assert.deepEqual(await leasedKeys(kit, one), [key(3)]);
  },
  'a renewed lease holds its task': async (kit) => {
    await kit.accept(first);
    await leaseOne(kit, { owner: 'worker' });
    await kit.accept(second);
    for (let n = 0; n < 3; n += 1) {
      kit.advance(LEASE_MS - 1000);
      assert.equal(await kit.renew('worker', { key: key(1) }), 'renewed');
      await leaseNone(kit);
    }
    assert.equal(await kit.complete('worker', { key: key(1) }), 'done');
    assert.equal((await leaseOne(kit)).key, key(2));
  },
  'a handler of inline mode holds its task too': async (kit) => {
    const { lease: held } = await kit.win({ key: key(1), task: 't' });
    await kit.accept(second);
    await leaseNone(kit);
    assert.equal(await kit.complete(held.owner, { key: key(1) }), 'done');
    assert.equal((await leaseOne(kit)).key, key(2));
  },
  'an inline process that died does not hold its task for ever': async (kit) => {
    await kit.win({ key: key(1), task: 't' });
    await kit.accept(second);
    await leaseNone(kit);
    kit.advance(LEASE_MS + 1);
    assert.equal((await leaseOne(kit)).key, key(2));
  },
  'a worker holds the task against inline mode': async (kit) => {
    await kit.accept(first);
    await leaseOne(kit, { owner: 'worker' });
    assert.equal((await kit.accept({ key: key(2), task: 't' })).kind, 'task-busy');
    await kit.complete('worker', { key: key(1) });
    assert.equal((await kit.accept({ key: key(2), task: 't' })).kind, 'won');
  },
  'tasks do not hold each other up': async (kit) => {
    await kit.accept(first);
    kit.advance(1000);
    await kit.accept({ ...INBOX, key: key(2), task: 'u' });
    kit.advance(1000);
    await kit.accept({ ...INBOX, key: key(3) });
    assert.deepEqual(await leasedKeys(kit), [key(1), key(2), key(3)]);
  },
  'the same task id of two senders is two tasks': async (kit) => {
    await kit.accept(first);
    await kit.accept({ ...second, sender: 'https://other.example/mcp' });
    assert.equal((await leasedKeys(kit, { senders: [] })).length, 2);
  },
  'many that wait for one task do not hide the others, and each has its turn': async (kit) => {
    for (let n = 1; n <= 300; n += 1) await kit.accept({ ...first, key: key(n) });
    kit.advance(1000);
    await kit.accept({ ...INBOX, key: key(301), task: 'u' });
    const given: string[] = [];
    for (let calls = 0; calls < 6; calls += 1) given.push(...(await leasedKeys(kit, { owner: 'worker' })));
    assert.deepEqual(given, [key(1), key(301)]);
    for (let n = 1; n < 40; n += 1) {
      assert.equal(await kit.complete('worker', { key: key(n) }), 'done');
      const next = await leasedKeys(kit, { owner: 'worker' });
      assert.equal(next.length, 1);
      given.push(...next);
      if (next[0] !== key(n + 1)) assert.fail(`${next[0]} before ${key(n + 1)}`);
    }
  },
  'an older status is stale when its turn comes, and the one behind it is not held up': async (kit) => {
    await kit.accept({ ...first, at: NEW });
    kit.advance(1000);
    await kit.accept({ ...second, at: OLD });
    kit.advance(1000);
    await kit.accept({ ...INBOX, key: key(3), task: 't', at: NEW });
    await leaseOne(kit, { owner: 'worker' });
    await leaseNone(kit);
    await kit.complete('worker', { key: key(1) });
    assert.deepEqual(await leasedKeys(kit), [key(3)]);
    assert.equal(await kit.peek({ key: key(2) }), 'stale');
    assert.equal((await kit.accept({ ...second, at: OLD })).kind, 'done');
    assert.equal((await seen(kit, key(2))).body, undefined);
  },
  'one that ended stale in a worker’s hands is not won by the accept that had it before': async (kit) => {
    const older = { key: key(1), task: 't', at: OLD, id: 'first' };
    const { lease: held } = await kit.win(older);
    await kit.accept({ ...first, at: OLD });
    await kit.fail(held.owner, { key: key(1), backoffMs: 0 });
    await kit.apply({ key: key(2), task: 't', at: NEW });
    await leaseNone(kit);
    assert.equal(await kit.peek({ key: key(1) }), 'stale');
    assert.equal((await kit.accept(older)).kind, 'done');
  },
  'a task whose handlers died one after the other, a worker’s and an inline one, goes on': async (kit) => {
    await kit.accept(first);
    await kit.accept(second);
    await leaseOne(kit, { owner: 'dies' });
    await leaseNone(kit);
    kit.advance(LEASE_MS + 1);
    await kit.win({ key: key(2), task: 't' });
    await leaseNone(kit);
    kit.advance(LEASE_MS + 1);
    // Both are suspects by now, and the task is free.
    await leaseNone(kit);
    const { key: next } = await leaseOne(kit, { owner: 'worker', alone: true });
    await leaseNone(kit, { alone: true });
    await kit.complete('worker', { key: next });
    await leaseOne(kit, { alone: true });
  },
  'what the store knows of an event is told: second terminal status': async (kit) => {
    await kit.apply({ key: key(1), task: 't', at: OLD, terminal: true });
    await kit.accept({ ...second, at: NEW, terminal: true });
    assert.equal((await leaseOne(kit)).afterTerminal, true);
  },
  'what the store knows of an event is told: a timestamp ahead of the clock': async (kit) => {
    await kit.accept({ ...first, at: 330_000 });
    assert.equal((await leaseOne(kit)).ahead, true);
  },
  'what the store knows of an event is told: a re-emission': async (kit) => {
    await kit.apply({ key: key(1), notification: 'n' });
    await kit.accept({ ...INBOX, key: key(2), notification: 'n' });
    assert.equal((await leaseOne(kit)).reemission, true);
  },
  'what the store knows of an event is told: a report after the final one': async (kit) => {
    await kit.apply({ key: key(1), report: 'mb', final: true });
    await kit.accept({ ...INBOX, key: key(2), report: 'mb' });
    assert.equal((await leaseOne(kit)).afterFinal, true);
  },
};
