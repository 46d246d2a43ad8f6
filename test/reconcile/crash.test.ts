import { describe, expect, inject, it } from 'vitest';
import { BACKENDS } from '../reliability/processes/backends.ts';
import type { Kind } from '../reliability/processes/stores.ts';
import { LONG } from '../reliability/form.ts';
import { crash, type CrashOptions } from './crash/run.ts';
import { OF_NO_WINDOW } from './market/controls.ts';
import { allHours, daily, monthly, unusual } from './market/buys.ts';
import type { Buy } from './market/plan.ts';
import { tell } from '../support/tell.ts';

const at = (text: string): number => Date.parse(text);

/** Those on servers in the long form: each costs the starts of many processes. */
const STORES: readonly Kind[] = LONG ? ['SQLite', 'Postgres', 'MySQL', 'Redis'] : ['SQLite'];
const LIMIT_MS = 4 * 3_600_000;

/** A week of days. */
const WEEK = {
  begin: at('2026-02-27T12:00:00Z'),
  end: at('2026-03-07T12:00:00Z'),
  killing: 0.06,
};
/** Days and hours of a month, and 13 months. */
const YEAR = {
  begin: WEEK.begin,
  calmFrom: at('2026-04-12T12:00:00Z'),
  end: at('2027-04-05T12:00:00Z'),
  killing: 0.005,
};

/** All there is in one market. @param drops of SQLite all three, else one. */
const everything = (seed: number, drops: readonly number[]): readonly Buy[] => {
  const one = drops.length === 1 ? drops[0] : undefined;
  return [...daily(seed, one), ...unusual(seed), ...allHours(seed, drops), ...monthly(seed, one)];
};

/** Windows that are owed, at least. */
const LEAST: Readonly<Record<Kind, number>> = { SQLite: 10_000, Postgres: 4000, MySQL: 4000, Redis: 4000 };

const marketOf = (kind: Kind, seed: number): Pick<CrashOptions, 'begin' | 'end' | 'killing' | 'buys'> =>
  LONG
    ? { ...YEAR, buys: everything(seed, kind === 'SQLite' ? [0, 0.1, 0.5] : [0.1]) }
    : { ...WEEK, buys: daily(seed, 0.1) };

describe.each(STORES)('the account of a buyer whose processes are killed, %s', (kind) => {
  it(
    'is exact after each day: nothing is lost, counted twice or pulled twice',
    async () => {
      const { place, completions, remove } = await BACKENDS[kind](inject('shared'));
      const seed = LONG ? Date.now() % 2 ** 31 : 7;
      try {
        const options = { place, completions, mode: kind === 'Postgres' ? 'inbox' : 'inline', seed } as const;
        const { wrong, ...figures } = await crash({ ...marketOf(kind, seed), ...options });
        tell({ kind, seed, ...figures });
        expect(wrong, `seed ${seed}`).toEqual([]);
        expect(figures.kills).toBeGreaterThan(0);
        expect(figures.byPull).toBeGreaterThan(0);
        if (LONG) expect(figures.windows).toBeGreaterThanOrEqual(LEAST[kind]);
      } finally {
        await remove();
      }
    },
    LIMIT_MS,
  );
});

/** Buyers that are wrong, and an outage that is none of theirs: what the market makes of each. */
describe('a market of processes that are killed', () => {
  type Completions = Awaited<ReturnType<CrashOptions['completions']>>;

  /** Four days of one media buy. @param noted what the database says it noted. */
  async function short(
    more: Partial<CrashOptions>,
    noted: (real: Completions) => Completions = (real) => real,
  ): Promise<readonly string[]> {
    const { place, completions, remove } = await BACKENDS.SQLite(inject('shared'));
    try {
      const { wrong } = await crash({
        begin: WEEK.begin,
        end: at('2026-03-03T12:00:00Z'),
        buys: daily(1, 0).slice(0, 1),
        place,
        completions: async () => noted(await completions()),
        mode: 'inline',
        seed: 1,
        killing: 0,
        ...more,
      });
      return wrong;
    } finally {
      await remove();
    }
  }

  it('waits for a store that is away when it is asked', async () => {
    expect(await short({ wrongly: { away: 3 } })).toEqual([]);
  });

  it.each([
    ['that ends when it is asked', { wrongly: { endAtAccount: true } }],
    ['that ends before it is ready', { wrongly: { endFrom: 0 } }],
    ['that ends before it is ready, for one that was killed', { wrongly: { endFrom: 3 }, killing: 1 }],
  ] as const)('fails by a process %s', async (_what, more) => {
    await expect(short(more)).rejects.toThrow('a buyer ended by itself, 3');
  });

  it('catches a buyer that handles an event of no window while it is compared, and is right then', async () => {
    let isFirst = true;
    const wrong = await short({
      wrongly: {
        account: (real, truth) => {
          if (!isFirst) return real;
          isFirst = false;
          truth.handle(OF_NO_WINDOW, Date.now());
          return [];
        },
      },
    });
    expect(wrong).toEqual([
      expect.stringContaining('handled: an event of no window'),
      'of-no-window: was handled, and its record is gone',
    ]);
  });

  it.each([
    ['completes an event twice', (real: Completions) => [...real, ...real.slice(0, 1)], 'completed 2 times'],
    [
      'completes what no handler has had',
      (real: Completions) => [...real, { key: 'of-nobody' }],
      'of-nobody: completed, and no handler has had it',
    ],
    ['says what it has not done', () => [], 'is applied, and the database has not noted it'],
  ] as const)('catches a buyer that %s', async (_what, noted, says) => {
    const wrong = await short({}, noted);
    expect(wrong).toContainEqual(expect.stringContaining(says));
    expect(wrong.filter((one) => !one.includes(says))).toEqual([]);
  });
});
