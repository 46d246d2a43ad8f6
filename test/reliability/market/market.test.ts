import { expect, inject, it } from 'vitest';
import { inThisForm, LONG } from '../form.ts';
import { EVERY_ROW, isRow } from '../processes/rows.ts';
import type { CrashPoint } from './buyer.ts';
import { MARKET_KEPT, type MarketVerdict } from './judge.ts';
import { run, type RunOptions } from './run.ts';
import { tell } from '../../support/tell.ts';

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

/** `npm test` and its rows have each store in one of the modes; the long form has both. */
const ROWS = inThisForm(
  EVERY_ROW.filter(
    ({ kind, mode }) => LONG || mode === (kind === 'SQLite' || kind === 'MySQL' ? 'inline' : 'inbox'),
  ),
  isRow('SQLite', 'inline'),
);

it.each(ROWS)(
  'a seller that answers at once, late or never, with kill -9 on both sides, $kind, $mode: each result is handled once, or its operation is named orphaned',
  async (row) => {
    const { verdict, unexpected, figures, points } = await run({
      ...FORM,
      ...row,
      concurrency: 8,
      shared: inject('shared'),
    });
    tell(figures);
    expect(verdict, JSON.stringify(figures)).toEqual(MARKET_KEPT);
    expect(unexpected).toEqual([]);
    expect(figures).toMatchObject({ kills: FORM.kills, sellerKills: FORM.sellerKills });
    // Each order that a seller took on; how many are begun again under another name is the machine's.
    expect(figures['tasks']).toBeGreaterThanOrEqual(FORM.orders / 3);
    // Each channel handles some results: else a judge that excuses too many would see nothing. Of few orders one may have none.
    const handled = ['webhook', 'poll', 'response'].map((channel) => Number(figures[channel]));
    expect(LONG ? Math.min(...handled) : Math.max(...handled), JSON.stringify(figures)).toBeGreaterThan(0);
    // Of few orders some die with others before they come to it.
    if (LONG) expect(points).toEqual(CRASH_POINTS);
  },
  FORM.deadlineMs + 60_000,
);

/** A judge that finds nothing may be looking at nothing: here are buyers with a mistake, and it has to name each. */
const CALM = {
  kind: 'SQLite',
  mode: 'inbox',
  kills: 0,
  sellerKills: 0,
  diesOf: 3,
  seed: 1,
  concurrency: 4,
  deadlineMs: 480_000,
} as const;

/** By mistake: what a buyer makes wrong, and what its judge has to find. */
const MISTAKES = {
  'does not keep what the other channels told: handled twice': [
    {
      breaks: 'knows-no-channel',
      orders: 16,
      points: [],
      agents: [{ name: 'prompt', transport: 'tool', drops: 0 }],
    },
    'completedTwice',
    'lost',
  ],
  'calls first and registers afterwards: lost with its process': [
    {
      registersLate: true,
      orders: 9,
      points: ['after call'],
      agents: [{ name: 'silent', transport: 'tool', drops: 100 }],
    },
    'lost',
    'completedTwice',
  ],
  'repeats no call that was not answered: orphaned at a seller that would have known its key': [
    {
      orphansAll: true,
      orders: 9,
      points: ['after create'],
      agents: [{ name: 'silent', transport: 'tool', drops: 100 }],
    },
    'orphanedWrongly',
    'completedTwice',
  ],
} as const satisfies Record<
  string,
  readonly [Partial<RunOptions> & { readonly orders: number }, keyof MarketVerdict, keyof MarketVerdict]
>;

/** `npm test` has the first. */
it.each(inThisForm(Object.entries(MISTAKES), (_mistake, index) => index === 0))(
  'the judge catches a buyer that %s',
  async (_is, [mistake, found, clean]) => {
    const { verdict } = await run({ ...CALM, ...mistake, shared: inject('shared') });
    expect(verdict[clean]).toEqual([]);
    expect(verdict[found]).not.toEqual([]);
  },
  540_000,
);
