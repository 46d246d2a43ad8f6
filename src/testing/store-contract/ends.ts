// Cases of the store contract: a second terminal status of a task, and the alarms about it (admission.md §5.4, §5.4a).
// Called by `describeStoreContract`.
import assert from 'node:assert/strict';
import { inboxOf, lease } from './inbox-kit.ts';
import { type Cases, DAY_MS, decision, type Draft, type Kit, SENDER } from './kit.ts';

const EARLIER = '2026-01-01T00:00:00Z';
const MARK = '2026-01-02T00:00:00Z';
const LATER = '2026-01-03T00:00:00Z';
const STALE = { kind: 'stale', changed: false };
const BUSY = { kind: 'task-busy', changed: false };

const FINAL = { kind: 'already-final' };
const UNSAFE = { kind: 'final-unsafe' };
const DUPLICATE = { kind: 'done', changed: false, state: 'stale', died: false };

const DAYS: readonly string[] = ['2026-01-01', '2026-01-02', '2026-01-03', '2026-01-04', '2026-01-05'];

/**
 * Makes a status of `task-1` at noon of the given day of `DAYS`, with a key made of both arguments. If `says` is given,
 * the status is terminal.
 */
function status(day: number, says?: string): Draft {
  const at = `${DAYS[day]}T12:00:00Z`;
  const of = { key: `event-of-day-${day}-${says ?? 'none'}-of-the-seller`, task: 'task-1', at };
  return says === undefined ? { ...of, keepsEnd: true } : { ...of, terminal: true, says };
}

const TIMELESS: Draft = { key: 'event-without-a-time-of-it', task: 'task-1', keepsEnd: true };

const SOLD = status(1, 'sold');

/** Calls `accept`, and returns the result without `pressure`, `secondEnd` and `endDropped`. */
const decided = async (kit: Kit, draft: Draft): Promise<unknown> => decision(await kit.accept(draft));

