import { describe, expect, it } from 'vitest';
import type { AcceptRequest } from '../../../src/stores/index.ts';
import { LONGEST_WAIT_MS } from '../../../src/stores/for-tests.ts';
import { overdueSql } from '../../../src/stores/postgres/for-tests.ts';
import { ownSchema, type TestSchema } from '../postgres-schemas.ts';
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

it('every function uses an index, also when the tables were analyzed while empty', async () => {
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
  // Near a cap: counts are read first.
  const near = { ...limits, maxRecordsPerSender: 2000 };
  expect((await store.accept({ ...acceptRequest({ key: key(401) }), limits: near })).kind).toBe('won');
  expect(await readInVain()).toEqual(before);
  await store.close();
});

it('overdueMs reads one index entry', async () => {
  const [row] = await at.sql(`EXPLAIN (FORMAT JSON) ${overdueSql(`"${at.schema}"`).replace('$1', '0')}`);
  expect(JSON.stringify(row)).toContain('webhook_row_when');
});

const ROWS = 3_000;
/** A tenth of the rows of each sort. What an operation needs grows with senders and with what is asked for, not with these. */
const MOST = ROWS / 10;
/** Half of the primary key's. */
const MOST_BLOCKS = 600;
const TABLES = ['webhook_row', 'webhook_tally', 'webhook_scope'];
/** When the rows are gone. 2100. */
const FAR_MS = 4_102_444_800_000;
/** When they are due: within the longest wait, and after the test. */
const SOON = 'webhook_clock(0) + 1800000';
/** Offsets of a clock by which they are due, and by which they are too far ahead. Ms. */
const DUE_MS = 3_000_000;
const BACK_MS = -86_400_000;

type Sort = keyof typeof SORTS;

const SORTS = {
  task: `${FAR_MS}, NULL, 1, NULL, NULL, NULL`,
  nonce: `${FAR_MS}, NULL, 1, NULL, NULL, NULL`,
  done: `${FAR_MS}, NULL, 1, NULL, NULL, NULL`,
  parked: "NULL, NULL, 1, 'queued', 'task-' || n, NULL",
  due: `NULL, ${SOON} + n, 1, 'queued', NULL, NULL`,
} as const;

/** Of 5 senders tasks, nonces, and events that are done, that wait for another one of their task, and that wait. */
async function fill({ sql }: TestSchema, sorts = Object.keys(SORTS) as Sort[], rows = ROWS): Promise<void> {
  await sql(
    `INSERT INTO webhook_scope (sender, key) SELECT 'https://other.example/' || n, '' FROM generate_series(1, 5) n
      ON CONFLICT DO NOTHING`,
  );
  for (const sort of sorts) {
    await sql(
      `INSERT INTO webhook_row (scope_id, kind, id, version, expires_at, due_at, bytes, list, waits_for, link, data)
        SELECT s.id, $1, $2 || '-' || repeat('x', 300) || n, 1, ${SORTS[sort]}, '{}' FROM generate_series(1, ${rows}) n
        JOIN webhook_scope s ON s.sender = 'https://other.example/' || 1 + n % 5`,
      [{ task: 't', nonce: 'n' }[sort as string] ?? 'r', sort],
    );
  }
}

/** Rows, entries of indexes, and blocks that have been read so far. */
async function reads({
  sql,
  pools,
  schema,
}: TestSchema): Promise<Readonly<Record<'rows' | 'blocks', number>>> {
  await pools[0].query('SELECT pg_stat_force_next_flush()');
  const [row] = await sql(
    `SELECT ((SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = ANY ($2))
        + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = $1 AND relname = ANY ($2)))::float8 AS rows,
      (SELECT sum(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit) FROM pg_statio_user_tables
        WHERE schemaname = $1 AND relname = ANY ($2))::float8 AS blocks`,
    [schema, TABLES],
  );
  return { rows: Number(row?.['rows']), blocks: Number(row?.['blocks']) };
}

type Prepare = (at: TestSchema, analyze: () => Promise<unknown>) => Promise<unknown>;

/** What the server has counted, against what there is. */
const STATISTICS: Readonly<Record<string, Prepare>> = {
  'none, for the tables were emptied': async (at, analyze) => {
    // A few: while another transaction of the server is open, deleted ones are read by each look.
    await fill(at, undefined, 5);
    for (const table of TABLES) await at.sql(`DELETE FROM ${table}`);
    await analyze();
    await fill(at);
  },
  'as it is': async (at, analyze) => {
    await fill(at);
    await analyze();
  },
  'all of them due': async (at, analyze) => {
    await fill(at, ['due']);
    await analyze();
    await fill(at, ['task', 'nonce', 'done', 'parked']);
  },
  'none of them due': async (at, analyze) => {
    await fill(at, ['nonce']);
    await analyze();
    await fill(at, ['task', 'done', 'parked', 'due']);
  },
};

