import { expect, inject, it } from 'vitest';
import { inThisForm, LONG } from '../form.ts';
import { KEPT } from '../processes/judge.ts';
import { EVERY_ROW, isRow } from '../processes/rows.ts';
import { run } from './run.ts';
import { tell } from '../../support/tell.ts';

const FORM = LONG
  ? { tasks: 3_000, kills: 60, seed: Date.now() % 2 ** 31, deadlineMs: 3_600_000 }
  : { tasks: 48, kills: 3, seed: 20_261_124, deadlineMs: 480_000 };

/** `npm test` has one of them. */
const ROWS = inThisForm(EVERY_ROW, isRow('SQLite', 'inbox'));

it.each(ROWS)(
  'the end of a task told by webhook, answer and poll, with kill -9, $kind, $mode: handled and completed once, whichever channel tells it',
  async (row) => {
    const { verdict, unexpected, figures } = await run({
      ...FORM,
      ...row,
      concurrency: 8,
      shared: inject('shared'),
    });
    tell(figures);
    expect(verdict, JSON.stringify(figures)).toEqual(KEPT);
    expect(unexpected).toEqual([]);
    // Twelve reports of each six tasks (`WAYS`).
    expect(figures).toMatchObject({ tasks: FORM.tasks, told: 2 * FORM.tasks, kills: FORM.kills });
  },
  FORM.deadlineMs + 60_000,
);

it.each(inThisForm(['knows-no-channel'] as const, () => true))(
  'the judge catches a store that does not keep by which channel a task’s end was told: %s',
  async (breaks) => {
    const { verdict } = await run({
      kind: 'SQLite',
      mode: 'inbox',
      breaks,
      tasks: 12,
      kills: 0,
      seed: 1,
      concurrency: 4,
      deadlineMs: 480_000,
      shared: inject('shared'),
    });
    expect(verdict.lost).toEqual([]);
    expect(verdict.completedTwice).not.toEqual([]);
  },
  540_000,
);
