import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { expectCountsRight, ownSchema } from '../postgres-schemas.ts';
import { acceptRequest, key, RETENTION_MS } from '../requests.ts';

const at = ownSchema();
beforeEach(() => at.clear());

/** What a worker finds after somebody had locked what waits for the task of a record that is to end. */
async function endWhileLocked(laterMs: number): Promise<readonly (readonly string[])[]> {
  let offsetMs = 0;
  const store = at.store(at.pools[0], { clockOffsetMs: () => offsetMs, timeoutMs: 2000 });
  await store.open();
  for (const n of [1, 2]) {
    const request = acceptRequest({ key: key(n), task: 'task-1' });
    expect((await store.accept({ ...request, mode: 'inbox' })).kind).toBe('queued');
  }
  const lease = async (attempts: number): Promise<readonly (readonly string[])[]> => {
    const asked = {
      owner: randomUUID(),
      process: 'lives',
      max: 1,
      leaseMs: 8000,
      retentionMs: RETENTION_MS,
      senders: [],
    };
    const { events, died } = await store.inbox.lease({ ...asked, retry: { attempts, crashes: 9 } });
    return [events, died].map((some) => some.map((event) => event.key));
  };
  expect(await lease(9)).toEqual([[key(1)], []]);
  expect(await lease(9)).toEqual([[], []]);
  // The lease of the first one runs out, and it has no attempt left.
  offsetMs = laterMs;
  const other = await at.pools[1].connect();
  await other.query(
    `BEGIN; SELECT FROM ${at.schema}.webhook_row WHERE id = '${key(2)}' AND waits_for IS NOT NULL FOR UPDATE`,
  );
  try {
    await expect(lease(1)).rejects.toMatchObject({ code: 'store_unavailable' });
  } finally {
    await other.query('ROLLBACK');
    other.release();
  }
  offsetMs += 1000;
  const [first, second] = [await lease(1), await lease(1)];
  const [events = [], died = []] = [0, 1].map((of) => [...(first[of] ?? []), ...(second[of] ?? [])]);
  await expectCountsRight(at);
  await store.close();
  return [events, died];
}

describe('a worker that meets a locked row', () => {
  it.each([
    ['is left alone for long', 10_000],
    ['has been left alone long enough', 700_000],
  ])(
    'fails the lease when an event that waits for a task and %s is locked; what would free it is retried later',
    async (_, ms) => {
      expect(await endWhileLocked(ms)).toEqual([[key(2)], [key(1)]]);
    },
  );
});
