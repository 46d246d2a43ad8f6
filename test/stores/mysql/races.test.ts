import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CommitResult, Expected, Row, Unit, Within, Write } from '../../../src/stores/port.ts';
import { mysqlBackend } from '../../../src/stores/mysql/backend.ts';
import { MIGRATIONS } from '../../../src/stores/mysql/migrations.ts';
import type { MysqlConnection } from '../../../src/stores/mysql.ts';
import type { SqlBackend } from '../../../src/stores/sql/backend.ts';
import type { MariadbServer } from '../../support/mariadb.ts';
import { startServer } from '../../support/mariadb.ts';
import type { TestDatabase } from '../mysql-databases.ts';
import { expectCountsRight, testDatabase } from '../mysql-databases.ts';

/** Far more than any of this takes: what waits here waits for a lock. */
const TIMEOUT_MS = 120_000;

const SCOPE = { sender: 'https://seller.example/mcp' };

let server: MariadbServer;
let at: TestDatabase;
let first: SqlBackend<MysqlConnection>;
let second: SqlBackend<MysqlConnection>;
beforeAll(async () => {
  server = await startServer();
  at = await testDatabase(server.url);
  const [a, b] = at.pools.map((pool) =>
    mysqlBackend({ pool, timeoutMs: TIMEOUT_MS, clockOffsetMs: () => 0, random: () => 0 }),
  );
  expect.assert(a && b);
  [first, second] = [a, b];
  await first.open();
  await second.open();
});
beforeEach(() => at.clear());
afterAll(async () => {
  await Promise.all([first.close(), second.close()]);
  await at.drop();
  await server.remove();
});

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

/** Of the whole server, which is this file's own. What INNODB_TRX says may be of a moment ago. */
async function waits(): Promise<boolean> {
  const [row] = await at.sql("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'");
  hasWaited ||= Number(row?.['Value']) > 0;
  return hasWaited;
}

/** Whether the later one of the last race had to wait. */
let hasWaited = false;

/** `begun` is written and not yet committed when `later` comes; it is committed once that waits, or has its answer. */
async function race(begun: readonly Unit[], later: readonly Unit[]): Promise<CommitResult> {
  let answer: Promise<CommitResult> | undefined;
  await first.transaction(ENDED, async (_tx, within) => {
    expect((await commit(within, begun)).refused).toEqual([]);
    let isDone = false;
    answer = commit(second, later).finally(() => (isDone = true));
    hasWaited = false;
    await expect.poll(async () => isDone || (await waits())).toBe(true);
  });
  return answer ?? expect.fail();
}

const versions = (rows: readonly Pick<Row, 'id' | 'version'>[]): readonly string[] =>
  rows.map(({ id, version }) => `${id} ${version}`).toSorted();

async function stored(): Promise<readonly string[]> {
  const rows = await at.sql('SELECT CONVERT(id USING utf8mb4) AS id, version FROM webhook_row');
  return versions(rows as unknown as Row[]);
}

interface Condition {
  /** Two connections, one of which was faster. */
  readonly happens: () => Promise<unknown>;
  readonly is: unknown;
  /** Texts of the procedure without which it holds no more, each by itself, and what comes in their place. */
  readonly without: readonly (readonly [text: string, instead: string])[];
}

const COMPARED = 'IF(r.version <=> e.version, 0, 1 << e.unit)';