/** Cases of protocol version 3.2, in which a task may have only one terminal status (verification.md §2.19). */
export const terminalCases: Cases = {
  'other content under another key is refused once the first is applied, and not recorded': async (kit) => {
    await kit.apply(SOLD);
    const second = { ...status(2, 'not sold'), nonce: 'nonce-of-the-second' };
    assert.deepEqual(await decided(kit, second), FINAL);
    assert.deepEqual(await decided(kit, second), FINAL, 'the same bytes again: its nonce is not used');
    assert.equal(await kit.peek(second), 'absent');
    assert.deepEqual(decision(await kit.accept(status(2, 'not sold'), kit.b)), FINAL);
    assert.deepEqual(await decided(kit, SOLD), { ...DUPLICATE, state: 'applied' });
  },
  'a terminal status older than the applied one is stale, whatever its content': async (kit) => {
    await kit.apply(SOLD);
    assert.equal((await kit.accept(status(0, 'not sold'))).kind, 'stale');
  },
  'no outcome is final while the first is not safe: neither during its lease nor between its runs': async (
    kit,
  ) => {
    const { lease: first } = await kit.win(SOLD);
    const second = { ...status(2, 'not sold'), nonce: 'nonce-of-the-second' };
    assert.deepEqual(await decided(kit, second), UNSAFE);
    assert.deepEqual(await decided(kit, status(2, 'sold')), UNSAFE, 'nor is the same a duplicate');
    await kit.fail(first.owner, SOLD);
    assert.deepEqual(await decided(kit, second), UNSAFE, 'the same bytes again: its nonce is not used');
    assert.equal(await kit.peek(second), 'absent');
    await kit.apply(SOLD);
    assert.deepEqual(await decided(kit, second), FINAL);
  },
  'a DEAD event is safe: its outcome is final': async (kit) => {
    const { lease: first } = await kit.win(SOLD);
    await kit.fail(first.owner, { ...SOLD, permanent: true });
    assert.deepEqual(await decided(kit, status(2, 'not sold')), FINAL);
    assert.deepEqual(await decided(kit, status(2, 'sold')), DUPLICATE);
  },
  'in inbox mode the first is final from its insertion': async (kit) => {
    assert.equal((await kit.accept({ ...SOLD, mode: 'inbox' })).kind, 'queued');
    assert.deepEqual(await decided(kit, { ...status(2, 'not sold'), mode: 'inbox' }), FINAL);
    assert.deepEqual(await decided(kit, { ...status(2, 'sold'), mode: 'inbox' }), DUPLICATE);
    if (!kit.a.inbox) return;
    const { events } = await lease(kit);
    assert.deepEqual(
      events.map(({ key }) => key),
      [SOLD.key],
    );
  },
  'the same content is a duplicate, and recorded as one: it stays one when another status is applied': async (
    kit,
  ) => {
    await kit.apply(SOLD);
    const id = kit.unique();
    const again = { ...status(2, 'sold'), id };
    assert.deepEqual(await decided(kit, again), DUPLICATE);
    assert.deepEqual(await decided(kit, again), DUPLICATE, 'the same call made again');
    assert.equal(await kit.peek(again), 'stale');
    await kit.apply({
      key: 'event-of-day-3-of-an-older-edition',
      task: 'task-1',
      at: `${DAYS[3]}T12:00:00Z`,
    });
    assert.deepEqual(await decided(kit, status(2, 'sold')), DUPLICATE);
    assert.deepEqual(await decided(kit, status(4, 'sold')), DUPLICATE, 'and a new one too');
    assert.deepEqual(await decided(kit, status(4, 'not sold')), FINAL);
  },
  'a status that is not terminal is stale after a safe end, whatever its time': async (kit) => {
    await kit.apply(SOLD);
    assert.deepEqual(await decided(kit, status(2)), STALE);
    assert.equal(await kit.peek(status(2)), 'stale');
    assert.deepEqual(await decided(kit, TIMELESS), STALE);
    kit.advance(29 * DAY_MS);
    assert.deepEqual(await decided(kit, { ...status(3), mode: 'inbox' }), STALE, 'its record is forgotten');
  },
  'a status that is not terminal is applied while the end is not safe, and stale once a DEAD one is': async (
    kit,
  ) => {
    const { lease: first } = await kit.win(SOLD);
    await kit.fail(first.owner, SOLD);
    await kit.apply(status(0));
    const again = await kit.win(SOLD);
    assert.deepEqual(await decided(kit, status(2)), BUSY);
    await kit.fail(again.lease.owner, { ...SOLD, permanent: true });
    assert.deepEqual(await decided(kit, status(2)), STALE, 'at its lease');
    assert.deepEqual(await decided(kit, status(3)), STALE, 'at its insertion');
  },
  'in inbox mode events from before the end run before it, unless they are newer: then they are stale':
    async (kit) => {
      if (!kit.a.inbox) return;
      const inbox = (draft: Draft): Draft => ({ ...draft, mode: 'inbox' });
      for (const draft of [status(0), status(2), SOLD]) {
        assert.equal((await kit.accept(inbox(draft))).kind, 'queued');
      }
      assert.deepEqual(await decided(kit, inbox(status(3))), STALE, 'it came after the end');
      const runs: string[] = [];
      for (let found = await lease(kit); found.events.length > 0; found = await lease(kit)) {
        for (const { key, lease: run } of found.events) {
          runs.push(key);
          await kit.complete(run.owner, { key });
        }
      }
      assert.deepEqual(runs, [status(0).key, SOLD.key]);
      assert.equal(await kit.peek(status(2)), 'stale');
    },
  'a status applied before the first does not count as one after it': async (kit) => {
    const { lease: first } = await kit.win(SOLD);
    await kit.fail(first.owner, SOLD);
    await kit.apply(status(0));
    await kit.apply(SOLD);
    assert.deepEqual(await decided(kit, status(2, 'sold')), DUPLICATE);
  },
  'a first that became stale before it was applied does not count': async (kit) => {
    const { lease: first } = await kit.win(SOLD);
    await kit.fail(first.owner, SOLD);
    await kit.apply(status(2));
    assert.equal((await kit.accept(SOLD)).kind, 'stale');
    await kit.apply(TIMELESS);
    await kit.apply(status(3, 'not sold'));
    assert.deepEqual(await decided(kit, status(4, 'sold')), FINAL);
  },
  'a first that expired before it was acknowledged does not count': async (kit) => {
    const { lease: first } = await kit.win(SOLD);
    await kit.fail(first.owner, SOLD);
    kit.advance(DAY_MS + 1);
    assert.equal((await kit.accept(status(2, 'not sold'))).kind, 'won');
  },
  'a first that was discarded does not count': async (kit) => {
    if (!kit.a.inbox) return;
    await kit.accept({ ...SOLD, mode: 'inbox' });
    assert.equal(await inboxOf(kit.a).discard(SENDER, SOLD.key ?? '', DAY_MS), 'discarded');
    assert.equal((await kit.accept({ ...status(2, 'not sold'), mode: 'inbox' })).kind, 'queued');
  },
  'the outcome is kept for 30 days, longer than its record': async (kit) => {
    await kit.apply(SOLD);
    kit.advance(29 * DAY_MS);
    assert.equal(await kit.peek(SOLD), 'absent');
    assert.deepEqual(await decided(kit, status(2, 'not sold')), FINAL);
  },
  'over the cap a duplicate is answered, and not recorded': async (kit) => {
    await kit.apply(SOLD);
    const again = { ...status(2, 'sold'), limits: { maxRecordsPerSender: 1 } };
    assert.deepEqual(await decided(kit, again), DUPLICATE);
    assert.equal(await kit.peek(again), 'absent');
  },
  'without a content hash, as in other editions, each terminal status is applied, and one with it is equal':
    async (kit) => {
      await kit.apply({ ...SOLD, says: undefined });
      assert.equal((await kit.apply({ ...status(3, 'sold'), says: undefined })).afterTerminal, true);
      assert.deepEqual(await decided(kit, status(4, 'not sold')), DUPLICATE);
    },
  'outcomes of two tasks, and of two senders, are separate': async (kit) => {
    await kit.apply(SOLD);
    await kit.apply({ ...status(2, 'not sold'), task: 'task-2' });
    await kit.apply({ ...status(2, 'not sold'), sender: 'https://other.example/mcp' });
  },
};

