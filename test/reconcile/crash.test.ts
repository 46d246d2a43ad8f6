import { describe, expect, inject, it } from 'vitest';
import { BACKENDS } from '../reliability/processes/backends.ts';
import type { Kind } from '../reliability/processes/stores.ts';
import { LONG } from '../reliability/form.ts';
import { crash, type CrashOptions } from './crash/run.ts';
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
      const { place, remove } = await BACKENDS[kind](inject('shared'));
      const seed = LONG ? Date.now() % 2 ** 31 : 7;
      try {
        const options = { place, mode: kind === 'Postgres' ? 'inbox' : 'inline', seed } as const;
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