const CONDITIONS: Readonly<Record<string, Condition>> = {
  'a row that another has changed: the version is compared, under a lock': {
    happens: async () => {
      await commit(first, [unit([write('a', undefined, 1)])]);
      const { refused, rows } = await race([unit([write('a', 1, 2)])], [unit([write('a', 1, 3)])]);
      return [refused, versions(rows), await stored()];
    },
    is: [[0], ['a 2'], ['a 2']],
    without: [
      [COMPARED, '0'],
      [
        'WHERE e.version IS NOT NULL OR e.next IS NULL FOR UPDATE',
        'WHERE e.version IS NOT NULL OR e.next IS NULL',
      ],
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
      [COMPARED, '0'],
      [
        'WHERE e.version IS NOT NULL OR e.next IS NULL FOR UPDATE',
        'WHERE e.version IS NOT NULL OR e.next IS NULL',
      ],
    ],
  },
  'a row that was compared stays locked, and so as it was': {
    happens: async () => {
      await commit(first, [unit([write('a', undefined, 1)])]);
      const later = unit([write('a', 1, 2)]);
      const { refused } = await race(
        [unit([write('b', undefined, 3)], { expects: [read('a', 1)] })],
        [later],
      );
      return [refused, await stored(), hasWaited];
    },
    is: [[], ['a 2', 'b 3'], true],
    without: [
      [
        'WHERE e.version IS NOT NULL OR e.next IS NULL FOR UPDATE',
        'WHERE e.version IS NOT NULL OR e.next IS NULL',
      ],
    ],
  },
  'a row that was deleted: its version is that of no row': {
    happens: async () => {
      await commit(first, [unit([write('a', undefined, 1)])]);
      await at.sql('DELETE FROM webhook_row; DELETE FROM webhook_tally');
      return [(await commit(second, [unit([write('a', 1, 2)])])).refused, await stored()];
    },
    is: [[0], []],
    without: [[COMPARED, 'IF(r.version <> e.version, 1 << e.unit, 0)']],
  },
  'a row that was read as absent, and that another has inserted': {
    happens: async () => {
      await commit(first, [unit([write('a', undefined, 1)])]);
      const later = unit([write('b', undefined, 2)], { expects: [read('a')] });
      const { refused, rows } = await commit(second, [later]);
      return [refused, versions(rows), await stored()];
    },
    is: [[0], ['a 1'], ['a 1']],
    without: [
      ['WHERE e.version IS NOT NULL OR e.next IS NULL FOR UPDATE', 'WHERE e.version IS NOT NULL FOR UPDATE'],
    ],
  },
  'a row that both insert: one of them is refused, and what it has written beside it is not': {
    happens: async () => {
      await commit(first, [unit([write('z', undefined, 1)])]);
      const later = [
        unit([write('a', undefined, 2), write('b', undefined, 2), write('z', 1, 2)]),
        unit([write('c', undefined, 2)]),
      ];
      const { refused } = await race([unit([write('a', undefined, 1)])], later);
      return [refused, await stored()];
    },
    is: [[0], ['a 1', 'c 2', 'z 1']],
    without: [
      ['ROLLBACK TO SAVEPOINT proto_webhooks;', 'DO 0;'],
      ['AND r.version <> e.next', 'AND FALSE'],
      ['IF(e.version IS NULL, webhook_row.version, VALUES(version))', 'VALUES(version)'],
    ],
  },
  'a unit that is refused writes none of its rows, and is not counted': {
    happens: async () => {
      await commit(first, [unit([write('a', undefined, 1)]), unit([write('b', undefined, 1)])]);
      await commit(first, [unit([write('a', 1, 2)])]);
      const later = unit([write('a', 1, 3), write('b', 1, 3), write('c', undefined, 3)]);
      const { refused } = await commit(second, [later, unit([write('d', undefined, 3)])]);
      const counted = await at.sql('SELECT CAST(SUM(entries) AS SIGNED) AS n FROM webhook_tally');
      return [refused, await stored(), counted];
    },
    is: [[0], ['a 2', 'b 1', 'd 3'], [{ n: 3 }]],
    without: [
      ['WHERE e.next IS NOT NULL AND v_refused >> e.unit & 1 = 0', 'WHERE e.next IS NOT NULL'],
      ['WHERE v_refused >> e.unit & 1 = 0 GROUP BY', 'GROUP BY'],
    ],
  },
  'a body that is not named stays, and one that is dropped goes': {
    happens: async () => {
      await commit(first, [unit([write('a', undefined, 1)]), unit([write('b', undefined, 1)])]);
      await commit(first, [unit([write('a', 1, 2)]), unit([{ ...write('b', 1, 3), body: null, bytes: 0 }])]);
      return at.sql('SELECT LENGTH(body) AS size FROM webhook_row ORDER BY id');
    },
    is: [{ size: 1 }, { size: null }],
    without: [
      ['OR e.at_body IS NULL', ''],
      ['IF(e.at_body >= 0, SUBSTRING(p_bytes, e.at_body + 1, e.of_body), NULL)', "'x'"],
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
      ['s.id = e.scope FOR UPDATE', 's.id = e.scope'],
      ['IF(e.entries = (SELECT', 'IF(TRUE OR e.entries = (SELECT'],
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
  'a lock is waited for so long at most, and the session keeps nothing of it': {
    happens: async () => {
      await commit(first, [unit([write('a', undefined, 1)])]);
      const [own] = await Promise.all(
        at.pools.map(async (pool) => (await pool.query('SELECT @@innodb_lock_wait_timeout AS s'))[0]),
      );
      return own;
    },
    is: [{ s: 50 }],
    without: [
      [
        'IF p_own THEN COMMIT; END IF;\n    SET SESSION innodb_lock_wait_timeout = v_wait;',
        'IF p_own THEN COMMIT; END IF;',
      ],
    ],
  },
  'a transaction that its function has ended and begun again': {
    happens: async () => {
      const running = first.transaction(ENDED, async (tx, within) => {
        await tx.query('COMMIT');
        await tx.query('BEGIN');
        await commit(within, [unit([write('a', undefined, 1)])]);
      });
      return running.catch((error: unknown) => (error as Error).name);
    },
    is: 'ConfigError',
    without: [['RELEASE SAVEPOINT proto_webhooks;', 'DO 0;']],
  },
  'an answer that nothing is written for rests on a write all the same': {
    happens: async () => {
      const flushed = async (): Promise<number> =>
        Number((await at.sql("SHOW GLOBAL STATUS LIKE 'Innodb_lsn_flushed'"))[0]?.['Value']);
      const before = await flushed();
      await commit(first, [unit([], { expects: [read('a')] })]);
      return (await flushed()) > before;
    },
    is: true,
    without: [['INSERT INTO webhook_turn () VALUES ();', '']],
  },
};

/** As the package makes it. */
const MADE = MIGRATIONS.flatMap((step) => step.split(/;;\n/)).find((sql) =>
  sql.includes('CREATE PROCEDURE webhook_commit'),
);

async function withChanged<T>(text: string, instead: string, work: () => Promise<T>): Promise<T> {
  const made = (MADE ?? '').replace(/^--.*\n/gm, '').trim();
  expect(made.split(text), `once in webhook_commit: ${text}`).toHaveLength(2);
  const make = async (sql: string): Promise<void> => {
    await at.sql('DROP PROCEDURE IF EXISTS webhook_commit');
    await at.sql(sql);
  };
  try {
    await make(made.replace(text, () => instead));
    return await work();
  } finally {
    await make(made);
  }
}

it('more units than a number has bits: two that share one are refused together, and the one that holds is taken when it comes again', async () => {
  await commit(first, [unit([write('a', undefined, 1)])]);
  await commit(first, [unit([write('a', 1, 2)])]);
  const units = Array.from({ length: 70 }, (_, place) =>
    unit([place === 3 ? write('a', 1, 3) : write(`row-${place}`, undefined, 3)]),
  );
  const { refused, rows } = await commit(second, units);
  expect(refused).toEqual([3, 67]);
  expect(versions(rows)).toEqual(['a 2']);
  expect(await stored()).toHaveLength(69);
  const [again] = units.slice(67);
  expect.assert(again);
  expect((await commit(second, [again])).refused).toEqual([]);
  expect(await stored()).toHaveLength(70);
  await expectCountsRight(at);
});

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
