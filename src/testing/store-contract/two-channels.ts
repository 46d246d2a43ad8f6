// Cases of the store contract: one task on which several channels (webhook, poll …) report (admission.md §5.9).
// Called by `describeStoreContract` for stores with registrations.
import assert from 'node:assert/strict';
import { operationRowId } from '../../stores/constants.ts';
import type { AcceptDecision } from '../../stores/store.ts';
import { inboxOf, lease, leaseOne } from './inbox-kit.ts';
import type { Cases, Draft, Kit } from './kit.ts';
import { DAY_MS, decision, SENDER } from './kit.ts';

const OPERATION = operationRowId('operation-1');
const TERMINAL: ReadonlySet<string> = new Set(['completed', 'failed']);

type Told = NonNullable<Draft['told']>;

/**
 * Makes a status of `task-1` as a channel (webhook, poll …) reports it. The event's key names the channel, the status
 * and `changes`.
 */
export function tells(
  source: Told['source'],
  status: string,
  changes: Partial<Told> & Pick<Draft, 'at'> = {},
): Draft {
  const { at, ...rest } = changes;
  const terminal = TERMINAL.has(status);
  return {
    key: `${source}-${status}-${at ?? 'no-time'}-${rest.hash ?? ''}-of-task-1`,
    task: 'task-1',
    terminal,
    ...(at !== undefined && { at }),
    told: { source, status, ...(terminal && { hash: 'sold' }), ...rest },
    ...(source !== 'webhook' && { mode: 'inbox', nonce: null }),
  };
}

const decided = async (kit: Kit, draft: Draft): Promise<AcceptDecision> => decision(await kit.accept(draft));

/** Leases and completes the next event, as a worker does, and returns its key. */
async function runNext(kit: Kit): Promise<string> {
  const { key, lease: run } = await leaseOne(kit);
  assert.equal(await kit.complete(run.owner, { key }), 'done');
  return key;
}

const duplicateOf = (source: Told['source'], hash?: string): AcceptDecision => ({
  kind: 'done',
  changed: false,
  state: 'stale',
  died: false,
  first: { source, ...(hash !== undefined && { hash }) },
});

const T1 = '2026-01-01T12:00:00Z';
const T2 = '2026-01-02T12:00:00Z';
const T3 = '2026-01-03T12:00:00Z';
const T4 = '2026-01-04T12:00:00Z';

