import { afterAll, beforeAll, expect, it } from 'vitest';
import { MIGRATIONS, mysqlBackend } from '../../../src/stores/mysql/for-tests.ts';
import type { MysqlConnection } from '../../../src/stores/mysql.ts';
import type { MariadbServer } from '../../support/mariadb.ts';
import { startServer } from '../../support/mariadb.ts';
import type { TestDatabase } from '../mysql-databases.ts';
import { expectCountsRight, testDatabase } from '../mysql-databases.ts';
import type { RaceDatabase } from '../sql/race-tests.ts';
import {
  BACKEND_OPTIONS,
  commonConditions,
  describeConditions,
  raceKit,
  read,
  unit,
  versions,
  write,
} from '../sql/race-tests.ts';

// A server of its own: how many wait for locks is known of a whole server alone.
let server: MariadbServer;
let at: TestDatabase;
beforeAll(async () => {
  // Its log is flushed by commits alone: each second, and it would be flushed in the midst of a test that asks for that.
  server = await startServer({ 'innodb-flush-log-at-timeout': '2700' });
  at = await testDatabase(server.url);
});
afterAll(async () => {
  await at.drop();
  await server.remove();
});

/** Whether the later commit of the last race had to wait. The server’s count, as INNODB_TRX may be of a moment ago. */
let hasWaited = false;

/** `webhook_commit` as the package makes it. */
const MADE = (
  MIGRATIONS.flatMap((step) => step.split(/;;\n/)).find((sql) =>
    sql.includes('CREATE PROCEDURE webhook_commit'),
  ) ?? ''
)
  .replace(/^--.*\n/gm, '')
  .trim();

async function replaceCommit(sql: string): Promise<void> {
  await at.sql('DROP PROCEDURE IF EXISTS webhook_commit');
  await at.sql(sql);
}

const database: RaceDatabase<MysqlConnection> = {
  sql: (text) => at.sql(text),
  clear: () => at.clear(),
  backends: () => at.pools.map((pool) => mysqlBackend({ pool, ...BACKEND_OPTIONS })),
  beforeRace: () => {
    hasWaited = false;
  },
  isWaiting: async () => {
    const [row] = await at.sql("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'");
    hasWaited ||= Number(row?.['Value']) > 0;
    return hasWaited;
  },
  storedSql: 'SELECT CONVERT(id USING utf8mb4) AS id, version FROM webhook_row',
  countedSql: 'SELECT CAST(SUM(entries) AS SIGNED) AS n FROM webhook_tally',
  restart: async (tx) => {
    await tx.query('COMMIT');
    await tx.query('BEGIN');
  },
  expectCountsRight: () => expectCountsRight(at),
  withReplaced: async ([text, instead], work) => {
    expect(MADE.split(text), `once in webhook_commit: ${text}`).toHaveLength(2);
    try {
      await replaceCommit(MADE.replace(text, () => instead));
      return await work();
    } finally {
      await replaceCommit(MADE);
    }
  },
};

const kit = raceKit(database);
const { commit, race, stored } = kit;

it('refuses two units that share a bit of the result together, and takes the valid one when it comes again', async () => {
  await commit(kit.first, [unit([write('a', undefined, 1)])]);
  await commit(kit.first, [unit([write('a', 1, 2)])]);
  const units = Array.from({ length: 70 }, (_, place) =>
    unit([place === 3 ? write('a', 1, 3) : write(`row-${place}`, undefined, 3)]),
  );
  const { refused, rows } = await commit(kit.second, units);
  expect(refused).toEqual([3, 67]);
  expect(versions(rows)).toEqual(['a 2']);
  expect(await stored()).toHaveLength(69);
  const [again] = units.slice(67);
  expect.assert(again);
  expect((await commit(kit.second, [again])).refused).toEqual([]);
  expect(await stored()).toHaveLength(70);
  await expectCountsRight(at);
});

const COMPARED = 'IF(r.version <=> e.version, 0, 1 << e.unit)';
const UNLOCKED = [
  'WHERE e.version IS NOT NULL OR e.next IS NULL FOR UPDATE',
  'WHERE e.version IS NOT NULL OR e.next IS NULL',
] as const;

