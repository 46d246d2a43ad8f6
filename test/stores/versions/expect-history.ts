import { expect } from 'vitest';
import type { AcceptRequest } from '../../../src/index.ts';
import type { InboxStore } from './history.ts';
import {
  acceptOf,
  again,
  bodyOf,
  keyOf,
  NOTE,
  REPORT,
  RETENTION_MS,
  RETRY,
  SENDER,
  task,
} from './history.ts';

/**
 * What `writeHistory` wrote, whichever version did, is there and means what it meant.
 * @param store open, on a clock of the time at which it was written.
 */
export async function expectHistory(store: InboxStore): Promise<void> {
  const kinds = async (...requests: readonly AcceptRequest[]): Promise<unknown[]> => {
    const results = [];
    for (const request of requests) results.push(await store.accept(request));
    return results;
  };
  expect(
    await kinds(
      again(acceptOf(2, task('task-2', 2))),
      again(acceptOf(3)),
      again(acceptOf(4, task('task-4', 2))),
    ),
  ).toMatchObject([
    { kind: 'done', state: 'applied' },
    { kind: 'done', state: 'dead' },
    { kind: 'in-flight' },
  ]);
  expect(await kinds(acceptOf(9, { nonce: 'nonce-2' }), acceptOf(9, { nonce: 'nonce-8' }))).toMatchObject([
    { kind: 'replayed' },
    { kind: 'replayed' },
  ]);
  const { events } = await store.inbox.lease({
    owner: 'worker-1',
    max: 10,
    leaseMs: 600_000,
    retry: RETRY,
    retentionMs: RETENTION_MS,
    senders: [],
  });
  // The fifth waits for its task, which the fourth holds.
  expect(events.map(({ key }) => key)).toEqual([keyOf(1)]);
  expect(Buffer.from(events[0]?.body ?? [])).toEqual(Buffer.from(bodyOf(1)));
  const dead = await store.inbox.inspect(SENDER, keyOf(3));
  expect(dead).toMatchObject({ state: 'dead', lastError: 'the handler failed', attempts: 1 });
  expect(Buffer.from(dead?.body ?? [])).toEqual(Buffer.from(bodyOf(3)));
  expect((await store.inbox.list({ state: 'queued', limit: 10 })).records).toMatchObject([{ key: keyOf(5) }]);
  expect(await kinds(acceptOf(9, task('task-2', 1)), acceptOf(10, NOTE), acceptOf(11, REPORT))).toMatchObject(
    [{ kind: 'stale' }, { kind: 'won', reemission: true }, { kind: 'won', afterFinal: true }],
  );
}

/** After `expectHistory`: what was under way, waiting or given up is brought to its end, each once. */
export async function finishHistory(store: InboxStore): Promise<void> {
  const complete = (n: number, owner: string): Promise<unknown> =>
    store.complete({ sender: SENDER, key: keyOf(n), owner, retentionMs: RETENTION_MS });
  const leased = async (): Promise<readonly (readonly [key: string, body: string])[]> => {
    const { events } = await store.inbox.lease({
      owner: 'worker-2',
      max: 10,
      leaseMs: 600_000,
      retry: RETRY,
      retentionMs: RETENTION_MS,
      senders: [],
    });
    return events.map(({ key, body }) => [key, Buffer.from(body).toString()]);
  };
  const whole = (n: number): readonly [key: string, body: string] => [
    keyOf(n),
    Buffer.from(bodyOf(n)).toString(),
  ];
  expect(await complete(1, 'worker-1')).toBe('done');
  expect(await leased()).toEqual([]);
  // The owner of before has its lease still; what waited for its task is due then.
  expect(await complete(4, acceptOf(4).acceptId)).toBe('done');
  expect(await leased()).toEqual([whole(5)]);
  expect(await complete(5, 'worker-2')).toBe('done');
  expect(await store.inbox.redrive(SENDER, keyOf(3))).toBe('queued');
  expect(await leased()).toEqual([whole(3)]);
  expect(await complete(3, 'worker-2')).toBe('done');
  for (const n of [10, 11]) expect(await complete(n, acceptOf(n).acceptId)).toBe('done');
  for (const state of ['queued', 'leased', 'dead'] as const) {
    expect((await store.inbox.list({ state, limit: 10 })).records, state).toEqual([]);
  }
  for (const n of [1, 2, 3, 4, 5, 6, 7, 10, 11]) {
    expect(await store.accept(again(again(acceptOf(n))))).toMatchObject({ kind: 'done', state: 'applied' });
  }
  expect(await store.accept(again(again(acceptOf(9))))).toMatchObject({ kind: 'done', state: 'stale' });
}