describe.each(Object.entries(STATISTICS))('with accurate statistics: %s', (_, prepare) => {
  const own = ownSchema(1);

  it('no operation reads rows it does not need', async () => {
    for (const table of TABLES) await own.sql(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
    await prepare(own, () => own.sql(`ANALYZE ${TABLES.join(', ')}`));
    const suspect = `INSERT INTO webhook_row (scope_id, kind, id, version, suspect_at, crashes, bytes, list, data)
      SELECT min(id), 'r', 'suspect', 1, ${SOON}, 2, 1, 'queued', '{}' FROM webhook_scope`;
    await own.sql(suspect);
    await own.sql('SELECT pg_stat_force_next_flush()');
    const [pool] = own.pools;
    // No accept sweeps.
    const store = own.store(pool, { random: () => 0.99 });
    await store.open();
    const { retry, limits } = acceptRequest();
    const asked = {
      owner: 'worker',
      max: 4,
      leaseMs: 600_000,
      retry,
      retentionMs: RETENTION_MS,
      senders: [],
    };
    const registrations = store.registrations ?? expect.fail();
    const request = (n: number): AcceptRequest => ({
      ...acceptRequest({ key: key(n), task: `task-${n}` }),
      // Longer than the test may take.
      leaseMs: 600_000,
    });
    const [inline, failing] = [request(1), request(5)];
    const near = { ...limits, maxRecordsPerSender: 2000 };
    const failed = { permanent: true, retry, backoffMs: 0, retentionMs: RETENTION_MS };
    const call = async (name: string, values: readonly unknown[], rows: number): Promise<void> => {
      const places = values.map((_, n) => `$${n + 1}`).join(', ');
      const { rowCount } = await pool.query(`SELECT * FROM ${own.schema}.${name}(${places})`, [...values]);
      expect(rowCount).toBe(rows);
    };
    const operations: Readonly<Record<string, () => Promise<unknown>>> = {
      'accept, inline': () => store.accept(inline),
      'accept, again': async () => expect((await store.accept(request(1))).kind).toBe('in-flight'),
      'accept, inbox': () => store.accept({ ...request(2), mode: 'inbox' }),
      'accept, near a cap': () => store.accept({ ...request(3), limits: near }),
      renew: () => store.renew({ ...leaseOf(inline), leaseMs: 600_000 }),
      complete: async () =>
        expect(await store.complete({ ...leaseOf(inline), retentionMs: RETENTION_MS })).toBe('done'),
      peek: () => store.peek(inline.sender, inline.event?.key ?? ''),
      inspect: () => store.inbox.inspect(inline.sender, inline.event?.key ?? ''),
      lease: async () => expect((await store.inbox.lease(asked)).events).toHaveLength(1),
      'lease, nothing is due': async () => expect((await store.inbox.lease(asked)).events).toHaveLength(0),
      overdueMs: () => store.inbox.overdueMs?.() ?? expect.fail(),
      'accept, to fail': () => store.accept(failing),
      fail: async () => expect(await store.fail({ ...leaseOf(failing), ...failed })).toBe('dead'),
      redrive: () => store.inbox.redrive(failing.sender, failing.event?.key ?? ''),
      sweep: () => store.sweep(),
      'registrations that are due': () =>
        registrations.due({ kind: 'operation', max: 4, holdMs: 1_000, senders: [] }),
      'what is due, of thousands': () => call('webhook_due', [DUE_MS, 4, 1_000, LONGEST_WAIT_MS, ''], 5),
      'what is due too far ahead, of thousands': () =>
        call('webhook_due', [BACK_MS, 4, 1_000, LONGEST_WAIT_MS, ''], 5),
      'a suspect': () => call('webhook_suspect', [DUE_MS, 1_000, LONGEST_WAIT_MS], 2),
    };
    const read: Record<string, Readonly<Record<'rows' | 'blocks', number>>> = {};
    for (const [name, operation] of Object.entries(operations)) {
      const before = await reads(own);
      await operation();
      const after = await reads(own);
      read[name] = { rows: after.rows - before.rows, blocks: after.blocks - before.blocks };
    }
    const tooMuch = Object.entries(read).filter(
      ([, { rows, blocks }]) => rows > MOST || blocks > MOST_BLOCKS,
    );
    expect(tooMuch).toEqual([]);
    // Nothing at all would say that nothing was counted.
    for (const { blocks } of Object.values(read)) expect(blocks).toBeGreaterThan(0);
    await store.close();
  });
});

describe('with thousands of senders', () => {
  const own = ownSchema(1);

  it('a look reads what it asks for, and where nothing is due the ends of an index', async () => {
    const { sql } = own;
    await sql(
      `INSERT INTO webhook_scope (sender, key) SELECT 'https://other.example/' || n, '' FROM generate_series(1, ${ROWS}) n`,
    );
    const rowOf = (kind: string, due: string, waits: string): Promise<unknown> =>
      sql(
        `INSERT INTO webhook_row (scope_id, kind, id, version, due_at, bytes, waits_for, data)
          SELECT id, '${kind}', 'due', 1, ${due}, 1, ${waits}, '{}' FROM webhook_scope`,
      );
    await rowOf('r', `${SOON} + id`, 'NULL');
    await rowOf('W', 'NULL', `E'\\x01w' || lpad((${SOON} + id)::text, 16, '0')`);
    const read: Record<string, number> = {};
    const count = async (name: string, of: string, rows: number): Promise<void> => {
      const before = await reads(own);
      expect((await own.pools[0].query(`SELECT * FROM ${own.schema}.${of}`)).rowCount).toBe(1 + rows);
      read[name] = (await reads(own)).rows - before.rows;
    };
    for (const [when, offset, rows] of [
      ['not due yet', 0, 0],
      ['due', DUE_MS, 4],
      ['due too far ahead', BACK_MS, 4],
    ] as const) {
      const after = "'https://other.example/5'";
      await count(`events ${when}`, `webhook_due(${offset}, 4, 0, ${LONGEST_WAIT_MS}, ${after})`, rows);
      const turns = `webhook_turns(${offset}, 'W', E'\\x01w', 4, ${LONGEST_WAIT_MS}, ${after})`;
      await count(`registrations ${when}`, turns, rows);
    }
    expect(Object.entries(read).filter(([, rows]) => rows > MOST)).toEqual([]);
    expect(Math.min(...Object.values(read))).toBeGreaterThan(0);
  });
});