/** Cases of one task's statuses from a webhook, a poll and other channels (`Receiver.observe`; admission.md §5.9). */
export const toldCases: Cases = {
  'a terminal status is accepted once, from the first channel, and other content is reported': async (
    kit,
  ) => {
    await kit.apply(tells('webhook', 'completed', { at: T2 }));
    assert.deepEqual(await decided(kit, tells('poll', 'completed')), duplicateOf('webhook'));
    const other = tells('poll', 'completed', { at: T1, hash: 'not sold' });
    assert.deepEqual(
      await decided(kit, other),
      duplicateOf('webhook', 'sold'),
      'older ones are compared too',
    );
    assert.equal(await kit.peek(other), 'stale', 'it is recorded');
  },
  'a webhook of an end that a poll reported is a duplicate as soon as the poll is queued': async (kit) => {
    assert.equal((await kit.accept(tells('poll', 'completed'))).kind, 'queued');
    assert.deepEqual(await decided(kit, tells('webhook', 'completed', { at: T1 })), duplicateOf('poll'));
    const failed = tells('webhook', 'failed', { at: T2, hash: 'not sold' });
    assert.deepEqual(await decided(kit, failed), duplicateOf('poll', 'sold'));
    assert.equal(await runNext(kit), tells('poll', 'completed').key);
    assert.deepEqual(await decided(kit, tells('webhook', 'completed', { at: T3 })), duplicateOf('poll'));
    assert.deepEqual(await decided(kit, tells('pull', 'completed')), duplicateOf('poll'));
  },
  'two webhooks are decided by the edition alone': async (kit) => {
    await kit.apply(tells('webhook', 'completed', { at: T1 }));
    const second = await kit.accept(tells('webhook', 'failed', { at: T2, hash: 'not sold' }));
    assert.equal(second.kind, 'won');
  },
  'another channel’s report of an end makes its inline webhook safe, running or failed: a worker runs that, and no second event':
    async (kit) => {
      const webhook = tells('webhook', 'completed', { at: T1 });
      const { lease: running } = await kit.win(webhook);
      assert.deepEqual(await decided(kit, tells('poll', 'completed')), duplicateOf('webhook'));
      assert.equal(await kit.fail(running.owner, { ...webhook, backoffMs: 1000 }), 'queued');
      kit.advance(DAY_MS * 2);
      assert.equal(await kit.peek(webhook), 'free', 'it is not forgotten');
      assert.equal(await runNext(kit), webhook.key);
      assert.equal(await kit.peek(webhook), 'applied');
    },
  'another channel’s report of an end makes its inline webhook safe, even if its process has died': async (
    kit,
  ) => {
    const webhook = tells('webhook', 'completed', { at: T1 });
    await kit.win({ ...webhook, leaseMs: 1000 });
    await kit.accept(tells('poll', 'completed'));
    kit.advance(2000);
    assert.equal((await lease(kit)).suspectDue, true);
    const again = await leaseOne(kit, { alone: true });
    assert.equal(again.key, webhook.key);
    assert.equal(await kit.complete(again.lease.owner, webhook), 'done');
  },
  'an end that expired or was discarded before it was applied does not count': async (kit) => {
    const webhook = tells('webhook', 'completed', { at: T1 });
    const { lease: running } = await kit.win(webhook);
    await kit.fail(running.owner, webhook);
    kit.advance(DAY_MS + 1);
    const poll = tells('poll', 'completed');
    assert.equal((await kit.accept(poll)).kind, 'queued');
    assert.equal(await inboxOf(kit.a).discard(SENDER, poll.key ?? '', DAY_MS), 'discarded');
    assert.equal((await kit.accept(tells('pull', 'completed'))).kind, 'queued');
  },
  'of two webhooks of an end the applied one counts if the other never runs': async (kit) => {
    const [older, newer] = [
      tells('webhook', 'completed', { at: T1, operation: OPERATION }),
      tells('webhook', 'failed', { at: T2, hash: 'not sold', operation: OPERATION }),
    ];
    const { lease: running } = await kit.win(older);
    await kit.fail(running.owner, older);
    await kit.apply(newer);
    assert.equal((await kit.accept(older)).kind, 'stale');
    assert.deepEqual(await decided(kit, tells('poll', 'completed')), duplicateOf('webhook', 'not sold'));
    const answer = { ...tells('response', 'failed', { hash: 'not sold' }), task: OPERATION };
    assert.deepEqual(await decided(kit, answer), duplicateOf('webhook'));
  },
  'an end from two channels has the newer of their times, and is never stale if one has none': async (
    kit,
  ) => {
    const end = tells('webhook', 'completed', { at: T1 });
    const twice = async (other: Draft, task: string, before: boolean): Promise<string> => {
      const of = (draft: Draft): Draft => ({ ...draft, key: `${draft.key}-${task}`, task });
      const { lease: running } = await kit.win(of(end));
      await kit.fail(running.owner, { ...of(end), backoffMs: 0 });
      if (before) await kit.apply(of(tells('webhook', 'working', { at: T2 })));
      assert.deepEqual(await decided(kit, of(other)), duplicateOf('webhook'));
      if (!before) await kit.apply(of(tells('webhook', 'working', { at: T2 })));
      const { events } = await lease(kit);
      for (const { key, lease: run } of events) await kit.complete(run.owner, { key });
      return kit.peek(of(end));
    };
    let task = 0;
    for (const before of [true, false]) {
      for (const [other, state] of [
        [tells('poll', 'completed'), 'applied'],
        [tells('poll', 'completed', { at: T3 }), 'applied'],
        [tells('poll', 'completed', { at: '2025-12-31T12:00:00Z' }), 'stale'],
      ] as const) {
        task += 1;
        assert.equal(await twice(other, `task-${task}`, before), state, `${other.key}, ${before}`);
      }
    }
  },
  'an event that names task and operation joins them, also as a duplicate: the end is found by either':
    async (kit) => {
      const both = (task: string): Draft => {
        const draft = tells('webhook', 'completed', { at: T1, operation: OPERATION });
        return { ...draft, key: `${draft.key}-${task}`, task };
      };
      const answer = { ...tells('response', 'completed'), task: OPERATION };
      assert.equal((await kit.accept(answer)).kind, 'queued');
      assert.deepEqual(await decided(kit, both('task-1')), duplicateOf('response'));
      assert.deepEqual(await decided(kit, tells('poll', 'completed')), duplicateOf('response'));
      assert.equal(await runNext(kit), answer.key);
      kit.advance(DAY_MS * 2);
      assert.deepEqual(
        await decided(kit, tells('pull', 'completed')),
        duplicateOf('response'),
        'forgotten since',
      );
    },
  'an event that names task and operation joins them, even if the task was known first': async (kit) => {
    const poll = tells('poll', 'completed');
    assert.equal((await kit.accept(poll)).kind, 'queued');
    const webhook = tells('webhook', 'completed', { at: T1, operation: OPERATION });
    assert.deepEqual(await decided(kit, webhook), duplicateOf('poll'));
    assert.equal(await runNext(kit), poll.key);
    kit.advance(DAY_MS * 2);
    const answer = { ...tells('response', 'completed'), task: OPERATION };
    assert.deepEqual(await decided(kit, answer), duplicateOf('poll'));
  },
  'an answer without a task ends its operation, whose first end alone counts': async (kit) => {
    const answer = { ...tells('response', 'completed'), task: OPERATION };
    assert.equal((await kit.accept(answer)).kind, 'queued');
    const named = { operation: OPERATION };
    const same = tells('webhook', 'completed', { at: T1, ...named });
    assert.deepEqual(await decided(kit, same), duplicateOf('response'));
    assert.equal(await runNext(kit), answer.key);
    const other = tells('webhook', 'failed', { at: T2, hash: 'not sold', ...named });
    assert.deepEqual(await decided(kit, other), duplicateOf('response', 'sold'));
    assert.deepEqual(
      await decided(kit, tells('webhook', 'working', { at: T3, ...named })),
      duplicateOf('response'),
    );
    assert.equal((await kit.accept(tells('poll', 'working', { askedMs: 0, ...named }))).kind, 'stale');
    const bare = tells('webhook', 'working', { at: T2 });
    assert.deepEqual(await decided(kit, bare), duplicateOf('response'), 'its task is known to be the same');
    assert.equal((await kit.accept({ ...bare, key: `${bare.key}-2`, task: 'task-2' })).kind, 'won');
  },
  'an end that names task and operation is found by the operation': async (kit) => {
    await kit.apply(tells('webhook', 'completed', { at: T1, operation: OPERATION }));
    const answer = { ...tells('response', 'completed'), task: OPERATION };
    assert.deepEqual(await decided(kit, answer), duplicateOf('webhook'));
  },
  'an operation ended by its answer has ended for a made-up task, not for one that had events': async (
    kit,
  ) => {
    const named = { operation: OPERATION };
    await kit.apply({ ...tells('webhook', 'working', { at: T1 }), task: 'task-3' });
    assert.equal((await kit.accept(tells('response', 'completed', named))).kind, 'queued');
    await runNext(kit);
    const of = (task: string, status: string, at: string): Draft => {
      const draft = tells('webhook', status, { at, ...named });
      return { ...draft, key: `${draft.key}-${task}`, task };
    };
    assert.deepEqual(await decided(kit, of('made-up', 'completed', T1)), duplicateOf('response'));
    assert.deepEqual(await decided(kit, of('made-up', 'working', T2)), duplicateOf('response'));
    assert.deepEqual(await decided(kit, of('made-up-too', 'working', T1)), duplicateOf('response'));
    assert.equal((await kit.accept(of('task-3', 'completed', T3))).kind, 'won');
  },
  'an operation that a seller repeats for another task does not end that task': async (kit) => {
    const named = { operation: OPERATION };
    assert.equal((await kit.accept(tells('poll', 'completed', named))).kind, 'queued');
    const other = { ...tells('webhook', 'completed', { at: T1, ...named }), task: 'task-2' };
    assert.equal((await kit.accept(other)).kind, 'won');
  },
  'with a time: only the same status at the same time is a duplicate': async (kit) => {
    await kit.apply(tells('webhook', 'working', { at: T2 }));
    const same = await decided(kit, tells('poll', 'working', { at: T2 }));
    assert.deepEqual(same, { kind: 'done', changed: false, state: 'stale', died: false });
    assert.equal((await kit.accept(tells('poll', 'working', { at: T1 }))).kind, 'stale');
    assert.equal((await kit.accept(tells('poll', 'input-required', { at: T2 }))).kind, 'queued');
    assert.equal((await kit.accept(tells('poll', 'working', { at: T3 }))).kind, 'queued');
    await runNext(kit);
    await runNext(kit);
    assert.equal((await kit.accept(tells('webhook', 'working', { at: T3 }))).kind, 'done');
  },
  'with a time: a queued status is not run once the same one was applied': async (kit) => {
    const { lease: running } = await kit.win(tells('webhook', 'working', { at: T1 }));
    assert.equal((await kit.accept(tells('poll', 'working', { at: T1 }))).kind, 'queued');
    await kit.complete(running.owner, tells('webhook', 'working', { at: T1 }));
    const { events, stale = [] } = await lease(kit);
    assert.deepEqual([events.length, stale.length], [0, 1]);
  },
  'the mark does not move back with an end that is older than what was applied while it waited': async (
    kit,
  ) => {
    const end = tells('webhook', 'completed', { at: T1 });
    const { lease: running } = await kit.win(end);
    assert.equal(await kit.fail(running.owner, { ...end, backoffMs: 1000 }), 'queued');
    await kit.apply(tells('webhook', 'working', { at: T3 }));
    assert.deepEqual(await decided(kit, tells('poll', 'completed', { at: T4 })), duplicateOf('webhook'));
    kit.advance(2000);
    assert.equal(await runNext(kit), end.key, 'as new as its newest report');
    assert.equal((await kit.accept(tells('webhook', 'input-required', { at: T2 }))).kind, 'stale');
  },
  'without a time: only a changed status is accepted, if nothing was applied since it was asked for': async (
    kit,
  ) => {
    const asked = (status: string, askedMs: number, n: number): Draft => {
      const draft = tells('poll', status, { askedMs });
      return { ...draft, key: `${draft.key}-${n}` };
    };
    assert.equal((await kit.accept(asked('working', 0, 1))).kind, 'queued');
    await runNext(kit);
    kit.advance(1000);
    assert.equal((await kit.accept(asked('working', 0, 2))).kind, 'stale', 'the status that it has');
    assert.equal((await kit.accept(asked('input-required', -5000, 3))).kind, 'stale', 'asked for before');
    assert.equal((await kit.accept(asked('input-required', 0, 4))).kind, 'queued');
    await runNext(kit);
    kit.advance(1000);
    assert.equal((await kit.accept(asked('working', 0, 5))).kind, 'queued', 'back again is a change');
    await runNext(kit);
    await kit.apply(tells('webhook', 'input-required', { at: T1 }));
    assert.equal((await kit.accept(asked('working', -5000, 6))).kind, 'stale', 'a webhook was applied since');
  },
  'without a time: a queued status is not run once another was applied': async (kit) => {
    const webhook = tells('webhook', 'input-required', { at: T1 });
    const { lease: running } = await kit.win(webhook);
    const poll = tells('poll', 'working', { askedMs: 0 });
    assert.equal((await kit.accept(poll)).kind, 'queued');
    kit.advance(10);
    await kit.complete(running.owner, webhook);
    const { events } = await lease(kit);
    assert.deepEqual([events.length, await kit.peek(poll)], [0, 'stale']);
  },
  'after a terminal status without a time no other status is applied': async (kit) => {
    await kit.apply(tells('webhook', 'working', { at: T1 }));
    await kit.accept(tells('poll', 'completed'));
    await runNext(kit);
    assert.equal((await kit.accept(tells('webhook', 'working', { at: T2 }))).kind, 'stale');
    assert.equal((await kit.accept(tells('poll', 'input-required', { askedMs: 0 }))).kind, 'stale');
  },
  'lease and inspect give the channel': async (kit) => {
    const poll = tells('poll', 'completed');
    await kit.accept(poll);
    assert.equal((await inboxOf(kit.a).inspect(SENDER, poll.key ?? ''))?.source, 'poll');
    assert.equal((await leaseOne(kit)).source, 'poll');
    const answer = {
      ...tells('response', 'completed'),
      task: OPERATION,
      sender: 'https://other.example/mcp',
    };
    await kit.accept(answer);
    const seen = await inboxOf(kit.a).inspect(answer.sender, answer.key ?? '');
    assert.deepEqual([seen?.source, seen?.taskId], ['response', undefined]);
  },
  'tasks and operations of two senders are separate': async (kit) => {
    await kit.accept(tells('poll', 'completed', { operation: OPERATION }));
    const other = { ...tells('webhook', 'completed', { at: T1, operation: OPERATION }) };
    assert.equal((await kit.accept({ ...other, sender: 'https://other.example/mcp' })).kind, 'won');
  },
};
