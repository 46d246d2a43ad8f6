import { describe, expect, inject, it } from 'vitest';
import { LONG } from '../form.ts';
import type { Kind } from '../processes/stores.ts';
import type { Mode } from '../processes/wire.ts';
import type { CrashPoint } from './buyer.ts';
import { run } from './run.ts';

const FORM = LONG
  ? {
      orders: 1_000,
      kills: 60,
      sellerKills: 20,
      diesOf: 9,
      seed: Date.now() % 2 ** 31,
      deadlineMs: 3_600_000,
    }
  : { orders: 24, kills: 2, sellerKills: 1, diesOf: 3, seed: 20_261_125, deadlineMs: 480_000 };

const CRASH_POINTS: readonly CrashPoint[] = [
  'after call',
  'after create',
  'after observe',
  'after refusal',
  'after settle',
  'before create',
  'in call',
];

const MODES: readonly Mode[] = ['inline', 'inbox'];
/** Each store in one of the modes; in the long form in both. */
const ROWS: readonly (readonly [Kind, readonly Mode[]])[] = [
  ['SQLite', LONG ? MODES : ['inline']],
  ['Postgres', LONG ? MODES : ['inbox']],
  ['MySQL', LONG ? MODES : ['inline']],
  ['Redis', LONG ? MODES : ['inbox']],
];

describe.each(ROWS)(
  'a seller that answers at once, late or never, with kill -9 on both sides, %s',
  (kind, modes) => {
    it.each(modes)(
      '%s: each result is handled once, or its operation is named orphaned',
      async (mode) => {
        const result = await run({ ...FORM, kind, mode, concurrency: 8, shared: inject('shared') });
        if (LONG) process.stdout.write(`${JSON.stringify(result.figures)}\n`);
        const kept = { lost: [], completedTwice: [], effectsWrong: [], backwards: [], doneTwice: [] };
        expect(result.verdict, JSON.stringify(result.figures)).toEqual(kept);
        expect(result.unexpected).toEqual([]);
        expect(result.figures).toMatchObject({ kills: FORM.kills, sellerKills: FORM.sellerKills });
        // Of few orders some die with others before they come to it.
        if (LONG) expect(result.points).toEqual(CRASH_POINTS);
      },
      FORM.deadlineMs + 60_000,
    );
  },
);

/** A judge that finds nothing may be looking at nothing: here are buyers with a mistake, and it has to name each. */
const CALM = {
  kind: 'SQLite',
  kills: 0,
  sellerKills: 0,
  diesOf: 3,
  seed: 1,
  concurrency: 4,
  deadlineMs: 480_000,
} as const;

it('the judge catches a buyer that does not keep what the other channels told: handled twice', async () => {
  const { verdict } = await run({
    ...CALM,
    mode: 'inbox',
    breaks: 'knows-no-channel',
    orders: 16,
    points: [],
    agents: [{ name: 'prompt', transport: 'tool', drops: 0 }],
    shared: inject('shared'),
  });
  expect(verdict.lost).toEqual([]);
  expect(verdict.completedTwice).not.toEqual([]);
}, 540_000);

it('the judge catches a buyer that calls first and registers afterwards: lost with its process', async () => {
  const { verdict } = await run({
    ...CALM,
    mode: 'inbox',
    registersLate: true,
    orders: 9,
    points: ['after call'],
    agents: [{ name: 'silent', transport: 'tool', drops: 100 }],
    shared: inject('shared'),
  });
  expect(verdict.lost).not.toEqual([]);
  expect(verdict.completedTwice).toEqual([]);
}, 540_000);
