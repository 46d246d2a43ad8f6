import { expect, it } from 'vitest';
import type { AcceptRequest } from '../../../src/stores/contract.ts';
import { overdueSql } from '../../../src/stores/postgres/backend.ts';
import { ownSchema } from '../postgres-schemas.ts';
import { acceptRequest, key, leaseOf, RETENTION_MS } from '../requests.ts';

// One connection, so that its backend can be told to hand its statistics in.
const at = ownSchema(1);

/** Whole tables that were read, and entries of indexes that are for sweeps and lists alone: nothing has expired here. */
async function readInVain(): Promise<Record<string, unknown>[]> {
  await at.pools[0].query('SELECT pg_stat_force_next_flush()');
  return at.sql(
    `SELECT relname AS of, seq_scan::integer AS read FROM pg_stat_user_tables
       WHERE schemaname = $1 AND relname IN ('webhook_row', 'webhook_tally', 'webhook_scope')
     UNION ALL SELECT indexrelname, idx_tup_read::integer FROM pg_stat_user_indexes
       WHERE schemaname = $1 AND indexrelname ~ '(expiry|list)$' ORDER BY 1`,
    [at.schema],
  );
}

it('tables that were analyzed while they were empty: every function finds its rows by an index all the same', async () => {
  await at.sql('ANALYZE webhook_row, webhook_tally, webhook_scope');
  const before = await readInVain();
  expect(before).toHaveLength(5);
  // No accept sweeps.
  const store = at.store(at.pools[0], { random: () => 0.99 });
  await store.open();
  const sent: AcceptRequest[] = [];
  const request = (n: number): AcceptRequest => {
    const { event, ...rest } = acceptRequest({ key: key(n), task: `task-${n}` });
    if (!event) return expect.fail();
    return (sent[n] = { ...rest, event: { ...event, notificationId: `notification-${n}` } });
  };
  await Promise.all(Array.from({ length: 300 }, (_, n) => store.accept(request(n))));
  for (let n = 300; n < 320; n += 1) await store.accept(request(n));
  const complete = (n: number): ReturnType<typeof store.complete> =>
    store.complete({ ...leaseOf(sent[n] ?? expect.fail()), retentionMs: RETENTION_MS });
  expect(new Set(await Promise.all(sent.slice(0, 300).map((_, n) => complete(n))))).toEqual(
    new Set(['done']),
  );
  for (let n = 300; n < 310; n += 1) expect(await complete(n)).toBe('done');
  const lease = leaseOf(sent[310] ?? expect.fail());
  const { retry, limits } = acceptRequest();
  expect(await store.renew({ ...lease, leaseMs: 60_000 })).toBe('renewed');
  const failing = { ...lease, permanent: true, retry, backoffMs: 0, retentionMs: RETENTION_MS };
  expect(await store.fail(failing)).toBe('dead');
  expect(await store.peek(lease.sender, lease.key)).toBe('dead');
  expect(await store.inbox.redrive(lease.sender, lease.key)).toBe('queued');
  const waiting = acceptRequest({ key: key(400), task: 'task-311' });
  expect((await store.accept({ ...waiting, mode: 'inbox' })).kind).toBe('queued');
  const asked = { owner: 'worker', max: 4, leaseMs: 60_000, retry, retentionMs: RETENTION_MS, senders: [] };
  expect((await store.inbox.lease(asked)).events).toHaveLength(1);
  expect((await store.inbox.inspect(lease.sender, lease.key))?.state).toBe('leased');
  expect(await complete(311)).toBe('done');
  expect((await store.inbox.lease(asked)).events.map((event) => event.key)).toEqual([key(400)]);
  // Near a cap: counts are compared.
  const near = { ...limits, maxRecordsPerSender: 2000 };
  expect((await store.accept({ ...acceptRequest({ key: key(401) }), limits: near })).kind).toBe('won');
  expect(await readInVain()).toEqual(before);
  await store.close();
});

it('how long the first event has been due is read from one entry of an index', async () => {
  const [row] = await at.sql(`EXPLAIN (FORMAT JSON) ${overdueSql(`"${at.schema}"`).replace('$1', '0')}`);
  expect(JSON.stringify(row)).toContain('webhook_row_due');
});
