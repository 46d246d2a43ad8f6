import { expect, inject, it } from 'vitest';
import { inThisForm, LONG } from '../form.ts';
import { KEPT } from '../processes/judge.ts';
import { EVERY_ROW, isRow } from '../processes/rows.ts';
import { run } from './run.ts';
import { tell } from '../../support/tell.ts';

/**
 * Each of the eight. The long form's seed is new each time, and printed. The short one kills twice as often as the checker
 * needs to name a broken store (`bites.test.ts`: 4 kills or deaths): each costs the start of a process, which is nearly all
 * that these tests do.
 */
const FORM = LONG
  ? {
      events: 25_000,
      kills: 200,
      deaths: 40,
      pauses: 20,
      failures: 250,
      seed: Date.now() % 2 ** 31,
      deadlineMs: 3_600_000,
    }
  : { events: 300, kills: 8, deaths: 4, pauses: 2, failures: 10, seed: 20_260_102, deadlineMs: 480_000 };

/** `npm test` has one of the eight. */
const ROWS = inThisForm(EVERY_ROW, isRow('SQLite', 'inbox'));

it.each(ROWS)(
  'kill -9 of receivers and workers under load, $kind, $mode: no acknowledged event is lost, none is completed twice, no effect of ctx.transaction happens twice',
  async (row) => {
    const { verdict, unexpected, figures } = await run({
      ...FORM,
      ...row,
      concurrency: 16,
      hasDuplicates: true,
      shared: inject('shared'),
    });
    tell(figures);
    expect(verdict, JSON.stringify(figures)).toEqual(KEPT);
    expect(unexpected).toEqual([]);
    expect(figures).toMatchObject({ acknowledged: FORM.events, kills: FORM.kills });
    // A process may be killed before it stops or dies by itself: how many do is not for the test to say.
    const met = ['deaths', 'pauses', 'failures'] as const;
    for (const name of met) expect(figures[name], name).toBeGreaterThan(0);
    // Redis has no transactions.
    if (row.kind === 'Redis') return;
    for (const name of met) expect(figures[`${name}InTransaction`], name).toBeGreaterThan(0);
  },
  FORM.deadlineMs + 60_000,
);
