import { beforeEach, describe, expect, it } from 'vitest';
import { expectCountsRight, ownSchema } from '../postgres-schemas.ts';
import { acceptRequest, key, RETENTION_MS } from '../requests.ts';

const at = ownSchema();
beforeEach(() => at.clear());

describe('a worker waits for nobody while it has records in hand', () => {
  it('one that ends frees its task, but for the record that another worker has in hand, which is due', async () => {
    let offsetMs = 0;
    const store = at.store(at.pools[0], { clockOffsetMs: () => offsetMs, timeoutMs: 2000 });
    await store.open();
    for (const n of [1, 2]) {
      const request = acceptRequest({ key: key(n), task: 'task-1' });
      expect((await store.accept({ ...request, mode: 'inbox' })).kind).toBe('queued');
    }
    const asked = { max: 1, leaseMs: 8000, retentionMs: RETENTION_MS, senders: [] };
    const lease = (owner: string, attempts: number): ReturnType<typeof store.inbox.lease> =>
      store.inbox.lease({ ...asked, owner, retry: { attempts, crashes: 9 } });
    expect((await lease('first', 9)).events.map((event) => event.key)).toEqual([key(1)]);
    expect((await lease('second', 9)).events).toEqual([]);
    // The first one's process dies; what waited has waited as long as it is left alone.
    offsetMs = 700_000;
    const other = await at.pools[1].connect();
    await other.query(
      `BEGIN; SELECT FROM ${at.schema}.webhook_record WHERE key = '${key(2)}' AND parked_until > 0 FOR UPDATE`,
    );
    let third: Awaited<ReturnType<typeof lease>>;
    try {
      third = await lease('third', 1);
    } finally {
      await other.query('ROLLBACK');
      other.release();
    }
    expect(third.events).toEqual([]);
    expect(third.died.map((event) => event.key)).toEqual([key(1)]);
    expect((await lease('fourth', 1)).events.map((event) => event.key)).toEqual([key(2)]);
    await expectCountsRight(at);
    await store.close();
  });
});
