import { expect, it } from 'vitest';
import { LONGEST_WAIT_MS } from '../../../src/stores/for-tests.ts';
import { acceptRequest, key, leaseOf, RETENTION_MS } from '../requests.ts';
import { ownDatabase } from '../mysql-databases.ts';

// One connection, so that what it has read can be asked of it.
const at = ownDatabase({ connectionLimit: 1 });

const ROWS = 3_000;
/** A tenth of the rows of each sort. What an operation needs grows with what is due of a sender and with senders, not with these. */
const MOST = 300;

/** Rows and entries of indexes that the statements of `work` read. */
async function readsOf(work: () => Promise<unknown>, [pool] = at.pools): Promise<number> {
  await pool.query('FLUSH STATUS');
  await work();
  const [rows] = await pool.query("SHOW STATUS LIKE 'Handler_read%'");
  return (rows as unknown as readonly { readonly Value: string }[]).reduce(
    (sum, { Value }) => sum + Number(Value),
    0,
  );
}

/** When they are due: within the longest wait, and after the test. Unix ms. */
const SOON = 'UNIX_TIMESTAMP() * 1000 + 1800000';

/**
 * Of 10 senders tasks, and events that are done, that wait (due) and that wait for another one of their task, by the
 * thousand; statistics are those of an empty table.
 */
async function fill(): Promise<void> {
  await at.sql('ALTER TABLE webhook_row STATS_AUTO_RECALC=0, STATS_PERSISTENT=1');
  await at.sql('ANALYZE TABLE webhook_row');
  await at.sql(
    "INSERT INTO webhook_scope (sender, keyid) SELECT CONCAT('https://other.example/', seq), '' FROM seq_1_to_10",
  );
  const [first] = await at.sql('SELECT MIN(id) AS id FROM webhook_scope');
  const scope = `${String(first?.['id'])} + seq % 10`;
  const columns =
    'scope_id, kind, id, version, seq, expires_at, due_scope, due_at, bytes, list, waits_for, link, data';
  const insert = (kind: string, prefix: string, values: string): Promise<unknown> =>
    at.sql(
      `INSERT INTO webhook_row (${columns}) SELECT ${scope}, '${kind}', CONCAT('${prefix}', seq), 1, seq, ${values} FROM seq_1_to_${ROWS}`,
    );
  await insert('t', 'task-', "4102444800000, NULL, NULL, 1, NULL, NULL, NULL, '{}'");
  await insert('r', 'done-', "4102444800000, NULL, NULL, 1, NULL, NULL, NULL, '{}'");
  await insert('r', 'parked-', "NULL, NULL, NULL, 1, 'queued', CONCAT('task-', seq), NULL, '{}'");
  await insert('r', 'later-', `NULL, ${scope}, ${SOON} + seq, 1, 'queued', NULL, NULL, '{}'`);
}

