import { expect } from 'vitest';
import type { Unit } from '../../../src/stores/index.ts';
import { postgresBackend } from '../../../src/stores/postgres/for-tests.ts';
import type { PgClient } from '../../../src/stores/postgres.ts';
import { expectCountsRight, ownSchema } from '../postgres-schemas.ts';
import type { RaceDatabase } from '../sql/race-tests.ts';
import {
  BACKEND_OPTIONS,
  commonConditions,
  describeConditions,
  raceKit,
  read,
  TIMEOUT_MS,
  unit,
  write,
} from '../sql/race-tests.ts';

const at = ownSchema();

const database: RaceDatabase<PgClient> = {
  sql: (text) => at.sql(text),
  clear: () => at.clear(),
  backends: () => at.pools.map((pool) => postgresBackend({ pool, schema: at.schema, ...BACKEND_OPTIONS })),
  isWaiting: async () => {
    const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${at.schema}%webhook_commit%'`;
    return (await at.sql(waiting)).length > 0;
  },
  storedSql: 'SELECT id, version::integer AS version FROM webhook_row',
  countedSql: 'SELECT sum(rows)::integer AS n FROM webhook_tally',
  restart: (tx) => tx.query('COMMIT; BEGIN'),
  expectCountsRight: () => expectCountsRight(at),
  withReplaced: async ([text, instead], work) => {
    const [row] = await at.sql("SELECT pg_get_functiondef('webhook_commit'::regproc) AS made");
    const made = String(row?.['made']);
    expect(made.split(text), `once in webhook_commit: ${text}`).toHaveLength(2);
    await at.sql(made.replace(text, () => instead));
    try {
      return await work();
    } finally {
      await at.sql(made);
    }
  },
};

const kit = raceKit(database);
const { commit, race, stored } = kit;

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
    ...BACKEND_OPTIONS,
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

describeConditions(database, {
  ...commonConditions(database, kit, {
    comparison: [
      ['e.version IS NOT NULL AND e.version IS DISTINCT FROM (SELECT', 'false AND e.version <> (SELECT'],
      ['AND r.id = e.id COLLATE "C" FOR UPDATE', 'AND r.id = e.id COLLATE "C"'],
    ],
    deletedRow: [
      [
        'e.version IS NOT NULL AND e.version IS DISTINCT FROM (SELECT',
        'e.version IS NOT NULL AND e.version <> (SELECT',
      ],
    ],
    absentRow: [['IF p_reads THEN', 'IF false THEN']],
    oldPlan: [['(p_at < v_now - 1000 AND p_at < v_now - coalesce(cardinality(p_unit), 0)) OR ', '']],
    widePlan: [
      ['p_at < v_now - 1000 AND p_at < v_now - coalesce(cardinality(p_unit), 0)', 'p_at < v_now - 1000'],
      ['p_at < v_now - 1000 AND p_at < v_now - coalesce(cardinality(p_unit), 0)', 'p_at < v_now - 20000'],
    ],
    refusedUnit: [
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
    restarted: [['p_started <> transaction_timestamp()::text', 'false']],
  }),
  'of two units that insert one row the second is refused, and none of its other rows is inserted': {
    run: async () => {
      const later = [
        unit([write('a', undefined, 2), write('b', undefined, 2)]),
        unit([write('c', undefined, 2)]),
      ];
      const { refused } = await race([unit([write('a', undefined, 1)])], later);
      return [[...new Set(refused)], await stored()];
    },
    expected: [[0], ['a 1', 'c 2']],
    breaking: [
      ['IF v_new < p_new THEN', 'IF false THEN'],
      ['e.unit = ANY (v_lost)', 'false'],
      ['AND r.version = e.next', ''],
    ],
  },
  'a transaction that is not READ COMMITTED is refused': {
    run: () =>
      inTransaction('BEGIN ISOLATION LEVEL REPEATABLE READ', [unit([write('a', undefined, 1)])], '1'),
    expected: 'PW002',
    breaking: [["current_setting('transaction_isolation') <> 'read committed'", 'false']],
  },
  'synchronous_commit is raised to what the store needs': {
    run: () =>
      inTransaction(
        'BEGIN; SET LOCAL synchronous_commit = off',
        [unit([write('a', undefined, 1)])],
        "current_setting('synchronous_commit')",
      ),
    expected: 'on',
    breaking: [["OR current_setting('synchronous_commit') <> p_sync", '']],
  },
  'a lock is waited for no longer than lock_timeout': {
    run: () => inTransaction('BEGIN', [unit([write('a', undefined, 1)])], "current_setting('lock_timeout')"),
    expected: `${(TIMEOUT_MS * 0.75) / 1000}s`,
    breaking: [["OR set_config('lock_timeout', p_lock_ms::text, true) IS NULL", '']],
  },
  'a commit that changes no row writes all the same, so that its answer is durable': {
    run: () =>
      inTransaction('BEGIN', [unit([], { expects: [read('a')] })], 'txid_current_if_assigned() IS NOT NULL'),
    expected: true,
    breaking: [['WHERE c.unit <> ALL (v_refused)', 'WHERE c.unit >= 0 AND c.unit <> ALL (v_refused)']],
  },
});
