import { expect, inject, it } from 'vitest';
import { inThisForm, LONG } from '../form.ts';
import { MARKET_KEPT } from '../market/judge.ts';
import { EVERY_ROW, isRow } from '../processes/rows.ts';
import { run } from './run.ts';
import { tell } from '../../support/tell.ts';

/** More is to be polled than may be at once. */
const CROWDED = { fastMs: 300, slowMs: 1_200, callMs: 2_500, perSeller: 2 } as const;

const FORM = LONG
  ? {
      orders: 150,
      kills: 12,
      withinMs: 8_000,
      polls: { fastMs: 2_000, slowMs: 4_000, callMs: 2_500, perSeller: 8 },
      seed: Date.now() % 2 ** 31,
      deadlineMs: 3_600_000,
    }
  : {
      orders: 24,
      kills: 2,
      withinMs: 1_500,
      polls: CROWDED,
      seed: 20_261_125,
      deadlineMs: 480_000,
    };

/** `npm test` and its rows have two, the long form each store in both modes. */
const ROWS = inThisForm(
  EVERY_ROW.filter((row) => LONG || isRow('SQLite', 'inline')(row) || isRow('Postgres', 'inbox')(row)),
  isRow('SQLite', 'inline'),
);

const POLLS_KEPT = { ...MARKET_KEPT, overlapping: [], crowding: [], afterEnd: [], unaccounted: [] };

it.each(ROWS)(
  'pollers that are killed amid their polls, sellers that drop webhooks, $kind, $mode: each task ends and is handled once, by one poll at once, and by none after its end',
  async (row) => {
    const { verdict, unresolved, figures, killed } = await run({
      ...FORM,
      ...row,
      concurrency: 8,
      shared: inject('shared'),
    });
    tell(figures);
    expect(verdict, JSON.stringify(figures)).toEqual(POLLS_KEPT);
    expect(unresolved).toEqual([]);
    expect(killed).toHaveLength(FORM.kills);
    expect(figures['tasks']).toBeGreaterThanOrEqual(FORM.orders / 2);
  },
  FORM.deadlineMs + 60_000,
);

const CALM = {
  kind: 'SQLite',
  mode: 'inbox',
  orders: 15,
  kills: 0,
  withinMs: 1_500,
  polls: CROWDED,
  seed: 1,
  concurrency: 8,
  deadlineMs: 480_000,
} as const;

/** By mistake of all pollers: what the judge has to find. */
const MISTAKES = [
  {
    is: 'without a lease, and with too many polls of one seller at once',
    mistake: { breaks: 'no-lease', perSeller: 4 * CROWDED.perSeller },
    found: ['overlapping', 'crowding'],
  },
  { is: 'that do not know what other channels told', mistake: { breaks: 'no-end' }, found: ['afterEnd'] },
] as const;

/** `npm test` has the judge's own tests in their place (`judge.test.ts`). */
it.each(inThisForm(MISTAKES, () => false))(
  'the judge catches pollers $is',
  async ({ mistake, found }) => {
    const { verdict } = await run({ ...CALM, mistake, shared: inject('shared') });
    for (const name of found) expect(verdict[name]).not.toEqual([]);
  },
  540_000,
);
