import { describe, expect, inject, it } from 'vitest';
import { LONG } from '../form.ts';
import type { Kind } from '../processes/stores.ts';
import type { Mode } from '../processes/wire.ts';
import { run } from './run.ts';

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

const ROWS: readonly (readonly [Kind, readonly Mode[]])[] = LONG
  ? [
      ['SQLite', ['inline', 'inbox']],
      ['Postgres', ['inline', 'inbox']],
      ['MySQL', ['inline', 'inbox']],
      ['Redis', ['inline', 'inbox']],
    ]
  : [
      ['SQLite', ['inline']],
      ['Postgres', ['inbox']],
    ];

const KEPT = {
  lost: [],
  completedTwice: [],
  effectsWrong: [],
  backwards: [],
  doneTwice: [],
  overlapping: [],
  crowding: [],
  afterEnd: [],
  unaccounted: [],
};

describe.each(ROWS)(
  'pollers that are killed amid their polls, sellers that drop webhooks, %s',
  (kind, modes) => {
    it.each(modes)(
      '%s: each task ends and is handled once, by one poll at once, and by none after its end',
      async (mode) => {
        const result = await run({ ...FORM, kind, mode, concurrency: 8, shared: inject('shared') });
        if (LONG) process.stdout.write(`${JSON.stringify(result.figures)}\n`);
        expect(result.verdict, JSON.stringify(result.figures)).toEqual(KEPT);
        expect(result.unresolved).toEqual([]);
        // How many of them are caught amid a poll is not for the test to say.
        expect(result.killed).not.toEqual([]);
      },
      FORM.deadlineMs + 60_000,
    );
  },
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
} as const;

it('the judge catches pollers without a lease, and with too many polls of one seller at once', async () => {
  const { verdict } = await run({
    ...CALM,
    mistake: { breaks: 'no-lease', perSeller: 4 * CROWDED.perSeller },
    deadlineMs: 480_000,
    shared: inject('shared'),
  });
  expect(verdict.overlapping).not.toEqual([]);
  expect(verdict.crowding).not.toEqual([]);
}, 540_000);

it('the judge catches pollers that do not know what other channels told', async () => {
  const { verdict } = await run({
    ...CALM,
    mistake: { breaks: 'no-end' },
    deadlineMs: 480_000,
    shared: inject('shared'),
  });
  expect(verdict.afterEnd).not.toEqual([]);
}, 540_000);
