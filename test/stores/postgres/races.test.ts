import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CommitResult, Expected, Row, Unit, Within, Write } from '../../../src/stores/port.ts';
import { type PostgresBackend, postgresBackend } from '../../../src/stores/postgres/backend.ts';
import type { PgClient } from '../../../src/stores/postgres.ts';
import { expectCountsRight, ownSchema } from '../postgres-schemas.ts';

/** Far more than any of this takes: what waits here waits for a lock. */
const TIMEOUT_MS = 120_000;

const SCOPE = { sender: 'https://seller.example/mcp' };

const at = ownSchema();
let first: PostgresBackend;
let second: PostgresBackend;
beforeAll(async () => {
  const [a, b] = at.pools.map((pool) =>
    postgresBackend({
      pool,
      schema: at.schema,
      timeoutMs: TIMEOUT_MS,
      clockOffsetMs: () => 0,
      random: () => 0,
    }),
  );
  expect.assert(a && b);
  [first, second] = [a, b];
  await first.open();
  await second.open();
});
beforeEach(() => at.clear());
afterAll(() => Promise.all([first.close(), second.close()]));

const read = (id: string, version?: number): Expected => ({ scope: SCOPE, kind: 'record', id, version });

const write = (id: string, version: number | undefined, next: number): Write => ({
  ...read(id, version),
  next,
  data: '{}',
  body: version === undefined ? new Uint8Array(1) : undefined,
  expiresAt: null,
  dueAt: null,
  suspect: null,
  list: null,
  waitsFor: null,
  link: null,
  bytes: 1,
  bytesBefore: version === undefined ? 0 : 1,
  before: undefined,
});

const unit = (writes: readonly Write[], more: Partial<Unit> = {}): Unit => ({
  expects: [],
  counts: [],
  writes,
  ...more,
});

/** A plan of this moment: on a machine that was slow in between, made again. */
async function commit(on: Pick<Within, 'commit'>, units: readonly Unit[]): Promise<CommitResult> {
  for (;;) {
    const result = await on.commit({ at: await first.clock(), units, counts: [] });
    if (!result.isOld) return result;
  }
}

/** What a transaction completes at its end; here nothing does. */
const ENDED = { sender: 'https://seller.example/mcp', key: 'event', owner: 'owner', retentionMs: 1000 };

/** `begun` is written and not yet committed when `later` comes; it is committed once that waits, or has its answer. */
async function race(begun: readonly Unit[], later: readonly Unit[]): Promise<CommitResult> {
  let answer: Promise<CommitResult> | undefined;
  await first.transaction(ENDED, async (_tx, within) => {
    expect((await commit(within, begun)).refused).toEqual([]);
    let isDone = false;
    answer = commit(second, later).finally(() => (isDone = true));
    const waits = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${at.schema}%webhook_commit%'`;
    await expect.poll(async () => isDone || (await at.sql(waits)).length > 0).toBe(true);
  });
  return answer ?? expect.fail();
}

const versions = (rows: readonly Pick<Row, 'id' | 'version'>[]): readonly string[] =>
  rows.map(({ id, version }) => `${id} ${version}`).toSorted();

async function stored(): Promise<readonly string[]> {
  const rows = await at.sql('SELECT id, version::integer AS version FROM webhook_row');
  return versions(rows as unknown as Row[]);
}

/** Runs one call as the first statement of a transaction, and says what the server thinks of the transaction then. */
async function inTransaction(
  begin: string,
  units: readonly Unit[],
  ask: string,
  pool = at.pools[0],
): Promise<unknown> {
  const client = await pool.connect();
  const kept: PgClient = {
    query: (text, values) => client.query(text, values),
    on: (event, listener) => client.on(event, listener),
    removeListener: (event, listener) => client.removeListener(event, listener),
    release: () => undefined,
  };
  const single = postgresBackend({
    pool: {
      options: pool.options,
      on: (event, listener) => pool.on(event, listener),
      removeListener: (event, listener) => pool.removeListener(event, listener),
      connect: async () => kept,
    },
    schema: at.schema,
    timeoutMs: TIMEOUT_MS,
    clockOffsetMs: () => 0,
    random: () => 0,
  });
  try {
    await single.open();
    await client.query(begin);
    const { refused } = await commit(single, units);
    expect(refused).toEqual([]);
    return (await client.query<{ said: unknown }>(`SELECT ${ask} AS said`)).rows[0]?.said;
  } catch (error) {
    return (error as { readonly code?: string }).code;
  } finally {
    await client.query('ROLLBACK');
    client.release();
    await single.close();
  }
}

