import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CommitResult, Expected, Row, Unit, Within, Write } from '../../../src/stores/index.ts';
import type { SqlBackend } from '../../../src/stores/for-tests.ts';

/** Far more than any of this takes: what waits here waits for a lock. */
export const TIMEOUT_MS = 120_000;

/** For both backends: they take the plan of any moment, and try again at once. */
export const BACKEND_OPTIONS = {
  timeoutMs: TIMEOUT_MS,
  clockOffsetMs: () => 0,
  random: () => 0,
} as const;

const SCOPE = { sender: 'https://seller.example/mcp' };

export const read = (id: string, version?: number): Expected => ({
  scope: SCOPE,
  kind: 'record',
  id,
  version,
});

export const write = (id: string, version: number | undefined, next: number): Write => ({
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

export const unit = (writes: readonly Write[], more: Partial<Unit> = {}): Unit => ({
  expects: [],
  writes,
  ...more,
});

export const versions = (rows: readonly Pick<Row, 'id' | 'version'>[]): readonly string[] =>
  rows.map(({ id, version }) => `${id} ${version}`).toSorted();

/** What a transaction completes at its end; here nothing does. */
const ENDED = { sender: 'https://seller.example/mcp', key: 'event', owner: 'owner', retentionMs: 1000 };

/** A text of `webhook_commit`, and what comes in its place. */
type Replacement = readonly [text: string, instead: string];

export interface Condition {
  /** Calls of two connections, one of which was faster; gives what came of them. */
  readonly run: () => Promise<unknown>;
  readonly expected: unknown;
  /** Each of them, by itself, makes the result another one. */
  readonly breaking: readonly Replacement[];
}

/** One SQL database, as the tests of races need it. */
export interface RaceDatabase<Client> {
  readonly sql: (text: string) => Promise<Record<string, unknown>[]>;
  readonly clear: () => Promise<void>;
  /** A backend on each of two pools. */
  readonly backends: () => readonly SqlBackend<Client>[];
  readonly beforeRace?: () => void;
  /** Whether a commit waits for the lock of another one. */
  readonly isWaiting: () => Promise<boolean>;
  /** The id and the version of each row. */
  readonly storedSql: string;
  /** One row with the number `n` of rows that the counts have. */
  readonly countedSql: string;
  /** Ends the transaction and begins another one on the same connection. */
  readonly restart: (tx: Client) => Promise<unknown>;
  readonly expectCountsRight: () => Promise<void>;
  /** Runs `work` while `webhook_commit` has another text. @throws where `text` is not in it once. */
  readonly withReplaced: <T>(replacement: Replacement, work: () => Promise<T>) => Promise<T>;
}

/** What tests of one database use too. The backends are open from before the first test until after the last. */
export interface RaceKit<Client> {
  readonly first: SqlBackend<Client>;
  readonly second: SqlBackend<Client>;
  readonly commit: (on: Pick<Within, 'commit'>, units: readonly Unit[]) => Promise<CommitResult>;
  readonly race: (begun: readonly Unit[], later: readonly Unit[]) => Promise<CommitResult>;
  readonly stored: () => Promise<readonly string[]>;
}

export function raceKit<Client>(database: RaceDatabase<Client>): RaceKit<Client> {
  let first: SqlBackend<Client>;
  let second: SqlBackend<Client>;
  beforeAll(async () => {
    const [a, b] = database.backends();
    expect.assert(a && b);
    [first, second] = [a, b];
    await first.open();
    await second.open();
  });
  beforeEach(() => database.clear());
  afterAll(() => Promise.all([first.close(), second.close()]));

  /** Planned again where the machine was so slow that the plan is of an old clock. */
  const commit: RaceKit<Client>['commit'] = async (on, units) => {
    for (;;) {
      const result = await on.commit({ at: await first.clock(), units, counts: [] });
      if (!result.isOld) return result;
    }
  };

  return {
    get first() {
      return first;
    },
    get second() {
      return second;
    },
    commit,
    /** `begun` is written and not yet committed when `later` comes; it is committed once that waits, or has its answer. */
    race: async (begun, later) => {
      database.beforeRace?.();
      let answer: Promise<CommitResult> | undefined;
      await first.transaction(ENDED, async (_tx, within) => {
        expect((await commit(within, begun)).refused).toEqual([]);
        let isDone = false;
        answer = commit(second, later).finally(() => (isDone = true));
        await expect.poll(async () => isDone || (await database.isWaiting())).toBe(true);
      });
      return answer ?? expect.fail();
    },
    stored: async () => versions((await database.sql(database.storedSql)) as unknown as Row[]),
  };
}

/** The conditions that each SQL database has, with the replacements that break them there. */
export function commonConditions<Client>(
  { sql, countedSql, restart }: RaceDatabase<Client>,
  kit: RaceKit<Client>,
  breaking: {
    readonly comparison: readonly Replacement[];
    readonly deletedRow: readonly Replacement[];
    readonly absentRow: readonly Replacement[];
    readonly refusedUnit: readonly Replacement[];
    readonly restarted: readonly Replacement[];
    readonly oldPlan: readonly Replacement[];
    readonly widePlan: readonly Replacement[];
  },
): Readonly<Record<string, Condition>> {
  const { commit, race, stored } = kit;
  const commitAt = async (offsetMs: number, absent = 0): Promise<unknown> => {
    const expects = Array.from({ length: absent }, (_, at) => read(`absent ${at}`));
    const request = {
      at: (await kit.first.clock()) + offsetMs,
      units: [unit([write('a', undefined, 1)], { expects })],
      counts: [],
    };
    return [(await kit.first.commit(request)).isOld, await stored()];
  };
  return {
    'a write of a row that another connection is changing is refused': {
      run: async () => {
        await commit(kit.first, [unit([write('a', undefined, 1)])]);
        const { refused, rows } = await race([unit([write('a', 1, 2)])], [unit([write('a', 1, 3)])]);
        return [refused, versions(rows), await stored()];
      },
      expected: [[0], ['a 2'], ['a 2']],
      breaking: breaking.comparison,
    },
    'a unit that only read a row which another connection is changing is refused': {
      run: async () => {
        await commit(kit.first, [unit([write('a', undefined, 1)])]);
        const later = unit([write('b', undefined, 3)], { expects: [read('a', 1)] });
        return [(await race([unit([write('a', 1, 2)])], [later])).refused, await stored()];
      },
      expected: [[0], ['a 2']],
      breaking: breaking.comparison,
    },
    'a write of a row that was deleted meanwhile is refused': {
      run: async () => {
        await commit(kit.first, [unit([write('a', undefined, 1)])]);
        await sql('DELETE FROM webhook_row; DELETE FROM webhook_tally');
        return [(await commit(kit.second, [unit([write('a', 1, 2)])])).refused, await stored()];
      },
      expected: [[0], []],
      breaking: breaking.deletedRow,
    },
    'a unit that read a row as absent is refused once it was inserted': {
      run: async () => {
        await commit(kit.first, [unit([write('a', undefined, 1)])]);
        const later = unit([write('b', undefined, 2)], { expects: [read('a')] });
        const { refused, rows } = await commit(kit.second, [later]);
        return [refused, versions(rows), await stored()];
      },
      expected: [[0], ['a 1'], ['a 1']],
      breaking: breaking.absentRow,
    },
    'a refused unit writes none of its rows and is not counted': {
      run: async () => {
        await commit(kit.first, [unit([write('a', undefined, 1)]), unit([write('b', undefined, 1)])]);
        await commit(kit.first, [unit([write('a', 1, 2)])]);
        const later = unit([write('a', 1, 3), write('b', 1, 3), write('c', undefined, 3)]);
        const { refused } = await commit(kit.second, [later, unit([write('d', undefined, 3)])]);
        return [refused, await stored(), await sql(countedSql)];
      },
      expected: [[0], ['a 2', 'b 1', 'd 3'], [{ n: 3 }]],
      breaking: breaking.refusedUnit,
    },
    'a plan made more than a second ago is refused as old': {
      run: () => commitAt(-1001),
      expected: [true, []],
      breaking: breaking.oldPlan,
    },
    'a plan of many rows may be a millisecond old for each, and no more': {
      run: async () => [await commitAt(-10_002, 10_000), await commitAt(-1500, 10_000)],
      expected: [
        [true, []],
        [false, ['a 1']],
      ],
      breaking: breaking.widePlan,
    },
    'a plan of a clock that is ahead is refused as old': {
      run: () => commitAt(60_000),
      expected: [true, []],
      breaking: [[' OR p_at > v_now + 5', '']],
    },
    'a transaction that its function ended and began again is a ConfigError': {
      run: async () => {
        const running = kit.first.transaction(ENDED, async (tx, within) => {
          await restart(tx);
          await commit(within, [unit([write('a', undefined, 1)])]);
        });
        return running.catch((error: unknown) => (error as Error).name);
      },
      expected: 'ConfigError',
      breaking: breaking.restarted,
    },
  };
}

/** Each condition holds, and no longer does with any of its replacements. */
export function describeConditions<Client>(
  { expectCountsRight, withReplaced }: RaceDatabase<Client>,
  conditions: Readonly<Record<string, Condition>>,
): void {
  describe.each(Object.entries(conditions))('%s', (_name, { run, expected, breaking }) => {
    it('as webhook_commit is', async () => {
      expect(await run()).toEqual(expected);
      await expectCountsRight();
    });

    it.each(breaking)('but not without: %s', async (text, instead) => {
      const answer = await withReplaced([text, instead], async () => {
        try {
          return await run();
        } catch (error) {
          return (error as Error).name;
        }
      });
      expect(answer).not.toEqual(expected);
    });
  });
}
