import { expect, it } from 'vitest';
import type { AcceptRequest } from '../../../src/stores/contract.ts';
import { ownSchema } from '../postgres-schemas.ts';
import { acceptRequest } from '../requests.ts';

// One connection, so that its backend can be told to hand its statistics in.
const at = ownSchema(1);

/** Index entries that looks went through, of the indexes that are for sweeps and lists alone; nothing has expired here. */
async function readByExpiry(): Promise<Record<string, unknown>[]> {
  await at.pools[0].query('SELECT pg_stat_force_next_flush()');
  return at.sql(
    `SELECT indexrelname AS index, idx_tup_read::integer AS read FROM pg_stat_user_indexes
     WHERE schemaname = $1 AND indexrelname ~ '(expiry|open)$' ORDER BY 1`,
    [at.schema],
  );
}

it('tables that were analyzed while they were empty: rows are found by their keys all the same', async () => {
  await at.sql('ANALYZE webhook_nonce, webhook_record, webhook_task, webhook_notification');
  const store = at.store();
  await store.open();
  const sent: AcceptRequest[] = [];
  const request = (n: number): AcceptRequest => {
    const { event, ...rest } = acceptRequest({ key: `event-${n}-of-the-seller`, task: `task-${n}` });
    if (!event) return expect.fail();
    return (sent[n] = { ...rest, event: { ...event, notificationId: `notification-${n}` } });
  };
  await Promise.all(Array.from({ length: 300 }, (_, n) => store.accept(request(n))));
  for (let n = 300; n < 320; n += 1) await store.accept(request(n));
  const complete = (n: number): ReturnType<typeof store.complete> => {
    const { acceptId: owner = '', sender = '', retentionMs = 0 } = sent[n] ?? {};
    return store.complete({ sender, key: `event-${n}-of-the-seller`, owner, retentionMs });
  };
  expect(new Set(await Promise.all(sent.slice(0, 300).map((_, n) => complete(n))))).toEqual(
    new Set(['done']),
  );
  for (let n = 300; n < 320; n += 1) expect(await complete(n)).toBe('done');
  const names = [
    'webhook_nonce_expiry',
    'webhook_notification_expiry',
    'webhook_record_expiry',
    'webhook_record_open',
    'webhook_task_expiry',
  ];
  expect(await readByExpiry()).toEqual(names.map((index) => ({ index, read: 0 })));
  await store.close();
});