/** Makes a terminal status of `task-1` that has no timestamp. */
const ended = (key: string, more: Draft = {}): Draft => ({ key, task: 'task-1', terminal: true, ...more });

const ONE_KEY = 'event-0001-is-an-end';
const ONE = ended(ONE_KEY);
const OTHER = ended('event-0002-is-an-end');

/**
 * Cases of `secondEnd` (another event has ended the task before) and `endDropped` (the end of a task is dropped). The
 * store reports both beside the decision of `accept` (admission.md §5.4a).
 */
export const endCases: Cases = {
  'a second end under another key is reported, whatever becomes of it, with who handles it': async (kit) => {
    const { lease: first } = await kit.win(ONE);
    const waiting = await kit.accept(OTHER);
    assert.deepEqual([waiting.kind, waiting.secondEnd], ['task-busy', true]);
    assert.equal(await kit.complete(first.owner, ONE), 'done');
    assert.equal((await kit.apply(OTHER)).afterTerminal, true);
    const third = await kit.accept(ended('event-0003-is-an-end'));
    assert.deepEqual([third.kind, third.secondEnd], ['won', true]);
    await kit.apply(ended('event-0004-is-an-end', { at: MARK, task: 'task-2' }));
    const older = await kit.accept(ended('event-0005-is-an-end', { at: EARLIER, task: 'task-2' }));
    assert.deepEqual([older.kind, older.secondEnd], ['stale', true]);
    const same = await kit.accept(ended('event-0006-is-an-end', { at: LATER, task: 'task-2', says: 'sold' }));
    assert.deepEqual([same.kind, same.secondEnd], ['done', true]);
  },
  'a second end that a worker handles is marked': async (kit) => {
    if (!kit.a.inbox) return;
    for (const draft of [ONE, OTHER]) await kit.accept({ ...draft, mode: 'inbox' });
    const { events } = await lease(kit);
    for (const { key, lease: run } of events) await kit.complete(run.owner, { key });
    assert.deepEqual(
      [events.map(({ afterTerminal }) => afterTerminal), (await lease(kit)).events[0]?.afterTerminal],
      [[false], true],
    );
  },
  'an end that was never applied does not count: the next is the first': async (kit) => {
    const { lease: first } = await kit.win(ONE);
    await kit.fail(first.owner, ONE);
    kit.advance(DAY_MS + 1);
    const next = await kit.accept(OTHER);
    assert.deepEqual([next.kind, next.secondEnd], ['won', undefined]);
  },
  'of two ends the applied one is the first if the other was not applied': async (kit) => {
    const { lease: first } = await kit.win(ONE);
    await kit.fail(first.owner, ONE);
    await kit.apply(OTHER);
    assert.equal((await kit.win(ONE)).afterTerminal, true);
  },
  'an end under the key of another status, another task or no task is reported and dropped': async (kit) => {
    await kit.apply({ key: 'event-of-one-operation', task: 'task-1' });
    const end = ended('event-of-one-operation', { body: 'completed' });
    const dropped = await kit.accept(end);
    assert.deepEqual(decision(dropped), { ...DUPLICATE, changed: true, state: 'applied' });
    assert.equal(dropped.endDropped, true);
    assert.equal((await kit.accept({ ...end, onChanged: 'conflict' })).endDropped, true);
    await kit.apply({ key: 'report-of-one-operation' });
    assert.equal((await kit.accept({ ...end, key: 'report-of-one-operation' })).endDropped, true);
    await kit.apply(ONE);
    assert.equal((await kit.accept({ ...end, key: ONE_KEY, task: 'task-2' })).endDropped, true);
    const changed = await kit.accept({ ...end, key: ONE_KEY });
    assert.deepEqual(
      [decision(changed), changed.endDropped],
      [{ ...DUPLICATE, changed: true, state: 'applied' }, undefined],
    );
  },
  'an end whose nonce was used is replayed, not dropped': async (kit) => {
    await kit.apply({ key: 'event-of-one-operation', task: 'task-1', nonce: 'nonce-of-the-first' });
    const end = ended('event-of-one-operation', { body: 'completed', nonce: 'nonce-of-the-first' });
    const again = await kit.accept(end);
    assert.deepEqual([again.kind, again.endDropped], ['replayed', undefined]);
  },
  'the first end under its own key, of another task or another sender, is no second one': async (kit) => {
    await kit.apply(ONE);
    assert.equal((await kit.accept(ONE)).secondEnd, undefined);
    assert.equal((await kit.accept({ ...OTHER, task: 'task-2' })).secondEnd, undefined);
    assert.equal((await kit.accept({ ...OTHER, sender: 'https://other.example/mcp' })).secondEnd, undefined);
    assert.equal(
      (await kit.accept({ ...OTHER, key: 'event-0003-not-an-end', terminal: false })).secondEnd,
      undefined,
    );
  },
};