it('no statement reads rows it does not need, also with the statistics of empty tables', async () => {
  await fill();
  // No accept sweeps.
  const store = at.store(at.pools[0], { random: () => 0.99 });
  await store.open();
  const { retry } = acceptRequest();
  const asked = { owner: 'worker', max: 4, leaseMs: 60_000, retry, retentionMs: RETENTION_MS, senders: [] };
  const registrations = store.registrations ?? expect.fail();
  const request = (n: number): ReturnType<typeof acceptRequest> =>
    acceptRequest({ key: key(n), task: `task-${n}` });
  const inline = request(1);
  const operations: Readonly<Record<string, () => Promise<unknown>>> = {
    'accept, inline': () => store.accept(inline),
    'accept, inbox': () => store.accept({ ...request(2), mode: 'inbox' }),
    renew: () => store.renew({ ...leaseOf(inline), leaseMs: 60_000 }),
    complete: () => store.complete({ ...leaseOf(inline), retentionMs: RETENTION_MS }),
    peek: () => store.peek(inline.sender, inline.event?.key ?? ''),
    inspect: () => store.inbox.inspect(inline.sender, inline.event?.key ?? ''),
    lease: async () => expect((await store.inbox.lease(asked)).events).toHaveLength(1),
    'lease, nothing is due': async () => expect((await store.inbox.lease(asked)).events).toHaveLength(0),
    'lease, alone': () => store.inbox.lease({ ...asked, alone: true }),
    overdueMs: () => store.inbox.overdueMs?.() ?? expect.fail(),
    list: () => store.inbox.list({ state: 'dead', limit: 10 }),
    'registrations that are due': () =>
      registrations.due({ kind: 'operation', max: 4, holdMs: 1_000, senders: [] }),
  };
  const look = (offsetMs: number) => async (): Promise<void> => {
    const call = `CALL webhook_due(FALSE, ${offsetMs}, 4, 1000, ${LONGEST_WAIT_MS}, '')`;
    const [told] = (await at.pools[0].query(call)) as unknown as [readonly (readonly { names: unknown }[])[]];
    expect(String(told[0]?.[0]?.names).match(/later-/g)).toHaveLength(4);
  };
  Object.assign(operations, {
    'what is due, of thousands': look(3_000_000),
    'what is due too far ahead, of thousands': look(-86_400_000),
  });
  const reads: Record<string, number> = {};
  for (const [name, operation] of Object.entries(operations)) reads[name] = await readsOf(operation);
  expect(Object.entries(reads).filter(([, read]) => read > MOST)).toEqual([]);
  // Nothing at all would say that nothing was counted.
  for (const read of Object.values(reads)) expect(read).toBeGreaterThan(0);
  await store.close();
});

const many = ownDatabase({ connectionLimit: 1 });

it('a look at thousands of senders reads what it asks for, and where nothing is due the ends of an index', async () => {
  const [pool] = many.pools;
  await many.sql(
    `INSERT INTO webhook_scope (sender, keyid) SELECT CONCAT('https://other.example/', seq), '' FROM seq_1_to_${ROWS}`,
  );
  const columns = 'scope_id, kind, id, version, seq, due_scope, due_at, bytes, waits_for, data';
  await many.sql(
    `INSERT INTO webhook_row (${columns}) SELECT id, 'r', 'due', 1, id, id, ${SOON} + id, 1, NULL, '{}' FROM webhook_scope`,
  );
  const looked = async (offsetMs: number): Promise<number> => {
    const call = `CALL webhook_due(FALSE, ${offsetMs}, 4, 0, ${LONGEST_WAIT_MS}, 'https://other.example/5')`;
    const [told] = (await pool.query(call)) as unknown as [readonly (readonly { names: unknown }[])[]];
    return String(told[0]?.[0]?.names).match(/due/g)?.length ?? 0;
  };
  for (const [offsetMs, found] of [
    [0, 0],
    [3_000_000, 4],
    [-86_400_000, 4],
  ] as const) {
    const read = await readsOf(async () => expect(await looked(offsetMs)).toBe(found), many.pools);
    expect(read).toBeGreaterThan(0);
    expect(read).toBeLessThan(MOST);
  }
});

it('a poller’s look at thousands of senders reads an entry of each that has something due, and few of none', async () => {
  await many.sql(
    `INSERT INTO webhook_row (scope_id, kind, id, version, seq, bytes, waits_for, data)
      SELECT id, 'W', 'due', 1, id, 1, CONCAT(CHAR(1), 'w', LPAD(${SOON} + id, 16, '0')),
        JSON_OBJECT('value', '{}', 'dueAt', ${SOON} + id) FROM webhook_scope`,
  );
  const read = async (clockOffsetMs: number, found: number): Promise<number> => {
    const store = many.store(many.pools[0], { random: () => 0.99, clockOffsetMs: () => clockOffsetMs });
    await store.open();
    const asked = { kind: 'watch', max: 4, holdMs: 1_000, senders: [] } as const;
    const count = await readsOf(
      async () => expect((await store.registrations?.due(asked))?.rows).toHaveLength(found),
      many.pools,
    );
    await store.close();
    return count;
  };
  expect(await read(0, 0)).toBeLessThan(MOST);
  // Two of each in the index, and what is sorted of the senders.
  expect(await read(3_000_000, 4)).toBeLessThan(8 * ROWS);
});
