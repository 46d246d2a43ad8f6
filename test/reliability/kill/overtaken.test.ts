import { expect, inject, it } from 'vitest';
import { LONG } from '../form.ts';
import { KEPT } from '../processes/judge.ts';
import { EVERY_ROW } from '../processes/rows.ts';
import { tell } from '../../support/tell.ts';
import { run } from './run.ts';

/** Nobody is killed: a process that stopped is to go on when another one has done its work. */
const CALM = { kills: 0, deaths: 0, failures: 0, concurrency: 16, hasDuplicates: true } as const;

/** The last stop is in a transaction, and no other one ends it before its event is applied. */
const FORM = LONG
  ? { events: 10_000, pauses: 10, seed: Date.now() % 2 ** 31, deadlineMs: 3_600_000 }
  : { events: 400, pauses: 2, seed: 20_260_104, deadlineMs: 480_000 };

/** Redis has no transactions. The long form has the six others, `npm run test:rows` two. */
const ROWS = EVERY_ROW.filter(
  ({ kind, mode }) =>
    kind !== 'Redis' && (LONG || (mode === 'inbox' && (kind === 'SQLite' || kind === 'Postgres'))),
);

it.each(ROWS)(
  'processes stop in handlers under load, $kind, $mode: what another one has completed meanwhile is completed once, and its effect in ctx.transaction happens once',
  async (row) => {
    const { verdict, unexpected, figures } = await run({
      ...CALM,
      ...FORM,
      ...row,
      shared: inject('shared'),
    });
    tell(figures);
    expect(verdict, JSON.stringify(figures)).toEqual(KEPT);
    expect(unexpected).toEqual([]);
    const { events, pauses } = FORM;
    expect(figures).toMatchObject({ acknowledged: events, pauses, pausesInTransaction: pauses / 2 });
    expect(figures.overtakenInTransaction).toBeGreaterThan(0);
  },
  FORM.deadlineMs + 60_000,
);
