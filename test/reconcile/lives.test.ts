import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import type { Store } from '../../src/stores/index.ts';
import { generateKey } from '../../src/sender/sign.ts';
import { inThisForm, LONG } from '../reliability/form.ts';
import { randomOf } from '../reliability/processes/random.ts';
import { virtualClock } from '../support/virtual-clock.ts';
import { fleetOf } from './market/fleet.ts';
import * as controls from './market/life-controls.ts';
import { DAY, HOUR, type Life, livesOf, type Seller, SELLERS } from './market/lives.ts';
import { live, type Lived, type LiveOptions } from './market/live.ts';
import type { Span } from './market/zones.ts';
import { tell } from '../support/tell.ts';

/* Media buys that are impaired and end, in a market of reports: see market/live.ts. */

const BEGIN = Date.parse('2026-02-28T18:00:00Z');

const night = (day: number, hours: number): Span => {
  const start = BEGIN + day * DAY + 11 * HOUR;
  return { start, end: start + hours * HOUR };
};

type Open = LiveOptions['open'];

const STORES: readonly (readonly [string, (folder: string) => Open])[] = [
  [
    'memory',
    () => {
      const states: ReturnType<typeof createMemoryState>[] = [];
      return (generation) => memoryStore({ state: (states[generation] ??= createMemoryState()) });
    },
  ],
  [
    'SQLite',
    (folder) =>
      (generation): Store =>
        sqliteStore(join(folder, `${generation}.sqlite`)),
  ],
];

/** A market of so many days: two nights, in the second of which the store is lost. */
const MARKETS = {
  short: { length: 5, each: 3, many: 0, days: [2, 3], dark: [night(1, 5), night(2, 4)], kills: 4 },
  rows: { length: 6, each: 3, many: 110, days: [2, 4], dark: [night(1, 5), night(3, 4)], kills: 8 },
  long: {
    length: 30,
    each: 8,
    many: 130,
    days: [5, 25],
    dark: [night(2, 5), night(9, 30), night(16, 4)],
    kills: 12,
  },
} as const;

/** Of the long form: a month takes minutes. */
const LIMIT_MS = 4 * HOUR;

/** A new one in the long form, which is printed. */
const SEEDS: readonly number[] = LONG ? [Date.now() % 2 ** 31] : [1];

type Market = (typeof MARKETS)[keyof typeof MARKETS];

const ROWS = inThisForm(
  [
    { name: 'memory', mode: 'inline', market: LONG ? MARKETS.long : MARKETS.short, isShort: true },
    { name: 'SQLite', mode: 'inbox', market: LONG ? MARKETS.long : MARKETS.rows, isShort: false },
  ] as const,
  ({ isShort }) => isShort,
);

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function opening(name: string): Open {
  const folder = mkdtempSync(join(tmpdir(), 'lives-'));
  folders.push(folder);
  const open = STORES.find(([known]) => known === name)?.[1];
  if (!open) throw new Error(`no store ${name}`);
  return open(folder);
}

function played(market: Market, seed: number, more: Pick<LiveOptions, 'open' | 'mode'>): Promise<Lived> {
  const { length, dark, kills } = market;
  const lives = livesOf({ ...market, seed, sellers: SELLERS });
  const last = dark.at(-1);
  return live({
    ...more,
    lives,
    begin: BEGIN,
    end: BEGIN + length * DAY,
    seed,
    processes: 2,
    kills,
    dark,
    ...(last && { lostAt: last.start }),
  });
}

describe.each(ROWS)('media buys that are impaired and end, $name, $mode', ({ name, mode, market }) => {
  it.each(SEEDS)(
    'are to the buyer what they are to their sellers, seed %i',
    async (seed) => {
      const { wrong, ...figures } = await played(market, seed, { open: opening(name), mode });
      tell({ name, mode, seed, ...figures });
      expect(wrong, `seed ${seed}`).toEqual([]);
      // Each channel had its part, and so did each loss.
      expect(figures.toldByWebhook).toBeGreaterThan(20);
      expect(figures.toldByPull).toBeGreaterThan(20);
      expect(figures.missedAlarms).toBeGreaterThan(5);
      expect(figures.kills).toBeGreaterThan(5);
      expect(figures.judged).toBeGreaterThan(100);
      expect(figures.byPull).toBeGreaterThan(2);
    },
    LIMIT_MS,
  );
});