interface Condition {
  /** Two connections, one of which was faster. */
  readonly happens: () => Promise<unknown>;
  readonly is: unknown;
  /** Texts of the function without which it holds no more, each by itself, and what comes in their place. */
  readonly without: readonly (readonly [text: string, instead: string])[];
}

const CONDITIONS: Readonly<Record<string, Condition>> = {
  'a row that another has changed: the version is compared, under a lock': {
    happens: async () => {
      await commit(first, [unit([write('a', undefined, 1)])]);
      const { refused, rows } = await race([unit([write('a', 1, 2)])], [unit([write('a', 1, 3)])]);
      return [refused, versions(rows), await stored()];
    },
    is: [[0], ['a 2'], ['a 2']],
    without: [
      ['e.version IS NOT NULL AND e.version IS DISTINCT FROM (SELECT', 'false AND e.version <> (SELECT'],
      ['AND r.id = e.id COLLATE "C" FOR UPDATE', 'AND r.id = e.id COLLATE "C"'],
    ],
  },
  'a row that was only read, and that another has changed': {
    happens: async () => {
      await commit(first, [unit([write('a', undefined, 1)])]);
      const later = unit([write('b', undefined, 3)], { expects: [read('a', 1)] });
      return [(await race([unit([write('a', 1, 2)])], [later])).refused, await stored()];
    },
    is: [[0], ['a 2']],
    without: [
      ['e.version IS NOT NULL AND e.version IS DISTINCT FROM (SELECT', 'false AND e.version <> (SELECT'],
      ['AND r.id = e.id COLLATE "C" FOR UPDATE', 'AND r.id = e.id COLLATE "C"'],
    ],
  },
  'a row that was deleted: its version is that of no row': {
    happens: async () => {
      await commit(first, [unit([write('a', undefined, 1)])]);
      await at.sql('DELETE FROM webhook_row; DELETE FROM webhook_tally');
      return [(await commit(second, [unit([write('a', 1, 2)])])).refused, await stored()];
    },
    is: [[0], []],
    without: [
      [
        'e.version IS NOT NULL AND e.version IS DISTINCT FROM (SELECT',
        'e.version IS NOT NULL AND e.version <> (SELECT',
      ],
    ],
  },
  'a row that was read as absent, and that another has inserted': {
    happens: async () => {
      await commit(first, [unit([write('a', undefined, 1)])]);
      const later = unit([write('b', undefined, 2)], { expects: [read('a')] });
      const { refused, rows } = await commit(second, [later]);
      return [refused, versions(rows), await stored()];
    },
    is: [[0], ['a 1'], ['a 1']],
    without: [['IF p_reads THEN', 'IF false THEN']],
  },
  'a row that both insert: one of them is refused, and what it has inserted beside it is gone': {
    happens: async () => {
      const later = [
        unit([write('a', undefined, 2), write('b', undefined, 2)]),
        unit([write('c', undefined, 2)]),
      ];
      const { refused } = await race([unit([write('a', undefined, 1)])], later);
      return [[...new Set(refused)], await stored()];
    },
    is: [[0], ['a 1', 'c 2']],
    without: [
      ['IF v_new < p_new THEN', 'IF false THEN'],
      ['e.unit = ANY (v_lost)', 'false'],
      ['AND r.version = e.next', ''],
    ],
  },
  'a unit that is refused writes none of its rows, and is not counted': {
    happens: async () => {
      await commit(first, [unit([write('a', undefined, 1)]), unit([write('b', undefined, 1)])]);
      await commit(first, [unit([write('a', 1, 2)])]);
      const later = unit([write('a', 1, 3), write('b', 1, 3), write('c', undefined, 3)]);
      const { refused } = await commit(second, [later, unit([write('d', undefined, 3)])]);
      const counted = await at.sql('SELECT sum(rows)::integer AS n FROM webhook_tally');
      return [refused, await stored(), counted];
    },
    is: [[0], ['a 2', 'b 1', 'd 3'], [{ n: 3 }]],
    without: [
      [
        'e.next IS NOT NULL AND e.unit <> ALL (v_refused)\n      ON CONFLICT',
        'e.next IS NOT NULL\n      ON CONFLICT',
      ],
      [
        'e.version IS NOT NULL AND e.next IS NOT NULL AND e.unit <> ALL (v_refused)',
        'e.version IS NOT NULL AND e.next IS NOT NULL',
      ],
      ['WHERE c.unit <> ALL (v_refused)', ''],
    ],
  },
  'counts that are exact: one at a time, and refused where they have moved': {
    happens: async () => {
      await commit(first, [unit([write('a', undefined, 1)])]);
      const counts = [{ scope: SCOPE, rows: 1, bytes: 1 }];
      const { refused } = await race(
        [unit([write('b', undefined, 2)], { counts })],
        [unit([write('c', undefined, 3)], { counts })],
      );
      return [refused, await stored()];
    },
    is: [[0], ['a 1', 'b 2']],
    without: [
      ['PERFORM FROM webhook_scope WHERE id = ANY (p_exact_scope) ORDER BY id FOR UPDATE;', ''],
      ['IS DISTINCT FROM ROW(e.rows, e.bytes)', 'IS NULL'],
    ],
  },
  'a clock of more than a second ago': {
    happens: async () => {
      const request = {
        at: (await first.clock()) - 1001,
        units: [unit([write('a', undefined, 1)])],
        counts: [],
      };
      return [(await first.commit(request)).isOld, await stored()];
    },
    is: [true, []],
    without: [['p_at < v_now - 1000 OR ', '']],
  },
  'a clock that is ahead': {
    happens: async () => {
      const request = {
        at: (await first.clock()) + 60_000,
        units: [unit([write('a', undefined, 1)])],
        counts: [],
      };
      return [(await first.commit(request)).isOld, await stored()];
    },
    is: [true, []],
    without: [[' OR p_at > v_now + 5', '']],
  },
  'another isolation': {
    happens: () =>
      inTransaction('BEGIN ISOLATION LEVEL REPEATABLE READ', [unit([write('a', undefined, 1)])], '1'),
    is: 'PW002',
    without: [["current_setting('transaction_isolation') <> 'read committed'", 'false']],
  },
  'a commit that would not wait for the disk': {
    happens: () =>
      inTransaction(
        'BEGIN; SET LOCAL synchronous_commit = off',
        [unit([write('a', undefined, 1)])],
        "current_setting('synchronous_commit')",
      ),
    is: 'on',
    without: [["OR current_setting('synchronous_commit') <> p_sync", '']],
  },
  'a lock is waited for so long at most': {
    happens: () =>
      inTransaction('BEGIN', [unit([write('a', undefined, 1)])], "current_setting('lock_timeout')"),
    is: `${(TIMEOUT_MS * 0.75) / 1000}s`,
    without: [["OR set_config('lock_timeout', p_lock_ms::text, true) IS NULL", '']],
  },
  'a transaction that its function has ended and begun again': {
    happens: async () => {
      const running = first.transaction(ENDED, async (tx, within) => {
        await tx.query('COMMIT; BEGIN');
        await commit(within, [unit([write('a', undefined, 1)])]);
      });
      return running.catch((error: unknown) => (error as Error).name);
    },
    is: 'ConfigError',
    without: [['p_started <> transaction_timestamp()::text', 'false']],
  },
  'an answer that nothing is written for rests on a write all the same': {
    happens: () =>
      inTransaction('BEGIN', [unit([], { expects: [read('a')] })], 'txid_current_if_assigned() IS NOT NULL'),
    is: true,
    without: [['WHERE c.unit <> ALL (v_refused)', 'WHERE c.unit >= 0 AND c.unit <> ALL (v_refused)']],
  },
};

async function withChanged<T>(text: string, instead: string, work: () => Promise<T>): Promise<T> {
  const [row] = await at.sql("SELECT pg_get_functiondef('webhook_commit'::regproc) AS made");
  const made = String(row?.['made']);
  expect(made.split(text), `once in webhook_commit: ${text}`).toHaveLength(2);
  await at.sql(made.replace(text, () => instead));
  try {
    return await work();
  } finally {
    await at.sql(made);
  }
}

describe.each(Object.entries(CONDITIONS))('%s', (_name, { happens, is, without }) => {
  it('holds', async () => {
    expect(await happens()).toEqual(is);
    await expectCountsRight(at);
  });

  it.each(without)('the condition is needed: %s', async (text, instead) => {
    const answer = await withChanged(text, instead, async () => {
      try {
        return await happens();
      } catch (error) {
        return (error as Error).name;
      }
    });
    expect(answer).not.toEqual(is);
  });
});
