import assert from 'node:assert/strict';
import { inboxOf, lease } from './inbox-kit.ts';
import type { Cases, Draft, Kit } from './kit.ts';
import { DAY_MS, SENDER, decision } from './kit.ts';

const FINAL = { kind: 'already-final' };
const UNSAFE = { kind: 'final-unsafe' };
const DUPLICATE = { kind: 'done', changed: false, state: 'stale', died: false };

const DAYS: readonly string[] = ['2026-01-01', '2026-01-02', '2026-01-03', '2026-01-04', '2026-01-05'];

/** A status of the one task, at noon of its day, under a key of its own; terminal where it says something. */
function status(day: number, says?: string): Draft {
  const at = `${DAYS[day]}T12:00:00Z`;
  const of = { key: `event-of-day-${day}-${says ?? 'none'}-of-the-seller`, task: 'task-1', at };
  return says === undefined ? of : { ...of, terminal: true, says };
}

const FIRST = status(1, 'sold');

/** What an accept decides, without what most rules do not speak of. */
const decided = async (kit: Kit, draft: Draft): Promise<unknown> => decision(await kit.accept(draft));

/** Edition 3.2 (verification.md §2.19): a task has one outcome. */
export const terminalCases: Cases = {
  'another content under another key is refused once the first is applied, and not recorded': async (kit) => {
    await kit.apply(FIRST);
    const second = { ...status(2, 'not sold'), nonce: 'nonce-of-the-second' };
    assert.deepEqual(await decided(kit, second), FINAL);
    assert.deepEqual(await decided(kit, second), FINAL, 'the same bytes again: its nonce is not used');
    assert.equal(await kit.peek(second), 'absent');
    assert.deepEqual(decision(await kit.accept(status(2, 'not sold'), kit.b)), FINAL);
    assert.deepEqual(await decided(kit, FIRST), { ...DUPLICATE, state: 'applied' });
  },
  'older than the status applied is stale, whatever it says': async (kit) => {
    await kit.apply(FIRST);
    assert.equal((await kit.accept(status(0, 'not sold'))).kind, 'stale');
  },
  'while the first is not safe nothing is final: not under its lease, not between its runs': async (kit) => {
    const { lease: first } = await kit.win(FIRST);
    const second = { ...status(2, 'not sold'), nonce: 'nonce-of-the-second' };
    assert.deepEqual(await decided(kit, second), UNSAFE);
    assert.deepEqual(await decided(kit, status(2, 'sold')), UNSAFE, 'nor is the same a duplicate');
    await kit.fail(first.owner, FIRST);
    assert.deepEqual(await decided(kit, second), UNSAFE, 'the same bytes again: its nonce is not used');
    assert.equal(await kit.peek(second), 'absent');
    await kit.apply(FIRST);
    assert.deepEqual(await decided(kit, second), FINAL);
  },
  'DEAD is safe too': async (kit) => {
    const { lease: first } = await kit.win(FIRST);
    await kit.fail(first.owner, { ...FIRST, permanent: true });
    assert.deepEqual(await decided(kit, status(2, 'not sold')), FINAL);
    assert.deepEqual(await decided(kit, status(2, 'sold')), DUPLICATE);
  },
  'in the inbox the first is safe from its insertion': async (kit) => {
    assert.equal((await kit.accept({ ...FIRST, mode: 'inbox' })).kind, 'queued');
    assert.deepEqual(await decided(kit, { ...status(2, 'not sold'), mode: 'inbox' }), FINAL);
    assert.deepEqual(await decided(kit, { ...status(2, 'sold'), mode: 'inbox' }), DUPLICATE);
    if (!kit.a.inbox) return;
    const { events } = await lease(kit);
    assert.deepEqual(
      events.map(({ key }) => key),
      [FIRST.key],
    );
  },
  'the same content is a duplicate, recorded: also when something was applied meanwhile': async (kit) => {
    await kit.apply(FIRST);
    const id = kit.unique();
    const again = { ...status(2, 'sold'), id };
    assert.deepEqual(await decided(kit, again), DUPLICATE);
    assert.deepEqual(await decided(kit, again), DUPLICATE, 'the same call made again');
    assert.equal(await kit.peek(again), 'stale');
    await kit.apply(status(3));
    assert.deepEqual(await decided(kit, status(2, 'sold')), DUPLICATE);
  },
  'the same content after something was applied is applied again, and said to be': async (kit) => {
    await kit.apply(FIRST);
    assert.equal((await kit.apply(status(2))).afterTerminal, true);
    assert.deepEqual(await decided(kit, status(3, 'not sold')), FINAL, 'the first is kept all the same');
    assert.equal((await kit.apply(status(3, 'sold'))).afterTerminal, false);
    assert.deepEqual(await decided(kit, status(4, 'sold')), DUPLICATE);
  },
  'what is applied before the first is nothing that followed it': async (kit) => {
    const { lease: first } = await kit.win(FIRST);
    await kit.fail(first.owner, FIRST);
    await kit.apply(status(0));
    await kit.apply(FIRST);
    assert.deepEqual(await decided(kit, status(2, 'sold')), DUPLICATE);
  },
  'a status without a time follows too': async (kit) => {
    await kit.apply(FIRST);
    await kit.apply({ key: 'event-without-a-time-of-it', task: 'task-1' });
    assert.equal((await kit.accept(status(2, 'sold'))).kind, 'won');
  },
  'one that was never applied is no first: it had become older than the mark': async (kit) => {
    const { lease: first } = await kit.win(FIRST);
    await kit.fail(first.owner, FIRST);
    await kit.apply(status(2));
    assert.equal((await kit.accept(FIRST)).kind, 'stale');
    await kit.apply(status(3, 'not sold'));
    assert.deepEqual(await decided(kit, status(4, 'sold')), FINAL);
  },
  'one that was never acknowledged, and is forgotten, is no first': async (kit) => {
    const { lease: first } = await kit.win(FIRST);
    await kit.fail(first.owner, FIRST);
    kit.advance(DAY_MS + 1);
    assert.equal((await kit.accept(status(2, 'not sold'))).kind, 'won');
  },
  'one that its owner discarded is no first': async (kit) => {
    if (!kit.a.inbox) return;
    await kit.accept({ ...FIRST, mode: 'inbox' });
    assert.equal(await inboxOf(kit.a).discard(SENDER, FIRST.key ?? '', DAY_MS), 'discarded');
    assert.equal((await kit.accept({ ...status(2, 'not sold'), mode: 'inbox' })).kind, 'queued');
  },
  'it is kept for 30 days, though its record is forgotten': async (kit) => {
    await kit.apply(FIRST);
    kit.advance(29 * DAY_MS);
    assert.equal(await kit.peek(FIRST), 'absent');
    assert.deepEqual(await decided(kit, status(2, 'not sold')), FINAL);
  },
  'a duplicate without room is answered, and not recorded': async (kit) => {
    await kit.apply(FIRST);
    const again = { ...status(2, 'sold'), limits: { maxRecordsPerSender: 1 } };
    assert.deepEqual(await decided(kit, again), DUPLICATE);
    assert.equal(await kit.peek(again), 'absent');
  },
  'other editions tell no hash: theirs is applied, and so is what comes after theirs': async (kit) => {
    await kit.apply({ ...FIRST, says: undefined });
    assert.equal((await kit.apply(status(2, 'not sold'))).afterTerminal, true);
    assert.equal((await kit.apply({ ...status(3, 'sold'), says: undefined })).afterTerminal, true);
  },
  'tasks have theirs apart, and so have senders': async (kit) => {
    await kit.apply(FIRST);
    await kit.apply({ ...status(2, 'not sold'), task: 'task-2' });
    await kit.apply({ ...status(2, 'not sold'), sender: 'https://other.example/mcp' });
  },
};
