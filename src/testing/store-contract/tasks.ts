import assert from 'node:assert/strict';
import type { Cases } from './kit.ts';
import { DAY_MS, LEASE_MS, decision } from './kit.ts';

const FIRST = { key: 'event-0001-of-the-seller', task: 'task-1' };
const SECOND = { key: 'event-0002-of-the-seller', task: 'task-1' };
const THIRD = { key: 'event-0003-of-the-seller', task: 'task-1' };
const BUSY = { kind: 'task-busy', changed: false };

/** Handlers of one task never overlap (admission.md §5.5). */
export const taskCases: Cases = {
  'an event of a task that is held is recorded, but not leased': async ({ accept, win, peek, b }) => {
    await win(FIRST);
    assert.deepEqual(decision(await accept(SECOND, b)), BUSY);
    assert.deepEqual(decision(await accept(SECOND)), BUSY);
    assert.equal(await peek(SECOND), 'busy');
  },
  'complete frees the task': async ({ accept, win, complete, peek }) => {
    const { lease } = await win(FIRST);
    await accept(SECOND);
    assert.equal(await complete(lease.owner, FIRST), 'done');
    assert.equal(await peek(SECOND), 'free');
    assert.equal((await win(SECOND)).lease.attempt, 1);
  },
  'fail frees the task': async ({ accept, win, fail, peek }) => {
    const { lease } = await win(FIRST);
    await accept(SECOND);
    assert.equal(await fail(lease.owner, FIRST), 'queued');
    assert.equal(await peek(SECOND), 'free');
    assert.equal((await accept(SECOND)).kind, 'won');
    assert.equal((await accept(FIRST)).kind, 'task-busy');
  },
  'a lease that ran out frees the task, and its owner cannot come back': async (kit) => {
    const late = await kit.win(FIRST);
    await kit.accept(SECOND);
    kit.advance(LEASE_MS + 1);
    assert.equal(await kit.peek(SECOND), 'free');
    const second = await kit.win(SECOND);
    assert.equal(await kit.renew(late.lease.owner, FIRST), 'lost');
    assert.equal(await kit.complete(late.lease.owner, FIRST), 'lost');
    assert.deepEqual(decision(await kit.accept(FIRST)), BUSY);
    assert.equal(await kit.complete(second.lease.owner, SECOND), 'done');
    assert.equal((await kit.accept(FIRST)).kind, 'won');
  },
  'a crash is counted once, also where its task is held meanwhile': async (kit) => {
    const retry = { crashes: 1 };
    const late = await kit.win({ ...FIRST, retry });
    kit.advance(LEASE_MS + 1);
    const second = await kit.win(SECOND);
    assert.deepEqual(decision(await kit.accept({ ...FIRST, retry })), BUSY);
    assert.deepEqual(decision(await kit.accept({ ...FIRST, retry })), BUSY);
    assert.equal(await kit.fail(late.lease.owner, FIRST), 'lost');
    await kit.complete(second.lease.owner, SECOND);
    const { lease } = await kit.win({ ...FIRST, retry });
    assert.deepEqual([lease.attempt, lease.suspect], [1, true]);
  },
  'an event does not wait behind one of its task that is in back-off': async ({ accept, win, fail }) => {
    const { lease } = await win(FIRST);
    await accept(SECOND);
    await fail(lease.owner, FIRST);
    assert.equal((await accept(THIRD)).kind, 'won');
  },
  'a DEAD event does not hold its task': async ({ accept, win, fail }) => {
    const { lease } = await win(FIRST);
    await fail(lease.owner, { ...FIRST, permanent: true });
    assert.equal((await accept(SECOND)).kind, 'won');
  },
  'a duplicate of the event that holds the task is in-flight, not task-busy': async ({ accept, win }) => {
    await win(FIRST);
    assert.equal((await accept(FIRST)).kind, 'in-flight');
  },
  'a key that was forgotten and comes again for another task does not hold its first one': async (kit) => {
    await kit.apply(FIRST);
    kit.advance(2 * DAY_MS);
    await kit.win({ ...FIRST, task: 'task-2' });
    assert.equal((await kit.accept(SECOND)).kind, 'won');
  },
  'other tasks, other senders and events without a task (reports) are free': async ({ win }) => {
    await win(FIRST);
    await win({ ...SECOND, task: 'task-2' });
    await win({ ...SECOND, sender: 'https://other.example/mcp' });
    await win({ key: THIRD.key });
    await win({ key: 'event-0004-of-the-seller' });
  },
};
