import { describe, expect, inject, it } from 'vitest';
import { run, type RunOptions } from './run.ts';

/** A checker that finds nothing may be looking at nothing: here are stores with a mistake, and it has to name each. */
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

const TEST_MS = 540_000;

describe('the checker catches a store that', () => {
  it(
    'answers before it stores: acknowledged events are lost with the process',
    async () => {
      const { verdict } = await run({
        ...CALM,
        mode: 'inbox',
        breaks: 'ack-before-store',
        kills: 4,
        concurrency: 1,
        roles: ['both'],
        shared: inject('shared'),
      });
      expect(verdict.lost).not.toEqual([]);
    },
    TEST_MS,
  );

  it(
    'takes events off the queue before their handlers run: lost where the handler dies',
    async () => {
      const { verdict, figures } = await run({
        ...CALM,
        mode: 'inbox',
        breaks: 'pop-then-run',
        deaths: 4,
        shared: inject('shared'),
      });
      // One that dies may take the next one with it.
      expect(figures.deaths).toBeGreaterThan(0);
      expect(verdict.lost).not.toEqual([]);
    },
    TEST_MS,
  );

  it.each(['inline', 'inbox'] as const)(
    'does not compare the owner, %s: completed twice, also by a process stopped past its lease',
    async (mode) => {
      const { verdict, figures } = await run({
        ...CALM,
        mode,
        breaks: 'no-owner-check',
        pauses: 1,
        shared: inject('shared'),
      });
      expect(figures.pauses).toBe(1);
      expect(verdict.completedTwice).not.toEqual([]);
    },
    TEST_MS,
  );

  it(
    'commits effect and completion one after the other: the effect happens twice',
    async () => {
      const { verdict } = await run({
        ...CALM,
        mode: 'inline',
        breaks: 'effect-apart',
        shared: inject('shared'),
      });
      expect(verdict).toMatchObject({ lost: [], completedTwice: [] });
      expect(verdict.effectsTwice).not.toEqual([]);
    },
    TEST_MS,
  );
});
