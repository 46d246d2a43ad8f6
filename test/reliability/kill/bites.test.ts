import { expect, inject, it } from 'vitest';
import { inThisForm } from '../form.ts';
import type { Verdict } from '../processes/judge.ts';
import { run, type RunOptions } from './run.ts';

const CALM = {
  kind: 'SQLite',
  events: 64,
  kills: 0,
  deaths: 0,
  pauses: 0,
  failures: 0,
  hasDuplicates: false,
  concurrency: 8,
  seed: 20_260_103,
  deadlineMs: 480_000,
} as const satisfies Omit<RunOptions, 'mode' | 'shared'>;

interface Bite {
  readonly is: string;
  readonly options: Partial<RunOptions> & Pick<RunOptions, 'mode'>;
  readonly found: keyof Verdict;
  /** What has to have happened, and what is not broken by it. */
  readonly deaths?: 'some';
  readonly pauses?: 1;
  readonly clean?: readonly (keyof Verdict)[];
}

/** A judge that finds nothing may be looking at nothing: here are stores with a mistake, and it has to name each. */
const BITES: readonly Bite[] = [
  {
    is: 'answers before it stores: acknowledged events are lost with the process',
    options: { mode: 'inbox', breaks: 'ack-before-store', kills: 4, concurrency: 1, roles: ['both'] },
    found: 'lost',
  },
  {
    is: 'takes events off the queue before their handlers run: lost where the handler dies',
    options: { mode: 'inbox', breaks: 'pop-then-run', deaths: 4 },
    found: 'lost',
    // One that dies may take the next one with it.
    deaths: 'some',
  },
  ...(['inline', 'inbox'] as const).map((mode): Bite => ({
    is: `does not compare the owner, ${mode}: completed twice, also by a process stopped past its lease`,
    options: { mode, breaks: 'no-owner-check', pauses: 1 },
    found: 'completedTwice',
    pauses: 1,
  })),
  {
    is: 'commits effect and completion one after the other: the effect happens twice',
    options: { mode: 'inline', breaks: 'effect-apart' },
    found: 'effectsTwice',
    clean: ['lost', 'completedTwice'],
  },
];

/** `npm test` has one for each ledger of the database: of completions, and of effects. */
const ROWS = inThisForm(
  BITES,
  ({ found, options }) =>
    (found === 'completedTwice' && options.mode === 'inbox') || found === 'effectsTwice',
);

it.each(ROWS)(
  'the judge catches a store that $is',
  async ({ options, found, deaths, pauses, clean = [] }) => {
    const { verdict, figures } = await run({ ...CALM, ...options, shared: inject('shared') });
    expect(verdict[found]).not.toEqual([]);
    for (const name of clean) expect(verdict[name]).toEqual([]);
    if (deaths) expect(figures.deaths).toBeGreaterThan(0);
    if (pauses !== undefined) expect(figures.pauses).toBe(pauses);
  },
  540_000,
);
