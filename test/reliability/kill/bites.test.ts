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
  readonly met?: readonly ('deaths' | 'pauses' | 'deathsInTransaction' | 'overtakenInTransaction')[];
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
    met: ['deaths'],
  },
  ...(['inline', 'inbox'] as const).map((mode): Bite => ({
    is: `does not compare the owner, ${mode}: completed twice, also by a process stopped past its lease`,
    options: { mode, breaks: 'no-owner-check', pauses: 1 },
    found: 'completedTwice',
    met: ['pauses'],
  })),
  {
    is: 'commits effect and completion one after the other: the effect happens twice where a process dies between the two',
    options: { mode: 'inline', breaks: 'effect-apart', deaths: 2 },
    found: 'effectsTwice',
    met: ['deathsInTransaction'],
    clean: ['lost', 'completedTwice'],
  },
  {
    is: 'commits effect and completion one after the other: the effect of a process stopped past its lease stays',
    options: { mode: 'inbox', breaks: 'effect-apart', pauses: 2 },
    found: 'effectsTwice',
    met: ['overtakenInTransaction'],
    clean: ['lost', 'completedTwice'],
  },
];

/**
 * `npm test` has one of what handlers were told, and one of the effects that the database keeps. What it keeps of
 * completions is shown to count a second one in `processes/bites.test.ts`: no broken store here writes one.
 */
const ROWS = inThisForm(
  BITES,
  ({ options: { mode, breaks } }) =>
    (breaks === 'no-owner-check' && mode === 'inbox') || (breaks === 'effect-apart' && mode === 'inline'),
);

it.each(ROWS)(
  'the judge catches a store that $is',
  async ({ options, found, met = [], clean = [] }) => {
    const { verdict, figures } = await run({ ...CALM, ...options, shared: inject('shared') });
    expect(verdict[found]).not.toEqual([]);
    for (const name of clean) expect(verdict[name]).toEqual([]);
    for (const name of met) expect(figures[name], name).toBeGreaterThan(0);
  },
  540_000,
);