it('a process that is to die is not killed again, and counts when it has died', async () => {
  const clock = virtualClock(BEGIN);
  const store = memoryStore();
  const agentUrl = 'https://seller.example/mcp';
  const keys = new Map([[agentUrl, await generateKey('ed25519', 'webhook-signing', { kid: 'key' })]]);
  const fleet = fleetOf(
    () => ({
      store,
      clock,
      call: async () => ({}),
      mode: 'inline',
      keys,
      handle: () => undefined,
      alarmed: () => undefined,
      reconcile: { schedule: () => undefined },
      lookMs: HOUR,
    }),
    randomOf(1),
  );
  try {
    await fleet.begin();
    await fleet.begin();
    for (let kills = 0; kills < 5; kills += 1) fleet.kill();
    expect(fleet.deaths()).toBe(0);
    const create = (): Promise<unknown> =>
      fleet.ask(({ registrations }) =>
        registrations.create({ agentUrl, taskType: 'create_media_buy', arguments: {} }),
      );
    for (let asked = 0; asked < 200; asked += 1) await create();
    expect(fleet.deaths()).toBe(2);
    fleet.killAll();
    expect(fleet.deaths()).toBe(2);
    await fleet.begin();
    fleet.killAll();
    expect(fleet.deaths()).toBe(3);
  } finally {
    await fleet.end();
    clock.end();
    vi.useRealTimers();
  }
});

/** One of each kind of mistake; the others are rows. */
const IN_SHORT: ReadonlySet<string> = new Set([
  'that forgets to tell ends',
  'that tells twice',
  'that trusts an old answer',
  'that cannot wait',
  'that closes too early',
  'that is too strict about totals',
]);

/** Buyers that are wrong: the market has to notice each of them. */
describe('a market of lives catches a buyer', () => {
  const seller = (name: string): Seller => {
    const found = SELLERS.find((one) => one.name === name);
    if (!found) throw new Error(`no seller ${name}`);
    return found;
  };
  const few = (names: readonly string[], days: readonly [number, number], each = 4): readonly Life[] =>
    livesOf({ seed: 3, sellers: names.map(seller), each, many: 0, days, dark: [] });

  const isShort = ([what]: readonly [string, ...unknown[]]): boolean => IN_SHORT.has(what);

  it.each(
    inThisForm(
      [
        ['that forgets to tell ends', controls.forgetsEnds, ['loses'], 'the handlers have'],
        ['that tells twice', controls.tellsTwice, ['loses'], 'was pulled twice'],
        [
          'that tells twice while it is compared',
          controls.tellsTwiceWhileCompared(),
          ['loses'],
          'was pulled twice',
        ],
        ['that trusts an old answer', controls.trustsOldAnswers, ['hours-old'], 'the handlers have'],
        ['that looks away', controls.looksAway, ['loses'], 'the handlers have'],
        ['that asks twice', controls.asksTwice, ['keeps-its-word'], 'calls, and'],
        [
          'that asks everybody',
          controls.asksEverybody,
          ['out-of-band'],
          'is asked for impairments, and tells of none',
        ],
        ['that cannot wait', controls.cannotWait, ['keeps-its-word'], 'every webhook came in time'],
        ['that hears no alarm', controls.isDeaf, ['loses'], 'and nobody was told'],
      ] as const,
      isShort,
    ),
  )('%s', async (_what, wrongly, names, says) => {
    const { wrong } = await caught(few(names, [2, 3]), 2, wrongly);
    expect(wrong).toContainEqual(expect.stringContaining(says));
  });

  it.each(
    inThisForm(
      [
        ['that closes too early', controls.closesEarly, 'is closed before its end'],
        ['that forgets a final report', controls.forgetsFinals, 'final is absent, and was received'],
        ['that is too strict about totals', controls.isStrict, 'times to differ'],
        ['that is too lenient about totals', controls.isLenient, 'and nobody was told'],
        ['whose alarms come twice', controls.alarmsTwice, 'times to differ'],
      ] as const,
      isShort,
    ),
  )('%s', async (_what, wrongly, says) => {
    const { wrong } = await caught(few(['three-point-zero'], [2, 2], 15), 3.5, wrongly);
    expect(wrong).toContainEqual(expect.stringContaining(says));
  });

  async function caught(
    lives: readonly Life[],
    days: number,
    wrongly: NonNullable<LiveOptions['wrongly']>,
  ): Promise<Lived> {
    return live({
      lives,
      open: opening('memory'),
      mode: 'inline',
      begin: BEGIN,
      end: BEGIN + days * DAY,
      seed: 1,
      processes: 1,
      kills: 0,
      dark: [],
      stepMs: days > 3 ? DAY : 3 * HOUR,
      wrongly,
    });
  }
});
