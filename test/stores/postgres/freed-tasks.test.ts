import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { PostgresStore } from '../../../src/stores/postgres.ts';
import { expectCountsRight, ownSchema } from '../postgres-schemas.ts';
import { acceptRequest, key, RETENTION_MS } from '../requests.ts';

const TASKS = 40;
const EVENTS = 400;
const WORKERS = 6;
const ROUNDS = 6;

const at = ownSchema();

/** Each task's events in an order of their own, so that some are stale by the time that they are looked at. */
async function deliver(store: PostgresStore): Promise<void> {
  const numbers = Array.from({ length: EVENTS }, (_, n) => n);
  const accepts = numbers.map((n) => {
    const { event, ...request } = acceptRequest({ key: key(n) });
    const instantMs = (n * 7919) % EVENTS;
    const task = { id: `task-${n % TASKS}`, instant: `${key(instantMs)}.`, instantMs, terminal: false };
    return store.accept({ ...request, mode: 'inbox', ...(event && { event: { ...event, task } }) });
  });
  expect(new Set((await Promise.all(accepts)).map(({ kind }) => kind))).toEqual(new Set(['queued']));
}

/** Until nothing is due. What it holds back from others it has itself completed by then. */
async function work(store: PostgresStore, handled: string[]): Promise<void> {
  for (;;) {
    const owner = randomUUID();
    const { events, nextDueMs } = await store.inbox.lease({
      owner,
      max: 3,
      leaseMs: 600_000,
      retentionMs: RETENTION_MS,
      retry: { attempts: 9, crashes: 9 },
      senders: [],
    });
    for (const { sender, key: of } of events) {
      handled.push(of);
      expect(await store.complete({ sender, key: of, owner, retentionMs: RETENTION_MS })).toBe('done');
    }
    if (events.length === 0 && nextDueMs !== 0) return;
  }
}

describe('workers that race for the events of few tasks', () => {
  it('leave no event waiting for a free task', async () => {
    let offsetMs = 0;
    const stores = at.pools.map((pool) => at.store(pool, { clockOffsetMs: () => offsetMs }));
    for (let round = 0; round < ROUNDS; round += 1) {
      await at.clear();
      const [store, other] = stores as [PostgresStore, PostgresStore];
      await Promise.all([store.open(), other.open()]);
      await deliver(store);
      const handled: string[] = [];
      const workers = Array.from({ length: WORKERS }, (_, n) => work(n % 2 === 0 ? store : other, handled));
      await Promise.all(workers);
      // What a worker put aside because somebody had locked what waits for its task: for a moment, not for minutes.
      for (let seconds = 0; seconds < 5; seconds += 1) {
        offsetMs += 1000;
        await work(store, handled);
      }
      const left = await at.sql(
        "SELECT key, state, parked_until FROM record WHERE state NOT IN ('applied', 'stale')",
      );
      expect(left).toEqual([]);
      expect(new Set(handled).size).toBe(handled.length);
      await expectCountsRight(at);
    }
    await Promise.all(stores.map((store) => store.close()));
  });
});
