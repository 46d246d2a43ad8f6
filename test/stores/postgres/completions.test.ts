import { beforeEach, describe, expect, it } from 'vitest';
import type { AcceptRequest } from '../../../src/stores/index.ts';
import type { PostgresStore } from '../../../src/stores/postgres.ts';
import { expectCountsRight, ownSchema } from '../postgres-schemas.ts';
import { acceptRequest, key, leaseOf, RETENTION_MS } from '../requests.ts';
import { notingPool } from './wrapped-pool.ts';

const at = ownSchema();
beforeEach(() => at.clear());

async function accepted(store: PostgresStore, requests: readonly AcceptRequest[]): Promise<void> {
  const results = await Promise.all(requests.map((request) => store.accept(request)));
  expect(results.map(({ kind }) => kind)).toEqual(requests.map(() => 'won'));
}

const complete = (store: PostgresStore, request: AcceptRequest, owner = request.acceptId): Promise<string> =>
  store.complete({ ...leaseOf(request), owner, retentionMs: RETENTION_MS });

describe('completions in one batch', () => {
  it('are lost alone when they have no lease, and done when they are repeated', async () => {
    const store = at.store();
    await store.open();
    const requests = Array.from({ length: 6 }, (_, n) =>
      acceptRequest({ key: key(n), ...(n % 2 === 0 && { task: `task-${n}` }) }),
    );
    await accepted(store, requests);
    const [first] = requests;
    expect.assert(first);
    expect(await complete(store, first)).toBe('done');
    const ends = await Promise.all([
      ...requests.map((request, n) => complete(store, request, n === 3 ? 'another' : undefined)),
      complete(store, acceptRequest({ key: key(99) })),
      complete(store, acceptRequest({ sender: 'https://unknown.example/mcp' })),
    ]);
    expect(ends).toEqual(['done', 'done', 'done', 'lost', 'done', 'done', 'lost', 'lost']);
    await expectCountsRight(at);
    await store.close();
  });

  it('free a task for a later event of the same batch', async () => {
    const store = at.store();
    await store.open();
    const requests = [1, 2].map((n) => acceptRequest({ key: key(n), task: `task-${n}` }));
    await accepted(store, requests);
    const ends = Promise.all(requests.map((request) => complete(store, request)));
    const [next] = await Promise.all([
      store.accept(acceptRequest({ key: key(3), task: 'task-1' })),
      store.accept(acceptRequest({ key: key(4), task: 'task-4' })),
    ]);
    expect(next.kind).toBe('won');
    expect(await ends).toEqual(['done', 'done']);
    await expectCountsRight(at);
    await store.close();
  });

  it('free room under a cap for accepts of the same batch', async () => {
    const store = at.store();
    await store.open();
    const near = (n: number): AcceptRequest => {
      const { limits, ...request } = acceptRequest({ key: key(n), body: 'x'.repeat(900) });
      return { ...request, limits: { ...limits, maxPendingBytesPerSender: 1000 } };
    };
    const [first, next] = [near(1), near(2)];
    expect(await store.accept(first)).toMatchObject({ kind: 'won', pressure: ['pending-bytes'] });
    expect(await store.accept(near(3))).toMatchObject({ kind: 'over-cap', limit: 'pending-bytes' });
    const other = acceptRequest({ sender: 'https://another.example/mcp' });
    const [end, , answer] = await Promise.all([
      complete(store, first),
      store.accept(other),
      store.accept({ ...next, leaseMs: next.leaseMs + 1 }),
    ]);
    expect(end).toBe('done');
    expect(answer).toMatchObject({ kind: 'won', pressure: ['pending-bytes'] });
    await expectCountsRight(at);
    await store.close();
  });

  it('make the oldest waiting event of each task due', async () => {
    const store = at.store();
    await store.open();
    const requests = [1, 2, 3].map((n) => acceptRequest({ key: key(n), task: `task-${n}` }));
    await accepted(store, requests);
    for (const n of [1, 2, 3]) {
      const waiting = acceptRequest({ key: key(10 + n), task: `task-${n}` });
      expect((await store.accept({ ...waiting, mode: 'inbox' })).kind).toBe('queued');
    }
    const { retry, leaseMs } = acceptRequest();
    const asked = { owner: 'worker', max: 9, leaseMs, retry, retentionMs: RETENTION_MS, senders: [] };
    expect((await store.inbox.lease(asked)).events).toEqual([]);
    await Promise.all(requests.map((request) => complete(store, request)));
    const { events } = await store.inbox.lease(asked);
    expect(events.map((event) => event.key).toSorted()).toEqual([key(11), key(12), key(13)]);
    const freed = events.map((event) => store.complete({ ...event, owner: 'worker', retentionMs: 1 }));
    expect(await Promise.all(freed)).toEqual(['done', 'done', 'done']);
    await expectCountsRight(at);
    await store.close();
  });

  it.each(['alone', 'together'])(
    '%s: never move a task’s mark back, and restore one that was swept',
    async (how) => {
      const store = at.store();
      await store.open();
      const requests = [1, 2, 3].map((n) => {
        const task = { id: `task-${n}`, instant: '000000000005.', instantMs: 5000, terminal: false };
        const { event, ...request } = acceptRequest({ key: key(n) });
        return { ...request, ...(event && { event: { ...event, task } }) };
      });
      await accepted(store, requests);
      await at.sql(`UPDATE webhook_row SET version = version + 1,
        data = (data::jsonb || '{"mark":"000000000009."}')::text WHERE kind = 't' AND id = 'task-1'`);
      await at.sql(`WITH swept AS (DELETE FROM webhook_row WHERE kind = 't' AND id = 'task-2' RETURNING scope_id)
        INSERT INTO webhook_tally SELECT scope_id, -1, -1, 0 FROM swept`);
      if (how === 'alone') for (const request of requests) await complete(store, request);
      else await Promise.all(requests.map((request) => complete(store, request)));
      expect(await at.sql('SELECT task_id, mark FROM task ORDER BY task_id')).toEqual([
        { task_id: 'task-1', mark: '000000000009.' },
        { task_id: 'task-2', mark: '000000000005.' },
        { task_id: 'task-3', mark: '000000000005.' },
      ]);
      await expectCountsRight(at);
      await store.close();
    },
  );

  it('fail alone when the server rejects one of them', async () => {
    const store = at.store();
    await store.open();
    const requests = Array.from({ length: 20 }, (_, n) => acceptRequest({ key: key(n), task: `task-${n}` }));
    await accepted(store, requests);
    await at.sql(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'not this one' USING ERRCODE = '23514'; END $$;
      CREATE TRIGGER refuse BEFORE UPDATE ON webhook_row FOR EACH ROW WHEN (NEW.id = '${key(7)}')
      EXECUTE FUNCTION refuse()`);
    try {
      const ends = await Promise.allSettled(requests.map((request) => complete(store, request)));
      expect(ends.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual([7]);
    } finally {
      await at.sql('DROP TRIGGER refuse ON webhook_row; DROP FUNCTION refuse');
    }
    expect(await complete(store, requests[7] ?? expect.fail())).toBe('done');
    await expectCountsRight(at);
    await store.close();
  });

  it('do not deadlock with those of another process in the opposite order', async () => {
    const rolledBack: string[] = [];
    const [one, other] = at.pools.map((pool) => at.store(pool, { pool: notingPool(pool, rolledBack) }));
    expect.assert(one && other);
    await one.open();
    await other.open();
    for (let round = 0; round < 10; round += 1) {
      const requests = Array.from({ length: 40 }, (_, n) =>
        acceptRequest({ key: key(100 * round + n), ...(n % 2 === 0 && { task: `task-${round}-${n}` }) }),
      );
      await accepted(one, requests);
      // And the same events once more, which lock their records' rows one by one.
      const again = requests.map(({ nonce: _nonce, ...request }) => ({ ...request, acceptId: 'again' }));
      const [there, , ...here] = await Promise.all([
        Promise.all(requests.toReversed().map((request) => complete(other, request))),
        Promise.all(again.toReversed().map((request) => one.accept(request))),
        ...requests.map((request) => complete(one, request)),
      ]);
      expect(new Set([...there, ...here])).toEqual(new Set(['done']));
    }
    expect(rolledBack).toEqual([]);
    await expectCountsRight(at);
    await one.close();
    await other.close();
  });
});