describeConditions(database, {
  ...commonConditions(database, kit, {
    comparison: [[COMPARED, '0'], UNLOCKED],
    deletedRow: [[COMPARED, 'IF(r.version <> e.version, 1 << e.unit, 0)']],
    absentRow: [
      ['WHERE e.version IS NOT NULL OR e.next IS NULL FOR UPDATE', 'WHERE e.version IS NOT NULL FOR UPDATE'],
    ],
    oldPlan: [['(p_at < v_now - 1000 AND p_at < v_now - JSON_LENGTH(p_lines)) OR ', '']],
    widePlan: [
      ['p_at < v_now - 1000 AND p_at < v_now - JSON_LENGTH(p_lines)', 'p_at < v_now - 1000'],
      ['p_at < v_now - 1000 AND p_at < v_now - JSON_LENGTH(p_lines)', 'p_at < v_now - 20000'],
    ],
    refusedUnit: [
      ['WHERE e.next IS NOT NULL AND v_refused >> e.unit & 1 = 0', 'WHERE e.next IS NOT NULL'],
      ['WHERE v_refused >> e.unit & 1 = 0 GROUP BY', 'GROUP BY'],
    ],
    restarted: [['RELEASE SAVEPOINT proto_webhooks;', 'DO 0;']],
  }),
  'a row that was only compared stays locked until the commit': {
    run: async () => {
      await commit(kit.first, [unit([write('a', undefined, 1)])]);
      const later = unit([write('a', 1, 2)]);
      const { refused } = await race(
        [unit([write('b', undefined, 3)], { expects: [read('a', 1)] })],
        [later],
      );
      return [refused, await stored(), hasWaited];
    },
    expected: [[], ['a 2', 'b 3'], true],
    breaking: [UNLOCKED],
  },
  'of two units that insert one row the second is refused, and none of its other rows is written': {
    run: async () => {
      await commit(kit.first, [unit([write('z', undefined, 1)])]);
      const later = [
        unit([write('a', undefined, 2), write('b', undefined, 2), write('z', 1, 2)]),
        unit([write('c', undefined, 2)]),
      ];
      const { refused } = await race([unit([write('a', undefined, 1)])], later);
      return [refused, await stored()];
    },
    expected: [[0], ['a 1', 'c 2', 'z 1']],
    breaking: [
      ['ROLLBACK TO SAVEPOINT proto_webhooks;', 'DO 0;'],
      ['AND r.version <> e.next', 'AND FALSE'],
      ['IF(e.version IS NULL, webhook_row.version, VALUES(version))', 'VALUES(version)'],
    ],
  },
  'a write without a body keeps the stored one, and a write of null deletes it': {
    run: async () => {
      await commit(kit.first, [unit([write('a', undefined, 1)]), unit([write('b', undefined, 1)])]);
      await commit(kit.first, [
        unit([write('a', 1, 2)]),
        unit([{ ...write('b', 1, 3), body: null, bytes: 0 }]),
      ]);
      return at.sql('SELECT LENGTH(body) AS size FROM webhook_row ORDER BY id');
    },
    expected: [{ size: 1 }, { size: null }],
    breaking: [
      ['OR e.at_body IS NULL', ''],
      ['IF(e.at_body >= 0, SUBSTRING(p_bytes, e.at_body + 1, e.of_body), NULL)', "'x'"],
    ],
  },
  'the session’s innodb_lock_wait_timeout is reset after the commit': {
    run: async () => {
      await commit(kit.first, [unit([write('a', undefined, 1)])]);
      const [own] = await Promise.all(
        at.pools.map(async (pool) => (await pool.query('SELECT @@innodb_lock_wait_timeout AS s'))[0]),
      );
      return own;
    },
    expected: [{ s: 50 }],
    breaking: [
      [
        'IF p_own THEN COMMIT; END IF;\n    SET SESSION innodb_lock_wait_timeout = v_wait;',
        'IF p_own THEN COMMIT; END IF;',
      ],
    ],
  },
  'a commit that changes no row writes all the same, so that its answer is durable': {
    run: async () => {
      const flushed = async (): Promise<number> =>
        Number((await at.sql("SHOW GLOBAL STATUS LIKE 'Innodb_lsn_flushed'"))[0]?.['Value']);
      const before = await flushed();
      await commit(kit.first, [unit([], { expects: [read('a')] })]);
      return (await flushed()) > before;
    },
    expected: true,
    breaking: [['INSERT INTO webhook_turn () VALUES ();', '']],
  },
});
